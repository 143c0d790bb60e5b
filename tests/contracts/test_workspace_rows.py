"""What the rows of workspaces and files promise, run on each implementation."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from byheart.contracts import (
    AlikeFile,
    FileStamp,
    FoundWorkspace,
    KnownFile,
    MemoryRows,
    Reader,
    Storage,
    WorkspaceReader,
    WorkspaceRows,
    Writer,
)
from byheart.memory import transactions
from byheart.workspace import transactions as workspace_transactions
from tests.contracts.covering import covers
from tests.contracts.drafts import draft

AT = datetime(2026, 5, 1, 12, 0, 0, 5, tzinfo=UTC)
FILE = KnownFile("mem_1", FileStamp(5, -1, 9), b"bytes", AT)
BROKEN = KnownFile(None, FileStamp(0, 1, 2), b"", AT, "damaged", may_pass=True)


@covers(
    WorkspaceRows.add,
    WorkspaceReader.roots,
    WorkspaceReader.find,
    Reader.workspaces,
    Writer.workspaces,
)
def test_a_folder_is_added_once_in_each_space(storage: Storage) -> None:
    with storage.writing("space") as writer:
        first = writer.workspaces.add("space", "/project")
        assert writer.workspaces.add("space", "/project") == first
        writer.workspaces.add("space", "/a")
    with storage.writing("other") as writer:
        assert writer.workspaces.add("other", "/project") != first
    with storage.reading() as reader:
        assert [each.root for each in reader.workspaces.roots("space")] == ["/a", "/project"]
        assert len(reader.workspaces.roots(None)) == 3
        assert reader.workspaces.find(first) == FoundWorkspace("space", "/project", None, None)
        assert reader.workspaces.find(99) is None


def test_a_workspace_counts_its_files_that_are_there_and_those_that_failed(
    storage: Storage,
) -> None:
    with storage.writing("space") as writer:
        rows = writer.workspaces
        number = rows.add("space", "/project")
        rows.put_file(number, "a.md", FILE)
        rows.put_file(number, "b.md", FILE._replace(gone_at=AT))
        rows.put_file(number, "c.md", BROKEN)
        [workspace] = rows.roots("space")
    assert (workspace.files, workspace.failed) == (1, 1)


@covers(WorkspaceRows.put_file, WorkspaceReader.files)
def test_a_file_is_read_as_it_was_put_alone_or_with_its_folder(storage: Storage) -> None:
    with storage.writing("space") as writer:
        rows = writer.workspaces
        number, other = rows.add("space", "/project"), rows.add("space", "/other")
        files = {"docs": FILE, "docs/a.md": BROKEN, "docs/b/c.md": FILE._replace(gone_at=AT)}
        for path, file in {**files, "docs-old/a.md": FILE, "docs0": FILE}.items():
            rows.put_file(number, path, file)
        rows.put_file(other, "docs/a.md", FILE)
    with storage.reading() as reader:
        assert reader.workspaces.files(number, "docs") == files
        assert reader.workspaces.files(number, "docs/a.md") == {"docs/a.md": BROKEN}
        assert len(reader.workspaces.files(number, "")) == 5


def test_a_file_is_put_anew_and_removed(storage: Storage) -> None:
    with storage.writing("space") as writer:
        rows = writer.workspaces
        number = rows.add("space", "/project")
        rows.put_file(number, "a.md", BROKEN._replace(gone_at=AT))
        rows.put_file(number, "a.md", FILE)
        assert rows.files(number, "") == {"a.md": FILE}
        rows.put_file(number, "a.md", None)
        assert rows.files(number, "") == {}


@covers(WorkspaceReader.alike)
def test_files_with_the_same_bytes_are_found_within_a_space(storage: Storage) -> None:
    with storage.writing("other") as writer:
        other = writer.workspaces.add("other", "/1")
        writer.workspaces.put_file(other, "c.md", FILE)
    with storage.writing("space") as writer:
        rows = writer.workspaces
        one, two = rows.add("space", "/1"), rows.add("space", "/2")
        rows.put_file(one, "b.md", FILE._replace(gone_at=AT))
        rows.put_file(two, "a.md", FILE)
        rows.put_file(two, "no-memory.md", FILE._replace(memory_id=None))
        rows.put_file(two, "other-bytes.md", FILE._replace(file_hash=b"other"))
        alike = [AlikeFile(two, "a.md", gone=False), AlikeFile(one, "b.md", gone=True)]
        assert rows.alike("space", b"bytes") == alike


@covers(WorkspaceRows.change)
def test_a_workspace_changes_only_from_the_expected_state(storage: Storage) -> None:
    with storage.writing("space") as writer:
        rows = writer.workspaces
        number, other = rows.add("space", "/project"), rows.add("space", "/other")
        free = {"watcher": None, "beat_at": None}
        claim = {"watcher": "me", "beat_at": AT, "behind": 2, "trouble": "slow"}
        assert rows.change(number, claim, free)
        assert not rows.change(number, {"watcher": "you"}, free)
        assert not rows.change(number, {"watcher": "you"}, {"watcher": "me", "beat_at": None})
        assert rows.change(number, {"behind": 1}, {"watcher": "me", "beat_at": AT})
        assert rows.change(number, {"indexed_at": AT}, {})
        assert not rows.change(99, {"indexed_at": AT}, {})
        changed, untouched = rows.roots("space")[1], rows.find(other)
    assert (changed.watched_by, changed.beat_at, changed.behind) == ("me", AT, 1)
    assert (changed.trouble, changed.indexed_at) == ("slow", AT)
    assert untouched == FoundWorkspace("space", "/other", None, None)


@covers(WorkspaceRows.now)
def test_heartbeats_are_written_by_a_clock_that_goes_on(storage: Storage) -> None:
    with storage.writing("space") as writer:
        first = writer.workspaces.now()
        time.sleep(0.01)
        second = writer.workspaces.now()
    assert timedelta(milliseconds=9) < second - first < timedelta(seconds=30)
    assert abs(datetime.now(UTC) - second) < timedelta(seconds=60), "the database runs here too"


@covers(WorkspaceRows.remove)
def test_a_removed_workspace_takes_the_states_of_its_files_along(storage: Storage) -> None:
    with storage.writing("space") as writer:
        rows = writer.workspaces
        number, other = rows.add("space", "/project"), rows.add("space", "/other")
        rows.put_file(number, "a.md", FILE)
        rows.put_file(other, "a.md", FILE)
        rows.remove(number)
        assert rows.find(number) is None
        assert rows.files(number, "") == {}
        assert rows.files(other, "") == {"a.md": FILE}


@covers(WorkspaceRows.remove_files)
def test_the_states_of_files_are_removed_by_their_memories(storage: Storage) -> None:
    others = {}
    for space in ("other", "third"):  # one of them shares a part with the space
        with storage.writing(space) as writer:
            others[space] = writer.workspaces.add(space, "/project")
            writer.workspaces.put_file(others[space], "a.md", FILE)
    with storage.writing("space") as writer:
        rows = writer.workspaces
        number, other = rows.add("space", "/project"), rows.add("space", "/other")
        for each in (number, other):
            rows.put_file(each, "a.md", FILE)
            rows.put_file(each, "b.md", FILE._replace(memory_id="mem_2"))
        rows.remove_files(["mem_1", "mem_3"], "space")
        assert [*rows.files(number, ""), *rows.files(other, "")] == ["b.md", "b.md"]
    for space, far in others.items():
        with storage.writing(space) as writer:
            assert list(writer.workspaces.files(far, "")) == ["a.md"]


@covers(MemoryRows.named)
def test_all_memories_with_a_client_id_are_found_hidden_or_not(storage: Storage) -> None:
    first, second = (draft(text, client_id="file") for text in ("one", "two"))
    transactions.write(storage, [first], None)
    transactions.forget(storage, [first.memory.memory_id], "space", "tester", None)
    with storage.writing("space") as writer:
        transactions.insert(writer.memories, second, None)
        transactions.insert(writer.memories, draft("other", client_id="other"), None)
        found = writer.memories.named("space", None, "file")
        assert [each.memory_id for each in found] == [
            first.memory.memory_id,
            second.memory.memory_id,
        ]
        assert [each.hidden_by for each in found] == ["tester", None]
        assert writer.memories.named("space", "session", "file") == []


@covers(MemoryRows.held)
def test_memories_of_missing_files_are_erased_with_the_states_of_the_files(
    storage: Storage,
) -> None:
    texts = ("missing", "forgotten", "present")
    made = {text: draft(text, kind="file", client_id=text) for text in texts}
    transactions.write(storage, list(made.values()), None)
    ids = {text: each.memory.memory_id for text, each in made.items()}
    with storage.writing("space") as writer:
        number = writer.workspaces.add("space", "/project")
        for text, memory_id in ids.items():
            writer.workspaces.put_file(number, text, FILE._replace(memory_id=memory_id))
        transactions.hide(writer.memories, [ids["missing"]], "space", "workspace", None)
        transactions.hide(writer.memories, [ids["forgotten"]], "space", "user", None)
    assert workspace_transactions.purge(storage, timedelta(days=1), 10) == 0
    assert workspace_transactions.purge(storage, timedelta(0), 10) == 1
    with storage.writing("space") as writer:
        left = [each.memory_id for each in writer.memories.held(ids.values(), "space")]
        assert left == [ids["forgotten"], ids["present"]]
        assert set(writer.workspaces.files(number, "")) == {"forgotten", "present"}


@pytest.mark.parametrize("name", ["root = ?, behind", "no_such_column"])
def test_a_change_of_an_unknown_field_is_refused(storage: Storage, name: str) -> None:
    with storage.writing("space") as writer:
        number = writer.workspaces.add("space", "/project")
        with pytest.raises(ValueError, match="no field"):
            writer.workspaces.change(number, {name: 1}, {})
        with pytest.raises(ValueError, match="no field"):
            writer.workspaces.change(number, {"behind": 1}, {name: 1})
        [workspace] = writer.workspaces.roots("space")
    assert (workspace.root, workspace.behind) == ("/project", 0)
