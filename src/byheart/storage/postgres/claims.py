"""Let workers claim chunks that wait for vectors, by the clock of the database.

A claim is a minor write: it takes no lock of a space, and a crash of the server may lose it. Then
two workers make the same vectors, and those that come second are not added.
"""

from __future__ import annotations

from collections.abc import Sequence

from byheart.contracts import NUMBER_BITS, one_transaction
from byheart.storage.postgres.database import Database

# The place of a chunk in its space.
_PLACE = f"(chunk_no & {(1 << NUMBER_BITS) - 1})"
_UNTIL = "now() + ? * interval '1 second'"
# Rows that another transaction has locked are skipped, so that no worker waits for another one.
CLAIM = f"""
    WITH chosen AS MATERIALIZED (
        SELECT part, chunk_no FROM pending_vectors
        WHERE (claimed_until IS NULL OR claimed_until <= now())
            AND chunk_no <> ALL(CAST(? AS bigint[]))
        ORDER BY claimed_until, {_PLACE} LIMIT ? FOR UPDATE SKIP LOCKED)
    UPDATE pending_vectors p SET claimed_until = {_UNTIL}, claimed_by = ? FROM chosen
    WHERE p.part = chosen.part AND p.chunk_no = chosen.chunk_no RETURNING p.chunk_no"""
_HOLD = f"""
    WITH chosen AS MATERIALIZED (
        SELECT part, chunk_no FROM pending_vectors
        WHERE chunk_no = ANY(CAST(? AS bigint[])) AND claimed_by = ? FOR UPDATE SKIP LOCKED)
    UPDATE pending_vectors p SET claimed_until = {_UNTIL} FROM chosen
    WHERE p.part = chosen.part AND p.chunk_no = chosen.chunk_no"""
_WAIT_MS = 5000


@one_transaction
def claim(
    database: Database, owner: str, limit: int, seconds: float, without: Sequence[int]
) -> list[int]:
    """Claim chunks for an owner for some seconds, and give their numbers.

    Ended claims come first, then the earliest chunks of each space: a space that waits for many
    vectors does not hold up the others.
    """
    with database.noting(None, _WAIT_MS) as connection:
        rows = connection.all(CLAIM, (list(without), limit, float(seconds), owner))
    return [row[0] for row in rows]


@one_transaction
def hold(database: Database, owner: str, chunk_nos: Sequence[int], seconds: float) -> None:
    """Have claims of an owner end so many seconds from now; 0 releases the chunks.

    A claim that another owner has taken over stays as it is.
    """
    with database.noting(None, _WAIT_MS) as connection:
        connection.run(_HOLD, (list(chunk_nos), owner, float(seconds)))
