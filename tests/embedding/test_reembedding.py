"""Changing the model: new vectors beside the old ones, then a switch nobody has to wait for."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

import byheart
from byheart.contracts import Vectors
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import Conflict, EmbedderUnavailable, EmbeddingError
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder
from tests.storage.test_processes import start
from tests.waiting import PATIENCE_SECONDS

Open = Callable[..., MemoryStore]
TEXTS = [f"Report {n}: the {word} was seen by the lake." for n, word in enumerate("abcdefgh" * 40)]


@pytest.fixture
def opened(path: Path) -> Iterator[Open]:
    """Open the store as the settings say, with the hash embedder of some dimensions."""
    stores: list[MemoryStore] = []

    def open_one(model: str = "hash-64", **settings: Any) -> MemoryStore:
        chosen = {"embedding_provider": "hash", "embedding_model": model, **settings}
        stores.append(byheart.open(path, **chosen))
        return stores[-1]

    yield open_one
    for each in stores:
        each.close()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the texts once."""
    path = tmp_path_factory.mktemp("saved") / "memory.db"
    with byheart.open(path, embedding_provider="hash", embedding_model="hash-64") as store:
        store.save_many({"content": text} for text in TEXTS)
    return path


@pytest.fixture
def filled(saved: Path, path: Path, opened: Open) -> MemoryStore:
    shutil.copy(saved, path)
    return opened("hash-64")


def rows(path: Path, query: str) -> list[Any]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def vectors_by_model(path: Path) -> dict[str, int]:
    query = "SELECT name, count(*) FROM vectors JOIN models USING (model_no) GROUP BY name"
    return dict(rows(path, query))


def check_found(store: MemoryStore, model: str) -> None:
    """Find a text by its own words: of one model on both sides, it is as near as can be."""
    answer = store.search(TEXTS[17], mode="vector", limit=3)
    assert answer.degraded is None
    assert answer.index.model == model
    assert answer.results[0].chunk_content == TEXTS[17]
    assert answer.results[0].similarity == pytest.approx(1, abs=1e-3)


def check_sound(*stores: MemoryStore) -> None:
    for store in stores:
        assert [finding for finding in store.admin.doctor() if not finding.ok] == []


# --- Before the switch ------------------------------------------------------------------------


def test_a_store_is_searched_by_its_own_model_while_the_settings_name_another(
    filled: MemoryStore, opened: Open
) -> None:
    other = opened("hash-96")
    check_found(other, "hash-64")
    answer = other.search("the lake")
    assert answer.remark == (
        "the store's vectors are of model hash-64, but the settings name hash-96: "
        "switch with: store.admin.reembed()"
    )
    assert filled.search("the lake").remark is None
    status = other.status()
    assert (status.index.model, status.wanted_model) == ("hash-64", "hash-96")
    assert status.degraded is None
    assert status.remark == answer.remark
    [finding] = [each for each in other.admin.doctor() if each.check == "embedding"]
    assert finding.ok
    assert finding.message == answer.remark


def test_what_is_saved_before_the_switch_is_embedded_by_the_stores_model(
    filled: MemoryStore, opened: Open, path: Path
) -> None:
    saved = opened("hash-96").save("A heron stood by the lake.")
    assert saved.pending_vectors == 0
    assert vectors_by_model(path) == {"hash-64": len(TEXTS) + 1}
    assert filled.search("A heron stood by the lake.", mode="vector").results[0].similarity > 0.99


def test_a_store_switched_off_from_vectors_does_not_open_an_embedder_again(
    filled: MemoryStore, opened: Open
) -> None:
    answer = opened("", embedding_provider="none").search("the lake")
    assert answer.mode == "fts"
    assert "switched off" in str(answer.degraded)


def test_a_model_that_is_not_there_yet_is_not_fetched_by_a_search(
    filled: MemoryStore, opened: Open, tmp_path: Path
) -> None:
    waiting = opened("somebody/some-model", embedding_provider="onnx", cache_dir=tmp_path / "cache")
    check_found(waiting, "hash-64")
    assert "onnx/somebody/some-model" in str(waiting.search("the lake").remark)
    assert waiting.save("A heron stood by the lake.").pending_vectors == 0
    assert not (tmp_path / "cache").exists()


