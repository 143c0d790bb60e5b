"""Parse raw queries, in FTS5's query syntax, into an expression that any backend can execute.

    query   := query OR query | query AND query | query NOT query | part part …
    part    := [[-] columns :] ( query ) | [[-] columns :] group
    group   := [^] phrase | NEAR( phrase phrase … [, distance] )
    phrase  := string [*] | phrase + phrase
    columns := name | { name name … }

NOT binds tighter than AND, and AND tighter than OR. Adjacent parts without an operator must all
match, and bind tighter than any operator. A string is a word, or any text in double quotes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NoReturn, TypeAlias

from byheart.errors import QuerySyntaxError
from byheart.language.terms import raw_query_terms, spread_syntax, tokens
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

COLUMNS = ("title", "summary", "headings", "content")
# Parentheses within one another: FTS5's parser has 100 levels, and each of ours can take twelve.
_DEEPEST = 8
_DEFAULT_NEAR = 10
_TOKEN = late_pattern(
    r'[ \t\r\n]*+(?:(?P<quoted>"(?:[^"]|"")*+")|(?P<open>")|(?P<word>[\w\x1a\x80-\U0010ffff]++)'
    r"|(?P<sign>[-+*^(){}:,]))"
)
_OPERATORS = ("AND", "OR", "NOT")
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Phrase:
    """Match adjacent words; `prefix`: the last word is a prefix; `first`: they begin the column."""

    strings: tuple[str, ...]
    prefix: bool = False
    first: bool = False

    @property
    def terms(self) -> list[str]:
        """List the terms that must be adjacent; FTS5 stems a prefix like a word."""
        return [term for each in self.strings for term in tokens(_spread(each))]


@dataclass(frozen=True, slots=True)
class Near:
    """Match phrases with at most `distance` words between them."""

    phrases: tuple[Phrase, ...]
    distance: int = _DEFAULT_NEAR


@dataclass(frozen=True, slots=True)
class Within:
    """Match an expression in the named columns only, or with `others` in all other columns."""

    columns: tuple[str, ...]
    inside: Expression
    others: bool = False


@dataclass(frozen=True, slots=True)
class Combined:
    """Combine expressions by AND, OR or NOT."""

    operator: str
    parts: tuple[Expression, ...]


Expression: TypeAlias = Phrase | Near | Within | Combined


@dataclass(frozen=True)
class RawQuery:
    """Hold a raw query: its text and its parsed expression."""

    text: str
    expression: Expression

    @cached_property
    def terms(self) -> list[str]:
        """List the keyword terms that the query looks for."""
        return raw_query_terms(self.text)

    @cached_property
    def prefixes(self) -> list[str]:
        """List the terms of which the query gives only a prefix."""
        ends = (phrase.terms[-1:] for phrase in phrases_of(self.expression) if phrase.prefix)
        return list(dict.fromkeys(term for end in ends for term in end))


def parse_raw_query(text: str) -> RawQuery:
    """Parse a raw query, or raise an error with the invalid position."""
    return RawQuery(text, _Parser(text).parse())


def to_fts5(expression: Expression) -> str:
    """Write an expression in FTS5's syntax; unspaced scripts become phrases of character pairs."""
    match expression:
        case Phrase(strings, prefix, first):
            joined = " + ".join(_quote(_spread(each)) for each in strings)
            return f"{'^' if first else ''}{joined}{' *' if prefix else ''}"
        case Near(phrases, distance):
            return f"NEAR({' '.join(map(to_fts5, phrases))}, {distance})"
        case Within(columns, inside, others):
            return f"{'-' if others else ''}{{{' '.join(columns)}}} : ({to_fts5(inside)})"
        case Combined(operator, parts):
            # Write the list in halves, so that thousands of parts are not nested thousands deep.
            if len(parts) > 2 and operator != "NOT":
                middle = len(parts) // 2
                halves = (Combined(operator, parts[:middle]), Combined(operator, parts[middle:]))
                return f" {operator} ".join(_bracketed(_alone(each)) for each in halves)
            return f" {operator} ".join(map(_bracketed, parts))


def _bracketed(expression: Expression) -> str:
    """Write an expression with parentheses, if it needs any."""
    written = to_fts5(expression)
    return f"({written})" if isinstance(expression, Combined) else written


def _alone(combined: Combined) -> Expression:
    return combined.parts[0] if len(combined.parts) == 1 else combined


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _spread(text: str) -> str:
    return text if text.isascii() else spread_syntax(text, quoted=True)


def phrases_of(expression: Expression) -> Iterator[Phrase]:
    """List the phrases of an expression, in order."""
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case Phrase() as phrase:
                yield phrase
            case Near(phrases):
                yield from phrases
            case Within(inside=inside):
                waiting.append(inside)
            case Combined(parts=parts):
                waiting += reversed(parts)


@dataclass(frozen=True, slots=True)
class _Token:
    """Hold a string, an operator, a sign or the end, and its position."""

    kind: str
    text: str
    at: int


