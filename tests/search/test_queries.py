"""Any text is a valid query; modes, similarity, raw syntax, explanations and the envelope."""

import contextlib
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from byheart.errors import InvalidInput, QuerySyntaxError
from byheart.model import Hit, to_wire
from byheart.store import MemoryStore
from tests.conftest import ArrowEmbedder
from tests.growth import grows_in_line

MODES = ("fts", "vector", "hybrid")
GRANULARITIES = ("fine", "medium", "coarse")
TEXTS = {
    "auth": "How do I handle authentication? The middleware checks the user's token.",
    "style": "The user's coding preferences: well-known patterns, C++ and 100.5 line width.",
    "bonsai": "Bonsai need care: water the tree daily.",
    "code": "def getUserName(user_id): return snake_case_lookup(user_id)  # see src/app/parser.py",
    "cjk": "代理的長期記憶系統可以搜尋。",
    "mixed": "Python是一種語言 and 🙂 emoji",
    "party": "Launched🧠at last 🎉",
    "date": "Released on 2026-03-14 at 10:30, ratio a:b.",
}


@pytest.fixture(scope="module")
def filled(shared_store: MemoryStore) -> MemoryStore:
    shared_store.save_many({"content": text, "title": name} for name, text in TEXTS.items())
    return shared_store


def titles(store: MemoryStore, query: str, **ask: Any) -> list[str]:
    return [hit.title for hit in store.search(query, **ask).results]


# --- Natural language -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("What are the user's coding preferences?", "style"),
        ("How do I handle authentication?", "auth"),
        ("well-known", "style"),
        ("C++", "style"),
        ("100.5", "style"),
        ("a:b", "date"),
        ("2026-03-14", "date"),
        ('"bonsai tree', "bonsai"),
        ("*gram bonsai", "bonsai"),
        ("NOT bonsai", "bonsai"),
        ("bonsai AND", "bonsai"),
        ("(bonsai", "bonsai"),
        ("title:bonsai", "bonsai"),
        ("{content}: bonsai", "bonsai"),
        ("NEAR(bonsai tree, 2)", "bonsai"),
        ("^bonsai", "bonsai"),
        ("bonsai tree plant care", "bonsai"),
        ("user name", "code"),
        ("getUserName", "code"),
        ("snake lookup", "code"),
        ("parser.py", "code"),
        ("src/app", "code"),
        ("記憶", "cjk"),
        ("搜尋", "cjk"),
        ("python", "mixed"),
        ("語言", "mixed"),
        ("🙂", "mixed"),
        ("🎉", "party"),
        ("launched", "party"),
        ("BONSAI", "bonsai"),
        ("watering trees", "bonsai"),
    ],
)
def test_natural_language_finds_its_answer_by_keyword(
    filled: MemoryStore, query: str, answer: str
) -> None:
    assert titles(filled, query, mode="fts")[0] == answer


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'",
        "?",
        "-",
        ":",
        "*",
        "()",
        "\\",
        "%",
        "_",
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "a OR",
        "{x}:",
        "\x00",
        "\x01\x02",
        "�",
        "🙂",
        "؟",
        "עברית",
        "ก",
        "x" * 10000,
        "word " * 2000,
        "長" * 10000,
        "aB" * 5000,
        '"' * 10000,
        "\n\t;--",
        "'; DROP TABLE memories; --",
    ],
    ids=lambda query: repr(query[:12]),
)
def test_no_natural_query_raises_in_any_mode_and_granularity(
    filled: MemoryStore, query: str, mode: str
) -> None:
    for granularity in GRANULARITIES:
        answer = filled.search(query, mode=mode, granularity=granularity)
        assert (answer.mode, answer.granularity, answer.degraded) == (mode, granularity, None)


@pytest.mark.parametrize("query", ["", "   ", "\n\t", None])
@pytest.mark.parametrize("granularity", ["fine", "medium"])
def test_an_empty_query_is_a_clear_error(
    filled: MemoryStore, query: str | None, granularity: str
) -> None:
    with pytest.raises(InvalidInput, match="the query is empty"):
        filled.search(query, granularity=granularity)


