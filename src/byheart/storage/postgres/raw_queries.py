"""Execute raw queries on PostgreSQL, with exactly the matches that FTS5 finds.

A chunk keeps a code of 32 bits for each of its terms, under a GIN index. The codes say which chunks
can match, and for words that are combined by AND, OR and NOT they say exactly which ones do. For
phrases, NEAR, `^` and single columns, the texts of the chunks that can match are read, and Python
looks at the positions of their terms. A `tsvector` with positions takes three times the room.

Two terms share a code with a chance of one in four billion.

The table `vocabulary` has the terms of each space in order, for prefixes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

import psycopg

from byheart.language.raw_query import (
    COLUMNS,
    Combined,
    Expression,
    Near,
    Phrase,
    Within,
)
from byheart.language.terms import tokens
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

_ALL = frozenset(COLUMNS)
# In characters: a B-tree takes no longer term, and the code of a longer term is that of its start.
_LONGEST_TERM = 400
# FTS5 cuts longer tokens, also within a character.
_LONGEST_TOKEN_BYTES = 32_768
# A chunk number has the number of its space above these bits.
_NUMBER_BITS = 36
_TERMS_PER_PAGE = 10_000
_CHUNKS_PER_PAGE = 1_000

_INSERT = """
    INSERT INTO chunk_words (chunk_no, words) VALUES ($1, $2::integer[])
    ON CONFLICT (chunk_no) DO UPDATE SET words = excluded.words
        WHERE chunk_words.words <> excluded.words"""
# Most terms exist already: looking them up is faster than inserts that change nothing.
_ADD_TERMS = """
    INSERT INTO vocabulary (space_no, term)
    SELECT $1, own.term FROM unnest($2::text[]) AS own (term)
    WHERE NOT EXISTS (SELECT 1 FROM vocabulary v WHERE v.space_no = $1 AND v.term = own.term)
    ON CONFLICT DO NOTHING"""
_IS_COMPLETE = """
    SELECT words = $2::integer[] AND NOT EXISTS (
        SELECT 1 FROM unnest($4::text[]) AS own (term) WHERE NOT EXISTS (
            SELECT 1 FROM vocabulary v WHERE v.space_no = $3 AND v.term = own.term))
    FROM chunk_words WHERE chunk_no = $1"""
# The number is added up so that the planner looks into the index of the words alone.
_USED = """
    SELECT code FROM unnest($1::integer[]) AS code WHERE EXISTS (
        SELECT 1 FROM chunk_words w WHERE w.words @> ARRAY[code]
            AND w.chunk_no + 0 >= $2 AND w.chunk_no + 0 < $3)"""
_REMOVE_TERMS = "DELETE FROM vocabulary WHERE space_no = $1 AND term = ANY($2::text[])"

# Reads the columns of chunks, as `writing.word_columns` gives them.
ReadColumns = Callable[[Sequence[int]], Iterable[tuple[int, Sequence[str]]]]


# --- Filters ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition on `words` that all matching rows fulfil, and if it is `exact`, no other rows.

    `every` are codes that a row must all have, `some` codes of which it must have one; otherwise
    `condition` says it. A filter without any of them lets no row through.
    """

    exact: bool
    every: frozenset[int] | None = None
    some: frozenset[int] | None = None
    condition: str = ""

    @property
    def is_empty(self) -> bool:
        """Say whether no row can match."""
        return not (self.every or self.some or self.condition)

    @property
    def alternatives(self) -> frozenset[int]:
        """Give the codes of which one is enough; none if the condition is another."""
        single = self.every if self.every is not None and len(self.every) == 1 else None
        return self.some or single or frozenset()

    @property
    def sql(self) -> str:
        """Write the condition."""
        if self.every:
            return f"words @> '{{{','.join(map(str, sorted(self.every)))}}}'::integer[]"
        if self.some:
            return f"words && '{{{','.join(map(str, sorted(self.some)))}}}'::integer[]"
        return self.condition


