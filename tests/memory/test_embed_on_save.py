"""What saves leave to workers, and how a worker makes their vectors."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from byheart import MemoryStore
from byheart.contracts import Vectors
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import EmbeddingError
from tests.conftest import OpenStore, WatchedEmbedder

LEFT = "the setting embed_on_save leaves vectors to workers"


def work(store: MemoryStore) -> int:
    made = 0
    while share := store.admin.embed_share(limit=3).made:
        made += share
    return made


def test_a_save_leaves_vectors_to_a_worker_and_is_found_by_keyword_until_then(
    open_store: OpenStore,
) -> None:
    embedder = WatchedEmbedder()
    store = open_store(embedder=embedder, embed_on_save=False)
    saved = [store.save("Anna likes tea."), store.log("s", "user", "Where is the tea kept?")]
    saved += store.save_many([{"content": "Ben likes coffee."}, {"content": "Cy likes milk."}])
    assert [(each.pending_vectors, each.degraded) for each in saved] == [(1, LEFT)] * 4
    again = store.save("Anna likes tea.")
    assert (again.status, again.pending_vectors) == ("unchanged", 1)
    changed = store.update(saved[0].memory_id, content="Anna likes green tea.")
    tagged = store.update(saved[2].memory_id, tags=["drinks"])
    assert (changed.pending_vectors, tagged.pending_vectors) == (1, 1)
    assert embedder.embedded == []
    assert store.search("coffee").results[0].memory_id == saved[2].memory_id
    other = open_store()
    assert work(other) == 5, "the earlier text of Anna too"
    assert other.admin.count_pending() == 0
    found = store.search("Anna likes green tea.", mode="vector", limit=1)
    assert found.results[0].memory_id == saved[0].memory_id
    assert store.save("Anna likes green tea.").pending_vectors == 0


def test_an_import_and_an_indexed_folder_leave_vectors_to_a_worker(
    open_store: OpenStore, tmp_path: Path
) -> None:
    embedder = WatchedEmbedder()
    store = open_store(embedder=embedder, embed_on_save=False)
    (tmp_path / "lines.jsonl").write_text('{"content": "imported text"}\n', encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "note.md").write_text("# Indexed text\n\nWith a line.\n", encoding="utf-8")
    assert store.import_(tmp_path / "lines.jsonl").pending_vectors == 1
    assert store.index(folder).pending_vectors == 2
    assert embedder.embedded == []
    assert work(open_store()) == 2


class ChoosyEmbedder(HashEmbedder):
    """Refuse every batch with a text that says POISON, and count these."""

    refusals = 0
    failing = False

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.failing:
            raise EmbeddingError("500: nothing works")
        if any("POISON" in text for text in texts):
            self.refusals += 1
            raise EmbeddingError("400: this input is refused")
        return super().embed(texts)


def test_a_worker_asks_for_a_refused_text_once_and_makes_all_others(open_store: OpenStore) -> None:
    embedder = ChoosyEmbedder()
    store = open_store(embedder=embedder, embed_on_save=False)
    store.save_many({"content": f"text {n}{' POISON' * (n == 2)}"} for n in range(6))
    shares = [store.admin.embed_share(limit=4) for _ in range(4)]
    assert [(each.claimed, each.made, each.refused) for each in shares] == [
        (4, 3, 1),
        (2, 2, 0),
        (0, 0, 0),
        (0, 0, 0),
    ]
    assert embedder.refusals == 3, "in the share, in its half, and alone"
    assert store.admin.count_pending() == 1


def test_a_share_is_released_if_nothing_can_be_made_now(open_store: OpenStore) -> None:
    embedder = ChoosyEmbedder()
    store = open_store(embedder=embedder, embed_on_save=False)
    store.save("text")
    embedder.failing = True
    share = store.admin.embed_share()
    assert (share.claimed, share.made, share.degraded) == (1, 0, "500: nothing works")
    with pytest.raises(EmbeddingError, match="nothing works"):
        store.admin.load_model()
    embedder.failing = False
    store.admin.load_model()
    assert store.admin.embed_share().made == 1
