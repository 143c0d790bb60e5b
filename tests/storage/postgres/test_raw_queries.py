"""Raw queries on PostgreSQL: the matches and the vocabulary of FTS5."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from random import Random
from typing import Any, NamedTuple

import apsw
import psycopg
import pytest

from byheart.language.raw_query import parse_raw_query, to_fts5
from byheart.language.terms import spread
from byheart.storage.postgres.raw_queries import (
    WordWriter,
    continuations,
    find_matches,
    remove_unused_terms,
    to_filter,
)
from tests.postgres_server import database_url
from tests.storage.postgres.generated import make_chunks, make_query

_SPACE = range(7 << 36, 8 << 36)
_OTHER = range(8 << 36, 9 << 36)


class Databases(NamedTuple):
    """The same chunks in FTS5 and in PostgreSQL."""

    fts5: apsw.Connection
    postgres: psycopg.Connection[Any]
    columns: dict[int, list[str]]

    def insert(self, chunk_no: int, texts: list[str]) -> None:
        columns = [spread(text) for text in texts]
        self.fts5.execute(
            "INSERT INTO chunk_words (rowid, title, summary, headings, content)"
            " VALUES (?, ?, ?, ?, ?)",
            (chunk_no, *columns),
        )
        WordWriter(self.postgres).insert(chunk_no, columns)
        self.columns[chunk_no] = columns

    def delete(self, chunk_no: int) -> None:
        self.fts5.execute("DELETE FROM chunk_words WHERE rowid = ?", (chunk_no,))
        self.postgres.execute("DELETE FROM chunk_words WHERE chunk_no = %s", (chunk_no,))

    def read(self, chunk_nos: Sequence[int]) -> list[tuple[int, list[str]]]:
        return [(number, self.columns[number]) for number in chunk_nos]

    def compare(self, query: str, within: range = _SPACE) -> list[int]:
        """Check that both find the same chunks, and give them."""
        expression = parse_raw_query(query).expression
        rows = self.fts5.execute(
            "SELECT rowid FROM chunk_words WHERE chunk_words MATCH ? AND rowid >= ? AND rowid < ?",
            (to_fts5(expression), within.start, within.stop),
        )
        expected = [row[0] for row in rows]
        assert find_matches(self.postgres, expression, within, self.read).tolist() == expected, (
            query
        )
        return expected

    def vocabulary(self) -> list[str]:
        rows = self.fts5.execute("SELECT term FROM temp.vocabulary").fetchall()
        return [row[0] for row in rows]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database_url() as address:
        yield address


@pytest.fixture
def databases(url: str) -> Iterator[Databases]:
    yield from _open(url)


@pytest.fixture(scope="module")
def filled() -> Iterator[Databases]:
    with database_url() as address:
        for both in _open(address):
            for at, texts in enumerate(make_chunks(Random(19), 300)):
                both.insert(_SPACE.start + at, texts)
            both.postgres.execute("VACUUM ANALYZE chunk_words")
            yield both


def _open(url: str) -> Iterator[Databases]:
    with (
        closing(apsw.Connection(":memory:")) as fts5,
        psycopg.connect(url, autocommit=True) as postgres,
    ):
        fts5.execute(
            "CREATE VIRTUAL TABLE chunk_words USING fts5 (title, summary, headings, content,"
            " content = '', contentless_delete = 1,"
            " tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        fts5.execute(
            "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, chunk_words, row)"
        )
        postgres.execute("DROP SCHEMA IF EXISTS part CASCADE")
        postgres.execute("CREATE SCHEMA part")
        postgres.execute(
            "CREATE TABLE part.chunk_words (chunk_no bigint PRIMARY KEY, words integer[] NOT NULL)"
        )
        postgres.execute("CREATE INDEX ON part.chunk_words USING gin (words)")
        postgres.execute(
            "CREATE TABLE part.vocabulary (space_no bigint NOT NULL,"
            ' term text COLLATE "C" NOT NULL, PRIMARY KEY (space_no, term))'
        )
        postgres.execute("SET search_path = part")
        yield Databases(fts5, postgres, {})


def test_generated_queries_match_the_chunks_that_fts5_matches(filled: Databases) -> None:
    # All 10,000 take a minute: the first ones are of every kind.
    count = int(os.environ.get("BYHEART_TEST_RAW_QUERIES", "500"))
    chance = Random(1)
    found = [len(filled.compare(make_query(chance))) for _ in range(count)]
    # Queries that match nothing, or everything, would compare nothing.
    assert sum(0 < each < 300 for each in found) > 0.4 * count


@pytest.mark.parametrize(
    "query",
    [
        "a " * 5_000 + "b " * 5_000,
        " OR ".join(f"n{at}" for at in range(9_000)),
        f'"{"a b " * 2_000}"',
        f'"{"𠀀" * 99_000}"',
        f'"{"y" * 99_000}"*',
        f"NEAR({'a b ' * 50})",
        "(" * 8 + "a" + ")" * 8,
    ],
    ids=lambda query: query[:20],
)
def test_a_query_of_great_length_is_executed(filled: Databases, query: str) -> None:
    filled.compare(query)


def test_only_chunks_with_numbers_in_the_range_are_found(filled: Databases) -> None:
    middle = range(_SPACE.start + 100, _SPACE.start + 200)
    for query in ("a", '"a b"', "NEAR(a b)"):
        assert {*filled.compare(query)} > {*filled.compare(query, middle)} > set()
    assert filled.compare("a", range(0)) == []


def test_a_chunk_of_great_length_and_of_long_words_is_found(databases: Databases) -> None:
    chunks = [
        *(f"start {'a b ' * count} end" for count in (249, 250, 251, 300)),
        *(" ".join(f"w{at}" for at in range(count)) for count in (15_990, 16_001, 20_000)),
        *("q" * length for length in (399, 400, 401, 2_047, 40_000)),
        "長" * 32_000,
        "".join(chr(0x20000 + at) for at in range(32_000)),
    ]
    for at, text in enumerate(chunks):
        databases.insert(_SPACE.start + at, ["title", "summary " * 1_000, "heading", text])
    for query in ('"b end"', "^start", "{content}: a", "NEAR(w15989 w15988, 0)", '"w15999 w16000"'):
        assert databases.compare(query), query
    for length in (1, 399, 400, 401, 2_046, 2_047, 32_767, 32_768, 32_769, 40_000):
        databases.compare("q" * length)
        assert databases.compare("q" * length + "*"), length
    assert databases.compare('"𠀀𠀁𠀂"')
    assert databases.compare('"title summary" OR "長長長"') == [_SPACE.start + 12]


def test_words_that_are_combined_need_no_look_at_texts() -> None:
    def is_exact(query: str) -> bool:
        expression = parse_raw_query(query.replace("'", '"')).expression
        return to_filter(expression, lambda prefix: [f"{prefix}1"]).exact

    for query in ("a b", "a*", "NEAR(a)", "a OR ''", "(a OR b*) NOT c", "{content title}: ''"):
        assert is_exact(query), query
    for query in ("NEAR(a b)", "'a b'", "^a", "title: a", "a NOT 'b c'", "q" * 400):
        assert not is_exact(query), query


def test_continuations_are_the_terms_of_the_space_in_the_order_of_fts5(filled: Databases) -> None:
    expected = [term for term in filled.vocabulary() if len(term) <= 400]
    for prefix in ("r", "n1", "c", "長", "п", "\ue000", "nothing"):
        wanted = [term for term in expected if term.startswith(prefix)]
        assert continuations(filled.postgres, prefix, "", 20_000, _SPACE) == wanted
        paged: list[str] = []
        while page := continuations(filled.postgres, prefix, "".join(paged[-1:]), 900, _SPACE):
            paged += page
        assert paged == wanted
    assert continuations(filled.postgres, "r", "", 10, _OTHER) == []
    assert continuations(filled.postgres, "r", "", 10, range(-1, 0)) == []


def test_terms_that_no_chunk_of_the_space_has_can_be_removed(
    databases: Databases,
) -> None:
    texts = make_chunks(Random(3), 60)
    for at, each in enumerate(texts):
        databases.insert(_SPACE.start + at, each)
    databases.insert(_OTHER.start, ["harbour", "", "", "elsewhere"])
    for at in Random(4).sample(range(60), 60):
        databases.delete(_SPACE.start + at)
        if at % 6 == 0:
            remove_unused_terms(databases.postgres, _SPACE)
            left = {term[:400] for term in databases.vocabulary()} - {"elsewher"}
            rows = databases.postgres.execute(
                f"SELECT term FROM vocabulary WHERE space_no = {_SPACE.start >> 36}".encode()
            )
            assert {row[0] for row in rows} | {"harbour"} == left | {"harbour"}
    remove_unused_terms(databases.postgres, _SPACE)
    assert databases.postgres.execute("SELECT term FROM vocabulary").fetchall() == [
        ("elsewher",),
        ("harbour",),
    ]
