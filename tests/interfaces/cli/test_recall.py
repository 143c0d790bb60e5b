"""`byheart recall`: the same answer as the library's, and a pleasant way to read it."""

from __future__ import annotations

from typing import Any

import click
import pytest

import byheart
from byheart.interfaces.cli.commands import byheart as program
from byheart.model import to_wire
from byheart.model.filters import FILTER_FIELDS
from byheart.store import MemoryStore
from tests.interfaces.cli.conftest import Run

FLAGS: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["--max-tokens", "300"], {"max_tokens": 300}),
    (["--limit", "1", "--offset", "1"], {"limit": 1, "offset": 1}),
    (["--mode", "fts"], {"mode": "fts"}),
    (["--explain"], {"explain": True}),
    (["--raw"], {"raw": True}),
    (["--kind", "fact,report"], {"kind": ["fact", "report"]}),
    (["--session-id", "s1", "--no-include-global"], {"session_id": "s1", "include_global": False}),
    (["--agent-id", "coder"], {"agent_id": "coder"}),
    (["--session-iter", "v2"], {"session_iter": "v2"}),
    (["--task-code", "T-7"], {"task_code": "T-7"}),
    (["--tags", "a,b", "--match", "all"], {"tags": ["a", "b"], "match": "all"}),
    (["--entities", "Anna"], {"entities": ["Anna"]}),
    (["--path", "notes/*"], {"path": "notes/*"}),
    (["--min-importance", "8"], {"min_importance": 8}),
    (["--created-after", "2030-01-01"], {"created_after": "2030-01-01"}),
    (["--created-before", "2999-01-01"], {"created_before": "2999-01-01"}),
    (["--as-of", "2020-01-01"], {"as_of": "2020-01-01"}),
    (["--include-expired"], {"include_expired": True}),
    (["--scope", "global"], {"scope": "global"}),
    (["--source-label", "wiki,mail"], {"source_label": ["wiki", "mail"]}),
    (["--metadata", "team=core", "--metadata", "n=1"], {"metadata": {"team": "core", "n": 1}}),
    (["--metadata", 'n="1"'], {"metadata": {"n": "1"}}),
]


@pytest.fixture
def stocked(library: MemoryStore) -> MemoryStore:
    """Give a store in which each filter lets something through and holds something back."""
    # An access gains less than a step of importance, so it does not change the order.
    library.save(
        "The tea of Anna",
        kind="fact",
        tags=["a", "b"],
        entities=["Anna"],
        title="Tea",
        importance=3,
    )
    library.save("A note on tea", tags=["a"], agent_id="coder", session_iter=2, importance=9)
    library.save(
        "Tea in the index", session_id="s1", task_code="T-7", path="notes/x.md", importance=7
    )
    library.save("An expired tea", ttl_days=0, importance=1)
    library.save("The wiki on tea", source="wiki", metadata={"team": "core", "n": 1}, importance=5)
    library.save("A tea with a text", metadata={"n": "1"}, importance=4)
    return library


def lasting(wire: dict[str, Any]) -> dict[str, Any]:
    """Leave out what time and use change from one recall to the next."""
    changing = {"accessed_at", "access_count", "score", "recency", "frequency"}
    return {
        **{name: each for name, each in wire.items() if name != "tokens_used"},
        **{
            name: [
                {key: value for key, value in entry.items() if key not in changing}
                for entry in wire[name] or ()
            ]
            for name in ("details", "explanations")
        },
    }


@pytest.mark.parametrize(("flags", "parameters"), FLAGS, ids=lambda each: " ".join(each))
def test_every_flag_is_the_parameter_of_its_name(
    run: Run, stocked: MemoryStore, flags: list[str], parameters: dict[str, Any]
) -> None:
    ran = run("recall", "tea", "index", *flags, "--json")
    assert ran.code == 0
    assert lasting(ran.json) == lasting(to_wire(stocked.recall("tea index", **parameters)))


def test_every_filter_has_a_flag() -> None:
    command = program.get_command(click.Context(program), "recall")
    assert command is not None
    names = {param.name for param in command.params}
    assert names >= {*FILTER_FIELDS, "max_tokens", "limit", "offset", "mode", "explain"}