def test_an_earlier_model_that_cannot_be_opened_is_named_with_the_reason(
    filled: MemoryStore, opened: Open, path: Path
) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("""UPDATE models SET spec = '{"provider": "wishful", "model": "x"}'""")
    connection.close()
    answer = opened("hash-96").search("the lake")
    assert answer.mode == "fts"
    assert "hash-64" in str(answer.degraded)
    assert "wishful" in str(answer.degraded)
    assert "store.admin.reembed()" in str(answer.degraded)


def test_the_embedder_of_a_caller_leaves_no_word_of_how_it_is_opened(
    open_store: Callable[..., MemoryStore], make_watched: Callable[..., Any], opened: Open
) -> None:
    open_store(embedder=make_watched(64, "by-hand")).save("the quick brown fox")
    other = opened("hash-96")
    answer = other.search("fox")
    assert answer.mode == "fts"
    assert "by-hand" in str(answer.degraded)
    assert other.admin.reembed().switched
    assert other.search("fox").degraded is None


# --- The switch -------------------------------------------------------------------------------


def test_reembedding_switches_every_open_store_and_leaves_it_sound(
    filled: MemoryStore, opened: Open, path: Path
) -> None:
    other = opened("hash-96")
    check_found(other, "hash-64")
    done = other.admin.reembed()
    assert (done.model_from, done.model_to, done.switched) == ("hash-64", "hash-96", True)
    assert (done.chunks, done.made, done.reused) == (len(TEXTS), len(TEXTS), 0)
    assert (done.pending_vectors, done.old_vectors) == (0, len(TEXTS))
    assert "drop them with: store.admin.doctor(optimize=True)" in done.message
    for store in (filled, other, opened("hash-96"), opened("hash-64")):
        check_found(store, "hash-96")
    assert vectors_by_model(path) == {"hash-64": len(TEXTS), "hash-96": len(TEXTS)}
    assert filled.status().vectors == len(TEXTS)
    check_sound(filled, other)


def test_progress_is_told_from_nothing_to_all(filled: MemoryStore, opened: Open) -> None:
    seen: list[tuple[int, int]] = []
    opened("hash-96").admin.reembed(on_progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, len(TEXTS))
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    assert seen == sorted(seen)
    assert len(seen) > 2


def test_earlier_and_forgotten_texts_get_vectors_too(opened: Open) -> None:
    store = opened("hash-64")
    changed = store.save("The meeting is on Monday.")
    hidden = store.save("The key lies under the mat.")
    before = store.get(changed.memory_id).updated_at
    store.update(changed.memory_id, content="The meeting is on Friday.")
    store.forget(hidden.memory_id)
    other = opened("hash-96")
    assert other.admin.reembed().chunks == 3
    then = other.search("The meeting is on Monday.", mode="vector", as_of=before)
    assert then.results[0].similarity == pytest.approx(1, abs=1e-3)
    other.restore(hidden.memory_id)
    found = other.search("The key lies under the mat.", mode="vector")
    assert found.degraded is None
    assert found.results[0].memory_id == hidden.memory_id
    check_sound(store, other)


def test_the_same_text_is_embedded_once(opened: Open) -> None:
    store = opened("hash-64")
    for session in "abc":
        store.save("The same words.", session_id=session)
    done = opened("hash-96").admin.reembed()
    assert (done.chunks, done.made, done.reused) == (3, 1, 2)


def test_reembedding_to_the_same_model_does_nothing_and_says_so(
    filled: MemoryStore, path: Path
) -> None:
    done = filled.admin.reembed()
    assert (done.switched, done.made, done.reused) == (False, 0, 0)
    assert "already" in done.message
    assert vectors_by_model(path) == {"hash-64": len(TEXTS)}


def test_a_store_without_vectors_gets_its_first_ones(opened: Open) -> None:
    opened("", embedding_provider="none").save("Nobody embedded this.")
    store = opened("hash-64")
    done = store.admin.reembed()
    assert (done.model_from, done.model_to, done.made) == (None, "hash-64", 1)
    assert store.search("Nobody embedded this.").degraded is None
    check_sound(store)


