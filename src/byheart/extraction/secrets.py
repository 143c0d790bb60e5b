"""Find keys, access tokens and passwords in a text, by well-known patterns, and remove them.

The patterns are data in secret_patterns.json. They are applied to a text in their order. A pattern
is tried only if the text contains one of its keywords, so most texts need hardly any patterns. The
hash of a commit, a UUID or a picture is no secret.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from byheart.extraction.secret_blocks import FINDERS
from byheart.extraction.secret_judges import MARK, Found, judge
from byheart.extraction.secret_rules import Rule, load_rules
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

# An access token is one run of such characters. Most texts have few such runs, so searching only
# the runs for the keywords of access tokens is far faster than searching the whole text.
_RUN = late_pattern(r"[A-Za-z0-9_~./:@+=-]{15,}")
_CAPITALS = late_pattern(r"[A-Z]+")
# Most keywords have one of these parts. A text without the part has none of its keywords, so
# about 40 searches of a text do for the 177 keywords outside of runs.
_COMMON_PARTS = ("key", "pass", "phrase", "frase", "recover", "seed", "wallet", "pwd", *"$:_-")


@dataclass(frozen=True, slots=True)
class Redacted:
    """Hold a text without its secrets, and the number of secrets of each kind."""

    text: str
    found: Mapping[str, int]

    @property
    def count(self) -> int:
        """Count the secrets that were removed."""
        return sum(self.found.values())


def redact(text: str, *, keep_lines: bool = False) -> Redacted:
    """Replace each secret by `[redacted: kind]`.

    With `keep_lines`, the line breaks of a secret of several lines stay, so that every line after
    the secret keeps its number.
    """
    counts: Counter[str] = Counter()
    rules, forms = load_rules(), _Forms(text)
    left = forms.rule_numbers()
    while left:
        number = left.pop(0)
        rule = rules[number]
        if found := list(_find(rule, forms, forms.keywords_of(rule))):
            counts.update(each.kind for each in found)
            forms = _Forms(_replace(forms.text, found, keep_lines=keep_lines))
            left = [each for each in forms.rule_numbers() if each > number]
    return Redacted(forms.text, dict(counts))


class _Group(NamedTuple):
    """Hold keywords that occur only in a text that has their common part.

    `common` is `None` for keywords with characters outside ASCII, which are searched only in texts
    that have such characters.
    """

    common: str | None
    keywords: Sequence[tuple[str, Sequence[int]]]


@cache
def _load_keywords() -> Mapping[str, Sequence[_Group]]:
    """Return the keywords of each form of a text, with the numbers of the rules that have them."""
    numbers: dict[str, dict[str, list[int]]] = {}
    for number, rule in enumerate(load_rules()):
        for keyword in rule.keywords:
            numbers.setdefault(_form_of(rule), {}).setdefault(keyword, []).append(number)
    forms: dict[str, Sequence[_Group]] = {}
    for form, keywords in numbers.items():
        groups: dict[str | None, list[tuple[str, Sequence[int]]]] = {}
        for keyword, rules in keywords.items():
            groups.setdefault(_common_part(keyword), []).append((keyword, rules))
        forms[form] = [_Group(*each) for each in groups.items()]
    return forms


def _common_part(keyword: str) -> str | None:
    if not keyword.isascii():
        return None
    return next((part for part in _COMMON_PARTS if part in keyword), keyword)


def _form_of(rule: Rule) -> str:
    """Name the form of a text in which the keywords of a rule are looked for."""
    if rule.in_runs:
        return "runs"
    return "plain" if rule.ignore_case else "text"


class _Forms:
    """Hold a text in the forms that are searched for keywords."""

    __slots__ = ("plain", "runs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # The text in lower case, with every character at its old position.
        self.plain = text.lower()
        if len(self.plain) != len(text):  # a capital letter may become two characters
            self.plain = _CAPITALS.sub(lambda match: match[0].lower(), text)
        self.runs = "\n".join(_RUN.findall(text))

    def rule_numbers(self) -> list[int]:
        """Return the numbers of the rules that have a keyword in the text, in order."""
        found: set[int] = set()
        for form, groups in _load_keywords().items():
            where: str = getattr(self, form)
            if not where:  # most texts have no long run of token characters
                continue
            is_ascii = where.isascii()
            for common, keywords in groups:
                if is_ascii if common is None else common not in where:
                    continue
                for keyword, rules in keywords:
                    if keyword in where:
                        found.update(rules)
        return sorted(found)

    def keywords_of(self, rule: Rule) -> list[str]:
        """Return the keywords of a rule that occur in the text."""
        where: str = getattr(self, _form_of(rule))
        return [keyword for keyword in rule.keywords if keyword in where]

    def compared(self, rule: Rule) -> str:
        """Return the form of the text that is compared with the keywords of a rule."""
        return self.plain if rule.ignore_case else self.text


def _find(rule: Rule, forms: _Forms, keywords: list[str]) -> Iterable[Found]:
    """Find the secrets of a rule, from left to right, without overlaps."""
    if rule.finder is not None:
        return FINDERS[rule.finder](rule, forms.text)
    if not rule.anchored:
        return _judged(rule, rule.pattern.finditer(forms.text))
    return _judged(rule, _at_keywords(rule, forms, keywords))


def _judged(rule: Rule, matches: Iterable[re.Match[str]]) -> Iterator[Found]:
    for match in matches:
        found = judge(rule, match)
        if found is not None:
            yield found


def _at_keywords(rule: Rule, forms: _Forms, keywords: list[str]) -> Iterator[re.Match[str]]:
    """Match a pattern only at the positions of its keywords."""
    where = forms.compared(rule)
    places = {at for keyword in keywords for at in _places(where, keyword)}
    behind = 0
    for at in sorted(places):
        if at >= behind and (match := rule.pattern.match(forms.text, at)) is not None:
            yield match
            behind = match.end()


def _places(text: str, keyword: str) -> Iterator[int]:
    at = text.find(keyword)
    while at >= 0:
        yield at
        at = text.find(keyword, at + 1)


def _replace(text: str, found: Iterable[Found], *, keep_lines: bool) -> str:
    parts: list[str] = []
    at = 0
    for start, end, kind in found:
        breaks = text.count("\n", start, end) if keep_lines else 0
        parts += (text[at:start], f"{MARK}{kind}]", "\n" * breaks)
        at = end
    return "".join((*parts, text[at:]))
