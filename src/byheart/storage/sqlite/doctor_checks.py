"""Check a store for the doctor: each check passes, or reports what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import apsw
import numpy as np

from byheart.errors import Do, Hint, join_hints
from byheart.index import file
from byheart.index.index import Index
from byheart.model import Finding
from byheart.model.times import from_micros, now_micros
from byheart.storage.sql import checksums, writing
from byheart.storage.sql.index_source import SqlIndexSource
from byheart.storage.sql.rows import CHUNK, UNEMBEDDED_TYPES, to_chunk
from byheart.storage.sqlite import erasing, repairs
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.file_checks import Checked, disk_space, examine_files

_FIX = Hint("run: ", Do("admin.doctor", fix=True))
_REBUILD = Hint("run: ", Do("admin.doctor", rebuild=True))
_RESTORE = "put a backup in its place, or save what can still be read with sqlite3's .recover"
_FILE = "database file"
_KEYWORDS = "chunk_words"
# The number of chunks whose keyword entries are compared with their texts, and of words compared.
_COMPARED_CHUNKS, _COMPARED_WORDS = 100, 12

Mend = Callable[[SqliteConnection], None]


class _MustBeEmpty(NamedTuple):
    """A query whose result is 0 in a sound store."""

    name: str
    meaning: str
    hint: str
    mend: Mend | None
    query: str


_RELATIONS = (
    _MustBeEmpty(
        "keyword index",
        "{} chunks are missing from the keyword index: raw queries do not find them",
        _FIX,
        repairs.add_missing_words,
        "SELECT count(*) FROM chunks WHERE chunk_no NOT IN (SELECT rowid FROM chunk_words)",
    ),
    _MustBeEmpty(
        "keyword index leftovers",
        "{} keyword entries belong to no chunk",
        _FIX,
        repairs.add_missing_words,
        "SELECT count(*) FROM chunk_words WHERE rowid NOT IN (SELECT chunk_no FROM chunks)",
    ),
    _MustBeEmpty(
        "vectors accounted for",
        "{} chunks have neither vectors of the store's model nor a place in the queue for them: "
        "only their words are found",
        _FIX,
        repairs.rebuild_pending,
        f"""SELECT count(*) FROM chunks WHERE chunk_no NOT IN (SELECT chunk_no FROM pending_vectors)
           AND chunk_no NOT IN (SELECT chunk_no FROM vectors JOIN models USING (model_no)
               WHERE name = (SELECT value FROM store WHERE key = 'model'))
           AND chunk_type NOT IN {UNEMBEDDED_TYPES}""",
    ),
    _MustBeEmpty(
        "vector sizes",
        "{} vectors do not have the length their model says: searches by meaning fail",
        _FIX,
        repairs.drop_ill_sized_vectors,
        """SELECT count(*) FROM vectors JOIN models USING (model_no)
           WHERE length(embedding) != 4 * dimensions""",
    ),
    _MustBeEmpty(
        "entities in use",
        "{} entities belong to no memory",
        _FIX,
        repairs.drop_unused_entities,
        "SELECT count(*) FROM entities WHERE entity_no NOT IN "
        "(SELECT entity_no FROM memory_entities)",
    ),
    _MustBeEmpty(
        "history",
        "{} memories have no history: their author is unknown",
        _FIX,
        repairs.begin_history,
        "SELECT count(*) FROM memories WHERE version_of IS NULL "
        "AND memory_no NOT IN (SELECT memory_no FROM history)",
    ),
)


# The checks whose failure means that searches miss memories.
_SEARCHED = ("keyword index", "keyword index leftovers", "vectors accounted for", "vector sizes")


def examine(database: Database, index: Index, schema_version: int, fix: bool) -> list[Finding]:
    """Check the file, its relations and all derived data; with `fix`, repair what is possible."""
    checked = _examine(database, index, schema_version)
    # One repair may fix two findings.
    mends = dict.fromkeys(each.mend for each in checked if each.mend is not None)
    if not fix or not mends:
        return [each.finding for each in checked]
    for mend in mends:
        mend(database, index)
    again = {each.finding.check: each.finding for each in _examine(database, index, schema_version)}
    return [_after(each, again) for each in checked] + [
        finding for name, finding in again.items() if name not in {c.finding.check for c in checked}
    ]


def inspect(database: Database, index: Index) -> list[Finding]:
    """Check the data that searches use; unlike `examine`, do not read every page of the file."""
    with database.reading() as connection:
        unread = _problems(connection, "SELECT 'ok' FROM chunk_words LIMIT 1")
        if unread:
            return [Finding("keyword index", False, unread[0], _REBUILD)]
        try:
            checked = [
                *_relations(connection, without_keywords=False, names=_SEARCHED),
                _index_file(connection, index),
            ]
        except (apsw.CorruptError, ValueError) as error:
            return [
                Finding(
                    _FILE, False, f"it cannot be read: {error}", Hint("run: ", Do("admin.doctor"))
                )
            ]
    return [each.finding for each in checked]


def _after(before: Checked, again: dict[str, Finding]) -> Finding:
    finding = again.get(before.finding.check, before.finding)
    if before.mend is None or not finding.ok or finding.message == before.finding.message:
        return finding
    return replace(finding, message=Hint("fixed: ", before.finding.message), hint="", fixed=True)


def _examine(database: Database, index: Index, schema_version: int) -> list[Checked]:
    with database.reading() as connection:
        checked = list(_integrity(connection))
        damaged = not checked[0].finding.ok
        if damaged and checked[0].mend is None:
            # The results of further checks could not be trusted.
            return [*checked, disk_space(database)]
        try:
            checked += _contents(connection, index, without_keywords=damaged)
        except (apsw.CorruptError, ValueError) as error:  # data changed after it was written
            said = f"it cannot be read to its end: {error}"
            checked = [Checked(Finding(_FILE, False, said, _RESTORE))]
    return [*checked, *examine_files(database, schema_version)]


def _contents(
    connection: SqliteConnection, index: Index, *, without_keywords: bool
) -> list[Checked]:
    return [
        *_relations(connection, without_keywords=without_keywords),
        _texts(connection),
        _earlier_texts(connection),
        _superseded(connection),
        _index_file(connection, index),
        _other_models(connection),
        _unswept(connection),
        _expired(connection),
        _forgotten(connection),
    ]


def _unswept(connection: SqliteConnection) -> Checked:
    """Check whether an erasure is unfinished after its rows were removed."""
    left = erasing.is_unswept(connection)
    message = "an erasure did not finish: its words may still be in the store's files"
    finding = Finding("forgetting", not left, message if left else "in order", _FIX if left else "")
    return Checked(finding, erasing.sweep if left else None)


# --- The file ---------------------------------------------------------------------------------


def _integrity(connection: SqliteConnection) -> Iterator[Checked]:
    # Any query makes FTS5 see the writes of other connections; its own check does not.
    unread = _problems(connection, "SELECT 'ok' FROM chunk_words LIMIT 1")
    problems = unread + _problems(connection, "PRAGMA integrity_check(20)")
    if not problems:
        yield Checked(Finding(_FILE, True, "in order"))
        yield _foreign_keys(connection)
        return
    said = "; ".join(" ".join(each.split()) for each in problems[:5])
    damaged = _damaged_tables(connection) | ({_KEYWORDS: unread} if unread else {})
    if damaged and all(table.startswith(_KEYWORDS) for table in damaged):
        message = f"the keyword index is damaged; texts and vectors are not ({said})"
        mend = _in_transaction(repairs.rebuild_words)
        yield Checked(Finding(_FILE, False, message, _REBUILD), mend)
        yield _foreign_keys(connection)
    elif damaged and all(
        map(_is_of_an_index, (each for some in damaged.values() for each in some))
    ):
        message = f"an index of the database does not agree with its table; texts are safe ({said})"
        mend = _in_transaction(repairs.rebuild_indexes)
        yield Checked(Finding(_FILE, False, message, _REBUILD), mend)
        yield _foreign_keys(connection)
    else:
        yield Checked(Finding(_FILE, False, said, _RESTORE))


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


def _foreign_keys(connection: SqliteConnection) -> Checked:
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
        mend = _in_transaction(repairs.drop_belongings_of_nothing)
        return Checked(Finding(name, False, said, _FIX), mend)
    return Checked(Finding(name, False, said, "restore a backup: texts have lost their memories"))


# --- The rows ---------------------------------------------------------------------------------


def _relations(
    connection: SqliteConnection, *, without_keywords: bool, names: Container[str] | None = None
) -> Iterator[Checked]:
    for check in _RELATIONS:
        if without_keywords and check.name.startswith("keyword"):
            continue
        if names is not None and check.name not in names:
            continue
        count = connection.execute(check.query).get
        if not count:
            yield Checked(Finding(check.name, True, "in order"))
            continue
        finding = Finding(check.name, False, check.meaning.format(f"{count:,}"), check.hint)
        yield Checked(finding, None if check.mend is None else _in_transaction(check.mend))
    if not without_keywords:
        yield _words(connection)


def _words(connection: SqliteConnection) -> Checked:
    """Compare keyword entries of some chunks with the texts, headings, titles and summaries."""
    name = "keyword index as saved"
    rows = list(_some_chunks(connection))
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
    return Checked(Finding(name, False, message, _REBUILD), _in_transaction(repairs.rebuild_words))


def _some_chunks(connection: SqliteConnection) -> Iterator[Any]:
    """Give chunks with title and summary, spread evenly over the store."""
    first, last = connection.execute("SELECT min(chunk_no), max(chunk_no) FROM chunks").get
    if first is None:
        return
    known = 0
    for number in np.linspace(first, last, min(_COMPARED_CHUNKS, last - first + 1)).tolist():
        row = connection.execute(
            f"SELECT {CHUNK}, m.title, m.summary FROM chunks c JOIN memories m USING (memory_no) "
            "WHERE c.chunk_no >= max(?, ? + 1) "
            "AND EXISTS (SELECT 1 FROM chunk_words_docsize d WHERE d.id = c.chunk_no) "
            "ORDER BY c.chunk_no LIMIT 1",
            (int(number), known),
        ).get
        if row is None:
            return
        known = row[0]
        yield row


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


def _texts(connection: SqliteConnection) -> Checked:
    """Hash every text again, to detect chunks that were lost or changed."""
    changed = sum(not fits for _, fits, _ in checksums.texts(connection))
    return Checked(
        Finding(
            "texts as saved",
            not changed,
            f"{changed:,} memories do not have the text that was saved" if changed else "in order",
            "restore a backup: their text has changed or is incomplete" if changed else "",
        )
    )


def _earlier_texts(connection: SqliteConnection) -> Checked:
    name = "earlier texts"
    lost: list[Any] = connection.execute(
        "SELECT memory_id FROM memories e WHERE version_of IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM memories m WHERE m.memory_id = e.version_of AND m.space = e.space)"
    ).fetchall()
    if not lost:
        return Checked(Finding(name, True, "in order"))
    message = f"{len(lost):,} earlier texts belong to memories that are gone"
    return Checked(Finding(name, False, message, Hint("read one with: ", Do("get", lost[0][0]))))


def _superseded(connection: SqliteConnection) -> Checked:
    """Report memories superseded by memories that no search finds; only a user can decide these."""
    name = "superseded memories"
    rows: list[Any] = connection.execute(
        "SELECT memory_id FROM memories o WHERE superseded_by IS NOT NULL AND version_of IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.memory_id = o.superseded_by "
        "AND m.space = o.space AND m.forgotten_at IS NULL) AND forgotten_at IS NULL"
    ).fetchall()
    if not rows:
        return Checked(Finding(name, True, "in order"))
    message = f"{len(rows):,} rank below memories that superseded them and are gone or forgotten"
    hint = Hint("to make one valid again: ", Do("supersede", rows[0][0]))
    return Checked(Finding(name, True, message, hint))


def _other_models(connection: SqliteConnection) -> Checked:
    name = "vectors of other models"
    roles = {
        "previous_model": Hint(
            ", which the store can go back to with: ", Do("admin.reembed", rollback=True)
        ),
        "next_model": Hint(
            ", which the store is being switched to; go on with: ", Do("admin.reembed")
        ),
    }
    # The index covers this query, so that SQLite need not read the large rows.
    rows: list[Any] = connection.execute(
        "SELECT name, n, n * 4 * dimensions, "
        "(SELECT key FROM store WHERE key IN ('previous_model', 'next_model') AND value = name) "
        "FROM (SELECT model_no, count(*) AS n FROM vectors INDEXED BY vectors_by_chunk "
        "GROUP BY model_no) JOIN models USING (model_no) "
        "WHERE name != ifnull((SELECT value FROM store WHERE key = 'model'), '') ORDER BY name"
    ).fetchall()
    if not rows:
        return Checked(Finding(name, True, "in order"))
    said = join_hints(
        "; ",
        (
            f"{count:,} ({size / 1e6:.1f} MB) of {model}" + roles.get(role, ", which is not used")
            for model, count, size, role in rows
        ),
    )
    hint = Hint("drop them with: ", Do("admin.doctor", optimize=True))
    return Checked(Finding(name, True, said or "", hint))


def _expired(connection: SqliteConnection) -> Checked:
    name = "expired memories"
    count, first = connection.execute(
        "SELECT count(*), min(expires_at) FROM memories WHERE expires_at <= ? "
        "AND version_of IS NULL AND forgotten_at IS NULL",
        (now_micros(),),
    ).get
    if not count:
        return Checked(Finding(name, True, "in order"))
    message = (
        f"{count:,} have expired, the first on {from_micros(first):%Y-%m-%d}; they are found no "
        "longer, and saves erase them little by little (setting prune_after_days)"
    )
    return Checked(
        Finding(
            name, True, message, Hint("count what would go: ", Do("admin.cleanup", dry_run=True))
        )
    )


def _forgotten(connection: SqliteConnection) -> Checked:
    name = "forgotten memories"
    count = connection.execute(
        "SELECT count(*) FROM memories WHERE forgotten_at IS NOT NULL AND version_of IS NULL"
    ).get
    if not count:
        return Checked(Finding(name, True, "in order"))
    message = f"{count:,} are hidden and can be restored"
    return Checked(
        Finding(name, True, message, Hint("see them with: ", Do("list", forgotten=True)))
    )


# --- Derived data -----------------------------------------------------------------------------


def _index_file(connection: SqliteConnection, index: Index) -> Checked:
    name = "search index"
    foreign = file.is_of_another_version(index.path)
    if index.path.exists() and not foreign and file.read(index.path, verify=True) is None:
        return Checked(
            Finding(name, False, f"{index.path} is damaged", _REBUILD), repairs.rebuild_index_file
        )
    try:
        view = index.view(SqlIndexSource(connection))
    except ValueError as error:  # the length of a vector differs from its model's
        return Checked(Finding(name, False, f"it cannot be built: {error}", _FIX))
    if view is None:
        return Checked(Finding(name, True, "ahead of this check: another thread is writing"))
    alive = view.chunks.chunk_nos[view.chunks.alive]
    stored = _numbers(connection, "SELECT chunk_no FROM chunks ORDER BY chunk_no")
    known = view.memories.memory_nos[view.memories.present]
    memories = _numbers(
        connection, "SELECT memory_no FROM memories WHERE forgotten_at IS NULL ORDER BY memory_no"
    )
    if not (np.array_equal(alive, stored) and np.array_equal(known, memories)):
        return Checked(
            Finding(name, False, "does not hold the store's chunks", _REBUILD),
            repairs.rebuild_index_file,
        )
    if foreign:  # as after an upgrade: each process builds an index until the file is written again
        message = f"{index.path} is of another version of Byheart, and not used"
        return Checked(Finding(name, True, message, _FIX), repairs.rebuild_index_file)
    return Checked(Finding(name, True, "in order"))


def _numbers(connection: SqliteConnection, query: str) -> Any:
    return np.fromiter((row[0] for row in connection.execute(query)), np.int64)


# --- Repairs ----------------------------------------------------------------------------------


@cache
def _in_transaction(mend: Mend) -> Callable[[Database, Index], None]:
    return partial(_run, mend)


def _run(mend: Mend, database: Database, index: Index) -> None:
    with database.writing() as connection:
        mend(connection)
    index.discard()  # it may have been built from damaged data
