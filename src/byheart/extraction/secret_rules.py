"""Load the patterns of secrets from secret_patterns.json, once, on first use.

The file is JSON rather than TOML because every hook loads it: JSON takes well under a millisecond,
TOML more than ten. Each rule has examples and counter-examples, which the tests run.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

_DATA = "secret_patterns.json"
_MADE_UP = late_pattern(r"<(an|hex|up|low|let|dig):(\d+)>")
_ALPHABETS: Mapping[str, str] = {
    "an": string.ascii_letters + string.digits,
    "hex": "0123456789abcdef",
    "up": string.ascii_uppercase + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "let": string.ascii_letters,
    "dig": string.digits[1:],
}


# Not slotted, because the compiled pattern is cached on the rule.
@dataclass(frozen=True)
class Rule:
    """Describe one pattern of a secret: how to find it, how to judge it, and what to call it.

    `keywords` are a cheap first check: the pattern is tried only if the text contains one of them.
    """

    name: str
    kind: str
    keywords: tuple[str, ...]
    regex: str | None = None
    ignore_case: bool = False
    in_runs: bool = False
    """Its keywords are looked for in long runs of token characters only."""
    anchored: bool = True
    """Every match begins at a keyword, so that the pattern is tried nowhere else."""
    groups: tuple[str, ...] = ()
    """The groups that may hold the secret; without any, the whole match is the secret."""
    judge: str | None = None
    finder: str | None = None
    languages: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compile the pattern on first use, since most rules are never tried."""
        assert self.regex is not None, "a rule with a finder of its own has no pattern"
        return re.compile(self.regex, re.IGNORECASE if self.ignore_case else 0)


@dataclass(frozen=True, slots=True)
class Words:
    """Hold the words that distinguish prose about a password from a password."""

    told: frozenset[str]
    """Words that describe a password and are none: required, wrong, stored."""
    told_endings: tuple[str, ...]
    function_words: frozenset[str]
    """Words of sentences that no list of a wallet's words has."""


@cache
def load_rules() -> tuple[Rule, ...]:
    """Return all rules, in the order in which they are applied."""
    data = _read()
    return tuple(_rule(each, data["macros"]) for each in data["rules"])


@cache
def load_words() -> Words:
    """Return the words that judges compare with, of all languages together."""
    words: Mapping[str, Mapping[str, str]] = _read()["words"]
    told, endings, function_words = (
        [word for text in words[name].values() for word in text.split()]
        for name in ("told", "told_endings", "function_words")
    )
    return Words(frozenset(told), tuple(endings), frozenset(function_words))


@cache
def expand_macro(name: str) -> str:
    """Return a part of a pattern that several rules share."""
    return str(_read()["macros"][name])


@cache
def _read() -> Mapping[str, Any]:
    text = Path(__file__).with_name(_DATA).read_text(encoding="utf-8")
    data: Mapping[str, Any] = json.loads(text)
    return data


def _rule(given: Mapping[str, Any], macros: Mapping[str, str]) -> Rule:
    fields = dict(given)
    group = fields.pop("group", ())
    fields["groups"] = (group,) if isinstance(group, str) else tuple(group)
    regex = fields.get("regex")
    if regex is not None and "{{" in regex:
        for name, part in macros.items():
            regex = regex.replace("{{" + name + "}}", part)
        fields["regex"] = regex
    for name in ("keywords", "languages", "examples", "counter_examples"):
        fields[name] = tuple(fields.get(name, ()))
    return Rule(**fields)


def fill_in(example: str) -> str:
    """Replace placeholders such as `<hex:32>` by made-up characters, the same ones each time."""

    def made_up(match: re.Match[str]) -> str:
        chance = random.Random(f"{example}{match.start()}")
        alphabet, length = _ALPHABETS[match[1]], int(match[2])
        chars = [chance.choice(alphabet) for _ in range(length)]
        if match[1] not in ("let", "dig") and length > 3:  # ensure a digit and a letter
            chars[1:3] = "7", "b" if "b" in alphabet else "B"
        return "".join(chars)

    return _MADE_UP.sub(made_up, example)
