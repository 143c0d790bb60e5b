"""Stores with nothing in them, copied from one that was made by the schema."""

from __future__ import annotations

import tempfile
import uuid
from functools import cache
from pathlib import Path

import apsw

from byheart.storage.sqlite import SqliteStorage


def make_empty(path: Path) -> None:
    """Put a new store where there is none, if there is a folder for it.

    Opening it takes a fraction of the time then. That the schema makes a store out of nothing is
    shown by tests/storage/test_migrations.py, and by every store that is not opened like this.
    """
    if path.exists() or not path.parent.is_dir():
        return
    contents, store_id = _first_one()
    path.touch(mode=0o600)
    path.write_bytes(contents.replace(store_id, uuid.uuid4().hex.encode()))


@cache
def _first_one() -> tuple[bytes, bytes]:
    """Make one, and give its contents and the id among them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        SqliteStorage(path).close()
        connection = apsw.Connection(str(path))
        store_id = str(connection.execute("SELECT value FROM store WHERE key = 'store_id'").get)
        connection.close()
        return path.read_bytes(), store_id.encode()
