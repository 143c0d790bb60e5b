"""Translate lines of ignore files to patterns, with git's meaning.

Existing libraries translate `*` to `[^/]*`, which backtracks: pathspec 1.1.1 took 17 seconds for
one name of 120 letters against `*a*a*a*a*a*b`, and twenty times as long with one more star. They
also raise for lines that git skips, such as `[z-a]`. A downloaded folder must not be able to
cause this, so this module translates in linear time, and is tested against git.
"""

from __future__ import annotations

import re
from dataclasses import replace
from string import ascii_letters, digits, punctuation

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": re.escape(punctuation),
    "space": " \\t-\\r",
    "upper": "A-Z",
    "xdigit": "a-fA-F0-9",
}
_STAR = "*"
_LITERAL = late_pattern(r"[^*?\[\\]*")
_PLAIN = frozenset(ascii_letters + digits + "_-. ~+@,")
# No path is longer, and compiling an expression of a megabyte takes seconds.
_LONGEST_LINE = 4096


class _NeverMatches(Exception):
    """Stop at a pattern that git accepts but that matches nothing, such as `[a`."""


@dataclass(frozen=True, slots=True)
class Glob:
    """Hold one pattern, and how it is compared."""

    line: int
    text: str
    negated: bool
    only_folders: bool
    by_name: bool
    """True if the pattern has no slash, and is compared only with the last part of a path."""
    last_part: str
    name: str | None = None
    """The only name that matches."""
    ending: str | None = None
    """The ending of every name that matches."""
    regex: re.Pattern[str] | None = None
    """The expression to match, unless `name` or `ending` is enough."""

    def matches(self, name: str, path: str) -> bool:
        """Match the last part of a path, or the path from the ignore file's folder."""
        if self.name is not None:
            return name == self.name
        if self.ending is not None:
            return name.endswith(self.ending)
        return self.regex is not None and bool(self.regex.fullmatch(name if self.by_name else path))


def parse_line(text: str, line: int) -> Glob | None:
    """Parse one line of an ignore file; None for blank lines, comments and invalid lines."""
    text = _trim_spaces(text.removesuffix("\r"))
    if not text or text.startswith("#") or len(text) > _LONGEST_LINE:
        return None
    body = text.removeprefix("!")
    only_folders = body.endswith("/")
    body = body.removesuffix("/")
    glob = Glob(
        line,
        text,
        negated=text.startswith("!"),
        only_folders=only_folders,
        by_name="/" not in body,
        last_part=body.rpartition("/")[2].replace("\\", ""),
    )
    if glob.by_name and body and _PLAIN.issuperset(body):
        return replace(glob, name=body)
    if glob.by_name and body.startswith("*.") and _PLAIN.issuperset(body[1:]):
        return replace(glob, ending=body[1:])
    try:
        return replace(glob, regex=_translate(body.removeprefix("/")))
    except _NeverMatches:
        return None


def _trim_spaces(text: str) -> str:
    """Remove trailing spaces, except an escaped one."""
    bare = text.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if escapes % 2 and len(bare) < len(text) else bare


def _translate(body: str) -> re.Pattern[str]:
    """Translate a glob to an expression that never backtracks.

    Before a further wildcard the leftmost match is as good as any, hence the atomic groups. As
    in git, the literal prefix is compared first and the rest separately, so that `a**/b` means
    `a` and then `**/b`.
    """
    start = _LITERAL.match(body)
    prefix = start[0] if start else ""
    rest = body[len(prefix) :]
    return re.compile(re.escape(prefix) + (_expression(rest) if rest else ""))


def _expression(body: str) -> str:
    runs: list[list[str]] = [[]]
    for part in _split(body):
        if _is_globstar(part):
            runs.append([])
        else:
            runs[-1].append(_segment(_elements(part)))
    first, *others = runs
    expression = "/".join(first)
    if not others:
        return expression
    expression += "/" if first else ""
    *middle, last = [run for run in others[:-1] if run] + others[-1:]
    for run in middle:
        expression += f"(?>(?:[^/]*/)*?{'/'.join(run)}/)"
    return expression + (f"(?:[^/]*/)*?{'/'.join(last)}" if last else "(?s:.*)")


def _split(body: str) -> list[str]:
    """Split at slashes that are not part of a character set."""
    parts, begin, at = [], 0, 0
    while at < len(body):
        if body[at] == "[":
            at = _set_end(body, at)
        elif body[at] == "\\":
            if body[at + 1 : at + 2] == "/":
                body = body[:at] + body[at + 1 :]
                continue
            at += 1
        elif body[at] == "/":
            parts.append(body[begin:at])
            begin = at + 1
        at += 1
    return [*parts, body[begin:]]


def _is_globstar(part: str) -> bool:
    return len(part) > 1 and not part.strip("*")


def _elements(part: str) -> list[str]:
    """Return stars and, for each other position, the expression of one character."""
    elements: list[str] = []
    at = 0
    while at < len(part):
        char = part[at]
        if char == "*":
            if elements[-1:] != [_STAR]:
                elements.append(_STAR)
        elif char == "?":
            elements.append("[^/]")
        elif char == "[":
            end = _set_end(part, at)
            elements.append(_character_set(part[at + 1 : end]))
            at = end
        else:
            if char == "\\":
                at += 1
                if at == len(part):
                    raise _NeverMatches
            elements.append(re.escape(part[at]))
        at += 1
    return elements


def _segment(elements: list[str]) -> str:
    """Translate one part of a path; each stretch after a star is searched from left to right."""
    stretches = [""]
    for element in elements:
        if element == _STAR:
            stretches.append("")
        else:
            stretches[-1] += element
    first, *rest = stretches
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{each})" for each in middle) + "[^/]*" + last


def _set_end(body: str, start: int) -> int:
    """Find the bracket that closes a set; an unclosed set matches nothing."""
    at = start + 1 + body.startswith(("!", "^"), start + 1)
    first = at
    while at < len(body):
        if body[at] == "]" and at > first:
            return at
        if body[at] == "\\":
            at += 1
        elif body.startswith("[:", at):
            close = body.find("]", at + 2)
            if close > at + 2 and body[close - 1] == ":":
                at = close
        at += 1
    raise _NeverMatches


def _character_set(inner: str) -> str:
    """Translate the inside of `[...]`; the result never matches a slash."""
    negated = inner.startswith(("!", "^"))
    ranges = _ranges(inner[negated:])
    if negated:
        return f"[^/{''.join(ranges)}]"
    return f"(?!/)[{''.join(ranges)}]" if ranges else "(?!)"


def _ranges(inner: str) -> list[str]:
    ranges: list[str] = []
    at, before = 0, ""
    while at < len(inner):
        char = inner[at]
        if inner.startswith("[:", at) and (close := inner.find("]", at + 2)) > at + 2:
            name = inner[at + 2 : close - 1]
            if inner[close - 1] == ":":
                if name not in _CLASSES:
                    raise _NeverMatches
                ranges.append(_CLASSES[name])
                at, before = close + 1, ""
                continue
        is_range = char == "-" and before and at + 1 < len(inner)
        at += is_range or char == "\\"
        if is_range and inner[at] == "\\":
            at += 1
        char = inner[at]
        if not is_range:
            ranges.append(re.escape(char))
        elif before <= char:
            ranges.append(f"{re.escape(before)}-{re.escape(char)}")
        before = "" if is_range else char
        at += 1
    return ranges
