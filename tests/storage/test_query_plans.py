"""Check that look-ups within long transactions use an index for every condition."""

from __future__ import annotations

from pathlib import Path

import pytest

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
