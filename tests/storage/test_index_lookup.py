"""Queries that the array index asks of SQLite."""

from pathlib import Path

import apsw

from byheart.language.raw_query import parse_raw_query
from byheart.storage.sqlite.index_lookup import SqliteIndexLookup
from tests.conftest import OpenStore


def test_a_raw_query_reads_matches_only_among_the_numbers_asked_for(
    open_store: OpenStore, path: Path
) -> None:
    with open_store() as store:
        for at in range(5):
            store.save(f"harbour number {at}", space=f"space-{at}")
    connection = apsw.Connection(str(path))
    lookup, query = SqliteIndexLookup(connection), parse_raw_query("harbour")
    numbers = [row[0] for row in connection.execute("SELECT chunk_no FROM chunks ORDER BY 1")]
    assert lookup.matches(query, range(1, numbers[-1] + 1)).tolist() == numbers
    assert lookup.matches(query, range(numbers[1], numbers[3])).tolist() == numbers[1:3]
    assert lookup.matches(query, range(0)).tolist() == []
    connection.close()