_NOTHING = RowFilter(exact=True)
# Gives the terms of the space that begin with a prefix.
Continue = Callable[[str], Iterable[str]]


def to_filter(expression: Expression, continue_: Continue) -> RowFilter:
    """Write the condition on the codes of a chunk that an expression sets."""
    return _filter(expression, _ALL, continue_)


def _filter(expression: Expression, columns: frozenset[str], continue_: Continue) -> RowFilter:
    match expression:
        case Phrase() as phrase:
            return _phrase_filter(phrase, columns, continue_) if columns else _NOTHING
        case Near(phrases):
            distinct = [each for each in dict.fromkeys(phrases) if each.terms]
            parts = [_filter(each, columns, continue_) for each in distinct]
            return _loosened(_filter_all(parts), exact=len(parts) < 2)
        case Within(inside=inside):
            return _filter(inside, columns & _columns_of(expression), continue_)
        case Combined(operator, branches):
            if operator != "NOT":
                branches = tuple(dict.fromkeys(branches))
            parts = [_filter(each, columns, continue_) for each in branches]
            if operator == "OR":
                return _filter_any(parts)
            return _filter_all(parts) if operator == "AND" else _filter_without(*parts)


def _columns_of(within: Within) -> frozenset[str]:
    return _ALL - {*within.columns} if within.others else frozenset(within.columns)


def _phrase_filter(phrase: Phrase, columns: frozenset[str], continue_: Continue) -> RowFilter:
    terms = _cut_terms(phrase.terms)
    if not terms:
        return _NOTHING
    is_plain = len(terms) == 1 and columns == _ALL and not phrase.first
    exact = is_plain and len(terms[0]) < _LONGEST_TERM
    whole = terms[:-1] if phrase.prefix else terms
    parts = [RowFilter(exact, every=frozenset(map(_code, whole)))] if whole else []
    if phrase.prefix:
        begun = frozenset(map(_code, continue_(terms[-1][:_LONGEST_TERM])))
        parts.append(RowFilter(exact, some=begun))
    return _loosened(_filter_all(parts), exact=exact)


def _loosened(found: RowFilter, *, exact: bool) -> RowFilter:
    if found.is_empty or exact:
        return found
    return RowFilter(False, found.every, found.some, found.condition)


def _filter_all(parts: Sequence[RowFilter]) -> RowFilter:
    if not parts or any(part.is_empty for part in parts):
        return _NOTHING
    if len(parts) == 1:
        return parts[0]
    exact = all(part.exact for part in parts)
    codes = frozenset(code for part in parts for code in part.every or ())
    others = [part.sql for part in parts if not part.every]
    if not others:
        return RowFilter(exact, every=codes)
    if codes:
        others.append(RowFilter(exact, every=codes).sql)
    return RowFilter(exact, condition=_join("AND", others))


def _filter_any(parts: Sequence[RowFilter]) -> RowFilter:
    found = [part for part in parts if not part.is_empty]
    if not found:
        return _NOTHING
    exact = all(part.exact for part in found)
    codes = frozenset(code for part in found for code in part.alternatives)
    others = [part.sql for part in found if not part.alternatives]
    if not others:
        return RowFilter(exact, some=codes)
    if codes:
        others.append(RowFilter(exact, some=codes).sql)
    return RowFilter(exact, condition=_join("OR", others))


def _filter_without(wanted: RowFilter, unwanted: RowFilter) -> RowFilter:
    if wanted.is_empty or unwanted.is_empty:
        return wanted
    if not unwanted.exact:
        return _loosened(wanted, exact=False)
    return RowFilter(wanted.exact, condition=f"({wanted.sql} AND NOT ({unwanted.sql}))")


def _join(operator: str, conditions: Sequence[str]) -> str:
    return f"({f' {operator} '.join(conditions)})"


# --- Terms and their codes --------------------------------------------------------------------


def _code(term: str) -> int:
    code = crc32(term[:_LONGEST_TERM].encode())
    return code - (code >> 31 << 32)  # an integer of PostgreSQL has a sign


