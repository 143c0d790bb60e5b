"""Texts as HTML: only known tags and attributes, whatever a text says."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest

from byheart.transfer.rendering import render
from tests.interfaces.web.xss_texts import XSS_TEXTS

TAGS = {
    "p",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "code",
    "em",
    "strong",
    "s",
    "a",
    "hr",
    "br",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "span",
}
ATTRIBUTES = {
    "a": {"href", "rel", "target"},
    "code": {"class"},
    "ol": {"start"},
    "th": {"class"},
    "td": {"class"},
    "span": {"class", "title"},
}
EMPTY = {"hr", "br"}


class Checker(HTMLParser):
    """Refuse everything that is not on the lists, and tags that do not match."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        given = dict(attrs)
        assert given.keys() <= ATTRIBUTES.get(tag, set()), (tag, attrs)
        assert len(given) == len(attrs)
        if tag == "a":
            assert "noopener" in str(given["rel"])
            assert "noreferrer" in str(given["rel"])
            self.links.append(str(given["href"]))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def check(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def test_there_are_enough_hostile_texts() -> None:
    assert len(set(XSS_TEXTS)) >= 200


@pytest.mark.parametrize("format", ["markdown", "text", "code"])
def test_no_hostile_text_becomes_more_than_text_and_safe_links(format: str) -> None:
    for text in XSS_TEXTS:
        checked = check(render(text, format).html)
        for link in checked.links:
            assert urlsplit(link).scheme.lower() in ("http", "https", "mailto"), text
            assert not set(link) & set("\"'<> \t\n\x00"), text
        assert not set("".join(checked.text)) & set("\x00\u202e\u2066\u200b\ufeff"), text


def test_markdown_is_rendered() -> None:
    html = render(
        "# Title\n\nSome *soft* **hard** ~~gone~~ `code` text  \nbroken.\n\n- one\n- two\n\n"
        "3. three\n\n> said\n\n```Python x\n1 < 2\n```\n\n| a | b |\n|:-|-:|\n| 1 | 2 |\n\n---\n",
        "markdown",
    ).html
    for part in (
        "<h3>Title</h3>",
        "<em>soft</em> <strong>hard</strong> <s>gone</s> <code>code</code>",
        "<br>broken.",
        "<ul><li>one</li><li>two</li></ul>",
        '<ol start="3"><li>three</li></ol>',
        "<blockquote><p>said</p></blockquote>",
        '<pre><code class="language-python">1 &lt; 2\n</code></pre>',
        '<th class="align-left">a</th><th class="align-right">b</th>',
        "<hr>",
    ):
        assert part in html, part


def test_links_leave_without_a_trace_and_others_leave_their_text() -> None:
    html = render(
        "[good](https://example.com/a?b=1&c=2) [bad](javascript:x) [own](/login)", "markdown"
    )
    assert html.html == (
        '<p><a href="https://example.com/a?b=1&amp;c=2" target="_blank" '
        'rel="noopener noreferrer nofollow">good</a> [bad](javascript:x) own</p>'
    )


def test_an_image_is_named_and_not_loaded() -> None:
    html = render("![a cat](https://evil.example/pixel.gif)", "markdown").html
    assert html == '<p><span class="image">[image: a cat]</span></p>'


def test_characters_that_hide_or_turn_text_are_shown_by_number() -> None:
    html = render("access\u202e\u2066// check\u2069", "text").html
    assert html.count('class="control"') == 3
    assert "U+202E" in html
    assert "שלום" in render("שלום", "text").html, "letters from right to left stay"


def test_front_matter_is_shown_as_it_is() -> None:
    html = render("---\ntitle: x\n---\n# Head\n", "markdown").html
    assert html == "<pre>---\ntitle: x\n---\n</pre><h3>Head</h3>"


def test_a_text_that_is_not_markdown_stays_as_it_is() -> None:
    assert render("# a <b>\n*x*", "text").html == "<pre># a &lt;b&gt;\n*x*</pre>"


def test_a_long_text_is_cut() -> None:
    rendered = render("word " * 2_000_000, "markdown")
    assert rendered.cut
    assert len(rendered.html) < 200_000
    assert render("- a\n" * 20_000, "markdown").html.count("<li>") == 5_000
    assert not render("word " * 100, "markdown").cut


@pytest.mark.parametrize("sign", ["[", "![", "*a ", "`", "- a\n", "<", "[a](", "|a|b|\n|-|-|\n"])
def test_no_text_keeps_the_parser_busy(sign: str) -> None:
    began = time.process_time()
    check(render(sign * (10_000_000 // len(sign)), "markdown").html)
    assert time.process_time() - began < 20