def marked(hit: Hit) -> list[str]:
    return [hit.snippet[start:end] for start, end in hit.snippet_marks]


def test_a_query_that_is_no_text_or_far_too_long_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="query must be text, not int"):
        store.search(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at most 100,000"):
        store.search("x" * 100_001)


def test_words_are_ored_and_better_coverage_ranks_higher(store: MemoryStore) -> None:
    store.save("apples and pears", title="two")
    store.save("apples, pears and plums", title="three")
    store.save("apples alone", title="one")
    store.save("nothing of the kind", title="none")
    assert titles(store, "apples pears plums", mode="fts") == ["three", "two", "one"]


def test_a_title_a_heading_and_a_given_summary_make_a_memory_findable(store: MemoryStore) -> None:
    store.save("plain text", title="Zanzibar", kind="fact")
    store.save("plain text", summary="about Timbuktu", kind="report")
    store.save("# Kathmandu\n\nplain text", kind="note")
    for word, kind in (("zanzibar", "fact"), ("timbuktu", "report"), ("kathmandu", "note")):
        assert [hit.kind for hit in store.search(word, mode="fts").results] == [kind]


# --- Similarity -------------------------------------------------------------------------------


def test_similarity_is_1_for_the_same_0_for_orthogonal_and_minus_1_for_opposite(
    arrows: MemoryStore,
) -> None:
    arrows.save_many({"content": way, "title": way} for way in ("east", "north", "west", "at 60"))
    found = {hit.title: hit.similarity for hit in arrows.search("east", mode="vector").results}
    assert found["east"] == 1.0
    assert found["north"] == pytest.approx(0.0, abs=1e-3)
    assert found["west"] == -1.0
    assert found["at 60"] == pytest.approx(0.5, abs=1e-3)


def test_similarity_is_one_minus_half_the_squared_distance_and_never_beyond_1(
    arrows: MemoryStore,
) -> None:
    for degrees in range(0, 360, 7):
        arrows.save(f"at {degrees}")
    hits = arrows.search("at 14", mode="vector", limit=100).results
    assert len(hits) == 52
    for hit in hits:
        degrees = float(hit.chunk_content.split()[1])
        distance = 2 * abs(math.sin(math.radians(degrees - 14) / 2))
        assert hit.similarity == pytest.approx(1 - distance**2 / 2, abs=1e-3)
        assert -1.0 <= hit.similarity <= 1.0


def test_vector_search_ranks_by_similarity_with_the_similarity_as_score(
    arrows: MemoryStore,
) -> None:
    for degrees in (90, 10, 45, 0, 180):
        arrows.save(f"at {degrees}")
    found = arrows.search("at 0", mode="vector").results
    assert [hit.chunk_content for hit in found] == ["at 0", "at 10", "at 45", "at 90", "at 180"]
    assert [hit.score for hit in found] == [hit.similarity for hit in found]


def test_a_hit_by_keyword_shows_its_similarity_too(arrows: MemoryStore) -> None:
    arrows.save("north star", title="n")
    [hit] = [h for h in arrows.search("east star").results if h.title == "n"]
    assert hit.similarity == pytest.approx(0.0, abs=1e-3)


def test_a_similarity_threshold_is_accepted_and_drops_nothing(arrows: MemoryStore) -> None:
    arrows.save_many([{"content": "east"}, {"content": "west"}])
    for mode in ("vector", "hybrid"):
        assert arrows.search("east", mode=mode, similarity_threshold=0.99).total_results == 2


# --- Hybrid -----------------------------------------------------------------------------------


def test_hybrid_scores_are_rrf_of_the_two_retrievers(arrows: MemoryStore) -> None:
    # By keyword: a, b. By vector: b, c (and a, which is orthogonal, third).
    arrows.save("zebra zebra zebra north", title="a")
    arrows.save("zebra east b", title="b")
    arrows.save("at 10 c", title="c")
    found = arrows.search("zebra east", mode="hybrid", fusion="rrf", explain=True).results
    by_title = {hit.title: hit for hit in found}
    for hit in found:
        retrievers = [
            retriever for retriever in (hit.explanation.fts, hit.explanation.vector) if retriever
        ]
        assert hit.score == pytest.approx(
            sum(1 / (60 + retriever.rank + 1) for retriever in retrievers), abs=1e-12
        )
    assert by_title["b"].explanation.vector.rank == 0
    assert found[0].title == "b"


def test_a_hit_by_meaning_alone_shows_the_part_that_is_near(open_store: Any) -> None:
    embedder = ArrowEmbedder()
    embedder.window_tokens = 100
    store = open_store(embedder=embedder)
    store.save("```\n" + "up and up again\n" * 200 + "east\n```\n")
    [hit] = store.search("at 1", mode="vector").results
    assert hit.similarity > 0.9
    assert "east" in hit.snippet


def test_each_retriever_looks_at_three_times_the_limit_or_more(arrows: MemoryStore) -> None:
    # Third in both retrievers beats first in one and far behind in the other.
    for number in range(2):
        arrows.save(f"pear pear pear pear west {number}")
        arrows.save(f"at 0 degrees {number}")
    arrows.save("pear at 1", title="both")
    for degrees in range(2, 60):
        arrows.save(f"at {degrees} degrees")
    assert titles(arrows, "pear east", limit=1, fusion="rrf") == ["both"]


def test_each_retriever_looks_at_three_times_a_large_limit(arrows: MemoryStore) -> None:
    # The hundred and first in both retrievers, before the fiftieth of either.
    arrows.save_many({"content": f"pear pear pear west {n}"} for n in range(100))
    arrows.save_many({"content": f"at {n / 10} degrees"} for n in range(100))
    arrows.save("pear among many other words that make this one longer at 30", title="both")
    arrows.save_many({"content": f"at {60 + n / 10} degrees"} for n in range(200))
    assert "both" in titles(arrows, "pear east", limit=50, fusion="rrf")


def test_a_raw_query_finds_the_first_and_the_last_text_of_its_space(store: MemoryStore) -> None:
    for space in ("before", "default", "default", "between", "default", "after"):
        store.save(f"the harbour seen from {space}, {len(store.list().memories)}", space=space)
    found = {hit.chunk_content[-1] for hit in store.search("harbour", raw=True).results}
    assert found == {"0", "1", "2"}
    assert store.search("harbour", raw=True, space="empty").results == ()


def test_a_raw_prefix_is_ranked_by_the_words_of_its_own_space(store: MemoryStore) -> None:
    store.save("server server server server", title="often")
    store.save("a server once, and other words", title="once")
    store.save_many(
        {"content": f"sea{chr(97 + n // 26)}{chr(97 + n % 26)}x", "space": "other"}
        for n in range(300)
    )
    hits = store.search("se*", raw=True).results
    assert [hit.title for hit in hits] == ["often", "once"]
    assert all(hit.score > 0 and "server" in marked(hit) for hit in hits)


def test_a_star_within_a_phrase_is_no_prefix(store: MemoryStore) -> None:
    store.save("apple, apply and banana")
    [hit] = store.search('"app* x" OR banana', raw=True).results
    assert hit.snippet == "apple, apply and banana"
    assert marked(hit) == ["banana"]


@pytest.mark.parametrize("unit", ["a", '"', "長", "{", "a* OR ", " ", "a:"])
def test_the_time_of_a_raw_query_grows_with_it_and_no_faster(store: MemoryStore, unit: str) -> None:
    store.save("apple pie and other things")

    def prepare(times: int) -> Callable[[], object]:
        query = unit * (500 * times)

        def ask() -> None:
            with contextlib.suppress(QuerySyntaxError, InvalidInput):
                store.search(query, raw=True)

        return ask

    assert grows_in_line(prepare, least_seconds=0.005)


def test_modes_answer_to_source_and_limit_to_top_k(filled: MemoryStore) -> None:
    for mode in MODES:
        named = filled.search("bonsai tree", mode=mode, limit=2)
        alias = filled.search("bonsai tree", source=mode, topK=2)
        assert alias.results == named.results
        assert alias.mode == named.mode == mode


# --- Refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mode": "semantic"}, "mode 'semantic'.*allowed: hybrid, vector, fts"),
        ({"source": "both"}, "mode 'both'"),
        ({"granularity": "huge"}, "granularity 'huge'.*allowed: fine, medium, coarse"),
        ({"match": "some"}, "match 'some'.*allowed: any, all"),
        ({"fusion": "magic"}, "fusion 'magic'"),
        ({"limit": 0}, "limit 0.*from 1 to 1,000"),
        ({"limit": 1001}, "limit 1001"),
        ({"limit": -1}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"limit": True}, "limit"),
        ({"topK": 0}, "limit 0"),
        ({"offset": -1}, "offset"),
        ({"offset": 1_000_001}, "offset"),
        ({"min_importance": 11}, "min_importance"),
        ({"session_iter": "x"}, "session_iter"),
        ({"created_after": "soon"}, "created_after"),
        ({"created_before": "soon"}, "created_before"),
        ({"as_of": "soon"}, "as_of"),
        ({"tags": "x"}, "tags must be a list"),
        ({"entities": "x"}, "entities must be a list"),
        ({"kind": "No Slug"}, "kind"),
        ({"session_id": ""}, "session_id is blank"),
        ({"space": ""}, "space is blank"),
        ({"raw": True, "mode": "vector"}, "raw queries have no meaning for vectors"),
        ({"raw": True, "mode": "semantic"}, "mode 'semantic'"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_refused_and_never_silently_replaced(
    filled: MemoryStore, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        filled.search("bonsai", **wrong)


# --- Raw syntax -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("bonsai", {"bonsai"}),
        ('"water the tree"', {"bonsai"}),
        ('"tree the water"', set()),
        ("bonsai AND water", {"bonsai"}),
        ("bonsai AND token", set()),
        ("bonsai OR token", {"bonsai", "auth"}),
        ("user NOT token", {"style", "code"}),
        ("authent*", {"auth"}),
        ("{title}: bonsai", {"bonsai"}),
        ("title: code", {"code"}),
        ("{content}: lookup", {"code"}),
        ("{content}: style", set()),
        ("{title content}: auth", {"auth"}),
        ("{summary}: bonsai", {"bonsai"}),
        ("NEAR(water daily, 3)", {"bonsai"}),
        ("記憶", {"cjk"}),
        ('"長期記憶"', {"cjk"}),
        ("記憶 OR bonsai", {"cjk", "bonsai"}),
        ("(bonsai OR token) NOT daily", {"auth"}),
    ],
)
def test_raw_passes_fts5_syntax(filled: MemoryStore, query: str, found: set[str]) -> None:
    assert set(titles(filled, query, raw=True)) == found


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ("bonsai AND", 10),
        ("(bonsai", 7),
        ("bonsai )", 7),
        ("(a) )", 4),
        ('"open', 5),
        ("nosuch: x", 0),
        ("a b nosuch: x", 4),
        ("What's this?", 4),
        ("well-known", 4),
        ("a AND AND b", 6),
    ],
)
def test_a_raw_syntax_error_is_reported_with_its_position(
    filled: MemoryStore, query: str, position: int
) -> None:
    with pytest.raises(QuerySyntaxError) as error:
        filled.search(query, raw=True)
    assert error.value.position == position
    assert f"position {position}" in error.value.message
    assert "leave raw off" in error.value.hint