def _cut_terms(found: Sequence[str]) -> list[str]:
    """Cut tokens where FTS5 cuts them."""
    return [term if len(term) * 4 <= _LONGEST_TOKEN_BYTES else _cut(term) for term in found]


def _cut(term: str) -> str:
    # The backslash replaces bytes of a character that is cut in two; no term has a backslash.
    return term.encode()[:_LONGEST_TOKEN_BYTES].decode(errors="backslashreplace")


def terms_of(columns: Sequence[str]) -> list[str]:
    """List the terms of a chunk, in order, as the vocabulary has them."""
    found = {term for column in columns for term in _cut_terms(tokens(column))}
    return sorted({term[:_LONGEST_TERM] for term in found})


def codes_of(terms: Iterable[str]) -> list[int]:
    """Give the codes of terms, in order."""
    return sorted({*map(_code, terms)})


class WordWriter:
    """Write the words of chunks within one transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        # The terms that this transaction has added to the vocabulary of each space, or found there.
        self._added: defaultdict[int, set[str]] = defaultdict(set)

    def insert(self, chunk_no: int, columns: Sequence[str]) -> None:
        """Write the words of a chunk, and add its terms to the vocabulary of its space."""
        terms, space_no = terms_of(columns), chunk_no >> _NUMBER_BITS
        values = (chunk_no, codes_of(terms))
        psycopg.RawCursor(self._connection).execute(_INSERT, values)
        added = self._added[space_no]
        missing = [term for term in terms if term not in added]
        if missing:
            added.update(missing)
            psycopg.RawCursor(self._connection).execute(_ADD_TERMS, (space_no, missing))


def has_words(connection: psycopg.Connection[Any], chunk_no: int, columns: Sequence[str]) -> bool:
    """Say whether a chunk is found by exactly the words of its columns."""
    terms = terms_of(columns)
    values = (chunk_no, codes_of(terms), chunk_no >> _NUMBER_BITS, terms)
    row = psycopg.RawCursor(connection).execute(_IS_COMPLETE, values).fetchone()
    return row is not None and bool(row[0])


def remove_unused_terms(
    connection: psycopg.Connection[Any], within: range, terms: Sequence[str] | None = None
) -> None:
    """Remove the terms of a space, or some of them, that no chunk has any more.

    Searches do not need this: they leave out terms that no chunk has.
    """
    listed = _all_terms(connection, "", within) if terms is None else terms
    by_code: defaultdict[int, list[str]] = defaultdict(list)
    for term in listed:
        by_code[_code(term)].append(term)
    values = (list(by_code), within.start, within.stop)
    used = {row[0] for row in psycopg.RawCursor(connection).execute(_USED, values)}
    unused = [term for code, each in by_code.items() if code not in used for term in each]
    psycopg.RawCursor(connection).execute(_REMOVE_TERMS, (within.start >> _NUMBER_BITS, unused))


def continuations(
    connection: psycopg.Connection[Any], prefix: str, after: str, limit: int, within: range
) -> list[str]:
    """List terms that begin with a prefix, by their bytes, behind another term.

    `within` has the numbers of one space.
    """
    rows = psycopg.RawCursor(connection).execute(
        "SELECT term FROM vocabulary WHERE space_no = $1"
        " AND term >= $2 AND term < $3 AND term > $4 ORDER BY term LIMIT $5",
        (within.start >> _NUMBER_BITS, prefix, f"{prefix}\U0010ffff", after, limit),
    )
    return [row[0] for row in rows]


def _all_terms(connection: psycopg.Connection[Any], prefix: str, within: range) -> Iterator[str]:
    after = ""
    while page := continuations(connection, prefix, after, _TERMS_PER_PAGE, within):
        yield from page
        after = page[-1]


# --- Matches ----------------------------------------------------------------------------------


def find_matches(
    connection: psycopg.Connection[Any],
    expression: Expression,
    within: range,
    read_columns: ReadColumns,
) -> NDArray[np.int64]:
    """List the chunks of one space, with numbers in a range, that an expression matches."""
    found = to_filter(expression, lambda prefix: _all_terms(connection, prefix, within))
    if found.is_empty or not within:
        return np.empty(0, np.int64)
    # A long condition is not worth a plan that is kept.
    rows = psycopg.RawCursor(connection).execute(
        f"SELECT chunk_no FROM chunk_words WHERE {found.sql} AND chunk_no >= $1 AND chunk_no < $2",
        (within.start, within.stop),
        prepare=False,
    )
    numbers = sorted(row[0] for row in rows)
    if not found.exact:
        numbers = list(_check(numbers, expression, read_columns))
    return np.array(numbers, np.int64)


def _check(
    numbers: Sequence[int], expression: Expression, read_columns: ReadColumns
) -> Iterator[int]:
    """Read chunks, some at a time, and give those that an expression really matches."""
    for start in range(0, len(numbers), _CHUNKS_PER_PAGE):
        for number, columns in read_columns(numbers[start : start + _CHUNKS_PER_PAGE]):
            if _Chunk(columns).matches(expression, _ALL):
                yield number


class _Chunk:
    """Check expressions with the positions of terms in one chunk.

    A position before each column stands for its start, so no phrase extends over two columns.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._positions: defaultdict[str, list[int]] = defaultdict(list)
        self._starts: list[int] = []
        at = 0
        for column in columns:
            self._starts.append(at)
            for term in _cut_terms(tokens(column)):
                at += 1
                self._positions[term].append(at)
            at += 1

    def matches(self, expression: Expression, columns: frozenset[str]) -> bool:
        """Say whether an expression matches in some columns."""
        match expression:
            case Phrase() as phrase:
                return bool(self._find(phrase, columns))
            case Near(phrases, distance):
                return self._are_near(phrases, distance, columns)
            case Within(inside=inside):
                return self.matches(inside, columns & _columns_of(expression))
            case Combined("AND", parts):
                return all(self.matches(part, columns) for part in dict.fromkeys(parts))
            case Combined("OR", parts):
                return any(self.matches(part, columns) for part in dict.fromkeys(parts))
            case Combined(parts=(wanted, unwanted)):
                return self.matches(wanted, columns) and not self.matches(unwanted, columns)
        raise AssertionError(expression)

    def _find(self, phrase: Phrase, columns: frozenset[str]) -> list[int]:
        """List the positions at which a phrase begins, in order."""
        terms = _cut_terms(phrase.terms)
        if not terms:
            return []
        begins = self._places(terms[-1], prefix=phrase.prefix)
        begins = {each - len(terms) + 1 for each in begins}
        for at, term in enumerate(terms[:-1]):
            if not begins:
                break
            begins &= {each - at for each in self._positions.get(term, ())}
        if phrase.first:
            begins &= {start + 1 for start in self._starts}
        return sorted(each for each in begins if COLUMNS[self._column_at(each)] in columns)

    def _places(self, term: str, *, prefix: bool) -> set[int]:
        if not prefix:
            return {*self._positions.get(term, ())}
        found = (each for other, each in self._positions.items() if other.startswith(term))
        return {at for each in found for at in each}

    def _column_at(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1

    def _are_near(self, phrases: Sequence[Phrase], distance: int, columns: frozenset[str]) -> bool:
        """Check that phrases follow one another in one column, in any order.

        Each of them must begin at most `distance` terms, and its own length, before the last.
        """
        distinct = [phrase for phrase in dict.fromkeys(phrases) if phrase.terms]
        lengths = [len(phrase.terms) for phrase in distinct]
        begins = [self._find(phrase, columns) for phrase in distinct]
        if not all(begins):
            return False

        def reach(last: int) -> bool:
            start = self._starts[self._column_at(last)]
            for length, each in zip(lengths, begins, strict=True):
                before = bisect_right(each, last)
                if not before or each[before - 1] < max(start, last - length - distance):
                    return False
            return True

        return any(reach(last) for each in begins for last in each)
