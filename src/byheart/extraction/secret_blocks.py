"""Find secrets that span lines: private keys, and values below their names in YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import zip_longest

from byheart.extraction.secret_judges import Found, is_secret, kind_of
from byheart.extraction.secret_rules import Rule, expand_macro
from byheart.startup.late_patterns import late_pattern

_KEY_BEGINS = late_pattern(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = late_pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# The lines of a key whose end is missing. Headers come first, and the lines may have numbers, added
# by the tool that printed them.
_KEY_BODY = late_pattern(
    r"(?:(?>[ \t]{0,10}(?:\d{1,7}(?:\u2192|[:|-][ \t]?|[ \t]{1,4}))?)"
    r"(?>[A-Z][A-Za-z-]{2,20}:[ ][^\n]{0,200}|[A-Za-z0-9+/=\\]*+)[ \t\r]*+(?:\n|\Z))*+"
    r"(?:[ \t]{0,10}[A-Za-z0-9+/=\\]{40,})?"
)
_LONGEST_KEY = 20_000


def _find_private_keys(rule: Rule, text: str) -> Iterator[Found]:
    """Find private keys, and the remaining lines of a key that was cut off."""
    at = 0
    ends = (match.end() for match in _KEY_ENDS.finditer(text))
    end: int | None = next(ends, None)
    beginnings = list(_KEY_BEGINS.finditer(text))
    for begins, following in zip_longest(beginnings, beginnings[1:]):
        if begins.start() < at:
            continue
        # Read the list of ends only once, regardless of the number of keys.
        while end is not None and end < begins.end():
            end = next(ends, None)
        # An end after the beginning of the next key belongs to that next key.
        last = len(text) if following is None else following.start()
        whole = end is not None and end <= min(last, begins.start() + _LONGEST_KEY)
        body = _KEY_BODY.match(text, begins.end(), begins.end() + _LONGEST_KEY)
        assert body is not None, "no characters at all are a body too"
        at = end if whole and end is not None else body.end()
        yield Found(begins.start(), at, rule.kind)


def _find_yaml_blocks(_: Rule, text: str) -> Iterator[Found]:
    """Find secrets in YAML blocks, on indented lines below their names."""
    at = 0
    for begins in _block_pattern().finditer(text):
        if begins.start() < at:
            continue
        start, end = begins.end(), _end_of_block(text, begins.end(), len(begins["indent"]))
        lines = text[start:end].splitlines()
        value = "\n".join(filter(None, map(str.strip, lines)))
        if value and is_secret(begins["name"], begins["rest"], "|", "|", value):
            indent = len(lines[0]) - len(lines[0].lstrip())
            at = end
            # The line break at the end belongs to the file, not to the secret.
            stop = end - 1 if text[end - 1] == "\n" else end
            yield Found(start + indent, stop, kind_of(begins["name"]))


@cache
def _block_pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?im)^(?P<indent>[ \t]{0,40}(?:-[ \t])?)[\"']?[\w.-]{0,60}?"
        rf"(?P<name>{expand_macro('secret_names')})"
        r"(?P<rest>[a-z0-9_]{0,30})[\"']?[ \t]{0,3}:[ \t]{1,3}[|>][+\d-]{0,2}[ \t]{0,3}"
        r"(?:\#[^\n]{0,200})?\r?\n"
    )


def _end_of_block(text: str, start: int, indent: int) -> int:
    """Find the end of a block: the first line without deeper indentation, or the size limit."""
    at = start
    while at < len(text) and at - start < _LONGEST_KEY:
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        at = end
    return at


# The finders by the names that secret_patterns.json uses.
FINDERS: Mapping[str, Callable[[Rule, str], Iterator[Found]]] = {
    "private_key": _find_private_keys,
    "yaml_block": _find_yaml_blocks,
}