def test_raw_works_at_every_granularity_and_with_filters(filled: MemoryStore) -> None:
    for granularity in GRANULARITIES:
        assert titles(filled, "bonsai OR token", raw=True, granularity=granularity, limit=1)
    assert titles(filled, "bonsai OR token", raw=True, kind="fact") == []


def test_raw_ranks_by_bm25_with_ties_by_age(store: MemoryStore) -> None:
    store.save("plum and many other words to make it longer", title="once")
    store.save("plum plum plum", title="thrice")
    for number in range(3):
        store.save(f"nothing {number}")
    assert titles(store, "plum", raw=True) == ["thrice", "once"]
    scores = [hit.score for hit in store.search("plum", raw=True).results]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_what_a_raw_prefix_matched_is_ranked_marked_and_explained(store: MemoryStore) -> None:
    store.save("a contract among many other words that make it longer", title="once")
    store.save("contracts, containers, contracts", title="thrice")
    for number in range(3):
        store.save(f"nothing {number}")
    first, second = store.search("cont*", raw=True, mode="fts", explain=True).results
    assert (first.title, second.title) == ("thrice", "once")
    assert first.score > second.score > 0
    assert marked(first) == ["contracts", "containers", "contracts"]
    assert marked(second) == ["contract"]
    assert first.explanation is not None
    assert first.explanation.fts is not None
    assert set(first.explanation.fts.terms) == {"contract", "contain"}
    [hit] = store.search('"many other wor" *', raw=True, mode="fts").results
    assert "words" in marked(hit)