def test_reembedding_without_an_embedder_says_why_and_changes_nothing(
    filled: MemoryStore, opened: Open
) -> None:
    with pytest.raises(EmbedderUnavailable, match="switched off"):
        opened("", embedding_provider="none").admin.reembed()
    with pytest.raises(EmbedderUnavailable, match="has no model 'unheard-of'"):
        opened("unheard-of").admin.reembed()
    check_found(filled, "hash-64")


def test_a_provider_that_fails_halfway_leaves_the_old_model_and_the_work_done_so_far(
    open_store: Callable[..., MemoryStore], make_watched: Callable[..., Any], path: Path
) -> None:
    first = make_watched(64, "first")
    open_store(embedder=first).save_many({"content": text} for text in TEXTS)
    second = make_watched(64, "second")
    store = open_store(embedder=second)

    def fail_after(done: int, _total: int) -> None:
        second.down = done >= 128

    with pytest.raises(EmbedderUnavailable) as raised:
        store.admin.reembed(on_progress=fail_after)
    assert "on holiday" in raised.value.message
    assert "128 of 320 chunks" in raised.value.message
    assert "store.admin.reembed()" in raised.value.hint
    assert open_store(embedder=first).search("the lake", mode="vector").degraded is None
    check_sound(open_store(embedder=first))
    second.down = False
    done = store.admin.reembed()
    assert done.switched
    assert len(second.embedded) == len(set(second.embedded)) == len(TEXTS)
    check_sound(store)


class ChoosyEmbedder(WatchedEmbedder):
    """Refuse every batch with a text of some words."""

    refused = "POISON"

    def embed(self, texts: Sequence[str]) -> Vectors:
        if any(self.refused in text for text in texts):
            raise EmbeddingError("400: this input is refused")
        return super().embed(texts)


def test_a_text_that_the_new_model_refuses_is_left_behind_and_told(open_store: OpenStore) -> None:
    old = open_store(embedder=WatchedEmbedder(name="old"))
    old.save_many({"content": text} for text in (*TEXTS, "some POISON"))
    choosy = ChoosyEmbedder(name="new")
    store = open_store(embedder=choosy)
    done = store.admin.reembed()
    assert (done.switched, done.model_to, done.pending_vectors) == (True, "new", 1)
    assert "400: this input is refused" in done.message
    assert len(choosy.embedded) - choosy.embedded.count("a text") == len(TEXTS)
    choosy.refused = "nothing"
    assert all(finding.ok for finding in store.admin.doctor(fix=True))
    check_found(store, "new")


def test_a_model_that_refuses_every_text_is_not_switched_to(open_store: OpenStore) -> None:
    open_store(embedder=WatchedEmbedder(name="old")).save_many({"content": t} for t in TEXTS)
    choosy = ChoosyEmbedder(name="new")
    choosy.refused = "Report"
    store = open_store(embedder=choosy)
    with pytest.raises(EmbedderUnavailable, match="400: this input is refused"):
        store.admin.reembed()
    assert store.status().index.model == "old"


def test_a_model_of_the_same_name_and_other_dimensions_is_refused_with_a_reason(
    open_store: Callable[..., MemoryStore], make_watched: Callable[..., Any]
) -> None:
    open_store(embedder=make_watched(64, "one")).save("some text")
    with pytest.raises(Conflict, match="64 dimensions under the name one"):
        open_store(embedder=make_watched(32, "one")).admin.reembed()


# --- Back again, and the old vectors ----------------------------------------------------------


def test_a_rollback_is_immediate_and_what_came_since_waits_for_vectors(
    filled: MemoryStore, opened: Open
) -> None:
    other = opened("hash-96")
    other.admin.reembed()
    other.save("A heron stood by the lake.")
    back = other.admin.reembed(rollback=True)
    assert (back.model_from, back.model_to, back.switched) == ("hash-96", "hash-64", True)
    assert (back.made, back.pending_vectors) == (0, 1)
    assert "store.admin.doctor(fix=True)" in back.message
    assert "the settings still name hash-96" in back.message
    assert "1 of 321 chunks" in str(other.search("the lake").degraded)
    assert all(finding.ok for finding in other.admin.doctor(fix=True))
    for store in (filled, other):
        check_found(store, "hash-64")
        assert (
            store.search("A heron stood by the lake.", mode="vector").results[0].similarity > 0.99
        )
    # And forth again: everything is there already, save for nothing.
    again = other.admin.reembed()
    assert (again.switched, again.made, again.pending_vectors) == (True, 0, 0)
    for store in (filled, other):
        check_found(store, "hash-96")
    check_sound(filled, other)


