"""A watched folder stays fresh: whatever happens to its files is found by the next search."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from byheart.interfaces.background_work import keep_workspaces
from byheart.model import Indexed
from byheart.settings import load_settings
from byheart.store import MemoryStore
from byheart.workspace import transactions
from byheart.workspace.watcher import _here
from tests.conftest import OpenStore, WatchedEmbedder
from tests.waiting import PATIENCE_SECONDS, wait_until

# Long enough for a machine that has other things to do; what is waited for takes a fraction of it.


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "first.md").write_text("The lighthouse keeper drinks cocoa.\n")
    (folder / "deep/second.md").write_text("The harbour opens at six.\n")
    return folder


@contextmanager
def watching(store: MemoryStore, root: Path) -> Iterator[list[Indexed]]:
    """Watch a folder in a thread, from its first look on, until the end."""
    stop, told = threading.Event(), list[Indexed]()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            store.workspaces.watch(root, stop, told.append)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait_until(
            lambda: bool(failures) or any(each.indexed_at for each in store.workspaces.list())
        )
        yield told
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
    assert not failures
    assert not thread.is_alive()


def found(store: MemoryStore, query: str) -> list[str]:
    return sorted(Path(hit.path or "").name for hit in store.search(query, mode="fts").results)


def test_what_is_there_already_is_indexed_first(store: MemoryStore, root: Path) -> None:
    with watching(store, root) as told:
        assert found(store, "lighthouse") == ["first.md"]
        assert told[0].files_indexed == 2


def test_created_changed_and_deleted_files_are_noticed(store: MemoryStore, root: Path) -> None:
    with watching(store, root):
        (root / "new.md").write_text("Pelicans nest on the pier.\n")
        wait_until(lambda: found(store, "pelicans") == ["new.md"])
        (root / "new.md").write_text("Cormorants nest on the pier.\n")
        wait_until(lambda: found(store, "cormorants") == ["new.md"])
        assert found(store, "pelicans") == []
        (root / "new.md").unlink()
        wait_until(lambda: found(store, "cormorants") == [])


def test_the_vectors_of_a_saved_file_follow(store: MemoryStore, root: Path) -> None:
    with watching(store, root):
        (root / "new.md").write_text("Pelicans nest on the pier.\n")
        wait_until(lambda: found(store, "pelicans") == ["new.md"])
        wait_until(lambda: store.status().index.pending_vectors == 0)
        [best, *_] = store.search("Pelicans nest on the pier.", mode="vector").results
        assert (best.path or "").endswith("new.md")


def test_a_renamed_file_keeps_its_memory(store: MemoryStore, root: Path) -> None:
    with watching(store, root):
        [before] = store.search("lighthouse", mode="fts").results
        (root / "first.md").rename(root / "deep/renamed.md")
        wait_until(lambda: found(store, "lighthouse") == ["renamed.md"])
        [after] = store.search("lighthouse", mode="fts").results
        assert after.memory_id == before.memory_id


def test_an_editor_that_writes_beside_and_renames_is_understood(
    store: MemoryStore, root: Path
) -> None:
    with watching(store, root):
        [before] = store.search("lighthouse", mode="fts").results
        (root / ".first.md.swp").write_text("The lighthouse keeper drinks absinthe.\n")
        (root / ".first.md.swp").rename(root / "first.md")
        wait_until(lambda: found(store, "absinthe") == ["first.md"])
        [after] = store.search("lighthouse", mode="fts").results
        assert after.memory_id == before.memory_id
        assert found(store, "cocoa") == []


def test_a_folder_that_is_moved_or_deleted_takes_its_files_along(
    store: MemoryStore, root: Path
) -> None:
    with watching(store, root):
        (root / "deep").rename(root / "depth")
        wait_until(lambda: [each.path for each in store.list(path="depth/").memories] != [])
        assert found(store, "harbour") == ["second.md"]
        (root / "depth/third.md").write_text("Kelp grows by the slipway.\n")
        wait_until(lambda: found(store, "kelp") == ["third.md"])
        shutil.rmtree(root / "depth")
        wait_until(lambda: found(store, "harbour kelp") == [])


def test_a_folder_that_is_moved_in_is_indexed_whole(
    store: MemoryStore, root: Path, tmp_path: Path
) -> None:
    for number in range(20):
        file = tmp_path / f"elsewhere/{number}/{number}.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"Barnacle number {number}.\n")
    with watching(store, root):
        (tmp_path / "elsewhere").rename(root / "elsewhere")
        wait_until(lambda: store.search("barnacle", mode="fts", limit=50).total_results == 20)


def test_a_burst_of_changes_is_taken_in_whole(store: MemoryStore, root: Path) -> None:
    for number in range(600):
        (root / f"{number}.md").write_text(f"Buoy {number} is red.\n")
    with watching(store, root):
        for number in range(600):
            (root / f"{number}.md").write_text(f"Buoy {number} is green.\n")
        for number in range(100):
            (root / f"{number}.md").unlink()
        wait_until(lambda: store.list(kind="file", limit=1).total == 502)
        wait_until(lambda: store.search("green", mode="fts", limit=1000).total_results == 500)
        assert store.search("red", mode="fts").total_results == 0


def test_a_changed_ignore_file_decides_at_once(store: MemoryStore, root: Path) -> None:
    with watching(store, root) as told:
        (root / ".gitignore").write_text("deep/\n")
        wait_until(lambda: found(store, "harbour") == [])
        (root / ".gitignore").unlink()
        wait_until(lambda: found(store, "harbour") == ["second.md"])
        wait_until(lambda: told[-1].files_restored == 1)


def test_ignored_and_secret_files_stay_out_when_they_change(store: MemoryStore, root: Path) -> None:
    with watching(store, root):
        (root / "node_modules").mkdir()
        (root / "node_modules/lib.js").write_text("const octopus = 1\n")
        (root / ".env").write_text("OCTOPUS=1\n")
        (root / "last.md").write_text("The octopus hides.\n")
        wait_until(lambda: found(store, "octopus") != [])
        assert found(store, "octopus") == ["last.md"]


def test_what_happened_while_nobody_watched_is_caught_up(store: MemoryStore, root: Path) -> None:
    with watching(store, root):
        pass
    (root / "first.md").unlink()
    (root / "later.md").write_text("Gulls follow the plough.\n")
    stop = threading.Event()
    thread = threading.Thread(target=store.workspaces.watch, args=(root, stop))
    thread.start()
    try:
        wait_until(
            lambda: found(store, "gulls") == ["later.md"] and found(store, "lighthouse") == []
        )
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_a_root_that_vanishes_and_comes_back_loses_nothing(
    store: MemoryStore, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byheart.workspace.watcher.BEAT_SECONDS", 0.05)
    with watching(store, root):
        root.rename(tmp_path / "away")
        (tmp_path / "away/new.md").write_text("Terns nest in the dunes.\n")
        wait_until(lambda: "is not there" in (store.workspaces.list()[0].trouble or ""))
        assert found(store, "lighthouse") == ["first.md"]
        (tmp_path / "away").rename(root)
        wait_until(lambda: found(store, "terns") == ["new.md"])


def test_an_empty_folder_in_the_place_of_the_root_is_told_and_loses_nothing(
    store: MemoryStore, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an unmounted disk leaves it behind."""
    monkeypatch.setattr("byheart.workspace.watcher.BEAT_SECONDS", 0.05)
    with watching(store, root):
        root.rename(tmp_path / "away")
        root.mkdir()
        wait_until(
            lambda: "is empty: nothing was removed" in (store.workspaces.list()[0].trouble or "")
        )
        assert found(store, "lighthouse") == ["first.md"]
        root.rmdir()
        (tmp_path / "away").rename(root)
        (root / "new.md").write_text("Terns nest in the dunes.\n")
        wait_until(lambda: found(store, "terns") == ["new.md"])
        wait_until(lambda: store.workspaces.list()[0].trouble is None)
        assert found(store, "lighthouse harbour") == ["first.md", "second.md"]


