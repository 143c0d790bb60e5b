"""A folder becomes memory: each file once, kept as it is on the disk, and nothing else touched."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.errors import Conflict, InvalidInput, NotFound, Unreadable
from byheart.memory.deriving import Derived
from byheart.memory.helper_pool import HelperPool
from byheart.memory.save_requests import SaveRequest
from byheart.model import Indexed, IndexProgress
from byheart.store import MemoryStore
from byheart.workspace import FileText, read_file, transactions
from tests.conftest import OpenStore, WatchedEmbedder
from tests.forked_program import start_script

AN_HOUR_NS = 3_600_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write(folder, "README.md", "# Heron\n\nHeron keeps the irrigation of Lisbon running.\n")
    write(folder, "docs/setup.md", "# Setup\n\nInstall the turbine driver first.\n")
    write(folder, "src/app.py", "def start():\n    return 'pump'\n")
    return folder


def write(folder: Path, name: str, text: str | bytes, *, hours_ago: float = 1) -> Path:
    """Write a file as if some time ago: what was changed just now is read twice."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    status = file.stat()
    then = status.st_mtime_ns - int(hours_ago * AN_HOUR_NS)
    os.utime(file, ns=(then, then))
    return file


def counts(report: Indexed) -> tuple[int, int, int, int]:
    return (
        report.files_indexed,
        report.files_skipped,
        report.files_removed,
        len(report.errors),
    )


def found(store: MemoryStore, query: str, **given: Any) -> list[str]:
    """Name the files whose words match, as seen from their workspace."""
    hits = store.search(query, mode="fts", **given).results
    return [Path(hit.path or "").name for hit in hits]


def files_of(store: MemoryStore) -> dict[str, str]:
    page = store.list(kind="file", limit=100)
    return {Path(each.path or "").name: each.memory_id for each in page.memories}


# --- The first look, and the next -------------------------------------------------------------


def test_each_text_file_becomes_a_memory_of_kind_file(store: MemoryStore, root: Path) -> None:
    report = store.index(root)
    assert counts(report) == (3, 0, 0, 0)
    assert report.root == str(root)
    assert report.pending_vectors == 0
    [hit] = store.search("turbine driver", mode="fts").results
    assert (hit.kind, hit.path, hit.title) == ("file", str(root / "docs/setup.md"), "setup.md")
    assert store.get(hit.memory_id).content == (root / "docs/setup.md").read_text()
    assert store.get(hit.memory_id).origin == "file"


def test_a_hit_carries_the_lines_of_the_file(store: MemoryStore, root: Path) -> None:
    lines = [f"Paragraph {number} speaks of nothing much at all.\n\n" for number in range(400)]
    lines[300] = "The zephyr valve sticks in winter.\n\n"
    write(root, "long.txt", "".join(lines))
    store.index(root)
    [hit] = store.search("zephyr", mode="fts").results
    assert hit.start_line <= 601 <= hit.end_line
    assert hit.end_line - hit.start_line < 200


def test_unchanged_files_are_skipped_without_being_read(store: MemoryStore, root: Path) -> None:
    store.index(root)
    for name in ("README.md", "docs/setup.md", "src/app.py"):
        file = root / name
        status = file.stat()
        # Other bytes of the same length behind the same look: whoever opened it would notice.
        with file.open("r+b") as opened:
            opened.write(b"X" * status.st_size)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert counts(store.index(root)) == (0, 3, 0, 0)
    assert found(store, "turbine") == ["setup.md"]