def test_a_word_beside_a_raw_prefix_finds_what_stemming_hides(store: MemoryStore) -> None:
    store.save("the deployment of Friday", title="deployment")
    store.save("they deploy on Monday", title="deploy")
    assert titles(store, "deploy*", raw=True) == ["deploy"]
    found = titles(store, "deploy* OR deployment", raw=True)
    assert set(found) == {"deploy", "deployment"}


# --- Envelope and explanation -----------------------------------------------------------------


def test_the_envelope_tells_what_was_asked_and_how_it_was_answered(filled: MemoryStore) -> None:
    answer = filled.search("  bonsai tree  ", limit=2, mode="fts")
    wire = to_wire(answer)
    assert set(wire) == {
        *("query", "mode", "granularity", "results", "total_results", "has_more", "degraded"),
        *("index", "elapsed_ms", "remark", "verdict", "confidence", "grounds", "times"),
        "conflicts",
    }
    assert (answer.query, answer.mode, answer.granularity) == ("bonsai tree", "fts", "fine")
    assert answer.total_results == len(answer.results) == 1
    assert wire["index"] == {
        "memories": len(TEXTS),
        "chunks": len(TEXTS),
        "pending_vectors": 0,
        "model": "hash-384",
        "kept_in": "memory",
    }
    assert answer.degraded is None
    assert answer.elapsed_ms > 0


