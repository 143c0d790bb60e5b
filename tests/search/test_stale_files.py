"""Whether a file has changed since it was indexed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from byheart.model import IndexedFile
from byheart.search.stale_files import describe_file, has_changed


@pytest.fixture
def file(tmp_path: Path) -> IndexedFile:
    """Give a file as it is on disk."""
    (tmp_path / "docs").mkdir()
    written = tmp_path / "docs" / "a.md"
    written.write_text("Some text.")
    now = written.stat()
    return IndexedFile(str(tmp_path), "docs/a.md", now.st_size, now.st_mtime_ns, 2**60)


def on_disk(file: IndexedFile) -> Path:
    return Path(file.root, file.path)


def test_a_file_as_it_was_read_is_fresh(file: IndexedFile) -> None:
    assert describe_file(file) == {"relative_path": "docs/a.md", "stale": False}


def test_a_text_of_no_workspace_has_no_file() -> None:
    assert describe_file(None) == {"relative_path": None, "stale": False}


def test_another_size_or_time_is_a_change(file: IndexedFile) -> None:
    assert has_changed(replace(file, size=file.size + 1))
    assert has_changed(replace(file, mtime_ns=file.mtime_ns + 1))
    assert has_changed(replace(file, mtime_ns=file.mtime_ns - 1)), "an older copy was put there"


def test_a_file_that_could_not_be_read_after_a_change_has_changed(file: IndexedFile) -> None:
    assert has_changed(replace(file, size=-1))


def test_a_file_whose_time_is_unsure_is_compared_with_the_time_of_reading(
    file: IndexedFile,
) -> None:
    unsure = replace(file, mtime_ns=-1)
    assert not has_changed(unsure)
    assert has_changed(replace(unsure, read_at_micros=file.mtime_ns // 1000 - 1))


def test_a_deleted_file_has_changed(file: IndexedFile) -> None:
    on_disk(file).unlink()
    assert has_changed(file)
    on_disk(file).parent.rmdir()
    assert has_changed(file)


def test_a_root_that_is_not_on_this_machine_says_nothing(file: IndexedFile) -> None:
    assert not has_changed(replace(file, root=f"{file.root}/elsewhere"))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may look anywhere")
def test_a_folder_that_may_not_be_looked_into_says_nothing(file: IndexedFile) -> None:
    on_disk(file).parent.chmod(0)
    try:
        assert not has_changed(file)
    finally:
        on_disk(file).parent.chmod(0o700)
