"""Check rows for the doctor: how tables relate, texts against hashes, rows that need a decision."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from byheart.errors import Do, Hint, join_hints
from byheart.model import Finding
from byheart.model.times import from_micros, now_micros
from byheart.startup.late_numpy import np
from byheart.storage.sql import checksums, memory_counts, repairs
from byheart.storage.sql.check_results import FIX, Checked, Mend, Transact, passed
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.model_rows import NAME_IN_USE
from byheart.storage.sql.rows import CHUNK, UNEMBEDDED_TYPES

# The number of chunks whose keyword entries are compared with their texts.
_COMPARED_CHUNKS = 100


class MustBeEmpty(NamedTuple):
    """A query without rows in a sound store."""

    name: str
    meaning: str
    mend: Mend
    query: str


RELATIONS = (
    MustBeEmpty(
        "vectors accounted for",
        "{} chunks have neither vectors of the store's model nor a place in the queue for them: "
        "only their words are found",
        repairs.rebuild_pending,
        f"""SELECT chunk_no FROM chunks WHERE chunk_type NOT IN {UNEMBEDDED_TYPES}
           EXCEPT SELECT chunk_no FROM pending_vectors
           EXCEPT SELECT chunk_no FROM vectors JOIN models USING (model_no)
               WHERE name = {NAME_IN_USE}""",
    ),
    MustBeEmpty(
        "vector sizes",
        "{} vectors do not have the length their model says: searches by meaning fail",
        repairs.drop_ill_sized_vectors,
        """SELECT vector_no FROM vectors JOIN models USING (model_no)
           WHERE length(embedding) != 4 * dimensions""",
    ),
    MustBeEmpty(
        "entities in use",
        "{} entities belong to no memory",
        repairs.drop_unused_entities,
        "SELECT entity_no FROM entities EXCEPT SELECT entity_no FROM memory_entities",
    ),
    MustBeEmpty(
        "history",
        "{} memories have no history: their author is unknown",
        repairs.begin_history,
        "SELECT memory_no FROM memories WHERE version_of IS NULL "
        "EXCEPT SELECT memory_no FROM history",
    ),
    MustBeEmpty(
        "memory counts",
        "{} counts of memories are wrong: lists show wrong totals",
        memory_counts.count_again,
        memory_counts.WRONG_COUNTS,
    ),
)
# The checks whose failure means that searches miss memories.
SEARCHED = ("keyword index", "keyword index leftovers", "vectors accounted for", "vector sizes")


def keyword_relations(words: str, mend: Mend) -> tuple[MustBeEmpty, ...]:
    """Relate keyword entries to chunks; `words` names the number of a chunk in `chunk_words`."""
    return (
        MustBeEmpty(
            "keyword index",
            "{} chunks are missing from the keyword index: raw queries do not find them",
            mend,
            missing_words(words),
        ),
        MustBeEmpty(
            "keyword index leftovers",
            "{} keyword entries belong to no chunk",
            mend,
            f"SELECT {words} FROM chunk_words EXCEPT SELECT chunk_no FROM chunks",
        ),
    )


def missing_words(words: str) -> str:
    """Write the query for chunks without a keyword entry."""
    return f"SELECT chunk_no FROM chunks EXCEPT SELECT {words} FROM chunk_words"


def check_relations(
    connection: Connection,
    relations: Sequence[MustBeEmpty],
    transact: Transact,
    names: Collection[str] | None = None,
) -> Iterator[Checked]:
    """Check relations in every part of the store; with `names`, only these."""
    for each in relations:
        if names is None or each.name in names:
            query = f"SELECT count(*) FROM ({each.query}) AS found"
            count = sum(connection.get(query) for _ in connection.parts())
            yield _relation(each, count, transact)


def _relation(check: MustBeEmpty, count: int, transact: Transact) -> Checked:
    if not count:
        return passed(check.name)
    finding = Finding(check.name, False, check.meaning.format(f"{count:,}"), FIX)
    return Checked(finding, partial(transact, check.mend))


def check_rows(connection: Connection) -> Iterator[Checked]:
    """Check the texts, and report rows that only a user can decide about."""
    yield _texts(connection)
    yield _earlier_texts(connection)
    yield _superseded(connection)


def report_remains(connection: Connection) -> Iterator[Checked]:
    """Report vectors of other models, and expired and forgotten memories."""
    yield _other_models(connection)
    yield _expired(connection)
    yield _forgotten(connection)


def some_chunks(connection: Connection, has_words: str) -> Iterator[Any]:
    """Give chunks that have a keyword entry, with title and summary, spread evenly over a part."""
    first, last = connection.get("SELECT min(chunk_no), max(chunk_no) FROM chunks")
    if first is None:
        return
    known = 0
    for number in np.linspace(first, last, min(_COMPARED_CHUNKS, last - first + 1)).tolist():
        row = connection.get(
            f"SELECT {CHUNK}, m.title, m.summary FROM chunks c JOIN memories m USING (memory_no) "
            f"WHERE c.chunk_no >= ? AND EXISTS ({has_words}) ORDER BY c.chunk_no LIMIT 1",
            (max(int(number), known + 1),),
        )
        if row is None:
            return
        known = row[0]
        yield row


def _texts(connection: Connection) -> Checked:
    """Hash every text again, to detect chunks that were lost or changed."""
    changed = sum(not fits for _, fits, _ in checksums.texts(connection))
    if not changed:
        return passed("texts as saved")
    return Checked(
        Finding(
            "texts as saved",
            False,
            f"{changed:,} memories do not have the text that was saved",
            "restore a backup: their text has changed or is incomplete",
        )
    )


def _earlier_texts(connection: Connection) -> Checked:
    name = "earlier texts"
    lost = _in_all_parts(
        connection,
        "SELECT memory_id FROM memories e WHERE version_of IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM memories m WHERE m.memory_id = e.version_of AND m.space = e.space)",
    )
    if not lost:
        return passed(name)
    message = f"{len(lost):,} earlier texts belong to memories that are gone"
    return Checked(Finding(name, False, message, Hint("read one with: ", Do("get", lost[0]))))


def _superseded(connection: Connection) -> Checked:
    """Report memories superseded by memories that no search finds; only a user can decide these."""
    name = "superseded memories"
    ids = _in_all_parts(
        connection,
        "SELECT memory_id FROM memories o WHERE superseded_by IS NOT NULL AND version_of IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.memory_id = o.superseded_by "
        "AND m.space = o.space AND m.forgotten_at IS NULL) AND forgotten_at IS NULL",
    )
    if not ids:
        return passed(name)
    message = f"{len(ids):,} rank below memories that superseded them and are gone or forgotten"
    hint = Hint("to make one valid again: ", Do("supersede", ids[0]))
    return Checked(Finding(name, True, message, hint))


def _in_all_parts(connection: Connection, query: str) -> list[str]:
    return [row[0] for _ in connection.parts() for row in connection.all(query)]


def _other_models(connection: Connection) -> Checked:
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
    rows = connection.all(
        "SELECT name, n, n * 4 * dimensions, "
        "(SELECT key FROM store WHERE key IN ('previous_model', 'next_model') AND value = name) "
        "FROM (SELECT model_no, count(*) AS n FROM vectors INDEXED BY vectors_by_chunk "
        "GROUP BY model_no) AS counted JOIN models USING (model_no) "
        f"WHERE name != ifnull({NAME_IN_USE}, '') ORDER BY name"
    )
    if not rows:
        return passed(name)
    said = join_hints(
        "; ",
        (
            f"{count:,} ({size / 1e6:.1f} MB) of {model}" + roles.get(role, ", which is not used")
            for model, count, size, role in rows
        ),
    )
    hint = Hint("drop them with: ", Do("admin.doctor", optimize=True))
    return Checked(Finding(name, True, said or "", hint))


def _expired(connection: Connection) -> Checked:
    name = "expired memories"
    count, first = connection.get(
        "SELECT count(*), min(expires_at) FROM memories WHERE expires_at <= ? "
        "AND version_of IS NULL AND forgotten_at IS NULL",
        (now_micros(),),
    )
    if not count:
        return passed(name)
    message = (
        f"{count:,} have expired, the first on {from_micros(first):%Y-%m-%d}; they are found no "
        "longer, and saves erase them little by little (setting prune_after_days)"
    )
    return Checked(
        Finding(
            name, True, message, Hint("count what would go: ", Do("admin.cleanup", dry_run=True))
        )
    )


def _forgotten(connection: Connection) -> Checked:
    name = "forgotten memories"
    count = connection.get(
        "SELECT count(*) FROM memories WHERE forgotten_at IS NOT NULL AND version_of IS NULL"
    )
    if not count:
        return passed(name)
    message = f"{count:,} are hidden and can be restored"
    return Checked(
        Finding(name, True, message, Hint("see them with: ", Do("list", forgotten=True)))
    )
