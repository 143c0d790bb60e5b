"""`byheart search`: the library's answer, as JSON, in a pipe and on a terminal."""

from __future__ import annotations

import re
from typing import Any

import pytest

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import Run

FLAGS: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["--limit", "1"], {"limit": 1}),
    (["-n", "2", "--offset", "1"], {"limit": 2, "offset": 1}),
    (["--top-k", "1"], {"limit": 1}),
    (["--mode", "fts"], {"mode": "fts"}),
    (["-m", "vector"], {"mode": "vector"}),
    (["--source", "fts"], {"mode": "fts"}),
    (["--granularity", "medium"], {"granularity": "medium"}),
    (["-g", "coarse"], {"granularity": "coarse"}),
    (["--kind", "report"], {"kind": ["report"]}),
    (["-k", "report,fact", "-k", "note"], {"kind": ["report", "fact", "note"]}),
    (["--session-id", "s1"], {"session_id": "s1"}),
    (["-s", "s1", "--no-include-global"], {"session_id": "s1", "include_global": False}),
    (["--include-global"], {}),
    (["--agent-id", "coder"], {"agent_id": "coder"}),
    (["--session-iter", "v2"], {"session_iter": 2}),
    (["--task-code", "T-7"], {"task_code": "T-7"}),
    (["--tags", "a,b"], {"tags": ["a", "b"]}),
    (["-t", "a", "-t", "b", "--match", "all"], {"tags": ["a", "b"], "match": "all"}),
    (["--entities", "Anna"], {"entities": ["Anna"]}),
    (["--path", "notes/*"], {"path": "notes/*"}),
    (["--language", "de"], {"language": "de"}),
    (["--min-importance", "8"], {"min_importance": 8}),
    (["--created-after", "2030-01-01"], {"created_after": "2030-01-01"}),
    (["--created-before", "2030-01-01"], {"created_before": "2030-01-01"}),
    (["--as-of", "2020-01-01"], {"as_of": "2020-01-01"}),
    (["--include-expired"], {"include_expired": True}),
    (["--scope", "global"], {"scope": "global"}),
    (["--source-label", "wiki,mail"], {"source_label": ["wiki", "mail"]}),
    (["--metadata", "team=core", "--metadata", "n=1"], {"metadata": {"team": "core", "n": 1}}),
    (["--metadata", 'n="1"'], {"metadata": {"n": "1"}}),
    (["--explain"], {"explain": True}),
    (["--fusion", "rrf"], {"fusion": "rrf"}),
    (["--similarity-threshold", "0.9"], {"similarity_threshold": 0.9}),
]


@pytest.fixture
def stocked(library: byheart.MemoryStore, report: str) -> byheart.MemoryStore:
    """Give a store in which each filter lets something through and holds something back."""
    wiki = {"source": "wiki", "metadata": {"team": "core", "n": 1}}
    library.save("The tea query of Anna", kind="fact", tags=["a", "b"], entities=["Anna"], **wiki)
    mine = {"agent_id": "coder", "session_iter": 2, "metadata": {"n": "1"}}
    library.save("A slow query note", tags=["a"], importance=9, **mine)
    library.update(library.list(agent_id="coder").memories[0].memory_id, language="de-AT")
    library.save("The index query", session_id="s2", task_code="T-7", path="notes/x.md")
    library.save("An expired query", ttl_days=0)
    return library


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "elapsed_ms": None}


@pytest.mark.parametrize(("flags", "parameters"), FLAGS, ids=lambda each: " ".join(each))
def test_every_flag_is_the_parameter_of_its_name(
    run: Run, stocked: byheart.MemoryStore, flags: list[str], parameters: dict[str, Any]
) -> None:
    ran = run("search", "slow", "index", "query", *flags, "--json")
    expected = stocked.search("slow index query", **parameters)
    assert ran.code == 0
    assert without_time(ran.json) == without_time(to_wire(expected))


def test_raw_passes_the_syntax_on(run: Run, stocked: byheart.MemoryStore) -> None:
    answer = run("search", "--raw", "que* AND NOT slow", "--json")
    assert answer.code == 2  # NOT is binary in FTS5
    answer = run("search", "--raw", "quer* NOT slow", "--json").json
    expected = stocked.search("quer* NOT slow", raw=True)
    assert without_time(answer) == without_time(to_wire(expected))
    assert answer["results"]


def test_a_syntax_error_is_reported(run: Run, stocked: byheart.MemoryStore) -> None:
    ran = run("search", "--raw", 'a AND "')
    assert ran.code == 2
    assert ran.err.startswith("error: ")


def test_without_a_query_coarse_lists_everything(run: Run, stocked: byheart.MemoryStore) -> None:
    answer = run("search", "-g", "coarse", "--json").json
    assert [each["source_type"] for each in answer["results"]] == ["scoped"] * 4
    assert "score" not in run("search", "-g", "coarse").out


def test_the_query_can_come_from_stdin(run: Run, stocked: byheart.MemoryStore) -> None:
    assert run("search", "-", "--json", stdin="tea\n").json["query"] == "tea"


def test_any_text_is_a_query(run: Run, stocked: byheart.MemoryStore) -> None:
    for query in ('"', "C++ -x: *?", "--", "東京", "'; DROP TABLE", "(" * 50):
        assert run("search", "--", query).code == 0


