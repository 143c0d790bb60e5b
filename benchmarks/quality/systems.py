"""Systems under test: Byheart in each of its ways, and peers on the same texts and vectors."""

from __future__ import annotations

import re
import string
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import apsw
import numpy as np
from measures import DEPTH
from sets import Document, Question, RetrievalSet
from stores import FilledStore

# How many passages or windows are asked for where several can be of one document.
_DEEPER = 5 * DEPTH
MODES = ("fts", "vector", "hybrid")
FTS5, TRIGRAMS = "fts5", "trigrams"
PEERS = (FTS5, TRIGRAMS, "bm25s", "lancedb")
# Words keep the vowel signs that `\w` does not match, and lose the marks around them.
_WORD = re.compile(r'[^\s"]+')
_MARKS = string.punctuation + "।，。？！：；、（）「」《》،؟؛«»“”„‘’…–—¿¡"


class System(Protocol):
    """Something that can be asked."""

    name: str

    def find(self, question: Question) -> list[str]:
        """Name the documents found, best first."""


class Byheart:
    """The product, through its own front door, with default settings."""

    def __init__(
        self,
        filled: FilledStore,
        mode: str,
        granularity: str = "coarse",
        fusion: str = "evidence",
    ) -> None:
        shown = mode if fusion == "evidence" else f"{mode}, {fusion}"
        self.name = shown if granularity == "coarse" else f"{shown}, {granularity}"
        self._filled = filled
        self._how: dict[str, Any] = {"mode": mode, "granularity": granularity, "fusion": fusion}
        if granularity != "coarse":
            self._how["limit"] = _DEEPER

    def find(self, question: Question) -> list[str]:
        """Search as anyone would."""
        return self._filled.find(question, **self._how)


class Fts5:
    """SQLite's FTS5 on whole documents: any of the question's words, or of its trigrams."""

    def __init__(self, name: str, documents: Sequence[Document]) -> None:
        self.name = name
        self._is_by_trigrams = name == TRIGRAMS
        tokenizer = "trigram" if self._is_by_trigrams else "porter unicode61"
        self._connection = apsw.Connection(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE texts USING fts5("
            f"name UNINDEXED, grouped UNINDEXED, title, text, tokenize='{tokenizer}')"
        )
        rows = [(each.name, each.group or "", each.title or "", each.text) for each in documents]
        self._connection.executemany("INSERT INTO texts VALUES (?, ?, ?, ?)", rows)

    def find(self, question: Question) -> list[str]:
        """Give the documents of the question's conversation with the highest scores."""
        words = [each.strip(_MARKS) for each in _WORD.findall(question.text)]
        if self._is_by_trigrams:
            words = [word[at : at + 3] for word in words for at in range(len(word) - 2)]
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(words) if word)
        if not wanted:
            return []
        rows = self._connection.execute(
            "SELECT name FROM texts WHERE texts MATCH ? AND grouped = ? ORDER BY rank LIMIT ?",
            (wanted, question.group or "", DEPTH),
        )
        return [name for (name,) in rows]


class Bm25s:
    """bm25s with its English stop words and a Snowball stemmer, on whole documents."""

    name = "bm25s"

    def __init__(self, documents: Sequence[Document]) -> None:
        import bm25s
        import Stemmer

        self._library = bm25s
        self._stemmer = Stemmer.Stemmer("english")
        self._groups: dict[str | None, tuple[list[str], Any]] = {}
        for group in {each.group for each in documents}:
            mine = [each for each in documents if each.group == group]
            texts = [f"{each.title or ''} {each.text}" for each in mine]
            index = bm25s.BM25()
            index.index(self._tokens(texts), show_progress=False)
            self._groups[group] = ([each.name for each in mine], index)

    def _tokens(self, texts: list[str]) -> Any:
        return self._library.tokenize(
            texts, stopwords="en", stemmer=self._stemmer, show_progress=False
        )

    def find(self, question: Question) -> list[str]:
        """Give the documents of the highest scores."""
        names, index = self._groups[question.group]
        found, scores = index.retrieve(
            self._tokens([question.text]), k=min(DEPTH, len(names)), show_progress=False
        )
        ranked = zip(found[0].tolist(), scores[0].tolist(), strict=True)
        return [names[at] for at, score in ranked if score > 0]


class LanceDb:
    """LanceDB's own hybrid query with RRF, on Byheart's passages and vectors."""

    name = "lancedb hybrid"

    def __init__(
        self, folder: Path, store_path: Path, names: Mapping[str, str], embed: Any
    ) -> None:
        import lancedb
        from lancedb.index import FTS

        rows = [
            {
                "document": names[memory_id],
                "group": group or "",
                "text": f"{title or ''}\n{content}",
                "vector": np.frombuffer(vector, "<f4"),
            }
            for memory_id, group, title, content, vector in _read_windows(store_path)
            if memory_id in names
        ]
        self._table: Any = lancedb.connect(folder).create_table("passages", rows)
        self._table.create_index("text", config=FTS(stem=True, remove_stop_words=True))
        self._embed = embed

    def find(self, question: Question) -> list[str]:
        """Ask by text and vector at once; exact among vectors, since there is no index of them."""
        query = (
            self._table.search(query_type="hybrid", vector_column_name="vector")
            .vector(self._embed(question.text))
            .text(_plain(question.text))
            .distance_type("cosine")
            .limit(_DEEPER)
        )
        if question.group:
            group = question.group.replace("'", "''")
            query = query.where(f"`group` = '{group}'", prefilter=True)
        found = dict.fromkeys(row["document"] for row in query.to_list())
        return list(found)[:DEPTH]


def _plain(text: str) -> str:
    return "".join(char if char.isalnum() else " " for char in text)


def _read_windows(path: Path) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    rows = connection.execute(
        "SELECT memory_id, session_id, title, content, embedding FROM vectors "
        "JOIN chunks USING (chunk_no) JOIN memories USING (memory_no) ORDER BY vector_no"
    ).fetchall()
    connection.close()
    return list(rows)


def make_peers(
    wanted: Sequence[str], whole: RetrievalSet, store_path: Path, names: Mapping[str, str]
) -> Iterator[System]:
    """Set up the peers that are installed."""
    for name in (FTS5, TRIGRAMS):
        if name in wanted:
            yield Fts5(name, whole.documents)
    if "bm25s" in wanted and find_spec("bm25s"):
        yield Bm25s(whole.documents)
    if "lancedb" in wanted and find_spec("lancedb"):
        from byheart.opening import embedder_for
        from byheart.settings import load_settings

        with tempfile.TemporaryDirectory() as folder:
            embed = embedder_for(load_settings()).embed_query
            yield LanceDb(Path(folder), store_path, names, embed)