class _Parser:
    """Parse one raw query, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize()
        self._at = 0
        self._depth = 0

    def _tokenize(self) -> list[_Token]:
        tokens, at = [], 0
        end = len(self._text.rstrip(_BLANK))
        while at < end:
            found = _TOKEN.match(self._text, at)
            if found is None:
                blank = len(self._text[at:]) - len(self._text[at:].lstrip(_BLANK))
                self._refuse(at + blank, f"unexpected {self._text[at + blank]!r}")
            kind = found.lastgroup or ""
            start = found.start(kind)
            if kind == "open":
                self._refuse(len(self._text), "a quoted phrase has no closing quote")
            text = found.group(kind)
            if "\0" in text:
                self._refuse(start + text.index("\0"), "unexpected '\\x00'")
            if kind == "quoted":
                tokens.append(_Token("string", text[1:-1].replace('""', '"'), start))
            elif kind == "word":
                tokens.append(_Token("operator" if text in _OPERATORS else "string", text, start))
            else:
                tokens.append(_Token(text, text, start))
            at = found.end()
        tokens.append(_Token("end", "", len(self._text)))
        return tokens

    def parse(self) -> Expression:
        expression = self._either()
        if self._next.kind != "end":
            self._refuse_next()
        return expression

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _kinds(self, *kinds: str) -> bool:
        following = self._tokens[self._at : self._at + len(kinds)]
        return tuple(each.kind for each in following) == kinds

    def _take(self, kind: str, text: str | None = None) -> bool:
        if self._next.kind != kind or (text is not None and self._next.text != text):
            return False
        self._at += 1
        return True

    def _expect(self, kind: str) -> _Token:
        token = self._next
        if not self._take(kind):
            self._refuse_next()
        return token

    def _either(self) -> Expression:
        parts = [self._all()]
        while self._take("operator", "OR"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Combined("OR", tuple(parts))

    def _all(self) -> Expression:
        parts = [self._without()]
        while self._take("operator", "AND"):
            parts.append(self._without())
        return parts[0] if len(parts) == 1 else Combined("AND", tuple(parts))

    def _without(self) -> Expression:
        wanted = self._side_by_side()
        unwanted = []
        while self._take("operator", "NOT"):
            unwanted.append(self._side_by_side())
        if not unwanted:
            return wanted
        other = unwanted[0] if len(unwanted) == 1 else Combined("OR", tuple(unwanted))
        return Combined("NOT", (wanted, other))

    def _side_by_side(self) -> Expression:
        parts = [self._part()]
        while self._next.kind in ("string", "(", "{", "^") or self._excludes_columns():
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else Combined("AND", tuple(parts))

    def _part(self) -> Expression:
        if self._kinds("string", ":") or self._next.kind == "{" or self._excludes_columns():
            return self._within()
        if self._next.kind == "(":
            return self._nested()
        return self._group()

    def _excludes_columns(self) -> bool:
        return self._kinds("-", "{") or self._kinds("-", "string", ":")

    def _within(self) -> Expression:
        others = self._take("-")
        if self._take("{"):
            columns = [self._column()]
            while not self._take("}"):
                columns.append(self._column())
        else:
            columns = [self._column()]
        self._expect(":")
        inside = self._nested() if self._next.kind == "(" else self._group()
        return Within(tuple(columns), inside, others)

    def _column(self) -> str:
        token = self._expect("string")
        name = token.text.casefold()
        if name not in COLUMNS:
            self._refuse(token.at, f"no such column: {token.text}")
        return name

    def _nested(self) -> Expression:
        start = self._expect("(")
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(start.at, f"more than {_DEEPEST} parentheses within one another")
        inside = self._either()
        self._expect(")")
        self._depth -= 1
        return inside

    def _group(self) -> Expression:
        if self._next.text == "NEAR" and self._kinds("string", "("):
            return self._near()
        first = self._take("^")
        phrase = self._phrase()
        return Phrase(phrase.strings, phrase.prefix, first)

    def _near(self) -> Expression:
        self._at += 2
        phrases = [self._phrase()]
        while self._next.kind == "string":
            phrases.append(self._phrase())
        distance = _DEFAULT_NEAR
        if self._take(","):
            token = self._expect("string")
            if not (token.text.isascii() and token.text.isdigit()):
                self._refuse(token.at, f"expected a number, got {token.text!r}")
            distance = min(int(token.text[:9]), 10**6)
        self._expect(")")
        return Near(tuple(phrases), distance)

    def _phrase(self) -> Phrase:
        strings = [self._expect("string").text]
        while self._take("+"):
            strings.append(self._expect("string").text)
        return Phrase(tuple(strings), prefix=self._take("*"))

    def _refuse_next(self) -> NoReturn:
        token = self._next
        if token.kind == "end":
            self._refuse(token.at, "the query ends too early")
        self._refuse(token.at, f"unexpected {token.text!r}")

    def _refuse(self, position: int, problem: str) -> NoReturn:
        raise QuerySyntaxError(
            f"the raw query is not valid at position {position}: {problem}",
            'raw queries take "phrases", AND, OR, NOT, prefix* and {title} {summary} {headings} '
            "{content}: column filters; leave raw off to search for any text as it is",
            position,
        )