def test_a_root_that_is_emptied_while_it_is_watched_loses_nothing_until_a_file_is_there(
    store: MemoryStore, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byheart.workspace.watcher.BEAT_SECONDS", 0.05)
    (root / "deep/second.md").rename(root / "second.md")
    away = tmp_path / "away"
    away.mkdir()
    with watching(store, root) as told:
        for name in ("first.md", "second.md", "deep"):
            (root / name).rename(away / name)
        wait_until(
            lambda: "is empty: nothing was removed" in (store.workspaces.list()[0].trouble or "")
        )
        assert found(store, "lighthouse harbour") == ["first.md", "second.md"]
        assert sum(each.files_removed for each in told) == 0
        (away / "first.md").rename(root / "first.md")
        wait_until(lambda: found(store, "harbour") == [])
        wait_until(lambda: store.workspaces.list()[0].trouble is None)
        assert found(store, "lighthouse") == ["first.md"]


def test_a_first_look_ends_when_it_is_told_to_stop_and_goes_on_the_next_time(
    store: MemoryStore, root: Path
) -> None:
    for number in range(200):
        (root / f"note{number}.md").write_text(f"Note {number} about eels.\n")

    class SomethingIsThere(threading.Event):
        def is_set(self) -> bool:
            return store.workspaces.list()[0].files > 0

    store.workspaces.watch(root, SomethingIsThere())
    assert 0 < store.workspaces.list()[0].files < 202
    with watching(store, root):
        assert store.workspaces.list()[0].files == 202


def test_a_heartbeat_shows_who_watches(store: MemoryStore, root: Path) -> None:
    with watching(store, root):
        [workspace] = store.status().workspaces
        assert workspace.watched_by is not None
        assert workspace.beat_at is not None
        assert (workspace.behind, workspace.trouble) == (0, None)
    [workspace] = store.status().workspaces
    assert workspace.watched_by is None


def test_of_two_watchers_one_works_and_the_other_takes_over(
    open_store: OpenStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byheart.workspace.watcher.BEAT_SECONDS", 0.05)
    first, second = open_store(), open_store()
    stop, turns = threading.Event(), list[str | None]()
    standing_by = threading.Thread(
        target=second.workspaces.watch, args=(root, stop), kwargs={"on_turn": turns.append}
    )
    with watching(first, root):
        [before] = first.workspaces.list()
        standing_by.start()
        beats = {first.workspaces.list()[0].beat_at}
        wait_until(lambda: len(beats) > 5 or bool(beats.add(first.workspaces.list()[0].beat_at)))
        assert first.workspaces.list()[0].watched_by == before.watched_by
        assert turns == [before.watched_by]
    try:
        wait_until(lambda: first.workspaces.list()[0].watched_by not in (None, before.watched_by))
        (root / "new.md").write_text("Puffins dig burrows.\n")
        wait_until(lambda: found(first, "puffins") == ["new.md"])
        assert turns == [before.watched_by, None]
    finally:
        stop.set()
        standing_by.join(PATIENCE_SECONDS)
    assert not standing_by.is_alive()


@pytest.mark.parametrize("dead", ["elsewhere/1/1", f"{_here()}/99999999/1"], ids=["silent", "gone"])
def test_a_watcher_that_died_is_replaced(
    open_store: OpenStore, root: Path, monkeypatch: pytest.MonkeyPatch, dead: str
) -> None:
    store = open_store()
    store.index(root)
    number = store.workspaces.list()[0].workspace_no
    # As a process leaves it that was killed: claimed, and no heartbeat any more.
    storage = store._storage
    assert transactions.claim(storage, "default", number, dead, 20)
    assert not transactions.claim(storage, "default", number, "host/2/1", 20)
    if dead.startswith("elsewhere"):
        monkeypatch.setattr("byheart.workspace.watcher.STALE_SECONDS", 0.0)
    with watching(store, root):
        wait_until(lambda: store.workspaces.list()[0].watched_by not in (None, dead))
        (root / "new.md").write_text("Puffins dig burrows.\n")
        wait_until(lambda: found(store, "puffins") == ["new.md"])


def test_a_provider_that_is_away_leaves_keywords_fresh(
    open_store: OpenStore, watched: WatchedEmbedder, root: Path
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    with watching(store, root):
        (root / "new.md").write_text("Pelicans nest on the pier.\n")
        wait_until(lambda: found(store, "pelicans") == ["new.md"])
        assert store.status().index.pending_vectors == 3


@pytest.mark.parametrize("auto_reindex", [True, False])
def test_servers_index_their_workspaces_whether_they_watch_them_or_not(
    store: MemoryStore, root: Path, auto_reindex: bool
) -> None:
    settings = load_settings({"workspaces": [str(root)], "auto_reindex": auto_reindex})
    ended = threading.Event()
    keep_workspaces(store, settings, ended)
    try:
        wait_until(lambda: found(store, "lighthouse") == ["first.md"])
        if auto_reindex:
            wait_until(lambda: store.workspaces.list()[0].watched_by is not None)
            (root / "new.md").write_text("Pelicans nest on the pier.\n")
            wait_until(lambda: found(store, "pelicans") == ["new.md"])
        else:
            assert store.workspaces.list()[0].watched_by is None
    finally:
        ended.set()
        for thread in threading.enumerate():
            if thread.name == "byheart-workspace":
                thread.join(PATIENCE_SECONDS)


def test_a_workspace_that_cannot_be_watched_does_not_stop_a_server(
    store: MemoryStore, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = load_settings({"workspaces": [str(tmp_path / "nowhere")]})
    ended = threading.Event()
    keep_workspaces(store, settings, ended)
    wait_until(lambda: "nowhere" in caplog.text)
    ended.set()
    assert store.workspaces.list() == ()


def test_a_watch_ends_when_its_workspace_is_dropped(store: MemoryStore, root: Path) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=store.workspaces.watch, args=(root, stop))
    thread.start()
    try:
        wait_until(
            lambda: (
                bool(store.workspaces.list()) and store.workspaces.list()[0].indexed_at is not None
            )
        )
        store.workspaces.drop(root)
        (root / "new.md").write_text("Pelicans nest on the pier.\n")
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
        assert found(store, "pelicans") == []
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)


def test_closing_the_store_ends_its_watches(open_store: OpenStore, root: Path, path: Path) -> None:
    store = open_store()
    thread = threading.Thread(target=store.workspaces.watch, args=(root,))
    thread.start()
    wait_until(
        lambda: bool(store.workspaces.list()) and store.workspaces.list()[0].watched_by is not None
    )
    store.close()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert open_store().workspaces.list()[0].watched_by is None


def test_a_workspace_that_is_not_there_yet_is_tried_again(
    store: MemoryStore, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byheart.interfaces.background_work._TRY_AGAIN_SECONDS", 0.05)
    ended = threading.Event()
    later = tmp_path / "later"
    keep_workspaces(store, load_settings({"workspaces": [str(later)]}), ended)
    try:
        root.rename(later)
        wait_until(lambda: found(store, "lighthouse") == ["first.md"])
    finally:
        ended.set()
        for thread in threading.enumerate():
            if thread.name == "byheart-workspace":
                thread.join(PATIENCE_SECONDS)


def test_a_watcher_that_was_taken_over_stops(
    store: MemoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byheart.workspace.watcher.BEAT_SECONDS", 0.05)
    with watching(store, root):
        [workspace] = store.workspaces.list()
        assert transactions.claim(
            store._storage, workspace.space, workspace.workspace_no, "elsewhere/1/1", -1
        )
        (root / "new.md").write_text("Pelicans nest on the pier.\n")
        beat = store.workspaces.list()[0].beat_at
        time.sleep(0.5)
        assert store.workspaces.list()[0].watched_by == "elsewhere/1/1"
        assert store.workspaces.list()[0].beat_at == beat


def test_everything_is_looked_at_again_now_and_then(
    store: MemoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should an event be lost."""
    monkeypatch.setattr("byheart.workspace.watcher._LOOK_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(
        "byheart.workspace.watcher.Watch.wait", lambda *_: time.sleep(0.02) or set()
    )
    with watching(store, root):
        (root / "new.md").write_text("Pelicans nest on the pier.\n")
        wait_until(lambda: found(store, "pelicans") == ["new.md"])