def test_has_more_says_whether_another_page_follows(filled: MemoryStore) -> None:
    for granularity in GRANULARITIES:
        for limit in (1, len(TEXTS) - 1, len(TEXTS), len(TEXTS) + 1):
            answer = filled.search("user", mode="vector", granularity=granularity, limit=limit)
            assert answer.has_more == (limit < len(TEXTS)), (granularity, limit)


def test_a_fine_hit_carries_the_fields_of_the_chunk_and_of_its_memory(store: MemoryStore) -> None:
    text = "# One\n\nfirst\n\n## Two\n\nsecond needle\n"
    saved = store.save(
        text, title="T", tags=["t"], session_id="s", agent_id="a", session_iter=1, task_code="c"
    )
    hit = store.search("needle").results[0]
    assert set(to_wire(hit)) == {
        *("memory_id", "kind", "title", "summary", "session_id", "agent_id", "session_iter"),
        *("task_code", "path", "tags", "importance", "created_at", "updated_at", "expires_at"),
        *("version", "replaced_at", "superseded_by", "role", "origin", "damaged"),
        *("untrusted_at", "valid_from", "valid_until", "stale", "relative_path"),
        *("chunk_id", "chunk_index", "chunk_content", "chunk_type", "header_path", "level"),
        *("start_line", "end_line", "similarity", "score", "snippet", "snippet_marks", "source"),
        "explanation",
    }
    assert hit.source == "chunk"
    assert hit.memory_id == saved.memory_id
    lines = text.splitlines(keepends=True)
    assert "".join(lines[hit.start_line - 1 : hit.end_line]) == hit.chunk_content
    assert "needle" in marked(hit)
    assert (hit.title, hit.tags, hit.session_id, hit.agent_id, hit.session_iter, hit.task_code) == (
        *("T", ("t",), "s", "a", 1, "c"),
    )
    assert hit.explanation is None


