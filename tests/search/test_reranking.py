"""A reranker orders the first hits of a search, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import byheart
from byheart.embedding.cross_encoder import CrossEncoder
from byheart.errors import EmbedderUnavailable, InvalidInput
from byheart.opening import reranker_for
from byheart.settings import load_settings


class ByLength:
    """Prefer long passages, and note the questions."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        self.asked.append((question, len(passages)))
        return [float(len(each)) for each in passages]


class Broken:
    """Answer as `given` says."""

    def __init__(self, given: object) -> None:
        self.given = given

    def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given  # type: ignore[return-value]


def fill(path: Path) -> None:
    with byheart.open(path, embedding_provider="hash") as store:
        for number in range(8):
            store.save("Tea is green. " + "It is drunk hot. " * number, session_id="s1")
        store.log("s1", "user", "Do we have tea?")


def search(path: Path, reranker: object = None, **given: object) -> byheart.SearchAnswer:
    with byheart.open(
        path,
        embedding_provider="hash",
        rerank_passages=5,
        reranker=reranker,  # type: ignore[arg-type]
    ) as store:
        return store.search("green tea", **given)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "memory.db")
    return tmp_path / "memory.db"


def ids(answer: byheart.SearchAnswer) -> list[str]:
    return [each.memory_id for each in answer.results]


def test_the_first_passages_are_ordered_anew_and_the_others_stay(path: Path) -> None:
    reranker = ByLength()
    before, after = search(path), search(path, reranker, explain=True)
    assert reranker.asked == [("green tea", 5)]
    assert ids(after)[5:] == ids(before)[5:]
    assert sorted(ids(after)[:5]) == sorted(ids(before)[:5])
    first = [each for each in after.results[:5] if isinstance(each, byheart.ChunkHit)]
    lengths = [len(each.chunk_content) for each in first]
    assert lengths == sorted(lengths, reverse=True)
    for hit in first:
        assert hit.explanation is not None
        assert hit.explanation.reranker is not None
        assert hit.explanation.reranker.score == len(hit.chunk_content)
        assert hit.explanation.reranker.rank_before == ids(before).index(hit.memory_id)
        assert hit.explanation.reranker.elapsed_ms >= 0
    last = after.results[5].explanation
    assert last is not None
    assert last.reranker is None
    assert after.verdict == before.verdict


def test_pages_are_slices_of_one_list(path: Path) -> None:
    whole = ids(search(path, ByLength()))
    pages = [ids(search(path, ByLength(), limit=3, offset=each)) for each in (0, 3, 6)]
    assert [each for page in pages for each in page] == whole


@pytest.mark.parametrize("granularity", ["medium", "coarse"])
def test_sections_and_memories_follow_their_best_passages(path: Path, granularity: str) -> None:
    assert ids(search(path, ByLength(), granularity=granularity)) == ids(search(path, ByLength()))


def test_superseded_memories_stay_behind(path: Path) -> None:
    longest = ids(search(path, ByLength()))[0]
    with byheart.open(path, embedding_provider="hash") as store:
        newer = store.save("Tea is black now.").memory_id
        store.supersede(longest, newer)
    assert ids(search(path, ByLength(), limit=20))[-1] == longest


def test_only_searches_are_reranked(path: Path) -> None:
    reranker = ByLength()
    with byheart.open(path, embedding_provider="hash", reranker=reranker) as store:
        store.recall("green tea")
        store.context("s1", query="green tea")
        store.remind("s1", "green tea")
        store.search("green OR tea", raw=True)
        store.search("", granularity="coarse")
        store.admin.bench(questions=3)
        assert reranker.asked == []
        store.search("green tea", mode="fts")
    assert len(reranker.asked) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (EmbedderUnavailable("no such model", ""), "no such model"),
        (RuntimeError("boom"), "the reranker failed: RuntimeError: boom"),
        ([1.0], "gave 1 scores for 5 passages"),
        ([float("nan")] * 5, "or no numbers"),
        ("abcde", "the reranker failed: ValueError"),
    ],
)
def test_a_reranker_that_fails_leaves_the_order_and_says_so(
    path: Path, given: object, says: str
) -> None:
    answer = search(path, Broken(given))
    assert ids(answer) == ids(search(path))
    assert answer.remark is not None
    assert says in answer.remark


@pytest.mark.parametrize(
    ("reranker", "ok", "says"),
    [
        (ByLength(), True, "in order"),
        (Broken(EmbedderUnavailable("no such model", "name another")), False, "no such model"),
        (Broken([float("nan")]), False, "or no numbers"),
    ],
)
def test_the_doctor_tries_the_reranker(path: Path, reranker: object, ok: bool, says: str) -> None:
    with byheart.open(path, embedding_provider="hash", reranker=reranker) as store:  # type: ignore[arg-type]
        (found,) = [each for each in store.admin.doctor() if each.check == "reranker"]
    assert found.ok is ok
    assert says in found.message
    with byheart.open(path, embedding_provider="hash") as store:
        assert "reranker" not in [each.check for each in store.admin.doctor()]


def test_something_without_a_score_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="needs a method score"):
        search(path, object())


def test_the_setting_names_a_model_and_by_default_there_is_none(tmp_path: Path) -> None:
    assert reranker_for(load_settings({}, environ={})) is None
    named = load_settings({"reranker_model": "cross-encoder/ms-marco-MiniLM-L6-v2"}, environ={})
    assert isinstance(reranker_for(named), CrossEncoder)