def test_a_recall_shows_memories_once_and_lists_the_others(run: Run, stocked: MemoryStore) -> None:
    long = stocked.save("tea " * 3000, kind="fact", summary="Much about tea").memory_id
    ran = run("recall", "tea", "--kind", "fact")
    header, text, address, _, heading, line, _, footer = ran.out.splitlines()
    memory = stocked.list(kind="fact").memories[1]
    assert heading.split() == ["ID", "TEXT"]
    assert line.split(maxsplit=1) == [long, "Much about tea"]
    assert header.startswith("Tea  fact  importance ")
    assert "score" not in header
    assert text == "   The tea of Anna"
    assert address == f"   {memory.memory_id}"
    assert footer.startswith("1 in full, 1 listed, of 2 memories; ")
    assert footer.endswith(" of 1,000 tokens")
    assert (ran.code, ran.err) == (0, "")


def test_explain_shows_the_parts_of_each_score(run: Run, stocked: MemoryStore) -> None:
    ran = run("recall", "tea", "--kind", "fact", "--explain")
    line = ran.out.splitlines()[3]
    assert line.startswith("   relevance 1.000, importance 0.")
    assert ", recency 1.000, frequency 0.000, score 0." in line
    stocked.save("tea " * 3000, kind="fact", summary="Much about tea")
    ran = run("recall", "tea", "--kind", "fact", "--explain")
    names = ["ID", "RELEVANCE", "IMPORTANCE", "RECENCY", "FREQUENCY", "SCORE", "TEXT"]
    assert names in [each.split() for each in ran.out.splitlines()]


def test_a_superseded_memory_says_by_which(run: Run, stocked: MemoryStore) -> None:
    old, new = stocked.save("tea at four").memory_id, stocked.save("tea at five").memory_id
    stocked.supersede(old, new)
    ran = run("recall", "tea at", "--max-tokens", "9000")
    assert f"   {old}  superseded by {new}  ended on " in ran.out


def test_what_did_not_fit_is_said_on_stderr(run: Run, stocked: MemoryStore) -> None:
    assert run("recall", "tea", "--max-tokens", "1").err.startswith("nothing fits: ")
    ran = run("recall", "tea", "--limit", "2", "--max-tokens", "9000")
    assert ran.err == "more: byheart recall … --offset 2\n"
    ran = run("recall", "tea", "--max-tokens", "30")
    assert "--max-tokens N" in ran.err
    assert run("recall", "tea", "--offset", "50").err == ""


@pytest.mark.parametrize("flags", [(), ("--explain",)], ids=["plain", "explained"])
def test_a_recall_in_which_nothing_fits_begins_with_no_empty_line(
    run: Run, stocked: MemoryStore, flags: tuple[str, ...]
) -> None:
    ran = run("recall", "tea", "--max-tokens", "1", *flags)
    assert "0 in full, 0 listed" in ran.out
    assert ran.out.splitlines()[0]


def test_nothing_to_recall_is_no_failure(run: Run, stocked: MemoryStore) -> None:
    ran = run("recall", "zebra", "--mode", "fts")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Nothing comes to mind.")


def test_the_query_can_come_from_stdin(run: Run, stocked: MemoryStore) -> None:
    assert run("recall", "-", "--json", stdin="tea\n").json["query"] == "tea"


@pytest.mark.parametrize("arguments", [["--max-tokens", "0", "tea"], [], ["tea", "--limit", "0"]])
def test_bad_input_is_a_usage_error_with_a_hint(run: Run, home: Any, arguments: list[str]) -> None:
    ran = run("recall", *arguments)
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert "hint: " in ran.err


def test_a_recall_without_vectors_warns(
    run: Run, stocked: byheart.MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "none")
    ran = run("recall", "tea")
    assert ran.code == 0
    assert ran.err.startswith("warning: ")
    assert run("recall", "tea", "--json").json["degraded"]


def test_counts_are_kept_when_the_command_ends(run: Run, stocked: MemoryStore) -> None:
    for _ in range(3):
        run("recall", "tea", "--kind", "fact")
    assert stocked.list(kind="fact").memories[0].access_count == 3


def test_raw_syntax_is_taken(run: Run, library: MemoryStore) -> None:
    program = library.save("The program is written in typescript.").memory_id
    library.save("A concert is on the programme.", title="Typescript")
    by_column = run("recall", "{content}: typescript", "--raw", "--json").json
    assert [each["id"] for each in by_column["index"]] == [program]
    by_prefix = run("recall", "program*", "--raw", "--json").json
    assert by_prefix["total_count"] == 2
    assert "position" in run("recall", "program AND", "--raw").err


def test_metadata_without_a_value_is_a_usage_error(run: Run, stocked: MemoryStore) -> None:
    ran = run("recall", "tea", "--metadata", "team")
    assert (ran.code, "give KEY=VALUE" in ran.err) == (2, True)
