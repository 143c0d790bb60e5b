"""Check the schema of a PostgreSQL store, its numbers, and what the server does with it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from byheart.contracts import NUMBER_BITS
from byheart.errors import Do, Hint
from byheart.model import Finding
from byheart.storage.postgres import repairs
from byheart.storage.postgres.connection import PostgresConnection
from byheart.storage.postgres.database import Database
from byheart.storage.postgres.migrations import leaf_tables, statistics_to_drop
from byheart.storage.sql.check_results import FIX, Checked, passed

_RESTORE = "restore a backup of the database"
_LONG_HOURS = 1
# Advise compaction where the server counts this many dead rows, and one for each two that live.
_MANY_DEAD = 10_000

_ATTACHED = """
    SELECT child_schema.nspname || '.' || child.relname FROM pg_class parent
    JOIN pg_namespace n ON n.oid = parent.relnamespace
    JOIN pg_inherits i ON i.inhparent = parent.oid
    JOIN pg_class child ON child.oid = i.inhrelid
    JOIN pg_namespace child_schema ON child_schema.oid = child.relnamespace
    WHERE n.nspname = ? AND parent.relname = child.relname"""
# Each query counts rows whose numbers do not belong to the space of their memory.
_MISPLACED = {
    "memories": f"""
        SELECT count(*) FROM memories m LEFT JOIN spaces s ON s.name = m.space
        WHERE s.space_no IS DISTINCT FROM m.memory_no >> {NUMBER_BITS} OR s.part <> m.part""",
    "chunks": f"""
        SELECT count(*) FROM chunks
        WHERE chunk_no >> {NUMBER_BITS} <> memory_no >> {NUMBER_BITS}""",
    "vectors": f"""
        SELECT count(*) FROM vectors
        WHERE vector_no >> {NUMBER_BITS} <> chunk_no >> {NUMBER_BITS}""",
    "changes": f"""
        SELECT count(*) FROM changes
        WHERE memory_no <> 0 AND change_no >> {NUMBER_BITS} <> memory_no >> {NUMBER_BITS}""",
}
_COLLATED = ("space", "memory_id", "session_id", "key", "path", "tag", "name", "version_of")
_OTHER_COLLATION = """
    SELECT table_name || '.' || column_name FROM information_schema.columns
    JOIN pg_class ON relname = table_name AND relkind = 'p'
    WHERE table_schema = ?1 AND relnamespace = CAST(?1 AS regnamespace)
        AND data_type = 'text' AND column_name = ANY(?2)
        AND (table_name, column_name) NOT IN (('entities', 'name'), ('entity_aliases', 'name'))
        AND collation_name IS DISTINCT FROM 'C' ORDER BY 1"""
_LONG_TRANSACTIONS = f"""
    SELECT pid, coalesce(application_name, ''),
        CAST(extract(epoch FROM now() - xact_start) / 3600 AS integer)
    FROM pg_stat_activity WHERE datname = current_database() AND backend_xmin IS NOT NULL
        AND xact_start < now() - interval '{_LONG_HOURS} hour' AND pid <> pg_backend_pid()
    ORDER BY xact_start LIMIT 3"""
_DEAD_ROWS = f"""
    SELECT schemaname || '.' || relname, n_dead_tup FROM pg_stat_all_tables
    WHERE schemaname = ANY(?) AND n_dead_tup > {_MANY_DEAD} AND n_dead_tup > n_live_tup / 2
    ORDER BY n_dead_tup DESC"""


def check_server(connection: PostgresConnection, database: Database) -> Iterator[Checked]:
    """Check the tables of all parts, their numbers and indexes, and the work of the server."""
    yield _parts(connection, database)
    yield _numbers(connection)
    yield _sequences(connection, database)
    yield _invalid_indexes(connection, database)
    yield _collation(connection, database)
    yield _statistics(connection, database)
    yield _write_access(database)
    yield _long_transactions(connection)
    yield _dead_rows(connection, database)


def _parts(connection: PostgresConnection, database: Database) -> Checked:
    """Check that every part has all its tables, and that the umbrella tables include them."""
    name = "parts"
    attached = {row[0] for row in connection.all(_ATTACHED, (database.schema,))}
    missing = [each for each in leaf_tables(database) if each not in attached]
    if not missing:
        return passed(name)
    more = f" and {len(missing) - 3:,} others" if len(missing) > 3 else ""
    message = f"tables are missing or detached: {', '.join(missing[:3])}{more}"
    return Checked(Finding(name, False, message, f"attach them again, or {_RESTORE}"))


def _numbers(connection: PostgresConnection) -> Checked:
    name = "numbers of spaces"
    found = {
        table: sum(connection.get(query) for _ in connection.parts())
        for table, query in _MISPLACED.items()
    }
    if not any(found.values()):
        return passed(name)
    said = ", ".join(f"{count:,} of {table}" for table, count in found.items() if count)
    message = f"rows have numbers of another space or part, and are not found: {said}"
    return Checked(Finding(name, False, message, _RESTORE))


def _sequences(connection: PostgresConnection, database: Database) -> Checked:
    """Check that no number will be given out twice, as after a restore of some tables."""
    name = "sequences"
    if not repairs.may_read_sequences(connection):
        message = "not checked: the role may not read them"
        return Checked(Finding(name, True, message, "run the doctor as the owner of the store"))
    behind = [
        sequence
        for sequence, highest, last in repairs.sequence_states(connection)
        if highest > last
    ]
    if not behind:
        return passed(name)
    message = f"{', '.join(behind)} would give out numbers again that rows already have"
    mend = partial(repairs.advance_sequences, database)
    return Checked(Finding(name, False, message, FIX), mend)


def _invalid_indexes(connection: PostgresConnection, database: Database) -> Checked:
    name = "database indexes"
    invalid = repairs.invalid_indexes(connection, database)
    if not invalid:
        return passed(name)
    message = f"the server does not use {', '.join(invalid[:3])}: building them did not finish"
    mend = partial(repairs.rebuild_invalid_indexes, database)
    return Checked(Finding(name, False, message, FIX), mend)


def _collation(connection: PostgresConnection, database: Database) -> Checked:
    name = "collation"
    rows = connection.all(_OTHER_COLLATION, (database.schema, list(_COLLATED)))
    if not rows:
        return passed(name)
    message = f'the order of {rows[0][0]} is not "C": lists are ordered by the rules of a language'
    return Checked(Finding(name, False, message, _RESTORE))


def _statistics(connection: PostgresConnection, database: Database) -> Checked:
    """Check that the server keeps no samples of texts, which would outlive erased texts."""
    name = "statistics of texts"
    kept = statistics_to_drop(connection.raw, database.schemas)
    if not kept:
        return passed(name)
    message = f"the server keeps samples of {len(kept):,} columns of text, erased ones included"
    mend = partial(repairs.drop_statistics, database)
    return Checked(Finding(name, False, message, FIX), mend)


def _write_access(database: Database) -> Checked:
    name = "write access"
    if database.writable:
        return passed(name)
    message = f"{database.address.location} can only be read: it is a replica, or the role may not"
    hint = "give the address of the primary server, and a role that may write"
    return Checked(Finding(name, False, f"{message} write", hint))


def _long_transactions(connection: PostgresConnection) -> Checked:
    """Report transactions that keep the server from removing dead rows."""
    name = "long transactions"
    rows = connection.all(_LONG_TRANSACTIONS)
    if not rows:
        return passed(name)
    said = ", ".join(f"{pid} ({who or 'unnamed'}, {hours} h)" for pid, who, hours in rows)
    message = f"the server cannot remove dead rows because of open transactions: {said}"
    hint = (
        "look at the session in pg_stat_activity; if it hangs, end it with: "
        f"SELECT pg_terminate_backend({rows[0][0]})"
    )
    return Checked(Finding(name, True, message, hint))


def _dead_rows(connection: PostgresConnection, database: Database) -> Checked:
    name = "dead rows"
    rows = connection.all(_DEAD_ROWS, (database.schemas,))
    if not rows:
        return passed(name)
    count = sum(row[1] for row in rows)
    message = f"{len(rows):,} tables have {count:,} dead rows, the most in {rows[0][0]}"
    hint = Hint("run: ", Do("admin.doctor", optimize=True), "; and check that autovacuum is on")
    return Checked(Finding(name, True, message, hint))
