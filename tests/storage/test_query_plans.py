"""Check that look-ups within long transactions use an index for every condition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.storage.sql.workspace_rows import SqlWorkspaceRows
from byheart.storage.sqlite import SqliteStorage
from byheart.storage.sqlite.connection import SqliteConnection


@pytest.mark.parametrize("path", ["docs/a.md", "docs"])
def test_the_files_at_a_path_are_found_without_reading_the_whole_workspace(
    tmp_path: Path, path: str
) -> None:
    SqliteStorage(tmp_path / "memory.db").close()
    connection = SqliteConnection(str(tmp_path / "memory.db"))
    run: list[str] = []

    def hear(_cursor: object, statement: str, _values: object) -> bool:
        run.append(statement)
        return True

    connection.exec_trace = hear
    SqlWorkspaceRows(connection).files(1, path)
    connection.exec_trace = None
    (statement,) = run
    plan = [row[-1] for row in connection.all(f"EXPLAIN QUERY PLAN {statement}", (1, path))]
    searches = [step for step in plan if "workspace_files" in step]
    key = "SEARCH workspace_files USING PRIMARY KEY (workspace_no=? AND path"
    assert searches
    assert all(step.startswith(key) for step in searches), plan
    connection.close()


@pytest.fixture
def steps(tmp_path: Path) -> Callable[[int, dict[str, Any]], int]:
    """Count the steps that SQLite takes for a page and its total, among some memories."""
    counted = [0]

    def hear() -> bool:
        counted[0] += 1
        return False

    def count(memories: int, given: dict[str, Any]) -> int:
        path = tmp_path / f"{memories}.db"
        with byheart.open(path, embedding_provider="hash", embed_on_save=False) as store:
            if not store.list(limit=1).total:
                store.save_many(
                    {
                        "content": f"text {number}",
                        "tags": ["rare" if number % (memories // 5) == 3 else "frequent"],
                        "entities": ["Rare Name" if number % (memories // 5) == 3 else "Paris"],
                        "path": f"/{'rare' if number % (memories // 5) == 3 else 'much'}/{number}",
                    }
                    for number in range(memories)
                )
            backend = store._storage._backend  # type: ignore[attr-defined]
            with backend.reading(store.space) as connection:
                connection.set_progress_handler(hear, 10)
            counted[0] = 0
            page = store.list(limit=3, **given)
            found = counted[0]
            with backend.reading(store.space) as connection:
                connection.set_progress_handler(None)
        assert (len(page.memories), page.total) == (3, 5)
        return found

    return count


@pytest.mark.parametrize(
    "given",
    [{"tags": ["rare"]}, {"entities": ["rare name"]}, {"path": "/rare/"}, {"path": "/rare"}],
    ids=str,
)
def test_a_page_of_few_labelled_memories_does_not_read_the_others(
    steps: Callable[[int, dict[str, Any]], int], given: dict[str, Any]
) -> None:
    few = steps(100, given)
    assert few > 0
    assert steps(2_000, given) < 1.5 * few


@pytest.mark.parametrize(
    ("path", "compared"), [("/docs/", 0), ("/docs", 0), ("docs", 2), ("/d*", 2)], ids=str
)
def test_all_paths_are_compared_only_for_a_page_and_its_total_if_no_index_finds_them(
    tmp_path: Path, path: str, compared: int
) -> None:
    run: list[str] = []

    def hear(_cursor: object, statement: str, _values: object) -> bool:
        run.append(statement)
        return True

    with byheart.open(tmp_path / "memory.db", embedding_provider="hash") as store:
        store.save_many({"content": f"text {name}", "path": f"/docs/{name}.md"} for name in "ab")
        backend = store._storage._backend  # type: ignore[attr-defined]
        with backend.reading(store.space) as connection:
            connection.exec_trace = hear
        assert store.list(limit=1, path=path).total == 2
        with backend.reading(store.space) as connection:
            connection.exec_trace = None
    assert any("FROM memories" in statement for statement in run)
    assert sum("glob(" in statement for statement in run) == compared
