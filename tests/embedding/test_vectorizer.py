"""What reaches the embedder, when, and what is made of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from byheart.contracts import Vectors
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder

# Those that have a meaning of their own.
KINDS = (
    *("note", "fact", "entity", "relationship", "self", "session_context", "input_prompt"),
    *("system_memory", "report", "report_observation", "working_memory", "knowledge_base"),
    *("message", "tool_output", "file"),
)
TRUCKS = " ".join(f"Truck {n} went to the harbour of town {n}." for n in range(80))


def test_the_embedder_sees_title_headings_and_the_end_of_the_text_before(
    open_store: OpenStore, watched: WatchedEmbedder
) -> None:
    store = open_store(embedder=watched)
    text = f"# Fleet\n\n## Trucks\n\n{TRUCKS}\n\n## Ships\n\nShip 1 was sold.\n"
    memory_id = store.save(text, title="Annual report").memory_id
    first, second, *_, last = store.expand(f"{memory_id}#0", 1000).chunks
    assert first.header_path == second.header_path == "Fleet > Trucks"
    assert last.header_path == "Fleet > Ships"

    assert watched.embedded[0].startswith("Annual report > Fleet > Trucks\n\n# Fleet")
    begin = second.content[:40]
    [shown] = [each for each in watched.embedded if begin in each]
    header, _, passage = shown.partition("\n\n")
    lead, _, _ = passage.partition(begin)
    assert header == "Annual report > Fleet > Trucks"
    assert len(lead.split()) > 5
    assert first.content.endswith(lead)
    assert watched.embedded[-1] == f"Annual report > Fleet > Ships\n\n{last.content}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_embedded_and_found_by_its_vector(store: MemoryStore, kind: str) -> None:
    text = f"What we know of the {kind} was written down in the harbour."
    saved = store.save(text, kind=kind)
    answer = store.search(text, mode="vector", kind=kind)
    assert (saved.pending_vectors, answer.mode, answer.degraded) == (0, "vector", None)
    [hit] = answer.results
    assert (hit.memory_id, hit.kind) == (saved.memory_id, kind)
    assert hit.similarity == pytest.approx(1, abs=1e-3)


class SlowEmbedder(WatchedEmbedder):
    """Take as long to embed as somebody else needs, once `held`."""

    def __init__(self) -> None:
        super().__init__()
        self.held = False
        self.begun, self.let_go = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.held:
            self.begun.set()
            assert self.let_go.wait(30)
        return super().embed(texts)


LONG = "".join(f"## Section {n}\n\nWords about topic {n}.\n\n" for n in range(200))
SLOW_VERBS: dict[str, Callable[[MemoryStore, str], object]] = {
    "save": lambda store, _: store.save("a text"),
    "save a long text": lambda store, _: store.save(LONG),
    "save_many": lambda store, _: store.save_many([{"content": "a"}, {"content": "b"}]),
    "log": lambda store, _: store.log("s1", "user", "this is a turn"),
    "update the text": lambda store, memory_id: store.update(memory_id, content="another text"),
    "update the title": lambda store, memory_id: store.update(memory_id, title="A title"),
    "embed_pending": lambda store, _: store.admin.embed_pending(),
}


@pytest.mark.parametrize("verb", SLOW_VERBS)
def test_nobody_waits_for_a_text_that_another_store_embeds(
    open_store: OpenStore, verb: str
) -> None:
    slow = SlowEmbedder()
    store = open_store(embedder=slow)
    other = open_store(embedder=WatchedEmbedder(), busy_timeout_seconds=1)
    memory_id = store.save("the first text").memory_id
    slow.down = True
    store.save("written while the provider was away")
    slow.down, slow.held = False, True
    working = threading.Thread(target=SLOW_VERBS[verb], args=(store, memory_id))
    working.start()
    assert slow.begun.wait(30)
    assert other.save("saved meanwhile").status == "created"  # it would give up after a second
    assert working.is_alive()
    slow.let_go.set()
    working.join(30)
    assert all(finding.ok for finding in store.admin.doctor(fix=True))


class FailingEmbedder(WatchedEmbedder):
    """Raise what nobody expects over one word."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        if any("poison" in text for text in texts):
            raise RuntimeError("out of cheese")
        return super().embed(texts)


def test_whatever_an_embedder_raises_a_text_is_saved_and_the_next_ones_are_too(
    open_store: OpenStore,
) -> None:
    store = open_store(embedder=FailingEmbedder())
    saved = store.save("poison")
    assert saved.pending_vectors == 1
    assert "out of cheese" in (saved.degraded or "")
    for number in range(3):
        assert store.save(f"harmless {number}").pending_vectors == 0
    assert store.search("poison").results[0].memory_id == saved.memory_id
