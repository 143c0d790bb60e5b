"""A context keeps its promises whatever is saved, said and pinned, and however it is counted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import byheart
from byheart.model import ContextAnswer
from byheart.store import MemoryStore
from tests.properties import counting
from tests.properties.counting import CountingHash, open_stores

TEXT = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=80)
LENGTHS = st.integers(0, 120)
ROLES = st.sampled_from(["user", "assistant", "system", "tool"])
SAVED = st.lists(st.tuples(TEXT, LENGTHS, st.booleans()), max_size=10)
SAID = st.lists(st.tuples(ROLES, TEXT, LENGTHS), max_size=10)


EMBEDDERS = {
    **counting.EMBEDDERS,
    "seams": CountingHash(r"(?<=>)\n(?=<)|\S+"),  # joined, texts have more tokens than apart
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, MemoryStore]]:
    with open_stores(
        tmp_path_factory.mktemp("stores"), EMBEDDERS, chunk_tokens=32, summary_every_turns=4
    ) as opened:
        yield opened


# Each example has a space of its own: a store takes longer to open than an example takes.
SPACES = map(str, itertools.count())


def converse(
    store: MemoryStore,
    space: str,
    saved: Sequence[tuple[str, int, bool]],
    said: Sequence[tuple[str, str, int]],
) -> None:
    for number, (text, length, pinned) in enumerate(saved):
        words = " ".join(f"leaf{number}x{at}" for at in range(length))
        memory_id = store.save(f"tea {number} {text}\n\n{words}", space=space).memory_id
        if pinned:
            store.pin(memory_id, space=space)
    store.log_many(
        {"session_id": "s1", "role": role, "content": text + " cup" * length, "space": space}
        for role, text, length in said
    )


def check_promises(answer: ContextAnswer, store: MemoryStore, space: str, recent: int) -> None:
    receipt = answer.receipt
    # Tokens never exceed the budget, and the receipt adds up.
    counted = len(store._engine.vectorizer.tokens().token_starts(answer.text))
    assert counted <= answer.tokens_used <= receipt.max_tokens
    assert sum(receipt.tokens.values()) == answer.tokens_used
    # Nothing is there twice.
    chunks = [chunk for item in receipt.items for chunk in item.chunk_ids]
    assert len(chunks) == len(set(chunks))
    by_part = {
        part: [item for item in receipt.items if item.part == part]
        for part in ("summary", "pinned", "retrieved", "recent")
    }
    owners = {part: {item.memory_id for item in items} for part, items in by_part.items()}
    for one, other in itertools.combinations(owners.values(), 2):
        assert not one & other
    # The order holds: of the parts, and within each of them.
    assert list(itertools.chain.from_iterable(by_part.values())) == list(receipt.items)
    turns = store.sessions.transcript("s1", recent or 1, latest=True, space=space).turns
    order = [turn.memory_id for turn in turns if turn.memory_id in owners["recent"]]
    assert [item.memory_id for item in by_part["recent"]] == order
    scores = [item.score for item in by_part["retrieved"]]
    assert scores == sorted(scores, reverse=True)
    # What was dropped is worth no more than what was kept of the same part.
    for part in ("pinned", "retrieved"):
        kept = [item.score for item in by_part[part]]
        dropped = [
            each.score for each in receipt.left_out if each.part == part and each.reason == "budget"
        ]
        assert not kept or not dropped or max(dropped) <= min(kept)
    places = {turn.memory_id: place for place, turn in enumerate(turns)}
    dropped_turns = [
        places[each.memory_id]
        for each in receipt.left_out
        if each.part == "recent" and each.reason == "budget"
    ]
    kept_turns = [places[item.memory_id] for item in by_part["recent"]]
    assert not kept_turns or not dropped_turns or max(dropped_turns) < min(kept_turns)
    # As messages it is no longer than as text.
    said = "\n".join(message.content for message in answer.openai)
    assert len(store._engine.vectorizer.tokens().token_starts(said)) <= answer.tokens_used + 2


@settings(max_examples=20, deadline=None)
@given(
    saved=SAVED,
    said=SAID,
    max_tokens=st.integers(1, 2500),
    recent=st.integers(0, 12),
    top_k=st.integers(0, 12),
)
@example(
    saved=[("x", 120, True)] * 4, said=[("user", "y", 120)] * 4, max_tokens=300, recent=9, top_k=9
)
@example(
    saved=[("x", 120, True), *[("y", 1, True)] * 5],
    said=[("user", "z", 120)] * 8,
    max_tokens=900,
    recent=9,
    top_k=9,
)
@example(saved=[], said=[("user", "", 0), ("tool", " ", 0)], max_tokens=60, recent=9, top_k=9)
@example(
    saved=[("<passage>", 9, False)],
    said=[("user", "</message>", 3)],
    max_tokens=999,
    recent=1,
    top_k=3,
)
@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_context_keeps_its_promises(
    stores: dict[str, MemoryStore],
    name: str,
    saved: Sequence[tuple[str, int, bool]],
    said: Sequence[tuple[str, str, int]],
    max_tokens: int,
    recent: int,
    top_k: int,
) -> None:
    store, space = stores[name], next(SPACES)
    converse(store, space, saved, said)
    asked = {"max_tokens": max_tokens, "recent": recent, "top_k": top_k, "space": space}
    answer = store.context("s1", "tea cup leaf1x1", **asked)
    check_promises(answer, store, space, recent)
    again = store.context("s1", "quite another question", **asked)
    assert again.stable == answer.stable


@pytest.mark.model
def test_the_budget_holds_with_the_tokens_of_the_model(tmp_path: Path) -> None:
    texts = [
        "naïve café ☕",
        "東京タワー " * 30,
        "x" * 9000,
        "a_b-c.d/e " * 50,
        "\n\n# Tea\n\n- tea",
    ]
    with byheart.open(tmp_path / "memory.db", embedding_provider="onnx") as store:
        for text in texts:
            store.pin(store.save(f"tea {text}").memory_id)
            store.save(f"another tea {text}")
            store.log("s1", "user", f"What of tea? {text} [SEP] </message>")
        for max_tokens in (1, 40, 60, 100, 333, 1000, 20_000):
            answer = store.context("s1", max_tokens=max_tokens)
            assert answer.degraded is None
            assert answer.receipt.counter.startswith("all-MiniLM-L6-v2")
            check_promises(answer, store, "default", 10)
