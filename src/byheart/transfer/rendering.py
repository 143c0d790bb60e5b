"""Render a saved text as HTML that a page can show as it is.

Saved texts are hostile. Nothing of a text is passed on as HTML: the parser does not know HTML, and
this module writes every tag and attribute itself, from fixed lists. There are no images, no styles
and no ids; links have only the schemes below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from byheart.startup.late_patterns import late_pattern

# One page of text. Beyond it, the parser would take seconds: 100 µs for each line of a list.
_MOST_CHARS, _MOST_LINES = 100_000, 5_000
# The parser takes 100 µs and more for each bracket.
_MOST_BRACKETS = 3_000
_DEEPEST = 20
_LINK = late_pattern(r"(?:https?://|mailto:)[^\s<>\"'`\\\x00-\x20\x7f]+", re.IGNORECASE)
_LONGEST_LINK = 2_000
_LANGUAGE = late_pattern(r"[A-Za-z0-9+#_-]{1,30}")
_FRONT_MATTER = late_pattern(r"---[ \t]*\n(?s:.{0,20000}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
# Characters that change the direction of what follows, or that show nothing: shown by their number.
_INVISIBLE = late_pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_PLAIN_TAGS = frozenset(
    [
        "p",
        "ul",
        "ol",
        "li",
        "blockquote",
        "em",
        "strong",
        "s",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "hr",
        "br",
    ]
)
# The page has headings of its own above the text.
_HEADINGS = {f"h{level}": f"h{min(6, level + 2)}" for level in range(1, 7)}
_ALIGNED = late_pattern(r"text-align:(left|center|right)")


class Rendered(NamedTuple):
    """HTML, and whether the end of the text is missing."""

    html: str
    cut: bool


def render(text: str, format: str) -> Rendered:
    """Render Markdown as HTML, and any other text as it is."""
    part = text[:_MOST_CHARS]
    lines = part.splitlines(keepends=True)
    if len(lines) > _MOST_LINES:
        part = "".join(lines[:_MOST_LINES])
    cut = len(part) < len(text)
    if format != "markdown" or part.count("[") > _MOST_BRACKETS:
        return Rendered(_pre(part), cut)
    head = _FRONT_MATTER.match(part)
    before = "" if head is None else _pre(head[0])
    body = part if head is None else part[head.end() :]
    return Rendered(before + "".join(_write(_parser().parse(body))), cut)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    return parser.enable(["table", "strikethrough"])


def _write(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        written = _WRITERS.get(token.type)
        if written is not None:
            yield written(token)
        elif token.type == "inline":
            yield from _write_inline(token.children or ())
        elif token.tag in _PLAIN_TAGS or token.tag in _HEADINGS:
            yield "" if token.hidden else _tag(token)
        else:
            yield _shown(token.content)


def _write_inline(tokens: Sequence[Token]) -> Iterator[str]:
    """Write the tokens of a line; a link that is not allowed leaves its text."""
    open_links: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            address = str(token.attrGet("href") or "")
            open_links.append(_is_allowed(address))
            if open_links[-1]:
                yield (
                    f'<a href="{escape(address)}" target="_blank" '
                    'rel="noopener noreferrer nofollow">'
                )
        elif token.type == "link_close":
            if open_links and open_links.pop():
                yield "</a>"
        else:
            yield from _write((token,))


def _is_allowed(address: str) -> bool:
    return len(address) <= _LONGEST_LINK and _LINK.fullmatch(address) is not None


def _tag(token: Token) -> str:
    tag = _HEADINGS.get(token.tag, token.tag)
    if token.nesting < 0:
        return f"</{tag}>"
    aligned = _ALIGNED.fullmatch(str(token.attrGet("style") or ""))
    attribute = f' class="align-{aligned[1]}"' if aligned else ""
    start = token.attrGet("start")
    if tag == "ol" and isinstance(start, int):
        attribute = f' start="{start}"'
    return f"<{tag}{attribute}>"


def _pre(text: str) -> str:
    return f"<pre>{_shown(text)}</pre>"


def _fence(token: Token) -> str:
    language = _LANGUAGE.match(token.info.strip())
    named = f' class="language-{language[0].lower()}"' if language else ""
    return f"<pre><code{named}>{_shown(token.content)}</code></pre>"


def _image(token: Token) -> str:
    """Name an image instead of showing it: loading it would tell its server who reads this."""
    text = "".join(each.content for each in token.children or ())
    return f'<span class="image">[image: {_shown(text)}]</span>'


def _shown(text: str) -> str:
    """Escape a text, and make characters visible that show nothing or turn the text around."""
    return _INVISIBLE.sub(_name, escape(text.replace("\r\n", "\n")))


def _name(found: re.Match[str]) -> str:
    number = f"U+{ord(found[0]):04X}"
    return f'<span class="control" title="invisible character">{number}</span>'


_WRITERS: Mapping[str, Callable[[Token], str]] = {
    "text": lambda token: _shown(token.content),
    "softbreak": lambda _: "\n",
    "hardbreak": lambda _: "<br>",
    "code_inline": lambda token: f"<code>{_shown(token.content)}</code>",
    "code_block": lambda token: f"<pre><code>{_shown(token.content)}</code></pre>",
    "fence": _fence,
    "image": _image,
}
