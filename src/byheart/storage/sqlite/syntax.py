"""Raw FTS5 queries: FTS5 decides what matches, the index how well, and errors say where."""

from __future__ import annotations

import re
from collections.abc import Sequence

import apsw
import numpy as np

from byheart.contracts import Ranked
from byheart.errors import QuerySyntaxError
from byheart.index.array_search import Selection, View
from byheart.language import terms as words

_QUOTED = re.compile(r'"(?:[^"]|"")*"?')
# Phrases, those as well that are no prefixes: a star within one is none.
_PREFIX = re.compile(
    r'("(?:[^"]|"")*+(?:"|\Z))(\s*+\*)?+'
    r"|(?<![\w\x80-\U0010ffff])([\w\x80-\U0010ffff]++)\s*+\*"
)
# Of these, the index takes the rarest that the selected chunks have.
_MOST_CONTINUATIONS = 4000


def rank(
    connection: apsw.Connection,
    query: str,
    terms: Sequence[str],
    view: View,
    selection: Selection,
    limit: int,
) -> Ranked:
    """Rank the selected chunks that a raw query matches by its terms, best first, ties by age.

    Not by FTS5's bm25(): that counts over the whole table, beyond the wall between spaces.
    """
    try:
        rows = connection.execute(
            "SELECT rowid FROM chunk_words WHERE chunk_words MATCH ?", (_spread(query),)
        ).fetchall()
    except apsw.SQLError as error:
        raise _explain(connection, query, str(error)) from error
    numbers = np.array([row[0] for row in rows], np.int64)
    return view.rank_matches(numbers, terms, selection, limit)


def find_terms(
    connection: apsw.Connection, query: str, view: View, selection: Selection
) -> list[str]:
    """List the terms that a raw query looks for, and what its prefixes have matched."""
    terms = words.raw_query_terms(query)
    found: dict[str, None] = {}
    for phrase, star, word in _PREFIX.findall(_spread(query)):
        room = _MOST_CONTINUATIONS - len(found)
        if room and (star or word):
            found |= dict.fromkeys(_continue(connection, words.prefix_term(phrase or word), room))
    return [*terms, *view.present([each for each in found if each not in set(terms)], selection)]


def _continue(connection: apsw.Connection, beginning: str, most: int) -> list[str]:
    """List the terms of the store that begin so."""
    if not beginning:
        return []
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary"
        " USING fts5vocab (main, chunk_words, row)"
    )
    rows = connection.execute(
        "SELECT term FROM temp.vocabulary WHERE term >= ? AND term < ? LIMIT ?",
        (beginning, f"{beginning}\U0010ffff", most),
    )
    return [row[0] for row in rows]


def _spread(query: str) -> str:
    """Let a bare word of an unspaced script stand for the phrase of its pairs."""
    parts, at = [], 0
    for quoted in _QUOTED.finditer(query):
        parts.append(words.spread_syntax(query[at : quoted.start()], quoted=False))
        parts.append(words.spread_syntax(quoted.group(), quoted=True))
        at = quoted.end()
    parts.append(words.spread_syntax(query[at:], quoted=False))
    return "".join(parts)


def _explain(connection: apsw.Connection, query: str, message: str) -> QuerySyntaxError:
    position = _position(connection, query, message)
    return QuerySyntaxError(
        f"the raw query is not valid at position {position}: {message}",
        'raw queries take "phrases", AND, OR, NOT, prefix* and {title} {summary} {headings} '
        "{content}: column filters; leave raw off to search for any text as it is",
        position,
    )


def _position(connection: apsw.Connection, query: str, message: str) -> int:
    """Find the token that FTS5 names: the first at which the query up to there fails like it."""
    near = re.search(r'near "(.*)"', message, re.DOTALL)
    column = re.search(r"no such column: (\S+)", message)
    if near and near.group(1):
        for found in re.finditer(re.escape(near.group(1)), query):
            if _failure(connection, query[: found.end()]) == message:
                return found.start()
    if column:
        at = re.search(rf"{re.escape(column.group(1))}\s*[:}}]", query)
        return at.start() if at else max(query.find(column.group(1)), 0)
    return len(query)


def _failure(connection: apsw.Connection, query: str) -> str:
    try:
        connection.execute("SELECT 1 FROM chunk_words WHERE chunk_words MATCH ? LIMIT 1", (query,))
    except apsw.SQLError as error:
        return str(error)
    return ""
