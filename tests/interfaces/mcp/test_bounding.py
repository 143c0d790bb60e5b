"""Answers are bounded, and what was cut can be read on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.errors import NotFound
from byheart.interfaces.mcp.bounding import Bound
from byheart.interfaces.mcp.calling import Answer, call_tool
from byheart.interfaces.mcp.tool_texts import BY_NAME
from byheart.interfaces.operations import Grant
from byheart.store import MemoryStore

MAX_TOKENS = 1_000
OWNER = Grant()


def tokens(value: object) -> int:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(EstimatedTokens().token_starts(text))


def call(store: MemoryStore, tool: str, **arguments: Any) -> Answer:
    answer = call_tool(store, tool, arguments, OWNER, MAX_TOKENS)
    assert tokens(answer.structured) <= MAX_TOKENS
    assert tokens(answer.text) <= MAX_TOKENS
    return answer


def test_a_long_memory_is_read_to_its_end_by_following_the_handles(store: MemoryStore) -> None:
    content = "".join(f"Line {number}: {'word ' * 9}ünd 漢字.\n" for number in range(400))
    memory_id = store.save(content).memory_id
    read, asked, calls = "", {"memory_id": memory_id}, 0
    while True:
        answer = call(store, "memory_get", **asked).structured
        read += answer["content"]
        calls += 1
        if "read_on" not in answer:
            break  # of the last piece, what stands beside the text may be shortened
        assert answer["truncated"]
        assert answer["read_on"]["tool"] == "memory_get"
        asked = answer["read_on"]["arguments"]
    assert read == content
    assert calls > 5


def test_one_line_of_a_megabyte_is_cut_and_can_be_read_on(store: MemoryStore) -> None:
    memory_id = store.save("x" * 1_000_000).memory_id
    answer = call(store, "memory_get", memory_id=memory_id).structured
    assert answer["truncated"]
    start = answer["read_on"]["arguments"]["start_char"]
    assert start == len(answer["content"]) > 1_000
    rest = call(store, "memory_get", **answer["read_on"]["arguments"]).structured
    assert rest["start_char"] == start


def test_a_chunk_id_reads_on_from_that_passage(store: MemoryStore) -> None:
    content = "".join(f"# Part {number}\n\n{'word ' * 200}\n\n" for number in range(4))
    memory_id = store.save(content).memory_id
    answer = call(store, "memory_get", memory_id=f"{memory_id}#2").structured
    assert answer["content"] == content[answer["start_char"] :][: len(answer["content"])]
    assert answer["start_char"] > 0


@pytest.mark.parametrize("granularity", ["fine", "medium", "coarse"])
def test_a_search_leaves_out_its_last_hits_and_says_how_to_get_them(
    store: MemoryStore, granularity: str
) -> None:
    for number in range(12):
        store.save(f"Fact {number}: the harbour opens. " + "Much else happened. " * 30)
    asked: dict[str, Any] = {"query": "harbour", "granularity": granularity, "limit": 12}
    found: list[str] = []
    while True:
        answer = call(store, "memory_search", **asked).structured
        found += [hit["memory_id"] for hit in answer["results"]]
        if not answer.get("truncated"):
            break
        assert answer["read_on"]["tool"] == "memory_search"
        asked = answer["read_on"]["arguments"]
        asked["limit"] = 12 - len(found)
    assert len(set(found)) == len(found) == 12


def test_one_hit_that_is_too_long_by_itself_is_cut(store: MemoryStore) -> None:
    memory_id = store.save("harbour " * 5_000).memory_id
    answer = call(store, "memory_search", query="harbour", granularity="coarse").structured
    assert answer["truncated"]
    assert answer["read_on"] == {"tool": "memory_get", "arguments": {"memory_id": memory_id}}


def test_a_recall_that_is_too_long_names_what_it_left_out(store: MemoryStore) -> None:
    for number in range(8):
        store.save(f"Fact {number}: the harbour opens. " + "Much else happened. " * 20)
    answer = call(store, "memory_recall", query="harbour", max_tokens=10_000).structured
    assert answer["truncated"]
    assert answer["read_on"]["tool"] == "memory_get"
    assert len(answer["index"]) == 8


def test_a_question_of_100000_characters_is_not_sent_back_whole(store: MemoryStore) -> None:
    store.save("The harbour opens at six.")
    answer = call(store, "memory_search", query="harbour " * 12_000).structured
    assert len(answer["results"]) == 1


def test_fetch_is_bounded_too(store: MemoryStore) -> None:
    memory_id = store.save("harbour " * 5_000).memory_id
    answer = call(store, "fetch", id=memory_id).structured
    assert answer["metadata"]["truncated"]


def test_what_stands_beside_a_text_is_cut_before_it_and_never_an_id(store: MemoryStore) -> None:
    names = [f"name-{number}-{'x' * 60}" for number in range(100)]
    given = {"tags": names, "entities": names, "metadata": {"key": "v" * 200_000}}
    memory_id = store.save("The harbour opens at six.", **given).memory_id
    answer = call(store, "memory_get", memory_id=memory_id).structured
    assert answer["memory_id"] == memory_id
    assert answer["content"] == "The harbour opens at six."
    assert answer["created_at"].endswith("Z")
    assert answer["truncated"]
    assert "metadata" not in answer
    assert "read_on" not in answer, "the text is whole"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2_000),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=20), inner, max_size=8)
    ),
    max_leaves=40,
)


@settings(max_examples=50, deadline=None)
@given(
    results=st.lists(
        st.fixed_dictionaries(
            {
                "memory_id": st.text(max_size=30),
                "content": st.text(max_size=5_000),
                "metadata": _JSON,
            }
        ),
        max_size=12,
    )
)
def test_any_answer_fits(results: list[dict[str, Any]]) -> None:
    whole = {"query": "q", "results": results, "has_more": False}
    kept = Bound(MAX_TOKENS).keep(BY_NAME["memory_search"], {"query": "q"}, whole)
    assert tokens(kept) <= MAX_TOKENS
    assert len(kept["results"]) >= min(1, len(results))
    assert kept == whole or kept["truncated"]


def test_a_file_is_read_on_from_the_passage_at_a_line(store: MemoryStore) -> None:
    parts = [f"# Part {number}\n\n{'Words. ' * 100}\n\n" for number in range(6)]
    store.save("".join(parts), path="/n/book.md")
    whole = call(store, "memory_get", memory_id="/n/book.md").structured
    assert (whole["start_char"], whole["content"][:8]) == (0, "# Part 0")
    window = store.expand("/n/book.md:9", around=0)
    read = call(store, "memory_get", memory_id="/n/book.md:9").structured
    assert read["start_char"] == window.chunks[0].start_char > 0
    assert read["content"].startswith(window.expanded_content[:100])
    with pytest.raises(NotFound, match="no line 999"):
        call(store, "memory_get", memory_id="/n/book.md:999")
