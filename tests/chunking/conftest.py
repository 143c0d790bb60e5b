"""What the chunking tests share: a plain token counter, and the evaluation data if present."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from byheart.chunking import split
from byheart.model import Chunk


class WordCounter:
    """Count words and punctuation marks, as a word-piece tokenizer roughly does."""

    calls = 0

    def token_starts(self, text: str) -> Sequence[int]:
        self.calls += 1
        return [match.start() for match in re.finditer(r"\w+|[^\w\s]", text)]


@pytest.fixture(scope="session")
def words() -> WordCounter:
    return WordCounter()


@pytest.fixture(scope="session")
def chunk(words: WordCounter) -> Callable[..., list[Chunk]]:
    return partial(split, tokens=words)


@pytest.fixture(scope="session")
def data() -> Path:
    """Give the folder of evaluation data, or skip."""
    beside = Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("BYHEART_DATA", beside))
    if not folder.is_dir():
        pytest.skip("no evaluation data: set BYHEART_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def check() -> Callable[..., None]:
    return check_chunks


def check_chunks(content: str, chunks: Sequence[Chunk], target_tokens: int | None = None) -> None:
    """Assert what is true of the chunks of any text."""
    assert "".join(each.content for each in chunks) == content
    position, line = 0, 1
    starts = WordCounter().token_starts(content)
    for index, each in enumerate(chunks):
        assert (each.index, each.start_char) == (index, position)
        assert each.content
        assert content[each.start_char : each.end_char] == each.content
        assert each.content.strip() or not content.strip()
        assert each.start_line == line
        position = each.end_char
        assert not content.startswith("\n", position) or content[position - 1] != "\r"
        breaks = len(re.findall(r"\r\n|\r|\n", each.content))
        ends_line = each.content.endswith(("\r", "\n"))
        assert each.end_line == line + breaks - ends_line
        line += breaks
        inside = bisect_left(starts, each.end_char) - bisect_left(starts, each.start_char)
        assert each.token_count == inside
        if target_tokens is not None and not holds_fence(each.content):
            assert each.token_count <= target_tokens
        levels = [heading.level for heading in each.headings]
        assert levels == sorted(set(levels))


def holds_fence(content: str) -> bool:
    return "```" in content or "~~~" in content
