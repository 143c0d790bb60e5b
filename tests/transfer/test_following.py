"""Following a transcript: only what is new is read, and it comes to what reading all would."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byheart.errors import InvalidInput, StoreError
from byheart.store import MemoryStore
from byheart.transfer.foreign import growing_transcripts
from tests.transfer.foreign.samples import (
    CLAUDE_CODE,
    KEY,
    SESSION,
    claude_line,
    tool_result,
    tool_use,
)

OpenStore = Callable[..., MemoryStore]
# What only earlier lines tell: words said again, a line written again after a compaction, the call
# of a tool whose output comes later, and the title of what follows.
RECORDS = [
    *CLAUDE_CODE,
    claude_line("user", 12, "go on"),
    claude_line("user", 16, "go on"),
    claude_line("assistant", 17, [tool_use("Bash", 3, command=f"deploy --token {KEY}")]),
    {"type": "custom-title", "customTitle": "Baskets", "sessionId": SESSION},
    {"type": "user", "message": "no object"},
    claude_line("user", 18, [tool_result(3, "deployed at last")]),
    claude_line("user", 19, "und weiter, größer! 🙂"),
    claude_line("assistant", 20, [{"type": "text", "text": "Both tabs write the whole basket."}]),
]
DATA = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in RECORDS).encode()


def kept(store: MemoryStore) -> list[tuple[Any, ...]]:
    held = store.list(limit=1000, session_id=SESSION, include_global=False).memories
    return sorted(
        (each.client_id, each.role, each.content, each.title, each.task_code, each.created_at)
        for each in held
        if each.kind != "session_summary"
    )


@pytest.fixture
def whole(open_store: OpenStore, tmp_path: Path) -> list[tuple[Any, ...]]:
    """Say what importing all of it at once comes to."""
    path = tmp_path / "whole" / f"{SESSION}.jsonl"
    path.parent.mkdir()
    path.write_bytes(DATA)
    with open_store(tmp_path / "whole.db") as store:
        store.import_(path, on_error="skip", embed=False)
        return kept(store)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(DATA)
    return path


def test_what_was_read_is_not_read_again(store: MemoryStore, transcript: Path) -> None:
    first = store.sessions.follow(transcript)
    assert (first.format, first.sessions, first.skipped) == ("claude-code", 1, ())
    assert first.imported == len(kept(store)) > 10
    again = store.sessions.follow(transcript)
    assert (again.imported, again.unchanged, again.turns, dict(again.left_out)) == (0, 0, 0, {})
    with transcript.open("ab") as file:
        file.write(json.dumps(claude_line("user", 30, "one more thing")).encode() + b"\n")
    later = store.sessions.follow(transcript)
    assert (later.imported, later.turns) == (1, 1)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.sets(st.integers(0, len(DATA)), max_size=8))
def test_in_whatever_pieces_it_is_written_it_comes_to_the_whole(
    open_store: OpenStore,
    tmp_path_factory: pytest.TempPathFactory,
    whole: list[tuple[Any, ...]],
    cuts: set[int],
) -> None:
    place = tmp_path_factory.mktemp("pieces")
    path = place / f"{SESSION}.jsonl"
    path.touch()
    with open_store(place / "followed.db") as store:
        for start, end in pairwise([0, *sorted(cuts), len(DATA)]):
            with path.open("ab") as file:
                file.write(DATA[start:end])
            assert store.sessions.follow(path).skipped == ()
        assert kept(store) == whole


def test_a_long_file_is_kept_part_by_part(
    store: MemoryStore,
    transcript: Path,
    whole: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing_transcripts, "PART_BYTES", 300)
    store.sessions.follow(transcript)
    assert kept(store) == whole
    assert store.sessions.follow(transcript).turns == 0


def test_a_file_that_was_written_anew_is_read_from_its_beginning(
    store: MemoryStore, transcript: Path
) -> None:
    store.sessions.follow(transcript)
    before = kept(store)
    lines = DATA.splitlines(keepends=True)
    other = claude_line("user", 40, "something else was said instead")
    for anew in (
        b"".join(lines[:5]),  # cut off
        b"".join(lines[5:]) + json.dumps(other).encode() + b"\n",
        b"",
        DATA.replace(b"whole basket", b"other basket"),  # of the same length
        DATA + b"\n" * 9,
    ):
        transcript.write_bytes(anew)
        store.sessions.follow(transcript)
    said = {text for _, _, text, *_ in kept(store)}
    assert {text for _, _, text, *_ in before} <= said
    assert said - {text for _, _, text, *_ in before} == {
        "something else was said instead",
        "Both tabs write the other basket.",
    }
    assert len(kept(store)) == len({name for name, *_ in kept(store)})


def test_what_is_kept_without_a_bookmark_is_not_kept_twice(
    open_store: OpenStore, path: Path, transcript: Path
) -> None:
    """As after a crash between the two."""
    with open_store() as store:
        store.sessions.follow(transcript)
        before = kept(store)
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM bookmarks")
    connection.close()
    with open_store() as store:
        assert store.sessions.follow(transcript).imported == 0
        assert kept(store) == before


def test_no_bookmark_is_put_behind_what_could_not_be_kept(
    open_store: OpenStore, path: Path, transcript: Path
) -> None:
    with open_store() as store:
        store.save("something")
    other = apsw.Connection(str(path))
    other.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON memories BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with open_store() as store, pytest.raises(StoreError):
        store.sessions.follow(transcript)
    assert other.execute("SELECT count(*) FROM bookmarks").get == 0
    other.execute("DROP TRIGGER refuse")
    other.close()
    with open_store() as store:
        assert store.sessions.follow(transcript).imported > 10


def test_two_who_follow_at_once_keep_everything_once(
    open_store: OpenStore, transcript: Path, whole: list[tuple[Any, ...]]
) -> None:
    stores = [open_store() for _ in range(2)]
    threads = [threading.Thread(target=each.sessions.follow, args=[transcript]) for each in stores]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert kept(stores[0]) == whole
    assert stores[0].sessions.follow(transcript).turns == 0


def test_what_was_forgotten_for_good_does_not_come_back(
    store: MemoryStore, transcript: Path
) -> None:
    store.sessions.follow(transcript)
    [memory] = [
        each
        for each in store.list(limit=100, session_id=SESSION, include_global=False).memories
        if each.content == "deployed at last"
    ]
    assert store.forget(memory.memory_id, hard=True).removal is not None
    again = store.sessions.follow(transcript)
    assert (again.imported, again.refused) == (0, 1)
    assert "deployed at last" not in {text for _, _, text, *_ in kept(store)}


def test_a_bookmark_holds_no_secrets(open_store: OpenStore, path: Path, tmp_path: Path) -> None:
    waiting = tmp_path / f"{SESSION}.jsonl"
    called = claude_line("assistant", 1, [tool_use("Bash", 9, command=f"deploy --token {KEY}")])
    waiting.write_text(json.dumps(called) + "\n")
    with open_store() as store:
        store.sessions.follow(waiting)
    stored = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    assert b"toolu_9" in stored
    assert KEY.encode() not in stored


def test_what_cannot_be_followed_is_refused(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        store.sessions.follow(tmp_path / "none.jsonl")
    with pytest.raises(InvalidInput, match="format"):
        store.sessions.follow(tmp_path, format="obsidian")


def test_the_store_itself_is_never_opened_beside_sqlite(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="is the store itself"):
        store.sessions.follow(store.status().store)


@pytest.mark.parametrize("name", ["~nobody-is-called-so/x", "a\0b", "x" * 5000])
def test_what_no_file_can_be_called_is_refused(name: str, store: MemoryStore) -> None:
    for verb in (store.sessions.follow, store.import_, store.export, store.admin.backup):
        with pytest.raises(InvalidInput) as caught:
            verb(name)
        assert caught.value.hint


def test_a_line_that_is_broken_is_named_and_passed_for_good(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"{not json\n" + DATA)
    [skipped] = store.sessions.follow(path).skipped
    assert skipped.place == f"{path} line 1"
    assert store.sessions.follow(path).skipped == ()
