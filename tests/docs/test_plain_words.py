"""Check as much of plain English as a machine can; `plain_words.py` has the rules."""

from __future__ import annotations

import pytest

from tests.docs.plain_words import (
    find_all,
    find_all_in_documents,
    find_odd,
    find_odd_in_document,
    is_imperative,
)


def test_no_module_has_an_odd_sentence() -> None:
    found = [f"{each.path}:{each.line}: {each.sentence}" for each in find_all()]
    assert not found, "rewrite these in plain English:\n" + "\n".join(found)


def test_no_document_has_an_odd_sentence() -> None:
    found = [f"{each.path}:{each.line}: {each.sentence}" for each in find_all_in_documents()]
    assert not found, "rewrite these in plain English:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "docstring",
    ["Return the ids.", "Bring it up.", "Pass over it.", "Stop, at once.", "Re-embed all texts."],
)
def test_a_verb_in_the_imperative_is_recognised(docstring: str) -> None:
    assert is_imperative(docstring)


@pytest.mark.parametrize(
    "docstring",
    ["Returns the ids.", "Returning ids.", "What is left.", "The ids.", "return ids.", "`x` is 1."],
)
def test_a_docstring_without_an_imperative_is_noticed(docstring: str) -> None:
    assert not is_imperative(docstring)


def test_odd_sentences_are_found_in_docstrings_and_comments() -> None:
    source = '''"""Keep ids. What is kept is unique."""

class Ids:
    """Those that are kept. Those are fine. What is an id? Whatever you like."""

    def first(self):
        """The first id."""  # Nor is this one.

    def _last(self):
        """The last id may be described like this.

        - Of all ids it is the last.
        """
        # The comment goes on. What is
        # more, it has two lines.
        x = 1  # the first
        y = 2  # What comes next
        return x  # noqa: RET
'''
    found = [(each.line, each.sentence) for each in find_odd("ids.py", source)]
    assert sorted(found) == [
        (1, "What is kept is unique."),
        (4, "Those that are kept."),
        (7, "Nor is this one."),
        (7, "The first id."),
        (10, "Of all ids it is the last."),
        (14, "What is more, it has two lines."),
        (17, "What comes next"),
    ]


def test_a_module_has_to_begin_with_a_verb_and_a_class_need_not() -> None:
    source = '"""A list of ids."""\n\nclass Id:\n    """An id of a row."""\n'
    assert [each.sentence for each in find_odd("ids.py", source)] == ["A list of ids."]


def test_odd_sentences_are_found_below_attributes() -> None:
    source = '''class Id:
    """Name a row."""

    text: str
    """What it is called."""
    hash: bytes
    """The hash of the text."""
'''
    found = [(each.line, each.sentence) for each in find_odd("ids.py", source)]
    assert found == [(5, "What it is called.")]


def test_odd_sentences_are_found_in_documents() -> None:
    text = """# What a heading may say

An id is unique. What is
more, it is short.

- **What is kept** is unique.
- What is an id?

| question | answer |
|---|---|
| What is an id? | Nor is this. |

```text
What is in a block of code is not prose.
```

Of all ids it is the last.
"""
    found = [(each.line, each.sentence) for each in find_odd_in_document("ids.md", text)]
    assert found == [
        (3, "What is more, it is short."),
        (6, "**What is kept** is unique."),
        (11, "Nor is this."),
        (17, "Of all ids it is the last."),
    ]
