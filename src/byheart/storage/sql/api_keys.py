"""Store API keys as rows, read at every check: every process refuses a revoked key at once."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from byheart.contracts import KeyUse
from byheart.model import ApiKey
from byheart.model.times import from_micros, to_micros
from byheart.storage.sql.connection import Connection

_TOKEN = (
    "token_id, name, access, space, session_id, created_at, expires_at, last_used_at, purpose, "
    "voice"
)
_LOOKED_UP_BYTES = 8


class SqlApiKeyRows:
    """Look up and change API keys within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, space: str | None = None, secret_hash: bytes | None = None) -> list[ApiKey]:
        """List API keys, oldest first: of one space, or of all; with one secret, or with any."""
        start = None if secret_hash is None else secret_hash[:_LOOKED_UP_BYTES]
        rows = self._connection.all(
            f"SELECT secret_hash, {_TOKEN} FROM tokens WHERE (space = ?1 OR ?1 IS NULL) "
            + ("" if start is None else "AND substr(secret_hash, 1, 8) = ?2 ")
            + "ORDER BY created_at, token_id",
            (space,) if start is None else (space, start),
        )
        return [
            _to_token(row)
            for held, *row in rows
            if secret_hash is None or hmac.compare_digest(held, secret_hash)
        ]

    def put(self, token: ApiKey, secret_hash: bytes) -> None:
        """Add an API key."""
        self._connection.run(
            f"INSERT INTO tokens (secret_hash, {_TOKEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                secret_hash,
                *(token.token_id, token.name, token.access, token.space, token.session_id),
                *map(_micros, (token.created_at, token.expires_at, token.last_used_at)),
                token.purpose,
                token.voice,
            ),
        )

    def remove(self, token_id: str) -> bool:
        """Remove an API key; say whether it existed."""
        return self._connection.count("DELETE FROM tokens WHERE token_id = ?", (token_id,)) > 0


def write_uses(connection: Connection, uses: Sequence[KeyUse]) -> None:
    """Record when API keys were last used."""
    if not uses:
        return
    connection.run_many(
        "UPDATE tokens SET last_used_at = ?2 WHERE token_id = ?1 AND ifnull(last_used_at, 0) < ?2",
        ((use.token_id, to_micros(use.at)) for use in uses),
    )


def _to_token(row: Any) -> ApiKey:
    values: Any = [*row[:5], *map(_moment, row[5:8]), *row[8:]]
    return ApiKey(*values)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)
