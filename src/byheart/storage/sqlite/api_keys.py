"""Store API keys as rows, read at every check: every process refuses a revoked key at once."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import apsw

from byheart.errors import Conflict, Do, Hint
from byheart.model import ApiKey
from byheart.model.times import from_micros, to_micros
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.deferred_writes import DeferredWrites

_COLUMNS = "token_id, name, access, space, session_id, created_at, expires_at, last_used_at"
_LOOKED_UP_BYTES = 8


class SqliteApiKeys:
    """Keep API keys by the hash of their secrets."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._uses = DeferredWrites[str, int](database, _note_uses)
        self.flush = self._uses.flush

    def add(self, key: ApiKey, secret_hash: bytes) -> None:
        """Add an API key, unless its name is taken."""
        with self._database.writing() as connection:
            taken: list[Any] = connection.execute(
                "SELECT expires_at FROM tokens WHERE name = ?", (key.name,)
            ).fetchall()
            if taken:
                raise _taken(key, taken[0][0])
            connection.execute(
                f"INSERT INTO tokens (secret_hash, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    secret_hash,
                    *(key.token_id, key.name, key.access, key.space, key.session_id),
                    *map(_micros, (key.created_at, key.expires_at, key.last_used_at)),
                ),
            )

    def list(self, space: str | None) -> list[ApiKey]:
        """List the API keys of a space, or of all spaces, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM tokens WHERE ?1 IS NULL OR space = ?1 "
                "ORDER BY created_at, token_id",
                (space,),
            ).fetchall()
        return [_to_key(row) for row in rows]

    def find(self, secret_hash: bytes) -> ApiKey | None:
        """Find the API key whose secret has this hash."""
        with self._database.reading() as connection:
            rows: list[Any] = connection.execute(
                f"SELECT secret_hash, {_COLUMNS} FROM tokens WHERE substr(secret_hash, 1, 8) = ?",
                (secret_hash[:_LOOKED_UP_BYTES],),
            ).fetchall()
        for held, *row in rows:
            if hmac.compare_digest(held, secret_hash):
                return _to_key(row)
        return None

    def remove(self, token_id: str) -> bool:
        """Remove an API key; say whether it existed."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM tokens WHERE token_id = ?", (token_id,))
            return connection.changes() > 0

    def note_use(self, token_id: str, at: datetime) -> None:
        """Record when an API key was used; never wait: while others write, record it later."""
        self._uses.add(lambda uses: uses.update({token_id: to_micros(at)}))


def _note_uses(connection: apsw.Connection, uses: Mapping[str, int]) -> None:
    connection.executemany(
        "UPDATE tokens SET last_used_at = max(ifnull(last_used_at, 0), ?2) WHERE token_id = ?1",
        uses.items(),
    )


def _to_key(row: Any) -> ApiKey:
    values: Any = [*row[:5], *map(_moment, row[5:])]
    return ApiKey(*values)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def _taken(key: ApiKey, expires_at: int | None) -> Conflict:
    expired = expires_at is not None and expires_at <= to_micros(key.created_at)
    return Conflict(
        f"there is an API key named {key.name!r} already" + (", which has expired" * expired),
        Hint("choose another name, or revoke that one first: ", Do("revoke_token", key.name)),
    )