def test_without_an_earlier_model_there_is_no_way_back(filled: MemoryStore, opened: Open) -> None:
    with pytest.raises(Conflict, match="no earlier model"):
        filled.admin.reembed(rollback=True)
    other = opened("hash-96")
    done = other.admin.reembed(keep_old=False)
    assert done.old_vectors == 0
    assert "320 vectors of other models were dropped" in done.message
    with pytest.raises(Conflict, match="no earlier model"):
        other.admin.reembed(rollback=True)
    check_found(filled, "hash-96")
    check_sound(filled, other)


def test_optimizing_drops_old_vectors_but_not_those_of_an_unfinished_reembedding(
    filled: MemoryStore, opened: Open, path: Path
) -> None:
    class Enough(Exception):
        pass

    def stop(done: int, _total: int) -> None:
        if done >= 128:
            raise Enough

    other = opened("hash-96")
    with pytest.raises(Enough):
        other.admin.reembed(on_progress=stop)
    filled.admin.doctor(optimize=True)
    assert vectors_by_model(path) == {"hash-64": 320, "hash-96": 128}
    assert other.admin.reembed().made == 320 - 128
    filled.admin.doctor(optimize=True)
    assert vectors_by_model(path) == {"hash-96": 320}
    for store in (filled, other):
        check_found(store, "hash-96")
    check_sound(filled, other)


def test_switching_to_and_fro_while_a_store_looks_away_doubles_nothing(
    filled: MemoryStore, opened: Open
) -> None:
    check_found(filled, "hash-64")
    opened("hash-96").admin.reembed(keep_old=False)
    opened("hash-64").admin.reembed(keep_old=False)  # of the model it knew, but made anew
    check_found(filled, "hash-64")
    with filled._storage.searching("default") as reader:
        segments = reader.index._view.segments
    assert sum(len(segment.vector_slots) for segment in segments) == len(TEXTS)


# --- While others go on -----------------------------------------------------------------------


def test_saves_and_updates_during_a_reembedding_are_all_there_after_it(
    filled: MemoryStore, opened: Open
) -> None:
    over = threading.Event()
    saved: list[str] = []

    def save_on() -> None:
        with byheart.open(
            filled._storage.location, embedding_provider="hash", embedding_model="hash-64"
        ) as own:
            while not over.is_set():
                text = f"Heron {len(saved)} stood by the lake."
                result = own.save(text)
                assert result.pending_vectors == 0
                if len(saved) % 5 == 4:
                    own.update(result.memory_id, content=text + " It flew.")
                    text += " It flew."
                saved.append(text)

    thread = threading.Thread(target=save_on)
    thread.start()
    other = opened("hash-96")
    round_ = 0
    while round_ < 4 or len(saved) <= 5:
        assert thread.is_alive()
        done = (other, opened("hash-64"))[round_ % 2].admin.reembed()
        assert done.switched
        round_ += 1
    over.set()
    thread.join()
    filled.admin.doctor(fix=True)
    for text in saved:
        best = filled.search(text, mode="vector", limit=1).results[0]
        assert (best.chunk_content, round(best.similarity, 2)) == (text, 1.0)
    check_sound(filled, other)


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_switch_between_question_and_search_has_the_question_embedded_again(
    filled: MemoryStore, opened: Open, path: Path, mode: str
) -> None:
    class Switching(HashEmbedder):
        """Have the store switched just after a question was embedded."""

        switches = 0

        def embed_query(self, text: str) -> Vectors:
            vector = super().embed_query(text)
            if not self.switches:
                self.switches += 1
                opened("hash-96").admin.reembed()
            return vector

    switching = Switching(64)
    store = MemoryStore(
        SqliteStorage(path), switching, load_settings({}), lambda _: HashEmbedder(96)
    )
    answer = store.search(TEXTS[17], mode=mode)
    assert switching.switches == 1
    assert (answer.index.model, answer.mode, answer.degraded) == ("hash-96", mode, None)
    assert answer.results[0].similarity == pytest.approx(1, abs=1e-3)
    store.close()