def test_in_a_pipe_hits_are_plain_and_complete(
    run: Run, stocked: byheart.MemoryStore, report: str
) -> None:
    ran = run("search", "index dropped", "--mode", "fts", "--limit", "1")
    [hit] = stocked.search("index dropped", mode="fts", limit=1).results
    header, *passage, address = ran.out.splitlines()
    assert re.fullmatch(
        r"1\.  March  Performance Report > Database > Query Times  report  session s1"
        r"  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        header,
    )
    assert "after the index was dropped" in " ".join(passage)
    assert isinstance(hit, byheart.ChunkHit)
    assert address == f"   {hit.chunk_id}  lines {hit.start_line}-{hit.end_line}"
    assert "\x1b" not in ran.out
    assert "\t" not in ran.out


def test_a_short_text_is_not_shown_twice(run: Run, stocked: byheart.MemoryStore) -> None:
    ran = run("search", "tea", "--mode", "fts")
    assert ran.out.count("query of Anna") == 1


def test_explain_shows_each_retriever(run: Run, stocked: byheart.MemoryStore) -> None:
    ran = run("search", "tea", "--explain", "--limit", "1", "--fusion", "rrf")
    assert re.search(r"fts     rank 1  score [\d.]+  adds 0\.016393  \(tea [\d.]+\)", ran.out)
    assert re.search(r"vector  rank 1  score [\d.]+  adds 0\.016393", ran.out)
    assert re.search(r"rrf\S*  final score 0\.032787", ran.out)
    assert "vector  did not find it" in run("search", "tea", "--explain", "-m", "fts").out
    ran = run("search", "tea", "--explain", "--limit", "1")
    adds = [float(each) for each in re.findall(r"rank 1  score [\d.]+  adds ([\d.]+)", ran.out)]
    assert f"final score {sum(adds):.6f}" in ran.out
    assert re.search(r"evidence\(3 bm25 \+ 0\.6 z\^2\)  final score [\d.]+", ran.out)


def test_full_shows_the_whole_section_or_memory(
    run: Run, stocked: byheart.MemoryStore, report: str
) -> None:
    section = run("search", "index dropped", "-g", "medium", "-n", "1", "--full", "-m", "fts").out
    assert "row locks" in section
    assert "first paint" not in section
    assert "1 of 2 chunks matched" in section
    memory = run("search", "index dropped", "-g", "coarse", "-n", "1", "--full", "-m", "fts").out
    assert "first paint" in memory
    assert "1 of 4 chunks matched" in memory
    passage = run("search", "index dropped", "-n", "1", "--full", "-m", "fts").out
    assert "index was dropped" in passage
    assert "**index**" not in passage


def test_nothing_found_is_said_and_is_no_failure(run: Run, stocked: byheart.MemoryStore) -> None:
    ran = run("search", "zebra", "--kind", "nothing")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Nothing found in ")


def test_past_the_last_hit_it_is_said_that_there_are_no_more(
    run: Run, stocked: byheart.MemoryStore
) -> None:
    ran = run("search", "query", "--offset", "5000")
    assert ran.out == "There are no results after the first 5,000.\n"
    assert "Try other words" in run("search", "xyzzy", "--mode", "fts", "--offset", "5000").out


def test_in_an_empty_store_search_says_how_to_fill_it(run: Run) -> None:
    ran = run("search", "anything")
    assert (ran.code, ran.err) == (0, "")
    assert "byheart save" in ran.out


def test_an_empty_space_is_named_since_it_may_be_mistyped(
    run: Run, stocked: byheart.MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("--space", "nope", "search", "tea")
    assert "nothing in the space nope yet. Try: byheart --space nope save TEXT" in ran.out
    monkeypatch.setenv("BYHEART_SPACE", "elsewhere")
    ran = run("search", "tea")
    assert "nothing in the space elsewhere yet. Try: byheart save TEXT" in ran.out


def test_more_hits_are_announced_on_stderr(run: Run, stocked: byheart.MemoryStore) -> None:
    ran = run("search", "query", "--limit", "1", "--offset", "1")
    assert ran.err == "more: byheart search … --offset 2\n"
    assert ran.out.startswith("2.  ")


def test_a_degraded_answer_warns_on_stderr(
    run: Run, stocked: byheart.MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "none")
    ran = run("search", "tea")
    assert ran.code == 0
    assert ran.err.startswith("warning: ")
    assert "The tea query" in ran.out
    ran = run("search", "tea", "--json")
    assert ran.err == ""
    assert ran.json["degraded"]


def test_one_pair_of_hits_that_contradict_each_other_is_named_with_a_remedy(
    run: Run, library: byheart.MemoryStore
) -> None:
    old = library.save("The API listens on port 8080.", created_at="2026-01-01").memory_id
    new = library.save("The API listens on port 8081.", created_at="2026-02-01").memory_id
    ran = run("search", "which port does the API listen on?")
    first, second = (ran.out.index(name) for name in (new, old))
    newer, older = (1, 2) if first < second else (2, 1)
    assert ran.err.splitlines() == [
        f"hits {newer} and {older} differ in a number; hit {newer} is newer",
        f"if it replaces hit {older}: byheart supersede {old} {new}",
    ]


def test_several_contradicting_pairs_are_named_in_a_line_each(
    run: Run, library: byheart.MemoryStore
) -> None:
    for port in range(8080, 8084):
        library.save(f"The API listens on port {port}.")
    lines = run("search", "which port does the API listen on?").err.splitlines()
    assert len(lines) == 3
    assert all(re.match(r"hits \d and \d differ in a number; hit \d is newer$", x) for x in lines)