def test_a_file_changed_just_before_it_was_read_is_read_again(
    store: MemoryStore, root: Path
) -> None:
    """Within one tick of the clock two texts of a length look the same from outside."""
    file = write(root, "now.md", "The first words.\n", hours_ago=0)
    store.index(root)
    status = file.stat()
    file.write_text("The other words.\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert counts(store.index(root)) == (1, 3, 0, 0)
    assert found(store, "other") == ["now.md"]


def test_a_touched_file_with_the_same_text_is_skipped(
    open_store: OpenStore, watched: WatchedEmbedder, root: Path
) -> None:
    store = open_store(embedder=watched)
    store.index(root)
    before, embedded = files_of(store), len(watched.embedded)
    os.utime(root / "README.md")
    assert counts(store.index(root)) == (0, 3, 0, 0)
    assert files_of(store) == before
    assert len(watched.embedded) == embedded
    assert store.history(before["README.md"])[-1].operation == "create"


def test_a_changed_file_keeps_its_id_and_loses_its_old_words(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    before = files_of(store)
    write(root, "docs/setup.md", "# Setup\n\nInstall the windmill driver first.\n", hours_ago=0.5)
    assert counts(store.index(root)) == (1, 2, 0, 0)
    assert files_of(store) == before
    assert (found(store, "turbine"), found(store, "windmill")) == ([], ["setup.md"])
    memory = store.get(before["setup.md"])
    assert memory.version == 2
    assert [entry.operation for entry in store.history(memory.memory_id)] == ["create", "update"]


def test_earlier_texts_of_files_are_not_kept(store: MemoryStore, root: Path) -> None:
    """They would fill the store with every save of an editor; version control has them."""
    store.index(root)
    for number in range(3):
        write(root, "src/app.py", f"value = {number}\n", hours_ago=0.9 - number / 10)
        store.index(root)
    assert store.status().index.chunks == 3
    with pytest.raises(NotFound):
        store.get(files_of(store)["app.py"] + "@1")
    assert all(finding.ok for finding in store.admin.doctor() if finding.check != "model")


def test_only_the_changed_passages_of_a_file_are_embedded_again(
    open_store: OpenStore, watched: WatchedEmbedder, root: Path
) -> None:
    store = open_store(embedder=watched)
    sections = [f"## Part {n}\n\n" + f"Sentence about topic {n}. " * 40 + "\n\n" for n in range(30)]
    write(root, "book.md", "".join(sections))
    store.index(root)
    watched.embedded.clear()
    sections[15] = "## Part 15\n\nEntirely other words now.\n\n"
    write(root, "book.md", "".join(sections), hours_ago=0.5)
    store.index(root)
    assert 1 <= len(watched.embedded) <= 3
    assert store.status().index.pending_vectors == 0


def test_a_moved_file_keeps_its_memory_and_its_vectors(
    open_store: OpenStore, watched: WatchedEmbedder, root: Path
) -> None:
    store = open_store(embedder=watched)
    store.index(root)
    before = files_of(store)
    watched.embedded.clear()
    (root / "docs/setup.md").rename(root / "docs/install.md")
    report = store.index(root)
    assert (report.files_moved, report.files_indexed, report.files_removed) == (1, 0, 0)
    assert watched.embedded == []
    assert files_of(store)["install.md"] == before["setup.md"]
    memory = store.get(before["setup.md"])
    assert (memory.path, memory.title) == (str(root / "docs/install.md"), "install.md")
    assert found(store, "turbine") == ["install.md"]


def test_a_moved_folder_takes_its_memories_along(store: MemoryStore, root: Path) -> None:
    write(root, "docs/deep/more.md", "More about the turbine.\n")
    store.index(root)
    before = files_of(store)
    (root / "docs").rename(root / "manual")
    assert store.index(root).files_moved == 2
    assert files_of(store) == before
    assert sorted(each.path or "" for each in store.list(path="manual/").memories) == [
        str(root / "manual/deep/more.md"),
        str(root / "manual/setup.md"),
    ]


def test_two_files_with_the_same_text_are_two_memories(store: MemoryStore, root: Path) -> None:
    shutil.copy(root / "README.md", root / "COPY.md")
    store.index(root)
    assert sorted(found(store, "irrigation")) == ["COPY.md", "README.md"]


def test_empty_and_binary_files_are_no_memories_and_no_errors(
    store: MemoryStore, root: Path
) -> None:
    write(root, "src/__init__.py", "")
    write(root, "image.txt", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 20)
    report = store.index(root)
    assert (report.files_indexed, report.files_empty, report.errors) == (3, 2, ())
    assert (store.index(root).files_skipped, store.index(root).files_empty) == (5, 0)
    assert sorted(files_of(store)) == ["README.md", "app.py", "setup.md"]


def test_a_file_that_is_emptied_is_not_found_any_more_until_it_is_filled(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    before = files_of(store)["setup.md"]
    write(root, "docs/setup.md", "", hours_ago=0.5)
    assert store.index(root).files_removed == 1
    for _ in range(3):  # and stays so, however often one looks
        assert store.index(root).files_removed == 0
        assert found(store, "turbine") == []
    write(root, "docs/setup.md", "The turbine is back.\n", hours_ago=0.4)
    store.index(root)
    assert found(store, "turbine") == ["setup.md"]
    assert files_of(store)["setup.md"] == before


def test_an_unreadable_file_is_named_and_does_not_stop_the_run(
    store: MemoryStore, root: Path
) -> None:
    write(root, "broken.ipynb", "this is no notebook")
    report = store.index(root)
    assert report.files_indexed == 3
    [error] = report.errors
    assert (error.path, store.index(root).errors) == ("broken.ipynb", report.errors)
    assert "notebook" in error.reason or "JSON" in error.reason
    [workspace] = store.workspaces.list()
    assert (workspace.files, workspace.failed) == (3, 1)


def test_a_file_that_is_deleted_after_it_was_seen_is_gone_and_no_error(
    store: MemoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.index(root)
    for name in ("README.md", "docs/new.md"):
        write(root, name, "Another text.\n", hours_ago=0.5)

    def delete_first(folder: Path, path: str) -> FileText:
        (folder / path).unlink()
        return read_file(folder, path)

    monkeypatch.setattr("byheart.workspace.indexing.read_file", delete_first)
    assert counts(store.index(root)) == (0, 2, 1, 0)
    assert store.workspaces.list()[0].failed == 0
    assert found(store, "irrigation") == []


def test_a_root_that_goes_away_while_its_files_are_read_loses_nothing(
    store: MemoryStore, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.index(root)
    write(root, "README.md", "Another text.\n", hours_ago=0.5)

    def unmount_first(folder: Path, path: str) -> FileText:
        root.rename(tmp_path / "away")
        root.mkdir()
        return read_file(folder, path)

    monkeypatch.setattr("byheart.workspace.indexing.read_file", unmount_first)
    with pytest.raises(Unreadable, match="became another folder"):
        store.index(root)
    assert found(store, "irrigation turbine pump") != []
    assert store.workspaces.list()[0].files == 3


def test_an_unreadable_file_is_tried_again_and_keeps_its_last_text(
    store: MemoryStore, root: Path
) -> None:
    cells = '{"cells": [{"cell_type": "markdown", "source": "About the turbine."}]}'
    write(root, "book.ipynb", cells)
    store.index(root)
    write(root, "book.ipynb", "half of a", hours_ago=0.5)
    assert [error.path for error in store.index(root).errors] == ["book.ipynb"]
    assert [error.path for error in store.index(root).errors] == ["book.ipynb"]
    assert "book.ipynb" in found(store, "turbine")


def test_a_file_without_vectors_gets_them_with_the_next_run(
    open_store: OpenStore, watched: WatchedEmbedder, root: Path
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    report = store.index(root)
    assert report.pending_vectors == 3
    assert "on holiday" in (report.degraded or "")
    assert found(store, "turbine") == ["setup.md"]
    watched.down = False
    assert store.index(root).pending_vectors == 0


def test_vectors_can_be_left_for_later(store: MemoryStore, root: Path) -> None:
    assert store.index(root, embed=False).pending_vectors == 3
    assert found(store, "turbine") == ["setup.md"]


def test_progress_tells_of_files_first_and_of_vectors_then(store: MemoryStore, root: Path) -> None:
    told: list[IndexProgress] = []
    store.index(root, on_progress=told.append)
    assert (told[0].files, told[0].files_total, told[0].vectors_total) == (3, 3, 0)
    assert (told[-1].vectors, told[-1].vectors_total) == (3, 3)


# --- What is gone -----------------------------------------------------------------------------


def test_a_deleted_file_is_removed(store: MemoryStore, root: Path) -> None:
    store.index(root)
    (root / "docs/setup.md").unlink()
    assert counts(store.index(root)) == (0, 2, 1, 0)
    assert found(store, "turbine") == []
    assert counts(store.index(root)) == (0, 2, 0, 0)


def test_a_file_that_comes_back_is_the_same_memory_with_its_vectors(
    open_store: OpenStore, watched: WatchedEmbedder, root: Path
) -> None:
    store = open_store(embedder=watched)
    store.index(root)
    before, text = files_of(store), (root / "docs/setup.md").read_text()
    (root / "docs/setup.md").unlink()
    store.index(root)
    watched.embedded.clear()
    write(root, "docs/setup.md", text, hours_ago=0.5)
    store.index(root)
    assert files_of(store) == before
    assert watched.embedded == []
    assert found(store, "turbine") == ["setup.md"]


def test_a_file_that_was_moved_away_and_back_is_found_again(
    store: MemoryStore, root: Path, tmp_path: Path
) -> None:
    """It looks as it did: the same inode, the same time."""
    store.index(root)
    (root / "docs/setup.md").rename(tmp_path / "away.md")
    assert store.index(root).files_removed == 1
    (tmp_path / "away.md").rename(root / "docs/setup.md")
    report = store.index(root)
    assert (report.files_restored, report.files_skipped, report.files_indexed) == (1, 2, 0)
    assert found(store, "turbine") == ["setup.md"]
    assert store.index(root).files_restored == 0


def test_a_file_moved_to_another_workspace_is_another_memory(
    open_store: OpenStore, watched: WatchedEmbedder, root: Path, tmp_path: Path
) -> None:
    store = open_store(embedder=watched)
    other = tmp_path / "other"
    write(other, "README.md", "# Stork\n")
    store.index(root)
    store.index(other)
    before = files_of(store)["setup.md"]
    (root / "docs/setup.md").rename(other / "setup.md")
    store.index(root)
    watched.embedded.clear()
    report = store.index(other)
    assert (report.files_indexed, report.files_moved) == (1, 0)
    assert files_of(store)["setup.md"] != before
    assert watched.embedded == []  # the same text is embedded once


def test_a_file_that_another_process_found_again_is_not_hidden(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    [workspace] = store.workspaces.list()
    with store._storage.reading() as reader:
        known = reader.workspaces.files(workspace.workspace_no, "docs/setup.md")
    stamp = known["docs/setup.md"].stamp
    hide = partial(transactions.hide, store._storage, workspace.space)
    assert hide(workspace.workspace_no, {"docs/setup.md": stamp._replace(inode=1)}) == 0
    assert hide(workspace.workspace_no, {"docs/setup.md": stamp}) == 1


def test_what_was_restored_by_hand_is_not_taken_out(open_store: OpenStore, root: Path) -> None:
    store = open_store(prune_after_days=0)
    store.index(root)
    memory_id = files_of(store)["setup.md"]
    (root / "docs/setup.md").unlink()
    store.index(root / "docs")
    store.restore(memory_id)
    store.index(root)
    assert store.get(memory_id).memory_id == memory_id


def test_what_has_been_gone_for_long_is_taken_out(open_store: OpenStore, root: Path) -> None:
    store = open_store(prune_after_days=0)
    store.index(root)
    memory_id = files_of(store)["setup.md"]
    (root / "docs/setup.md").unlink()
    store.index(root)
    store.index(root)
    with pytest.raises(NotFound, match="there is no"):
        store.restore(memory_id)
    assert store.list(forgotten=True).total == 0


def test_a_missing_root_removes_nothing(store: MemoryStore, root: Path, tmp_path: Path) -> None:
    store.index(root)
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(byheart.ByheartError, match="project"):
        store.index(root)
    assert found(store, "turbine") == ["setup.md"]
    assert store.index(root, prune=True).files_removed == 3
    assert found(store, "turbine") == []


def test_an_empty_root_removes_nothing_unless_told_to(store: MemoryStore, root: Path) -> None:
    """An unmounted disk leaves an empty folder behind."""
    store.index(root)
    shutil.rmtree(root)
    root.mkdir()
    report = store.index(root)
    assert report.files_removed == 0
    assert "prune=True" in report.errors[0].reason
    assert found(store, "turbine") == ["setup.md"]
    assert store.index(root, prune=True).files_removed == 3
    assert found(store, "turbine") == []


def test_what_a_rule_leaves_out_is_removed_even_if_nothing_stays(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    (root / ".byheartignore").write_text("*\n")
    report = store.index(root)
    assert (report.files_removed, report.errors) == (3, ())
    assert found(store, "turbine") == []


def test_status_counts_what_could_not_be_looked_at_until_it_is_gone(
    store: MemoryStore, root: Path
) -> None:
    odd = os.fsencode(root) + b"/caf\xe9.md"
    try:
        Path(os.fsdecode(odd)).write_text("No name.\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    (root / "broken.ipynb").write_text("no notebook")
    for _ in range(2):
        assert len(store.index(root).errors) == store.workspaces.list()[0].failed == 2
    os.unlink(odd)  # noqa: PTH108 - a name that is no text
    report = store.index(root)
    assert (len(report.errors), report.files_removed) == (1, 0)
    assert store.workspaces.list()[0].failed == 1


def test_files_in_a_folder_that_cannot_be_looked_at_are_not_removed(
    store: MemoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.index(root)
    scandir = os.scandir

    def refuse(folder: Any) -> Any:  # nothing is unreadable for root, who may run this
        if Path(folder).name == "docs":
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        report = store.index(root)
    assert (report.files_removed, [error.path for error in report.errors]) == (0, ["docs"])
    assert found(store, "turbine") == ["setup.md"]
    assert store.workspaces.list()[0].failed == 1
    assert counts(store.index(root)) == (0, 3, 0, 0)
    assert store.workspaces.list()[0].failed == 0


# --- What was forgotten -----------------------------------------------------------------------


def test_a_forgotten_file_stays_forgotten_also_when_it_changes(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    memory_id = files_of(store)["setup.md"]
    store.forget(memory_id)
    write(root, "docs/setup.md", "The turbine again.\n", hours_ago=0.5)
    assert store.index(root).files_forgotten == 1
    assert found(store, "turbine") == []
    store.restore(memory_id)
    write(root, "docs/setup.md", "The turbine once more.\n", hours_ago=0.4)
    store.index(root)
    assert found(store, "more turbine") == ["setup.md"]


@pytest.mark.parametrize("changed", [False, True], ids=["unchanged", "changed"])
def test_a_file_forgotten_for_good_is_not_indexed_again(
    store: MemoryStore, root: Path, changed: bool
) -> None:
    store.index(root)
    store.forget(files_of(store)["setup.md"], hard=True)
    text = "The turbine again.\n" if changed else (root / "docs/setup.md").read_text()
    write(root, "docs/setup.md", text, hours_ago=0.5)
    store.index(root)
    assert found(store, "turbine") == []


def test_a_text_forgotten_for_good_does_not_come_back_under_another_name(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    shutil.copy(root / "docs/setup.md", root / "docs/copy.md")
    store.forget(files_of(store)["setup.md"], hard=True)
    assert store.index(root).files_forgotten == 1
    assert found(store, "turbine") == []


def test_a_file_that_now_holds_a_text_forgotten_for_good_is_not_found_by_its_old_one(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    store.forget(store.save("The password of the windmill.\n").memory_id, hard=True)
    write(root, "docs/setup.md", "The password of the windmill.\n", hours_ago=0.5)
    assert store.index(root).files_forgotten == 1
    assert found(store, "turbine windmill") == []


def test_a_forgotten_file_that_was_deleted_stays_forgotten_when_it_comes_back(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    store.forget(files_of(store)["setup.md"])
    text = (root / "docs/setup.md").read_text()
    (root / "docs/setup.md").unlink()
    store.index(root)
    write(root, "docs/setup.md", text, hours_ago=0.5)
    assert store.index(root).files_forgotten == 1
    assert found(store, "turbine") == []


# --- Several roots, spaces and processes ------------------------------------------------------


def test_two_workspaces_never_touch_each_other(
    store: MemoryStore, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    write(other, "README.md", "# Stork\n\nStork keeps the turbine of Porto running.\n")
    store.index(root)
    store.index(other)
    shutil.rmtree(other)
    other.mkdir()
    store.index(other, prune=True)
    assert sorted(files_of(store)) == ["README.md", "app.py", "setup.md"]
    assert [each.files for each in store.workspaces.list()] == [0, 3]


def test_a_workspace_belongs_to_one_space(store: MemoryStore, root: Path) -> None:
    store.index(root, space="work")
    assert found(store, "turbine") == []
    assert found(store, "turbine", space="work") == ["setup.md"]
    assert store.workspaces.list() == ()
    assert [each.root for each in store.workspaces.list("work")] == [str(root)]


def test_a_folder_within_a_workspace_is_a_part_of_it(store: MemoryStore, root: Path) -> None:
    store.index(root)
    write(root, "docs/new.md", "A new page on pumps.\n")
    write(root, "src/new.py", "pumps = 1\n")
    assert counts(store.index(root / "docs")) == (1, 1, 0, 0)
    assert counts(store.index(root / "src/new.py")) == (1, 0, 0, 0)
    assert len(store.workspaces.list()) == 1


def test_a_workspace_around_another_leaves_that_one_alone(
    store: MemoryStore, root: Path, tmp_path: Path
) -> None:
    store.index(root / "docs")
    assert counts(store.index(root)) == (2, 0, 0, 0)
    assert found(store, "turbine") == ["setup.md"]
    assert [(each.root, each.files) for each in store.workspaces.list()] == [
        (str(root), 2),
        (str(root / "docs"), 1),
    ]
    write(root, "docs/new.md", "A new page on pumps.\n")
    assert counts(store.index(root)) == (0, 2, 0, 0)
    assert counts(store.index(root / "docs")) == (1, 1, 0, 0)
    assert store.workspaces.drop(root / "docs") == 2


def test_a_dropped_workspace_is_forgotten_and_can_be_indexed_again(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    before = files_of(store)
    assert store.workspaces.drop(root) == 3
    assert (store.workspaces.list(), found(store, "turbine")) == ((), [])
    store.index(root)
    assert found(store, "turbine") == ["setup.md"]
    assert files_of(store) == before
    with pytest.raises(InvalidInput, match="part of the workspace"):
        store.workspaces.drop(root / "docs")
    with pytest.raises(NotFound, match="in no workspace"):
        store.workspaces.drop(root.parent)


def test_a_forgotten_file_does_not_stop_a_workspace_from_being_dropped_and_indexed_again(
    store: MemoryStore, root: Path
) -> None:
    """The forgotten memory and the later memory of the file have the same client id."""
    store.index(root)
    forgotten = files_of(store)["setup.md"]
    store.forget(forgotten)
    store.workspaces.drop(root)
    store.index(root)
    later = files_of(store)["setup.md"]
    assert later != forgotten
    store.workspaces.drop(root)
    assert store.index(root).files_indexed == 3
    assert files_of(store)["setup.md"] == later
    with pytest.raises(Conflict, match=later):
        store.restore(forgotten)


def test_the_number_of_a_dropped_workspace_is_not_used_again(
    store: MemoryStore, root: Path, tmp_path: Path
) -> None:
    """Whoever still works on the dropped one would work on the other."""
    store.index(root)
    [first] = store.workspaces.list()
    store.workspaces.drop(root)
    other = tmp_path / "other"
    write(other, "elephant.md", "The elephant drinks.\n")
    store.index(other)
    assert store.workspaces.list()[0].workspace_no != first.workspace_no
    with pytest.raises(NotFound, match="dropped"):
        transactions.claim(store._storage, first.space, first.workspace_no, "here/1/1", 20)


def test_who_read_a_file_first_does_not_overwrite_who_read_it_later(
    open_store: OpenStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = open_store(), open_store()
    slow.index(root)
    write(root, "docs/setup.md", "The turbine of yesterday.\n", hours_ago=0.5)
    apply = transactions.apply

    def overtaken(*given: Any) -> Any:
        monkeypatch.undo()
        write(root, "docs/setup.md", "The turbine of today.\n", hours_ago=0.4)
        fast.index(root)
        return apply(*given)

    monkeypatch.setattr(transactions, "apply", overtaken)
    slow.index(root)
    assert found(slow, "today") == ["setup.md"]
    assert found(slow, "yesterday") == []


def test_of_two_files_with_the_bytes_of_one_that_is_gone_one_was_moved(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    text = (root / "docs/setup.md").read_bytes()
    (root / "docs/setup.md").unlink()
    store.index(root)
    for name in ("first.md", "second.md"):
        write(root, name, text, hours_ago=0.5)
    report = store.index(root)
    assert (report.files_moved, report.files_indexed, report.errors) == (1, 1, ())
    assert sorted(found(store, "turbine")) == ["first.md", "second.md"]


def test_what_was_broken_and_is_no_text_now_is_not_found_by_its_old_text(
    store: MemoryStore, root: Path
) -> None:
    cells = '{"cells": [{"cell_type": "markdown", "source": "About the walrus."}]}'
    write(root, "book.ipynb", cells)
    store.index(root)
    write(root, "book.ipynb", "half of a", hours_ago=0.5)
    store.index(root)
    write(root, "book.ipynb", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 20, hours_ago=0.4)
    store.index(root)
    assert found(store, "walrus") == []


def test_an_imported_file_is_not_doubled_by_an_index(
    open_store: OpenStore, root: Path, tmp_path: Path
) -> None:
    first, second = open_store(), open_store(tmp_path / "second.db")
    first.index(root)
    first.export(tmp_path / "export.jsonl")
    second.import_(tmp_path / "export.jsonl")
    write(root, "docs/setup.md", "The turbine has changed.\n", hours_ago=0.5)
    second.index(root)
    assert files_of(second) == files_of(first)
    assert found(second, "turbine") == ["setup.md"]


INDEX = """
import sys, byheart
with byheart.open(sys.argv[1], embedding_provider="hash") as store:
    store.index(sys.argv[2])
"""


def test_two_processes_may_index_the_same_root_at_once(
    store: MemoryStore, root: Path, path: Path
) -> None:
    for number in range(150):
        write(root, f"notes/{number}.md", f"# Note {number}\n\nThe turbine number {number}.\n")
    both = [start_script(INDEX, path, root) for _ in range(2)]
    assert [each.wait(120) for each in both] == [0, 0]
    assert counts(store.index(root)) == (0, 153, 0, 0)
    assert store.list(kind="file", limit=1).total == 153
    assert all(finding.ok for finding in store.admin.doctor() if finding.check != "model")


KILLED = """
import os, signal, sys, byheart
with byheart.open(sys.argv[1], embedding_provider="hash") as store:
    store.index(sys.argv[2], on_progress=lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_run_that_was_killed_leaves_what_it_wrote_and_the_next_one_goes_on(
    store: MemoryStore, root: Path, path: Path
) -> None:
    for number in range(150):
        write(root, f"notes/{number}.md", f"# Note {number}\n\nThe turbine number {number}.\n")
    assert start_script(KILLED, path, root).wait(120) == -signal.SIGKILL
    kept = store.list(kind="file").total
    assert 0 < kept < 153
    assert counts(store.index(root)) == (153 - kept, kept, 0, 0)
    assert all(finding.ok for finding in store.admin.doctor())


def test_an_interrupted_run_goes_on_where_it_stopped(
    open_store: OpenStore, watched: WatchedEmbedder, root: Path
) -> None:
    store = open_store(embedder=watched)
    for number in range(200):
        write(root, f"notes/{number:03}.md", f"# Note {number}\n\nThe turbine number {number}.\n")

    def interrupt(progress: IndexProgress) -> None:
        if progress.files >= 64:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.index(root, on_progress=interrupt)
    kept = store.list(kind="file", limit=1).total
    assert 64 <= kept < 203
    assert store.index(root).files_indexed == 203 - kept
    assert len(watched.embedded) == 203


# --- Safety -----------------------------------------------------------------------------------


def test_nothing_outside_the_root_is_read(store: MemoryStore, root: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/plans.md", "The turbine plans.\n")
    (root / "link.md").symlink_to(tmp_path / "outside/plans.md")
    (root / "linked").symlink_to(tmp_path / "outside")
    store.index(root)
    assert found(store, "turbine") == ["setup.md"]
    assert found(store, "plans") == []


def test_a_store_inside_the_workspace_is_left_alone(root: Path) -> None:
    with byheart.open(root / "memory.db", embedding_provider="hash") as store:
        report = store.index(root)
        assert counts(report) == (3, 0, 0, 0)
        assert all(finding.ok for finding in store.admin.doctor() if finding.check != "model")


def test_an_index_never_writes_into_the_workspace(store: MemoryStore, root: Path) -> None:
    def look() -> dict[str, tuple[int, int]]:
        everything = [root, *root.rglob("*")]
        return {str(each): (each.stat().st_mtime_ns, each.stat().st_size) for each in everything}

    before = look()
    store.index(root)
    assert look() == before


def test_secret_files_are_never_indexed_whatever_the_rules_say(
    store: MemoryStore, root: Path
) -> None:
    write(root, ".env", "TURBINE_KEY=hunter2\n")
    write(root, "prod.env", "TURBINE_KEY=hunter2\n")
    write(root, ".byheartignore", "!.env\n!*.env\n")
    store.index(root)
    assert found(store, "hunter2") == []


def test_a_part_of_a_workspace_that_is_not_there_or_left_out_is_told(
    store: MemoryStore, root: Path
) -> None:
    write(root, "node_modules/left-pad/README.md", "Pads the left.\n")
    write(root, ".gitignore", "*.log\n")
    write(root, "run.log", "It ran.\n")
    store.index(root)
    with pytest.raises(NotFound, match=r"there is no file .*nowhere"):
        store.index(root / "nowhere")
    for name, rule in (("node_modules/left-pad", "node_modules"), ("run.log", ".gitignore:1")):
        [error] = store.index(root / name).errors
        assert error.path == name
        assert rule in error.reason
    shutil.rmtree(root / "docs")
    assert counts(store.index(root / "docs")) == (0, 0, 1, 0)
    (root / "empty").mkdir()
    assert counts(store.index(root / "empty")) == (0, 0, 0, 0)


@pytest.mark.parametrize("name", ["", "  ", "~nobody-is-called-so/x", None, b"x"])
def test_what_is_no_name_of_a_folder_is_refused(store: MemoryStore, name: Any) -> None:
    with pytest.raises(InvalidInput, match=r"names no file or folder|there is no such user"):
        store.index(name)
    assert store.workspaces.list() == ()


def test_a_folder_whose_name_is_not_utf8_is_refused_readably(
    store: MemoryStore, tmp_path: Path
) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)  # noqa: PTH102 - bytes
    with pytest.raises(InvalidInput, match=r"caf\\xe9 is not UTF-8"):
        store.index(os.fsdecode(folder))
    assert store.workspaces.list() == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "is not there"),
        ("README.md", "a file"),
        ("x" * 300, "is not there"),
        ("a\0b", "is not there"),
    ],
)
def test_what_is_no_folder_cannot_become_a_workspace(
    store: MemoryStore, root: Path, name: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        store.index(root / name)
    assert store.workspaces.list() == ()


# --- Finding files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("docs/*.md", ["setup.md"]),
        ("docs/", ["setup.md"]),
        ("docs", ["setup.md"]),
        ("./docs", ["setup.md"]),
        ("*.py", ["app.py"]),
        ("setup.md", ["setup.md"]),
        ("nowhere/*", []),
    ],
)
def test_a_path_filter_is_a_glob_seen_from_any_folder(
    store: MemoryStore, root: Path, pattern: str, names: list[str]
) -> None:
    store.index(root)
    listed = store.list(path=pattern).memories
    assert [Path(each.path or "").name for each in listed] == names


def test_a_working_folder_that_was_deleted_cannot_become_a_workspace(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InvalidInput, match="working folder was deleted"):
        store.index(".")


def test_a_passage_is_found_by_path_and_line(store: MemoryStore, root: Path) -> None:
    parts = [f"# Part {number}\n\n" + "Words. " * 300 + "\n\n" for number in range(6)]
    file = write(root, "book.md", "".join(parts))
    store.index(root)
    assert store.get(str(file)).content == "".join(parts)
    window = store.expand(f"{file}:9", around=0)
    [chunk] = window.chunks
    assert chunk.start_line <= 9 <= chunk.end_line
    assert "Part 2" in chunk.header_path
    with pytest.raises(NotFound, match="no line 99,999"):
        store.expand(f"{file}:99999", around=0)
    with pytest.raises(byheart.ByheartError):
        store.expand(str(root / "nowhere.md:3"))


def test_status_tells_of_workspaces(store: MemoryStore, root: Path) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    store.index(root)
    [workspace] = store.status().workspaces
    assert (workspace.root, workspace.files, workspace.watched_by) == (str(root), 3, None)
    assert workspace.indexed_at is not None
    assert workspace.indexed_at > before


# --- Secrets ----------------------------------------------------------------------------------

KEY = "-----BEGIN PRIVATE" + " KEY-----\nMIIEabcd\nMIIEefgh\n-----END PRIVATE" + " KEY-----"
NOTES = "# Notes\n\nThe password for the router is hunt" + f"er2.\n\n{KEY}\n\nThe pump is green.\n"


def test_secrets_in_files_are_replaced_and_reported(root: Path, open_store: OpenStore) -> None:
    write(root, "notes.md", NOTES)
    store = open_store()
    report = store.index(root)
    memory = store.get(str(root / "notes.md"))
    assert "hunter2" not in memory.content
    assert "MIIE" not in memory.content
    assert "is [redacted: password]." in memory.content
    assert report.secrets_redacted == 2
    [redacted] = report.redacted_files
    assert (redacted.path, dict(redacted.secrets)) == (
        "notes.md",
        {"password": 1, "private key": 1},
    )
    assert not store.search("hunter2", mode="fts").results
    assert (root / "notes.md").read_text() == NOTES
    again = store.index(root)
    assert (again.files_skipped, again.secrets_redacted) == (4, 0)


def test_lines_after_a_secret_keep_their_numbers(root: Path, open_store: OpenStore) -> None:
    write(root, "notes.md", NOTES)
    store = open_store()
    store.index(root)
    lines = store.get(str(root / "notes.md")).content.split("\n")
    assert lines.index("The pump is green.") == NOTES.split("\n").index("The pump is green.")
    assert len(lines) == len(NOTES.split("\n"))


@pytest.mark.parametrize("level", ["none", "hooks"])
def test_a_setting_keeps_files_as_they_are(root: Path, open_store: OpenStore, level: str) -> None:
    write(root, "notes.md", NOTES)
    store = open_store(redact_secrets=level)
    report = store.index(root)
    assert store.get(str(root / "notes.md")).content == NOTES
    assert (report.secrets_redacted, report.redacted_files) == (0, ())


def test_a_file_of_credentials_is_never_indexed_whatever_the_settings_say(
    root: Path, open_store: OpenStore
) -> None:
    write(root, "shop-firebase-adminsdk-x1.json", "{}")
    write(root, "admin.conf", "kind: Config\nclusters: []\nusers:\n- token: abcdefgh\n")
    write(root, "passwords.md", "router hunter2\n")
    store = open_store(redact_secrets="none")
    assert store.index(root).files_indexed == 3
    assert {Path(each.path or "").name for each in store.list().memories} == {
        *("README.md", "setup.md", "app.py")
    }


# --- Helper processes -------------------------------------------------------------------------


def test_helpers_change_nothing_in_what_is_indexed(
    open_store: OpenStore, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "AKIA" + "Q7XWPL2M9ZKD4RTV"
    write(root, "deploy.env.md", f"# Deploy\n\naws_key = {secret}\n")
    write(root, "long.txt", "Plain words fill this passage up to the brim. " * 9_000)
    for number in range(20):
        write(root, f"many/{number}.py", f"def number_{number}():\n    return {number}\n" * 40)
    alone = open_store(tmp_path / "alone.db", max_chunks=100)
    expected = alone.index(root)

    answered = []
    derive = HelperPool.derive

    def noting(self: HelperPool, request: SaveRequest, redacted: Sequence[str]) -> Derived | None:
        derived = derive(self, request, redacted)
        answered.append(derived is not None)
        return derived

    monkeypatch.setattr(HelperPool, "derive", noting)
    monkeypatch.setattr("byheart.memory.helper_pool.count_cores", lambda: 3)
    monkeypatch.setattr("byheart.workspace.indexing._LEAST_BYTES_FOR_HELPERS", 0)
    helped = open_store(tmp_path / "helped.db", max_chunks=100)
    report = helped.index(root)

    assert any(answered)
    assert replace(report, elapsed_ms=0.0) == replace(expected, elapsed_ms=0.0)
    assert [error.path for error in report.errors] == ["long.txt"]
    assert [file.path for file in report.redacted_files] == ["deploy.env.md"]
    assert described(helped) == described(alone)


def described(store: MemoryStore) -> list[tuple[Any, ...]]:
    """Give all that a user sees of the files of a store, except ids and times."""
    files = map(store.get, files_of(store).values())
    return sorted(
        (each.path, each.title, each.content, each.summary, each.entities, each.chunks)
        for each in files
    )
