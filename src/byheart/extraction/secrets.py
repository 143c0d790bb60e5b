"""Find keys, access tokens and passwords in a text, by well-known patterns, and remove them.

The patterns are data in secret_patterns.json. They are applied to a text in their order. A pattern
is tried only if the text contains one of its keywords, so most texts need hardly any patterns. The
hash of a commit, a UUID or a picture is no secret.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from byheart.extraction.secret_blocks import FINDERS
from byheart.extraction.secret_judges import MARK, Found, judge
from byheart.extraction.secret_rules import Rule, load_rules

# An access token is one run of such characters. Most texts have few such runs, so searching only
# the runs for the keywords of access tokens is far faster than searching the whole text.
_RUN = re.compile(r"[A-Za-z0-9_~./:@+=-]{15,}")
_CAPITALS = re.compile(r"[A-Z]+")


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
    forms = _Forms(text)
    for rule in load_rules() if forms.runs else _load_rules_outside_runs():
        if not (keywords := forms.keywords_of(rule)):
            continue
        if found := list(_find(rule, forms, keywords)):
            counts.update(each.kind for each in found)
            forms = _Forms(_replace(forms.text, found, keep_lines=keep_lines))
    return Redacted(forms.text, dict(counts))


@cache
def _load_rules_outside_runs() -> tuple[Rule, ...]:
    return tuple(rule for rule in load_rules() if not rule.in_runs)


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

    def keywords_of(self, rule: Rule) -> list[str]:
        """Return the keywords of a rule that occur in the text."""
        where = self.runs if rule.in_runs else self.compared(rule)
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
