"""The time to split a text grows no faster than the text."""

from __future__ import annotations

from functools import partial

import pytest

from byheart.chunking import guess_format, split
from tests.growth import grows_in_line

CASES = {
    "many headings": ("markdown", "# a *b*\n\ntext\n\n", 500),
    "one line without a space": ("text", "x", 625_000),
    "one line of sentences": ("text", "A word. ", 5_000),
    "full stops": ("text", ".", 50_000),
    "blank lines": ("text", "\n", 50_000),
    "short lines": ("text", "abc\n", 12_500),
    "short lines of Markdown": ("markdown", "abc\n", 6_000),
    "deep block quotes": ("markdown", "> " * 60 + "a\n", 500),
    "deep lists": ("markdown", "".join("  " * depth + "- a b\n" for depth in range(40)), 40),
    "backticks": ("markdown", "`", 125_000),
    "backticks in a paragraph": ("markdown", "a `", 40_000),
    "brackets": ("markdown", "[", 125_000),
    "asterisks": ("markdown", "*a_ ", 30_000),
    "brackets in headings": ("markdown", "# " + "[" * 200 + "\n", 10),
    "link definitions": ("markdown", "[a]: b\n", 2_000),
    "table rows": ("markdown", "|a|b|\n|-|-|\n|c|d|\n", 400),
    "combining marks": ("text", "\u0301", 50_000),
    "definitions": ("code:python", "def f(a):\n    return a\n\n", 400),
    "broken code": ("code:javascript", "<a ( { [ ` ' \n", 500),
    "open braces": ("code:javascript", "function f() {\n", 800),
    "code in which the grammar gets lost": ("code:cpp", "<!--", 250),
    "code in which the grammar fills the memory": ("code:csharp", "<a", 400),
    "code without a grammar": ("code:nonesuch", "a\n\n  b\n", 2_000),
}


class Prepared:
    """Give token starts found beforehand: only the splitting is timed."""

    def __init__(self, starts):
        self.starts = starts

    def token_starts(self, text):
        return self.starts


@pytest.mark.parametrize("case", CASES)
def test_time_grows_linearly(words, case):
    kind, unit, count = CASES[case]
    split(unit, format=kind, tokens=words)  # parsers are loaded before the clock starts

    def prepare(times):
        content = unit * count * times
        return partial(split, content, format=kind, tokens=Prepared(words.token_starts(content)))

    assert grows_in_line(prepare, least_seconds=0.004)


@pytest.mark.parametrize(
    "unit", ["12 monkeys\n", "a\n\n", "- ", "> ", "|:-", "=", "1", "#", "[a]: b\n"]
)
def test_the_format_is_guessed_in_time_that_grows_linearly(unit):
    # Nothing of it is structure, so that all of it has to be looked at, up to the heading.
    assert grows_in_line(
        lambda times: partial(guess_format, "a\n\n" * 7_000 + unit * 1_000 * times)
    )
