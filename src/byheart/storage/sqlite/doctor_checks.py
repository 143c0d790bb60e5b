"""Check a store for the doctor: each check passes, or reports what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import apsw

from byheart.errors import Do, Hint
from byheart.index.index import Index
from byheart.model import Finding
from byheart.storage.sql import writing
from byheart.storage.sql.check_results import FIX, REBUILD, Checked, Mend, Transact, passed
from byheart.storage.sql.check_results import examine as examine_and_mend
from byheart.storage.sql.index_checks import check_index
from byheart.storage.sql.row_checks import (
    RELATIONS,
    SEARCHED,
    check_relations,
    check_rows,
    keyword_relations,
    report_remains,
    some_chunks,
)
from byheart.storage.sql.rows import to_chunk
from byheart.storage.sqlite import erasing, repairs
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.error_translation import restore_hint
from byheart.storage.sqlite.file_checks import disk_space, examine_files

_FILE = "database file"
_KEYWORDS = "chunk_words"
_HAS_WORDS = "SELECT 1 FROM chunk_words_docsize d WHERE d.id = c.chunk_no"
# The number of words of a chunk that are looked up in the keyword index.
_COMPARED_WORDS = 12

_RELATIONS = (*keyword_relations("rowid", repairs.add_missing_words), *RELATIONS)


def examine(database: Database, index: Index, schema_version: int, fix: bool) -> list[Finding]:
    """Check the file, its relations and all derived data; with `fix`, repair what is possible."""
    check = partial(_examine, database, index, schema_version)
    return examine_and_mend(check, fix=fix)


def inspect(database: Database, index: Index) -> list[Finding]:
    """Check the data that searches use; unlike `examine`, do not read every page of the file."""
    with database.reading() as connection:
        unread = _problems(connection, "SELECT 'ok' FROM chunk_words LIMIT 1")
        if unread:
            return [Finding("keyword index", False, unread[0], REBUILD)]
        try:
            transact = partial(_transact, database, index)
            checked = [
                *check_relations(connection, _RELATIONS, transact, SEARCHED),
                _words(connection, transact),
                check_index(connection, index),
            ]
        except (apsw.CorruptError, ValueError) as error:
            return [
                Finding(
                    _FILE, False, f"it cannot be read: {error}", Hint("run: ", Do("admin.doctor"))
                )
            ]
    return [each.finding for each in checked]


def _examine(database: Database, index: Index, schema_version: int) -> list[Checked]:
    transact = partial(_transact, database, index)
    with database.reading() as connection:
        checked = list(_integrity(database, connection, transact))
        damaged = not checked[0].finding.ok
        if damaged and checked[0].mend is None:
            # The results of further checks could not be trusted.
            return [*checked, disk_space(database)]
        try:
            checked += _contents(connection, index, transact, without_keywords=damaged)
            checked.append(_unswept(connection, database, index))
        except (apsw.CorruptError, ValueError) as error:  # data changed after it was written
            said = f"it cannot be read to its end: {error}"
            checked = [Checked(Finding(_FILE, False, said, restore_hint(database.path)))]
    return [*checked, *examine_files(database, schema_version)]


def _contents(
    connection: SqliteConnection, index: Index, transact: Transact, *, without_keywords: bool
) -> Iterator[Checked]:
    if without_keywords:
        yield from check_relations(connection, RELATIONS, transact)
    else:
        yield from check_relations(connection, _RELATIONS, transact)
        yield _words(connection, transact)
    yield from check_rows(connection)
    yield check_index(connection, index)
    yield from report_remains(connection)


def _unswept(connection: SqliteConnection, database: Database, index: Index) -> Checked:
    """Check whether an erasure is unfinished after its rows were removed."""
    if not erasing.is_unswept(connection):
        return passed("forgetting")
    message = "an erasure did not finish: its words may still be in the store's files"
    return Checked(
        Finding("forgetting", False, message, FIX), partial(erasing.sweep, database, index)
    )


def _transact(database: Database, index: Index, mend: Mend) -> None:
    with database.writing() as connection:
        mend(connection)
    index.discard()  # it may have been built from damaged data


# --- The file ---------------------------------------------------------------------------------


def _integrity(
    database: Database, connection: SqliteConnection, transact: Transact
) -> Iterator[Checked]:
    # Any query makes FTS5 see the writes of other connections; its own check does not.
    unread = _problems(connection, "SELECT 'ok' FROM chunk_words LIMIT 1")
    problems = unread + _problems(connection, "PRAGMA integrity_check(20)")
    if not problems:
        yield Checked(Finding(_FILE, True, "in order"))
        yield _foreign_keys(connection, transact)
        return
    said = "; ".join(" ".join(each.split()) for each in problems[:5])
    damaged = _damaged_tables(connection) | ({_KEYWORDS: unread} if unread else {})
    if damaged and all(table.startswith(_KEYWORDS) for table in damaged):
        message = f"the keyword index is damaged; texts and vectors are not ({said})"
        mend = partial(transact, repairs.rebuild_words)
        yield Checked(Finding(_FILE, False, message, REBUILD), mend)
        yield _foreign_keys(connection, transact)
    elif damaged and all(
        map(_is_of_an_index, (each for some in damaged.values() for each in some))
    ):
        message = f"an index of the database does not agree with its table; texts are safe ({said})"
        mend = partial(transact, repairs.rebuild_indexes)
        yield Checked(Finding(_FILE, False, message, REBUILD), mend)
        yield _foreign_keys(connection, transact)
    else:
        yield Checked(Finding(_FILE, False, said, restore_hint(database.path)))


def _problems(connection: SqliteConnection, check: str) -> list[str]:
    try:
        said = [str(row[0]) for row in connection.execute(check)]
    except apsw.CorruptError as error:
        return [str(error)]
    return [] if said in ([], ["ok"]) else said


def _damaged_tables(connection: SqliteConnection) -> dict[str, list[str]]:
    """Check each table by itself, to distinguish damage to derived data from damage to texts."""
    names = [
        str(row[0])
        for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    found = {name: _problems(connection, f'PRAGMA integrity_check("{name}")') for name in names}
    return {name: problems for name, problems in found.items() if problems}


def _is_of_an_index(problem: str) -> bool:
    return bool(re.fullmatch(r"row \d+ missing from index \w+|wrong # of entries in .*", problem))


def _foreign_keys(connection: SqliteConnection, transact: Transact) -> Checked:
    name = "foreign keys"
    try:
        rows: list[Any] = connection.execute(
            'SELECT "table", count(*), parent FROM pragma_foreign_key_check GROUP BY 1, 3'
        ).fetchall()
    except apsw.CorruptError as error:
        return Checked(Finding(name, False, str(error), "restore a backup"))
    if not rows:
        return Checked(Finding(name, True, "in order"))
    said = ", ".join(
        f"{count:,} rows of {table} belong to {parent} that are gone"
        for table, count, parent in rows
    )
    if all(table in repairs.BELONGINGS for table, _, _ in rows):
        mend = partial(transact, repairs.drop_belongings_of_nothing)
        return Checked(Finding(name, False, said, FIX), mend)
    return Checked(Finding(name, False, said, "restore a backup: texts have lost their memories"))


# --- The keywords -----------------------------------------------------------------------------


def _words(connection: SqliteConnection, transact: Transact) -> Checked:
    """Compare keyword entries of some chunks with the texts, headings, titles and summaries."""
    name = "keyword index as saved"
    rows = list(some_chunks(connection, _HAS_WORDS))
    connection.execute(
        "CREATE VIRTUAL TABLE temp.expected_words USING fts5 (title, summary, headings, content, "
        "content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2')"
    )
    try:
        wrong = sum(not _is_found(connection, row) for row in rows)
    finally:
        connection.execute("DROP TABLE temp.expected_words")
    if not wrong:
        return Checked(Finding(name, True, "in order"))
    message = (
        f"{wrong:,} of {len(rows):,} chunks looked at are not found by their own words: the "
        "keyword index is of other texts"
    )
    return Checked(Finding(name, False, message, REBUILD), partial(transact, repairs.rebuild_words))


def _is_found(connection: SqliteConnection, row: Any) -> bool:
    """Say whether the keyword entry of a chunk has the expected words in the same columns."""
    columns = writing.word_columns(to_chunk(row[1:10]), row[10], row[11])
    connection.execute(
        "INSERT INTO temp.expected_words (rowid, title, summary, headings, content) "
        "VALUES (?, ?, ?, ?, ?)",
        (row[0], *columns),
    )
    # FTS5 stores the number of words of each column beside the words themselves.
    same_counts = connection.execute(
        "SELECT e.sz = d.sz FROM temp.expected_words_docsize e "
        "JOIN chunk_words_docsize d USING (id) WHERE id = ?",
        (row[0],),
    ).get
    return bool(same_counts) and all(
        _finds(connection, _KEYWORDS, row[0], column, text)
        # A text without any word is not found in either table.
        or not _finds(connection, "expected_words", row[0], column, text)
        for column, text in zip(("title", "summary", "headings", "content"), columns, strict=True)
        if text.strip()
    )


def _finds(connection: SqliteConnection, table: str, chunk_no: int, column: str, text: str) -> bool:
    # SQLite ends a query at its first NUL.
    phrase = " ".join(text.replace("\0", " ").split()[:_COMPARED_WORDS]).replace('"', '""')
    found = connection.execute(
        f"SELECT 1 FROM {table} WHERE {table} MATCH ? AND rowid = ?",
        (f'{{{column}}}: "{phrase}"', chunk_no),
    ).get
    return found is not None
