"""Check what happens to a file and its memory, as functions over values decide it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from byheart.contracts import (
    DedupKey,
    Draft,
    FileChange,
    FileStamp,
    FoundWorkspace,
    KnownFile,
    MemoryState,
)
from byheart.model import Memory, client_id_of
from byheart.workspace import file_life
from byheart.workspace.file_life import EMPTY, GONE, WHO, Fate
from tests.memory import made_memories
from tests.memory.made_memories import NOW, SECOND

STAMP, NEW_STAMP = FileStamp(5, 1, 9), FileStamp(6, 2, 9)
OLD, NEW = b"old bytes", b"new bytes"
PATH = "/project/docs/setup.md"


def memory(**fields: Any) -> Memory:
    given: dict[str, Any] = {
        "memory_id": "mem_draft",
        "kind": "file",
        "title": "setup.md",
        "source": WHO,
        "path": PATH,
        "format": "markdown",
        "created_at": NOW,
        "updated_at": NOW,
        "client_id": client_id_of(PATH),
        "content_hash": "b" * 64,
        "chunks": 1,
    }
    return made_memories.memory(**given | fields)


DRAFT = Draft(memory(), (), (), ("summary",), "somebody")
LOOK = FileChange("docs/setup.md", NEW_STAMP, NOW, NEW)
CHANGED = replace(LOOK, draft=DRAFT)
SAME = replace(LOOK, file_hash=OLD)
EMPTIED = replace(LOOK, no_text=True)
KNOWN = KnownFile("mem_own", STAMP, OLD, NOW - SECOND)


def held(memory_id: str = "mem_own", *, hidden_by: str | None = None) -> MemoryState:
    return MemoryState(
        memory_no=7,
        memory_id=memory_id,
        key=DedupKey("space", None, "file", "a" * 64, client_id=client_id_of(PATH)),
        version=3,
        created_at=NOW - timedelta(days=9),
        since_at=NOW - timedelta(days=1),
        expires_at=None,
        forgotten_at=None if hidden_by is None else NOW - SECOND,
        hidden_by=hidden_by,
        superseded_by=None,
        superseded_at=None,
        pinned_at=None,
        untrusted_at=None,
        valid_from=None,
        valid_until=None,
        accessed_at=None,
        access_count=0,
        turn_no=None,
        feedback=None,
        chunks=1,
        pending_vectors=0,
    )


VISIBLE, HIDDEN, FORGOTTEN = held(), held(hidden_by=WHO), held(hidden_by="user")


def state(change: FileChange, memory_id: str | None) -> KnownFile:
    return KnownFile(memory_id, change.stamp, change.file_hash, change.read_at)


# --- Reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read_at", "overtaken"),
    [(NOW - SECOND, False), (NOW, False), (NOW + SECOND, True), (NOW + 9 * SECOND, False)],
    ids=["earlier", "at the same moment", "later", "in the future"],
)
def test_the_process_that_read_a_file_last_is_right(read_at: datetime, overtaken: bool) -> None:
    known = KNOWN._replace(read_at=read_at)
    assert file_life.is_overtaken(LOOK, known, NOW + 2 * SECOND) is overtaken


def test_an_unknown_file_was_read_by_no_other_process() -> None:
    assert not file_life.is_overtaken(LOOK, None, NOW)


def test_an_unreadable_file_keeps_its_memory_and_the_hash_of_its_last_text() -> None:
    change = FileChange("docs/setup.md", NEW_STAMP, NOW, trouble="damaged", may_pass=True)
    fate = file_life.fail(change, KNOWN)
    assert fate == Fate(
        "failed", file=KnownFile("mem_own", NEW_STAMP, OLD, NOW, "damaged", may_pass=True)
    )


def test_a_new_file_that_is_unreadable_is_recorded_without_a_memory() -> None:
    change = FileChange("docs/setup.md", NEW_STAMP, NOW, trouble="damaged")
    assert file_life.fail(change, None).file == KnownFile(None, NEW_STAMP, b"", NOW, "damaged")


def test_a_text_that_was_refused_still_counts_as_new() -> None:
    """Otherwise the file would be called unchanged after `max_chunks` is raised."""
    change = replace(LOOK, trouble="too many chunks", may_pass=True)
    for known, file_hash in ((None, b""), (KNOWN, OLD)):
        file = file_life.fail(change, known).file
        assert file is not None
        assert file.file_hash == file_hash != change.file_hash


# --- A file without a memory ------------------------------------------------------------------


def test_a_new_file_without_text_is_recorded_without_a_memory() -> None:
    fate = file_life.begin(EMPTIED, [], is_erased=False)
    assert fate == Fate("unchanged", file=state(EMPTIED, None))


def test_a_new_file_becomes_a_memory() -> None:
    fate = file_life.begin(CHANGED, [], is_erased=False)
    assert fate == Fate("indexed", "insert", file=state(CHANGED, "mem_draft"))


def test_a_new_file_whose_text_was_erased_stays_forgotten() -> None:
    fate = file_life.begin(CHANGED, [VISIBLE], is_erased=True)
    assert fate == Fate("forgotten", file=state(CHANGED, None))


@pytest.mark.parametrize("own", [VISIBLE, HIDDEN], ids=["imported", "hidden with its file"])
def test_a_new_file_takes_over_the_memory_of_its_path(own: MemoryState) -> None:
    fate = file_life.begin(CHANGED, [own], is_erased=False)
    assert fate == Fate("indexed", "replace", own, state(CHANGED, "mem_own"))


def test_a_new_file_does_not_take_over_a_memory_that_a_user_forgot() -> None:
    assert file_life.begin(CHANGED, [FORGOTTEN], is_erased=False).deed == "insert"
    later = held("mem_later", hidden_by=WHO)
    assert file_life.begin(CHANGED, [FORGOTTEN, later], is_erased=False).memory == later


# --- A file with a memory ---------------------------------------------------------------------


@pytest.mark.parametrize("own", [FORGOTTEN, None], ids=["forgotten", "erased"])
@pytest.mark.parametrize("change", [CHANGED, SAME, EMPTIED])
def test_a_memory_that_a_user_forgot_stays_forgotten(
    change: FileChange, own: MemoryState | None
) -> None:
    fate = file_life.follow(change, KNOWN, own, is_erased=False)
    assert fate == Fate("forgotten", file=state(change, "mem_own"))


def test_an_unchanged_file_changes_only_its_state() -> None:
    fate = file_life.follow(SAME, KNOWN, VISIBLE, is_erased=False)
    assert fate == Fate("unchanged", file=state(SAME, "mem_own"))


def test_a_file_that_came_back_unchanged_shows_its_memory_again() -> None:
    missing = KNOWN._replace(gone_at=NOW - SECOND)
    fate = file_life.follow(SAME, missing, HIDDEN, is_erased=False)
    assert fate == Fate("restored", "show", HIDDEN, state(SAME, "mem_own"))
    assert not state(SAME, "mem_own").gone


@pytest.mark.parametrize("own", [VISIBLE, HIDDEN], ids=["visible", "hidden"])
def test_a_changed_file_replaces_the_text_of_its_memory(own: MemoryState) -> None:
    fate = file_life.follow(CHANGED, KNOWN, own, is_erased=False)
    assert fate == Fate("indexed", "replace", own, state(CHANGED, "mem_own"))


def test_a_file_that_another_process_saw_in_another_state_is_left_for_the_next_scan() -> None:
    assert file_life.follow(LOOK, KNOWN, VISIBLE, is_erased=False) == Fate("unchanged")


def test_a_file_that_holds_no_text_any_more_hides_its_memory() -> None:
    fate = file_life.follow(EMPTIED, KNOWN, VISIBLE, is_erased=False)
    assert fate == Fate("removed", "hide", VISIBLE, state(EMPTIED, None), reason=EMPTY)


def test_a_file_that_came_back_without_text_leaves_its_memory_hidden() -> None:
    fate = file_life.follow(EMPTIED, KNOWN, HIDDEN, is_erased=False)
    assert fate == Fate("unchanged", file=state(EMPTIED, None))


@pytest.mark.parametrize(("own", "deed"), [(VISIBLE, "hide"), (HIDDEN, "nothing")])
def test_a_file_whose_new_text_was_erased_hides_its_memory(own: MemoryState, deed: str) -> None:
    fate = file_life.follow(CHANGED, KNOWN, own, is_erased=True)
    assert (fate.status, fate.deed, fate.file) == ("forgotten", deed, state(CHANGED, None))


# --- Moves ------------------------------------------------------------------------------------

MOVED = replace(LOOK, path="docs/begin.md", file_hash=OLD, moved_from="docs/setup.md")


@pytest.mark.parametrize("own", [VISIBLE, HIDDEN], ids=["seen at once", "seen later"])
@pytest.mark.parametrize("known", [None, KNOWN._replace(memory_id=None)], ids=["new", "empty"])
def test_a_moved_file_takes_its_memory_along(own: MemoryState, known: KnownFile | None) -> None:
    fate = file_life.move(MOVED, known, KNOWN, own)
    assert fate == Fate("moved", "rename", own, state(MOVED, "mem_own"), "docs/setup.md")


@pytest.mark.parametrize("own", [FORGOTTEN, None], ids=["forgotten", "erased"])
def test_a_moved_file_stays_forgotten(own: MemoryState | None) -> None:
    fate = file_life.move(MOVED, None, KNOWN, own)
    assert fate == Fate("moved", file=state(MOVED, "mem_own"), removed="docs/setup.md")


@pytest.mark.parametrize(
    ("known", "source"),
    [
        (None, None),
        (None, KNOWN._replace(memory_id=None)),
        (None, KNOWN._replace(file_hash=NEW)),
        (KNOWN, KNOWN),
    ],
    ids=["no source", "source without a memory", "other bytes", "target has a memory"],
)
def test_a_move_that_another_process_forestalled_changes_nothing(
    known: KnownFile | None, source: KnownFile | None
) -> None:
    assert file_life.move(MOVED, known, source, VISIBLE) == Fate("failed")


def test_the_title_of_a_moved_file_follows_its_name() -> None:
    revision = file_life.new_path(memory(version=4), "/project/docs/begin.md", NOW + SECOND)
    assert revision.memory.title == "begin.md"
    assert revision.memory.client_id == client_id_of("/project/docs/begin.md")
    assert (revision.memory.updated_at, revision.expected_version) == (NOW + SECOND, 4)
    assert (revision.who, revision.text) == (WHO, None)
    assert revision.changes == {
        "path": (PATH, "/project/docs/begin.md"),
        "title": ("setup.md", "begin.md"),
    }


def test_a_title_that_is_not_the_name_of_the_file_stays() -> None:
    revision = file_life.new_path(memory(title="How to begin"), "/project/begin.md", NOW)
    assert revision.memory.title == "How to begin"
    assert list(revision.changes) == ["path"]


def test_a_file_moved_to_another_folder_keeps_its_title_without_noting_a_change() -> None:
    revision = file_life.new_path(memory(), "/project/setup.md", NOW)
    assert (revision.memory.title, list(revision.changes)) == ("setup.md", ["path"])


# --- New texts --------------------------------------------------------------------------------


def test_a_new_text_keeps_the_id_and_the_age_of_the_memory() -> None:
    revision = file_life.new_text(VISIBLE, DRAFT)
    assert revision.memory == memory(memory_id="mem_own", created_at=VISIBLE.created_at)
    assert (revision.expected_version, revision.derived, revision.who) == (3, ("summary",), WHO)
    assert revision.changes == {"content_hash": ("a" * 64, "b" * 64)}
    assert revision.text == (DRAFT.chunks, DRAFT.windows)


# --- Missing files ----------------------------------------------------------------------------


def test_a_missing_file_hides_its_memory() -> None:
    fate = file_life.miss("docs/setup.md", STAMP, KNOWN, VISIBLE, NOW)
    assert fate == Fate("removed", "hide", VISIBLE, KNOWN._replace(gone_at=NOW), reason=GONE)


@pytest.mark.parametrize("own", [HIDDEN, FORGOTTEN])
def test_a_missing_file_is_recorded_if_its_memory_is_hidden_already(own: MemoryState) -> None:
    fate = file_life.miss("docs/setup.md", STAMP, KNOWN, own, NOW)
    assert fate == Fate("unchanged", file=KNOWN._replace(gone_at=NOW))


def test_a_missing_file_without_a_memory_is_not_remembered() -> None:
    fate = file_life.miss("docs/setup.md", STAMP, KNOWN._replace(memory_id=None), None, NOW)
    assert fate == Fate("unchanged", removed="docs/setup.md")


@pytest.mark.parametrize(
    "known",
    [None, KNOWN._replace(stamp=NEW_STAMP), KNOWN._replace(gone_at=NOW - SECOND)],
    ids=["unknown", "found again", "missing already"],
)
def test_a_file_that_is_not_newly_missing_stays_as_it_is(known: KnownFile | None) -> None:
    assert file_life.miss("docs/setup.md", STAMP, known, VISIBLE, NOW) == Fate("unchanged")


def test_a_dropped_workspace_hides_the_memories_of_the_files_that_are_there() -> None:
    files = [KNOWN, KNOWN._replace(memory_id=None), KNOWN._replace(memory_id="m", gone_at=NOW)]
    assert file_life.present_memories(files) == ["mem_own"]


# --- Watchers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("watcher", "beat", "allowed"),
    [
        (None, None, True),
        ("me", NOW, True),
        ("other", NOW - 20 * SECOND, False),
        ("other", NOW - 21 * SECOND, True),
        ("other", NOW + 20 * SECOND, False),
        ("other", NOW + 21 * SECOND, True),
        ("other", None, False),
    ],
    ids=["free", "own", "alive", "silent", "clock a bit off", "clock was set back", "no beat"],
)
def test_a_workspace_is_claimed_if_no_living_watcher_has_it(
    watcher: str | None, beat: datetime | None, allowed: bool
) -> None:
    workspace = FoundWorkspace("space", "/project", watcher, beat)
    assert file_life.may_claim(workspace, "me", 20, NOW) is allowed


def test_a_claim_begins_with_a_heartbeat_and_no_trouble() -> None:
    assert file_life.claimed("me", NOW) == {
        "watcher": "me",
        "beat_at": NOW,
        "behind": 0,
        "trouble": None,
    }
    assert file_life.released() == {"watcher": None, "behind": 0, "trouble": None}