def test_after_a_switch_the_model_that_the_store_had_need_not_answer_any_more(
    filled: MemoryStore, opened: Open, path: Path
) -> None:
    class Leaving(HashEmbedder):
        """Be gone at some time, as a model that was removed from its server."""

        gone = False

        def embed_query(self, text: str) -> Vectors:
            if self.gone:
                raise EmbedderUnavailable("it does not answer")
            return super().embed_query(text)

    earlier = Leaving(64)
    store = MemoryStore(SqliteStorage(path), HashEmbedder(96), load_settings({}), lambda _: earlier)
    assert store.search(TEXTS[17]).index.model == "hash-64"
    opened("hash-96").admin.reembed()
    earlier.gone = True
    answer = store.search(TEXTS[17])
    assert (answer.index.model, answer.mode, answer.degraded) == ("hash-96", "hybrid", None)
    store.close()


def test_a_switch_between_embedding_and_writing_has_the_text_embedded_again(
    filled: MemoryStore, opened: Open, path: Path
) -> None:
    class Switching(HashEmbedder):
        """Have the store switched just after a text was embedded."""

        switches = 0

        def embed(self, texts: Sequence[str]) -> Vectors:
            vectors = super().embed(texts)
            if not self.switches:
                self.switches += 1
                opened("hash-96").admin.reembed()
            return vectors

    switching = Switching(64)
    store = MemoryStore(
        SqliteStorage(path), switching, load_settings({}), lambda _: HashEmbedder(96)
    )
    assert store.save("A heron stood by the lake.").pending_vectors == 0
    assert switching.switches == 1
    assert vectors_by_model(path) == {"hash-64": 320, "hash-96": 321}
    check_sound(store)
    store.close()


SEARCH = """
import sys, byheart
texts = [f"Report {n}: the {word} was seen by the lake." for n, word in enumerate("abcdefgh" * 40)]
store = byheart.open(sys.argv[1], embedding_provider="hash", embedding_model="hash-64")
models, searches = set(), 0
print("ready", flush=True)
import threading
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
while not over.is_set():
    text = texts[searches % len(texts)]
    for mode in ("vector", "hybrid"):
        answer = store.search(text, mode=mode, limit=3)
        assert answer.mode == mode and answer.degraded is None, answer
        assert answer.results and answer.results[0].chunk_content == text, (mode, answer)
        assert abs(answer.results[0].similarity - 1) < 0.001, answer
        models.add(answer.index.model)
    searches += 1
assert not [finding for finding in store.admin.doctor() if not finding.ok], store.admin.doctor()
print(searches, *sorted(models))
"""

REEMBED = """
import sys, time, byheart
store = byheart.open(sys.argv[1], embedding_provider="hash", embedding_model=sys.argv[2])
def slowly(done, total):
    print(done, flush=True)
    time.sleep(float(sys.argv[3]))
print(store.admin.reembed(on_progress=slowly).switched)
"""


def test_a_process_that_searches_all_the_while_never_misses_and_never_mixes_models(
    filled: MemoryStore, path: Path
) -> None:
    searcher = start(SEARCH, path)
    assert searcher.stdout is not None
    assert searcher.stdout.readline() == "ready\n"
    for model in ("hash-96", "hash-64", "hash-128"):
        reembedder = start(REEMBED, path, model, 0.1)
        out, err = reembedder.communicate(timeout=PATIENCE_SECONDS)
        assert out.splitlines()[-1:] == ["True"], err
    out, err = searcher.communicate("", timeout=PATIENCE_SECONDS)
    assert searcher.returncode == 0, err
    searches, *models = out.split()
    assert int(searches) > 3
    assert "hash-128" in models
    check_found(filled, "hash-128")


def test_a_reembedding_that_was_killed_goes_on_where_it_was(
    filled: MemoryStore, opened: Open, path: Path
) -> None:
    killed = start(REEMBED, path, "hash-96", 0.2)
    assert killed.stdout is not None
    while killed.stdout.readline().strip() != "128":
        assert killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    check_found(filled, "hash-64")
    check_sound(filled)
    kept = vectors_by_model(path)["hash-96"]
    assert kept >= 128
    done = opened("hash-96").admin.reembed()
    assert (done.switched, done.made) == (True, 320 - kept)
    check_found(filled, "hash-96")
    check_sound(filled)
