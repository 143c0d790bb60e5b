"""Break control marks: texts that a model or its client could mistake for instructions.

A control mark is a special token (`<|im_start|>`, `[INST]`, `</s>`), a tag of a client or of
Byheart (`<system-reminder>`, `</passage>`), a role line (`Human:`), or invisible characters.
`break_marks` puts a visible break into each mark, and `unquote` removes exactly those breaks.

The rules read a text as a person does: full-width letters and HTML entities count as the letters
they represent, and invisible characters are ignored. `control_words` lists the words of the rules.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from byheart.conversation.prompt.control_words import (
    BRACKET_WORDS,
    COMPOUND_WORDS,
    HEADING_WORDS,
    OUR_TAGS,
    PLACEHOLDER_TAILS,
    ROLES,
    TAG_NAMES,
)

# A broken bar is visible, rarely used, and takes one or two tokens in every model.
BREAK = "\u00a6"

_ZERO_WIDTH = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u3164\ufeff"
    r"\uffa0\ufff0-\ufff8"
)
_SELECTORS = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Terminals obey control characters, editors reorder text at bidirectional marks, and a model reads
# invisible tag characters as letters.
_NEVER_SHOWN = (
    r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb"
    r"\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_UNSEEN = rf"{_NEVER_SHOWN}{_ZERO_WIDTH}{_SELECTORS}\u0300-\u036f"
# Letters that look like plain ones: full-width, small, mathematical and enclosed.
_STYLED = r"\uff01-\uff5e\ufe13\ufe47\ufe48\ufe50-\ufe6b\u24b6-\u24e9\U0001d400-\U0001d7ff"
_LINE_ENDS = r"\n\r\v\f\x85\u2028\u2029"
_MOST_NAMED = 64  # no control mark has a longer name


class _Patterns(NamedTuple):
    """Hold all patterns, compiled on first use, because that takes longer than the imports."""

    control: re.Pattern[str]
    suspect: re.Pattern[str]
    hidden: re.Pattern[str]
    styled: re.Pattern[str]
    disguised: re.Pattern[str]
    entity: re.Pattern[str]
    bracket: re.Pattern[str]
    line: re.Pattern[str]
    word: re.Pattern[str]
    broken: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    name = rf"[^\W\d_][\w:.-]{{0,{_MOST_NAMED}}}+"
    # The break goes after the bracket that each of these begins with.
    brackets = (
        # A tag, which is judged by its name.
        r"(?P<angle>(?<=<))(?=(?P<gap>\s*+)(?P<slash>[/\\]*+)\s*+"
        rf"(?P<tag>{name})(?P<end>\s*+[/\\]*+\s*+>|[\s/\\]|\Z)?)",
        # A special token between bars: <|im_start|>, <｜User｜>, [|system|], and MiniMax's own.
        r"(?<=<)(?=\s*+/?\s*+\|[^|<>\n]{1,64}+\|\s*+>)",
        r"(?<=\[)(?=\|/?\w{1,32}+\|\]|e~\[)",
        r"(?<=\])(?=~!?[a-z]{1,2}[\[\]])",
        r"(?<=>)(?=>[A-Z_]{3,32}+<<)",
        # A token in square brackets: [INST], [/INST], [TOOL_CALLS], [system](#instructions).
        r"(?<=\[)(?=(?i:system|user|assistant)\]\(#(?i:message|instruction|context|inner))",
        rf"(?P<square>(?<=\[))(?=\s*+(?P<closes>/?)\s*+(?P<token>{name})\s*+\])",
    )
    colons = r":\u2236\ua789\u02d0"
    lines = (
        # A role. The break goes before the colon.
        r"(?P<before>[ \t>#*_\[(]*+)"
        rf"(?P<who>[^\W\d_][^{_LINE_ENDS}{colons}*_\])`<>]{{0,24}}+)[ \t*_\])]*+(?=[{colons}])",
        # A fence that claims to show the words of a tool or a speaker. The break goes after it.
        rf"(?P<fence>[ \t>]*+(?:`{{3,}}+|~{{3,}}+))(?=[ \t]*+(?P<info>{name}))",
    )
    entity = r"(?<=&)(?:#\d{2,7}|#[xX][0-9a-fA-F]{2,6}|[a-zA-Z]{2,8});|(?<!&)"
    flag = r"\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
    return _Patterns(
        control=re.compile(r"[\x00-\x08\x0e-\x1f\x7f]"),
        suspect=re.compile(rf"[{_NEVER_SHOWN}{_ZERO_WIDTH}{_SELECTORS}{BREAK}\U0001f3f4]+"),
        hidden=re.compile(
            rf"(?P<flag>{flag})|[{_NEVER_SHOWN}{BREAK}]|[{_ZERO_WIDTH}{_SELECTORS}]{{3,}}"
            rf"|[{_SELECTORS}]{{2,}}"
        ),
        styled=re.compile(f"[{_STYLED}]"),
        disguised=re.compile(rf"[{_UNSEEN}&](?:{entity})"),
        entity=re.compile(rf"[\x00-\x08\x0e-\x1f\x7f&](?:{entity})"),
        # A pattern that begins with a class of characters is searched several times faster.
        bracket=re.compile(rf"[<\[\]>](?:{'|'.join(brackets)})"),
        line=re.compile(rf"[{_LINE_ENDS}](?:{'|'.join(lines)})"),
        word=re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W_a-zA-Z\d]+"),
        broken=re.compile(rf"{BREAK}(?:\{{([0-9a-f]{{1,6}})\}})?"),
    )


def break_marks(text: str) -> str:
    """Break every control mark of a text, and leave all other characters unchanged."""
    places = [0, *_find_marks(text), len(text)]
    return BREAK.join(_show_hidden(text[at:end]) for at, end in pairwise(places))


def unquote(text: str) -> str:
    """Return a text as it was before its control marks were broken."""
    return _patterns().broken.sub(_restore, text) if BREAK in text else text


def _show_hidden(text: str) -> str:
    """Write invisible characters, and the break itself, as their code points."""
    patterns = _patterns()
    if text.isascii() and not patterns.control.search(text):
        return text
    return patterns.suspect.sub(lambda run: patterns.hidden.sub(_show, run[0]), text)


def _show(match: re.Match[str]) -> str:
    if match["flag"]:
        return match[0]
    return "".join(f"{BREAK}{{{ord(char):x}}}" for char in match[0])


def _restore(match: re.Match[str]) -> str:
    if match[1] is None:
        return ""
    number = int(match[1], 16)
    is_character = number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_character else match[0]


def _find_marks(text: str) -> Iterator[int]:
    """Find the positions of the breaks, in order."""
    # The text begins a line, as it does between Byheart's tags.
    plain, patterns = _Plain(f"\n{text}"), _patterns()
    found = set[int]()
    for match in patterns.bracket.finditer(plain.text):
        if match["angle"] is not None:
            is_mark = _is_control_tag(match)
        else:
            is_mark = match["square"] is None or _is_control_token(match)
        if is_mark:
            found.add(plain.end(match.start()))
    for match in patterns.line.finditer(plain.text):
        if match["fence"] is None:
            if _is_role(match["who"], match["before"]):
                found.add(plain.start(match.end()))
        elif _is_control_name(match["info"], _words(match["info"])):
            found.add(plain.end(match.end() - 1))
    return (at - 1 for at in sorted(found))


class _Plain:
    """Hold a text as a person reads it, and the original position of each character."""

    def __init__(self, text: str) -> None:
        disguised = _patterns().disguised
        if text.isascii():
            disguised = _patterns().entity if "&" in text else _patterns().control
        else:
            text = _patterns().styled.sub(_show_plain, text)
        pieces: list[str] = []
        # For each stretch: its start in this text, and its start and end in the original.
        self._here: list[int] = []
        self._there: list[tuple[int, int]] = []
        length = at = 0
        for match in disguised.finditer(text):
            shown = _undisguise(match[0])
            if shown == match[0]:
                continue
            for piece, begin, end in (
                (text[at : match.start()], at, match.start()),
                (shown, *match.span()),
            ):
                if piece:
                    self._here.append(length)
                    self._there.append((begin, end))
                    pieces.append(piece)
                    length += len(piece)
            at = match.end()
        self._here.append(length)
        self._there.append((at, len(text)))
        self.text = "".join((*pieces, text[at:])) if at else text

    def start(self, at: int) -> int:
        """Return where a character of this text begins in the original."""
        return self._find(at)[0]

    def end(self, at: int) -> int:
        """Return where a character of this text ends in the original."""
        return self._find(at)[1]

    def _find(self, at: int) -> tuple[int, int]:
        stretch = bisect_right(self._here, at) - 1
        begin, end = self._there[stretch]
        is_last = stretch + 1 == len(self._here)
        next_here = len(self.text) if is_last else self._here[stretch + 1]
        if next_here - self._here[stretch] < end - begin:  # an entity
            return begin, end
        inside = begin + at - self._here[stretch]
        return inside, inside + 1


def _undisguise(found: str) -> str:
    if found[0] != "&":
        return ""
    import html

    shown = html.unescape(found)
    return shown if len(shown) == 1 and shown in "<>[]|:/" else found


def _show_plain(match: re.Match[str]) -> str:
    """Return the plain letter for a styled letter."""
    letter = unicodedata.normalize("NFKC", match[0])
    return letter if len(letter) == 1 else match[0]


def _is_role(who: str, before: str) -> bool:
    role = " ".join(who.casefold().split())
    return role in ROLES or ("#" in before and role in HEADING_WORDS)


def _is_control_tag(match: re.Match[str]) -> bool:
    """Return whether a tag is a control mark, by its name and its form."""
    name, closed = match["tag"].rstrip(":.-"), (match["end"] or "").rstrip().endswith(">")
    ours = name.rpartition(":")[2].casefold() in OUR_TAGS
    if ours:
        return True
    if match["end"] is None or (match["gap"] and not closed):  # `a < user`, or <sys/types.h>
        return False
    if not closed and match["end"] in "/\\":
        return False
    words = _words(name)
    camel_case = name[0].isupper() and not name.isupper() and "_" not in name and "-" not in name
    if camel_case and len(words) > 1:  # a component: <UserCard/>
        return False
    before = match.string[match.start() - 1 : match.start()]
    if camel_case and before.isalnum() and not match["slash"]:  # a type: List<User>
        return False
    return name == "PRE" or _is_control_name(name, words)


def _is_control_name(name: str, words: list[str]) -> bool:
    local = name.rpartition(":")[2]
    if local != name and _is_control_name(local, _words(local)):
        return True
    if len(words) < 2:
        return bool(words) and words[0] in TAG_NAMES
    if words[0] in ("start", "end", "begin", "beginning") and words[1] == "of":
        return True
    if words[-1].isdigit():  # <extra_id_0>, <reserved_106>, <unused7>
        return words[0] in ("extra", "reserved", "unused")
    if words[-1] in PLACEHOLDER_TAILS:
        return False
    return any(word in COMPOUND_WORDS for word in words)


def _is_control_token(match: re.Match[str]) -> bool:
    """Return whether a name in square brackets is a special token, by its case and its words."""
    name = match["token"]
    words = _words(name)
    if not any(word in BRACKET_WORDS for word in words):
        return False
    if name.isupper() or name in ("gMASK", "sMASK") or match["closes"]:
        return True
    before = match.string[match.start() - 1 : match.start()]
    if before.isalnum() or before in "_])":  # an index: row[mask]
        return False
    return name.casefold() == "inst" or (len(words) > 1 and BRACKET_WORDS.issuperset(words))


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _patterns().word.findall(name)]
