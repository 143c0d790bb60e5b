"""Apply numbered schema changes, each once; two processes never apply them at the same time."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg

from byheart.contracts import NUMBER_BITS
from byheart.errors import Do, Hint, StoreTooNew, StoreUnreachable
from byheart.startup.late_patterns import late_pattern
from byheart.storage.postgres.address import Address
from byheart.storage.postgres.connection import part_schema
from byheart.storage.postgres.database import WRITE, Database

_LAST_NUMBER, _LAST_SPACE = (1 << NUMBER_BITS) - 1, (1 << (63 - NUMBER_BITS)) - 1
# Holds two processes back from migrating at once; any number that no other program uses.
_LOCK = 0x42794872
# Statistics of these columns hold few values and no text of users; of all others none are kept,
# because a sample of the texts would outlive texts that are erased.
_COUNTED = ("space", "kind", "role", "origin", "chunk_type", "language")
# The planner also samples expressions of indexes.
_STATISTICS = """
    SELECT format('ALTER %s %I.%I ALTER COLUMN %s SET STATISTICS 0',
        CASE c.relkind WHEN 'i' THEN 'INDEX' ELSE 'TABLE' END, n.nspname, c.relname,
        CASE c.relkind WHEN 'i' THEN CAST(a.attnum AS text) ELSE quote_ident(a.attname) END)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_index i ON i.indexrelid = c.oid
    WHERE n.nspname = ANY($1) AND c.relkind IN ('r', 'p', 'i')
        AND a.attnum > 0 AND NOT a.attisdropped
        AND t.typname IN ('text', 'bytea', '_int4') AND coalesce(a.attstattarget, -1) <> 0
        AND CASE c.relkind WHEN 'i' THEN i.indkey[a.attnum - 1] = 0
            ELSE a.attname <> ALL($2) END
    ORDER BY c.relkind DESC, 1"""
# `to_regclass` would read a cache of the connection, and miss a store that another process made
# while this one waited for the lock.
_FIND = """
    SELECT has_table_privilege(c.oid, 'INSERT')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'store'"""
_LEAF = late_pattern(r"CREATE TABLE \{part\}\.(\w+) PARTITION OF")


@cache
def known_migrations() -> tuple[tuple[int, str, str], ...]:
    """List the schema changes by number: of the store, and of each part.

    `NNNN_part.sql` is for each part, all other files of a number are for the store.
    """
    scripts: dict[int, tuple[list[str], list[str]]] = {}
    folder = files("byheart.storage.postgres.schema")
    for each in sorted(folder.iterdir(), key=lambda file: file.name):
        if match := re.fullmatch(r"(\d{4})_(\w+)\.sql", each.name):
            store, part = scripts.setdefault(int(match[1]), ([], []))
            (part if match[2] == "part" else store).append(each.read_text(encoding="utf-8"))
    return tuple(
        (number, "\n".join(store), "\n".join(part))
        for number, (store, part) in sorted(scripts.items())
    )


def migrate(database: Database, *, create: bool = True) -> int:
    """Create or migrate the schema, and refuse a newer one; give its number."""
    latest = known_migrations()[-1][0]
    with database.connected() as connection:
        current, database.parts, database.may_write = _read(connection, database.schema)
        if not (current or create):
            raise StoreUnreachable(
                f"there is no store in the schema {database.schema} of {database.address.location}",
                Hint("check the address, or make one with: ", Do("save", "TEXT")),
            )
        if current < latest:
            if not database.writable:
                raise StoreUnreachable(
                    f"{database.address.location} has schema {current}, this version needs "
                    f"{latest}, and it cannot be written to",
                    "open the primary server once with this version",
                )
            connection.execute(WRITE)
            connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
            # A change of a table waits for its readers, and all others wait behind it.
            connection.execute(f"SET LOCAL lock_timeout = {database.busy_ms}")
            # Another process may have migrated the store meanwhile.
            current, database.parts, database.may_write = _read(connection, database.schema)
            for number, store, part in known_migrations():
                if number > current:
                    _apply(connection, database, number, store, part)
            connection.execute("COMMIT")
            current = max(current, latest)
    database.writable &= database.may_write
    if current > latest:
        raise StoreTooNew(
            f"{database.address.location} was written by a newer version of Byheart "
            f"(schema {current}; this version knows {latest})",
            "upgrade with: pip install -U byheart",
        )
    return current


def holds_store(address: Address, wait_seconds: float) -> bool:
    """Tell whether there is a store at an address; nothing is written."""
    with closing(Database(address, wait_seconds, 1)) as database, database.connected() as raw:
        return _read(raw, address.schema)[0] > 0


def leaf_tables(database: Database) -> list[str]:
    """Name the tables of all parts."""
    names = [name for _, _, part in known_migrations() for name in _LEAF.findall(part)]
    return [
        f"{part_schema(database.schema, part)}.{name}"
        for part in range(database.parts)
        for name in names
    ]


def statistics_to_drop(connection: psycopg.Connection[Any], schemas: Sequence[str]) -> list[str]:
    """Write the statements that make the server keep no samples of users' texts."""
    rows = connection.execute(_STATISTICS, (list(schemas), list(_COUNTED))).fetchall()
    return [row[0] for row in rows]


def _read(connection: psycopg.Connection[Any], schema: str) -> tuple[int, int, bool]:
    """Give the number of the schema and of parts, and whether the role may write.

    Both numbers are 0 if there is no store yet.
    """
    found = connection.execute(_FIND, (schema,)).fetchone()
    if found is None:
        return 0, 0, True
    rows = connection.execute(
        f"SELECT key, value FROM {schema}.store WHERE key IN ('schema_version', 'parts')"
    ).fetchall()
    values = dict(rows)
    return int(values["schema_version"]), int(values["parts"]), bool(found[0])


def _apply(
    connection: psycopg.Connection[Any], database: Database, number: int, store: str, part: str
) -> None:
    schema, parts = database.schema, database.parts or database.address.parts
    if number == 1:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    limits = {"bits": NUMBER_BITS, "last_number": _LAST_NUMBER, "last_space": _LAST_SPACE}
    connection.execute(store.format(schema=schema, **limits))
    next_no = f"(current_setting('byheart.space_no')::bigint << {NUMBER_BITS}) "
    next_no = f"({next_no} | nextval('{schema}.numbers'))"
    for each in range(parts):
        name = part_schema(schema, each)
        values = {"schema": schema, "part": name, "number": each, "next_no": next_no}
        connection.execute(part.format(**values))
    schemas = [schema, *(part_schema(schema, each) for each in range(parts))]
    for statement in statistics_to_drop(connection, schemas):
        connection.execute(statement)
    put = f"INSERT INTO {schema}.store (key, value) VALUES ($1, $2)"
    if number == 1:
        connection.execute(put, ("store_id", uuid.uuid4().hex))
        connection.execute(put, ("parts", str(parts)))
        connection.execute(put, ("schema_version", "1"))
    connection.execute(
        f"UPDATE {schema}.store SET value = $1 WHERE key = 'schema_version'", (str(number),)
    )
    database.parts = parts
