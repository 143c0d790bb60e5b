"""Hits of files that changed on disk since they were indexed say so, in every kind of answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from byheart.store import MemoryStore
from tests.databases import database  # noqa: F401
from tests.workspace.conftest import Put

QUERY = "harbour gates"


@pytest.fixture
def root(tmp_path: Path, put: Put) -> Path:
    put("work/docs/gates.md", "# Gates\n\nThe harbour gates close at nine.\n")
    put("work/other.md", "Nothing about that.\n")
    return tmp_path / "work"


def told(store: MemoryStore) -> dict[str, tuple[Any, Any]]:
    """Say what each kind of answer tells about the file of the best hit."""
    found = {
        granularity: store.search(QUERY, granularity=granularity, limit=1).results[0]
        for granularity in ("fine", "medium", "coarse")
    }
    [listed] = store.search(granularity="coarse", path="docs/gates.md").results
    [recalled] = [each for each in store.recall(QUERY).details if "gates" in each.content]
    items = store.context("s1", QUERY, preview=True).receipt.items
    [injected] = [each for each in items if each.path and each.path.endswith("gates.md")]
    answers = {**found, "listing": listed, "recall": recalled, "context": injected}
    return {name: (each.relative_path, each.stale) for name, each in answers.items()}


def everywhere(*, stale: bool) -> dict[str, tuple[str, bool]]:
    names = ("fine", "medium", "coarse", "listing", "recall", "context")
    return dict.fromkeys(names, ("docs/gates.md", stale))


def test_a_changed_and_a_deleted_file_are_stale_until_they_are_indexed_again(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    assert told(store) == everywhere(stale=False)
    file = root / "docs" / "gates.md"
    file.write_text("# Gates\n\nThe harbour gates close at half past eight.\n")
    assert told(store) == everywhere(stale=True)
    store.index(root)
    assert told(store) == everywhere(stale=False)
    file.unlink()
    assert told(store) == everywhere(stale=True)


def test_the_texts_for_a_model_name_stale_files(store: MemoryStore, root: Path) -> None:
    store.index(root)
    said = "its file has changed since"
    assert said not in store.context("s1", QUERY).text
    (root / "docs" / "gates.md").unlink()
    assert f'stale="{said}"' in store.context("s1", QUERY).text
    assert said in store.recall(QUERY).text


def test_a_workspace_that_is_on_another_machine_says_nothing(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    root.rename(root.with_name("moved"))
    assert told(store) == everywhere(stale=False)


def test_each_of_two_nested_workspaces_names_files_from_its_own_root(
    store: MemoryStore, root: Path
) -> None:
    store.index(root)
    store.index(root / "docs")
    hits = store.search(QUERY, path="gates.md").results
    assert {hit.relative_path for hit in hits} <= {"docs/gates.md", "gates.md"}
    (root / "docs" / "gates.md").unlink()
    assert all(hit.stale for hit in store.search(QUERY, path="gates.md").results)


def test_a_memory_that_only_names_a_path_has_no_file(store: MemoryStore, root: Path) -> None:
    store.save("The harbour gates are blue.", path=str(root / "docs" / "gates.md"))
    [hit] = store.search(QUERY).results
    assert (hit.relative_path, hit.stale) == (None, False)
