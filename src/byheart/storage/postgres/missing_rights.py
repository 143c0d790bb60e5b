"""Find out which rights a role lacks in a store, and write the statements that grant them.

The server names one object of the first refusal, in its own language, and a table without its
schema. The catalog has the rights of all objects, for every role to read.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

_LACKING = """
    WITH own AS (
        SELECT oid, nspname, pg_get_userbyid(nspowner) AS owner FROM pg_namespace
        WHERE nspname = $1 OR nspname ~ ('^' || $1 || '_[0-9][0-9]$')),
    held AS (
        SELECT own.nspname, c.relkind, c.oid FROM pg_class c JOIN own ON own.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'S'))
    SELECT quote_ident(current_user), quote_ident(current_database()),
        (SELECT min(owner) FROM own),
        has_database_privilege(current_database(), 'CREATE'),
        ARRAY(SELECT nspname FROM own WHERE NOT has_schema_privilege(oid, 'USAGE') ORDER BY 1),
        ARRAY(SELECT DISTINCT nspname FROM held WHERE relkind <> 'S' AND NOT (
            has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
            AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
            ORDER BY 1),
        ARRAY(SELECT DISTINCT nspname FROM held WHERE relkind = 'S' AND NOT (
            has_sequence_privilege(oid, 'USAGE') AND has_sequence_privilege(oid, 'SELECT'))
            ORDER BY 1)"""


class Rights(NamedTuple):
    """The role, its database, the owner of the store, and the schemas in which rights are missing.

    Without a store there is no owner, and the schemas are empty.
    """

    role: str
    database: str
    owner: str | None
    may_create: bool
    schemas: list[str]
    tables: list[str]
    sequences: list[str]


def read_rights(connection: psycopg.Connection[Any], schema: str) -> Rights:
    """Read which rights the role of a connection has in a store."""
    row = connection.execute(_LACKING, (schema,)).fetchone()
    assert row is not None
    return Rights(*row)


def write_hint(rights: Rights) -> str:
    """Say who has to run which statements."""
    if rights.owner is None:
        return (
            "let the owner of the database run: "
            f"GRANT CREATE ON DATABASE {rights.database} TO {rights.role}"
        )
    wanted = {
        "USAGE ON SCHEMA": rights.schemas,
        "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA": rights.tables,
        "USAGE, SELECT ON ALL SEQUENCES IN SCHEMA": rights.sequences,
    }
    grants = [
        f"GRANT {right} {', '.join(names)} TO {rights.role}"
        for right, names in wanted.items()
        if names
    ]
    if grants:
        return f"let {rights.owner}, who owns the store, run: {'; '.join(grants)}"
    # Nothing is missing for daily use.
    return f"only the owner of the store may do this: connect as {rights.owner}"


def hint_for(connection: psycopg.Connection[Any], schema: str) -> str | None:
    """Name the missing rights after a refusal; `None` if the server does not answer."""
    with contextlib.suppress(psycopg.Error):
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
        return write_hint(read_rights(connection, schema))
    return None