def test_header_path_has_no_marks_and_level_is_the_depth(store: MemoryStore) -> None:
    body = "Words and more words here. " * 30
    headings = ("# Performance Report", "## Database", "### Query Times")
    store.save("\n\n".join(f"{heading}\n\n{body}" for heading in headings) + " xylophone")
    hit = store.search("xylophone", mode="fts").results[0]
    assert hit.header_path == "Performance Report > Database > Query Times"
    assert hit.level == 3


@pytest.mark.parametrize(
    ("fusion", "named"), [("evidence", "evidence(1 bm25 + "), ("rrf", "rrf(k=60)")]
)
@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_an_explanation_adds_up_to_the_score(
    filled: MemoryStore, granularity: str, fusion: str, named: str
) -> None:
    for mode in MODES:
        answer = filled.search(
            "user authentication token",
            mode=mode,
            explain=True,
            granularity=granularity,
            fusion=fusion,
        )
        assert answer.results
        for hit in answer.results:
            why = hit.explanation
            retrievers = {"fts": why.fts, "vector": why.vector}
            shown = {
                name: retriever for name, retriever in retrievers.items() if retriever is not None
            }
            assert why.final_score == hit.score
            retrievers_give = sum(retriever.contribution for retriever in shown.values())
            assert why.form * (retrievers_give + why.neighbours) == pytest.approx(
                hit.score, abs=1e-5
            )
            assert set(shown) <= ({mode} if mode != "hybrid" else {"fts", "vector"})
            if mode == "hybrid":
                assert why.fusion.startswith(named)
            if why.fts is not None:
                assert sum(why.fts.terms.values()) == pytest.approx(why.fts.score)


def test_explained_ranks_count_from_zero_without_gaps(filled: MemoryStore) -> None:
    found = filled.search("user tree token", mode="hybrid", explain=True, limit=50).results
    for name in ("fts", "vector"):
        ranks = [
            retriever.rank
            for hit in found
            if (retriever := getattr(hit.explanation, name)) is not None
        ]
        assert sorted(ranks) == list(range(len(ranks)))


# --- Order ------------------------------------------------------------------------------------


def test_equal_hits_come_oldest_first(store: MemoryStore) -> None:
    ids = [store.save("same words", session_id=f"s{n}").memory_id for n in range(20)]
    for mode in MODES:
        found = store.search("same words", mode=mode, limit=20).results
        assert [hit.memory_id for hit in found] == ids


def test_the_order_of_saving_does_not_change_which_hits_are_found(
    open_store: Any, tmp_path: Any
) -> None:
    texts = [f"topic {n % 5} detail {n}" for n in range(40)]
    first, second = open_store(tmp_path / "1.db"), open_store(tmp_path / "2.db")
    first.save_many({"content": text} for text in texts)
    random.Random(1).shuffle(texts)
    second.save_many({"content": text} for text in texts)
    for mode in MODES:
        answers = [
            each.search("detail 7 topic 2", mode=mode, limit=1000).results
            for each in (first, second)
        ]
        one, other = (
            {hit.chunk_content: round(hit.score, 6) for hit in found} for found in answers
        )
        if mode == "hybrid":  # ranks among equals follow age, and scores follow ranks
            assert one.keys() == other.keys()
        else:
            assert one == other


@pytest.mark.parametrize("limit", [10, 20, 50])
def test_hybrid_is_the_fusion_of_at_least_three_times_the_limit_of_each_retriever(
    store: MemoryStore, limit: int
) -> None:
    chance = random.Random(3)
    words = ["apple", "pear", "plum", "quince", "cherry", "fig", "date", "lime"]
    store.save_many(
        {"content": " ".join(chance.choices(words, k=9)), "kind": f"k{n}"} for n in range(300)
    )
    query = "apple pear fig"
    depth = 3 * limit
    scores: dict[str, float] = {}
    for mode in ("fts", "vector"):
        for rank, hit in enumerate(store.search(query, mode=mode, limit=depth).results):
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0) + 1 / (60 + rank + 1)
    fused = store.search(query, mode="hybrid", limit=limit, fusion="rrf").results
    worst = min(hit.score for hit in fused)
    # Nothing that the retrievers, looked at that far, put before the last hit may be missing.
    assert {each for each, score in scores.items() if score > worst + 1e-9} <= {
        hit.chunk_id for hit in fused
    }
