"""A clock that is set back or forward: order, versions and expiry stay sound."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import apsw
import pytest

from byheart.memory import turn_places
from byheart.model import MODES
from byheart.storage.sqlite import SqliteStorage, migrations
from byheart.store import MemoryStore
from byheart.workspace import transactions
from tests.clocks import Machine, on_machine
from tests.conftest import OpenStore


@pytest.fixture
def machine() -> Iterator[Machine]:
    with on_machine(Machine()) as each:
        yield each


def said(store: MemoryStore, session_id: str = "s", **how: object) -> list[str]:
    return [turn.content for turn in store.sessions.transcript(session_id, limit=1000, **how).turns]


def words(count: int) -> list[str]:
    return [f"turn number {number} of the talk" for number in range(count)]


# --- The order of turns -----------------------------------------------------------------------


@pytest.mark.parametrize("wrong_by", [{"hours": -1}, {"days": 60}, {"days": -4000}])
def test_turns_stay_in_order_when_the_clock_is_set(
    store: MemoryStore, machine: Machine, wrong_by: dict[str, float]
) -> None:
    for number, text in enumerate(words(9)):
        machine.set_clock(**(wrong_by if 3 <= number < 6 else {}))
        store.log("s", "user" if number % 2 else "assistant", text)
        machine.wait(minutes=1)
    assert said(store) == words(9)
    context = store.context("s", "talk", recent=2, top_k=0)
    assert [item.memory_id for item in context.receipt.items if item.part == "recent"] == [
        turn.memory_id for turn in store.sessions.transcript("s", limit=2, latest=True).turns
    ]
    assert words(9)[-1] in context.text
    assert words(9)[3] not in context.text


def test_the_question_is_the_last_user_message_also_after_the_clock_was_set_back(
    store: MemoryStore, machine: Machine
) -> None:
    store.log("s", "user", "where is the harbour office?")
    machine.set_clock(hours=-1)
    store.log("s", "user", "when does the ferry leave?")
    assert store.context("s").query == "when does the ferry leave?"


def test_a_session_is_resumed_from_what_was_saved_last(
    store: MemoryStore, machine: Machine
) -> None:
    for number, wrong_by in enumerate([0, 60, 0]):
        machine.set_clock(days=wrong_by)
        store.save(f"state {number}", kind="session_context", session_id="s")
    left = store.sessions.resume("s")
    assert left.context is not None
    assert left.context.content == "state 2"


def test_a_turn_with_an_earlier_time_goes_where_that_time_was(
    store: MemoryStore, machine: Machine
) -> None:
    began = machine.now()
    for text in ("one", "three"):
        store.log("s", "user", text)
        machine.wait(minutes=10)
    store.log("s", "user", "two", created_at=began + timedelta(minutes=5))
    store.log("s", "user", "zero", created_at=began - timedelta(days=1))
    store.log("s", "user", "last", created_at=machine.now())
    assert said(store) == ["zero", "one", "two", "three", "last"]


def test_a_given_time_counts_against_turns_that_were_logged_while_the_clock_was_ahead(
    store: MemoryStore, machine: Machine
) -> None:
    store.log("s", "user", "one")
    machine.set_clock(days=60)
    store.log("s", "user", "two")
    machine.set_clock()
    machine.wait(minutes=1)
    store.log("s", "user", "three")
    machine.wait(minutes=2)
    store.log("s", "user", "five")
    store.log("s", "user", "four", created_at=machine.now() - timedelta(minutes=1))
    assert said(store) == ["one", "two", "three", "four", "five"]


def test_a_summary_that_was_made_meanwhile_does_not_decide_where_a_turn_goes(
    open_store: OpenStore, machine: Machine
) -> None:
    store, began = open_store(summary_every_turns=2), machine.now()
    machine.set_clock(days=60)
    store.log("s", "user", "we should paint the harbour office")
    machine.set_clock()
    machine.wait(minutes=1)
    store.log("s", "user", "it was painted last year", created_at=began)
    machine.wait(minutes=1)
    machine.set_clock(days=60)
    store.log("s", "user", "then the boat")
    machine.set_clock()
    store.log("s", "user", "good morning to all", created_at=machine.now())
    assert said(store) == [
        "it was painted last year",
        "good morning to all",
        "we should paint the harbour office",
        "then the boat",
    ]


def test_a_list_with_given_times_is_in_the_order_of_these(
    store: MemoryStore, machine: Machine
) -> None:
    began = machine.now()
    store.log_many(
        {
            "session_id": "s",
            "role": "user",
            "content": text,
            "created_at": began + timedelta(seconds=number),
        }
        for number, text in reversed(list(enumerate(words(50))))
    )
    assert said(store) == words(50)


@pytest.mark.parametrize("backwards", [False, True])
def test_any_number_of_turns_fits_between_two(
    store: MemoryStore, machine: Machine, backwards: bool
) -> None:
    began = machine.now()
    for number in (0, 3000):
        store.log("s", "user", f"{number}", created_at=began + timedelta(seconds=number))
    between = list(range(1, 3000))[:: -1 if backwards else 1]
    store.log_many(
        {
            "session_id": "s",
            "role": "user",
            "content": f"{number}",
            "created_at": began + timedelta(seconds=number),
        }
        for number in between
    )
    with store._storage.reading() as reader:
        rows = reader._connection.execute(
            "SELECT turn_no, created_at FROM memories WHERE role IS NOT NULL ORDER BY turn_no"
        ).fetchall()
    assert len(rows) == len({row[0] for row in rows}) == 3001
    assert rows == sorted(rows, key=lambda row: row[1])


def test_a_changed_turn_keeps_its_place(store: MemoryStore, machine: Machine) -> None:
    ids = [store.log("s", "user", text).memory_id for text in words(3)]
    machine.set_clock(hours=-3)
    store.update(ids[1], content="another text altogether")
    store.update(ids[0], importance=9)
    store.forget(ids[2])
    store.log("s", "user", "one more")
    store.restore(ids[2])
    assert said(store) == [words(3)[0], "another text altogether", words(3)[2], "one more"]


def test_a_turn_that_moves_to_another_session_goes_where_its_time_was(
    store: MemoryStore, machine: Machine
) -> None:
    first = store.log("s", "user", "first in s").memory_id
    machine.wait(minutes=1)
    store.log("t", "user", "first in t")
    machine.wait(minutes=1)
    second = store.log("s", "user", "second in s").memory_id
    machine.wait(minutes=1)
    store.log("t", "user", "second in t")
    store.update(second, session_id="t")
    store.update(first, session_id="t", content="first in s, changed")
    assert said(store, "t") == [
        *("first in s, changed", "first in t", "second in s", "second in t")
    ]
    assert said(store, "s") == []


def test_an_export_keeps_the_order_of_every_session(
    open_store: OpenStore, machine: Machine, tmp_path: Path
) -> None:
    store, other = open_store(), open_store(tmp_path / "other.db")
    for number, text in enumerate(words(30)):
        machine.set_clock(hours=-number if number % 3 else number)
        store.log(f"s{number % 2}", "user", text)
    store.log("s0", "user", "long ago", created_at="2001-01-01")
    store.export(tmp_path / "all.jsonl")
    other.import_(tmp_path / "all.jsonl")
    for session_id in ("s0", "s1"):
        assert said(other, session_id) == said(store, session_id)
    other.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()


def test_an_export_into_a_session_that_went_on_elsewhere_is_placed_by_time(
    open_store: OpenStore, machine: Machine, tmp_path: Path
) -> None:
    store, other = open_store(), open_store(tmp_path / "other.db")
    store.log("s", "user", "common")
    store.export(tmp_path / "one.jsonl")
    other.import_(tmp_path / "one.jsonl")
    for each, text in ((store, "a"), (other, "b"), (store, "c"), (other, "d")):
        machine.wait(minutes=1)
        each.log("s", "user", text)
    store.export(tmp_path / "two.jsonl")
    other.import_(tmp_path / "two.jsonl")
    assert said(other) == ["common", "a", "b", "c", "d"]


def test_an_export_without_places_is_ordered_by_time(
    open_store: OpenStore, machine: Machine, tmp_path: Path
) -> None:
    store, other = open_store(), open_store(tmp_path / "other.db")
    for text in words(5):
        store.log("s", "user", text)
    out = io.BytesIO()
    store.export(out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    for line in lines:
        line.pop("turn_no", None)
    (tmp_path / "old.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")
    other.import_(tmp_path / "old.jsonl")
    assert said(other) == words(5)


def transcript_line(number: int, at: datetime, text: str) -> str:
    return json.dumps(
        {
            "type": "user" if number % 2 else "assistant",
            "uuid": f"u{number}",
            "sessionId": "talk",
            "cwd": "/project",
            "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.000Z",
            "message": {"role": "user" if number % 2 else "assistant", "content": text},
        }
    )


@pytest.mark.parametrize("how", ["import", "follow"])
def test_a_transcript_keeps_its_own_order_although_the_clock_was_set_back_meanwhile(
    store: MemoryStore, machine: Machine, tmp_path: Path, how: str
) -> None:
    file = tmp_path / "talk.jsonl"
    began = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
    minutes = [0, 1, 2, -58, -57, -56, 3]
    lines = [
        transcript_line(number, began + timedelta(minutes=minute), text)
        for number, (minute, text) in enumerate(zip(minutes, words(7), strict=True))
    ]
    if how == "import":
        file.write_text("\n".join(lines) + "\n", "utf-8")
        store.import_(file)
    else:
        for count in range(1, len(lines) + 1):
            file.write_text("\n".join(lines[:count]) + "\n", "utf-8")
            store.sessions.follow(file)
    [session] = store.sessions.list()
    assert session.session_id is not None
    assert said(store, session.session_id) == words(7)


def test_a_store_from_before_has_its_turns_in_the_order_of_time(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store() as store:
        changed = store.log("s", "user", "second", created_at="2026-01-02").memory_id
        store.log("s", "user", "third", created_at="2026-01-03")
        store.log("s", "user", "first", created_at="2026-01-01")
        store.update(changed, content="second, changed")
        store.save("of no session")
    connection = apsw.Connection(str(path))
    for statement in (
        *("DROP INDEX memories_by_turn", "DROP INDEX memories_by_expiry"),
        *("DROP INDEX memories_lapsed", "DROP INDEX memories_lapsed_by_expiry"),
        *("ALTER TABLE memories DROP COLUMN turn_no", "ALTER TABLE memories DROP COLUMN lapsed_at"),
        "CREATE INDEX memories_by_turn ON memories (space, session_id, created_at, memory_id)",
        "CREATE INDEX memories_by_expiry ON memories (expires_at)",
        "PRAGMA user_version = 8",
    ):
        connection.execute(statement)
    connection.close()
    known = [each for each in migrations.known_migrations() if each[0] <= 9]
    monkeypatch.setattr(migrations, "known_migrations", lambda: known)
    with open_store() as store:
        assert said(store) == ["first", "second, changed", "third"]
        store.log("s", "user", "fourth")
        assert said(store)[-1] == "fourth"
    rows = dict(
        apsw.Connection(str(path)).execute("SELECT memory_id, turn_no FROM memories").fetchall()
    )
    assert rows[f"{changed}@1"] == rows[changed] == 2 * turn_places.STEP


# --- Versions ---------------------------------------------------------------------------------


def test_every_moment_has_one_text_however_the_clock_was_set(
    store: MemoryStore, machine: Machine
) -> None:
    memory_id = store.save("text 0").memory_id
    for number, hours in enumerate([5, -7, 0, 100, -100, 0], start=1):
        machine.set_clock(hours=hours)
        machine.wait(minutes=1)
        store.update(memory_id, content=f"text {number}")
    with apsw_of(store) as connection:
        spans = connection.execute(
            "SELECT since_at, replaced_at FROM memories ORDER BY version"
        ).fetchall()
    assert all(since < until for since, until in spans[:-1])
    assert [until for _, until in spans[:-1]] == [since for since, _ in spans[1:]]
    far = machine.true_time + timedelta(days=50)
    [hit] = store.search("text", mode="fts", granularity="coarse", as_of=far).results
    assert hit.content == "text 6"


def apsw_of(store: MemoryStore) -> apsw.Connection:
    return apsw.Connection(store.status().store)


def test_a_session_that_was_forgotten_last_is_restored_whatever_the_clock_says(
    store: MemoryStore, machine: Machine
) -> None:
    early, late = (store.log("s", "user", text).memory_id for text in words(2))
    machine.set_clock(days=60)
    store.forget(early)
    machine.set_clock()
    store.sessions.forget("s", dry_run=False)
    assert store.sessions.restore("s").memory_ids == (late,)


# --- Expiry -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_clock_that_was_ahead_for_one_save_destroys_nothing(
    store: MemoryStore, machine: Machine, mode: str
) -> None:
    kept = store.save("The quokka smiles", ttl_days=20).memory_id
    machine.set_clock(days=60)
    store.save("said while the clock was wrong")
    assert store.search("quokka", mode=mode).total_results in (0, 1)
    assert store.list().total == 1
    machine.set_clock()
    for number in range(3):
        store.save(f"said when it was right again {number}")
        found = {hit.memory_id for hit in store.search("quokka", mode=mode).results}
        assert kept in found
    assert kept in {each.memory_id for each in store.list().memories}


def test_an_open_store_shows_what_has_not_expired_after_all(
    store: MemoryStore, machine: Machine
) -> None:
    kept = store.save("The quokka smiles", ttl_days=20).memory_id
    machine.set_clock(days=60)
    assert store.search("quokka", mode="fts").results == ()
    machine.set_clock()
    assert [hit.memory_id for hit in store.search("quokka", mode="fts").results] == [kept]


def test_a_clock_that_jumps_again_and_again_destroys_nothing(
    open_store: OpenStore, machine: Machine
) -> None:
    store = open_store(prune_after_days=1)
    kept = store.save("The quokka smiles", ttl_days=20).memory_id
    for number in range(20):
        machine.set_clock(days=60 * (number + 1))
        store.save(f"something new {number}")
        machine.wait(minutes=10)
    machine.set_clock()
    assert store.get(kept).content == "The quokka smiles"
    assert kept in {each.memory_id for each in store.list(limit=100).memories}


def expired(store: MemoryStore) -> int:
    return store.list(limit=100, include_expired=True).total - store.list(limit=100).total


def test_an_expired_memory_is_erased_once_its_grace_period_has_passed(
    open_store: OpenStore, machine: Machine
) -> None:
    store = open_store(prune_after_days=10)
    store.save("The quokka smiles", ttl_days=5)
    machine.wait(days=6)
    store.save("noticed")
    machine.wait(days=9)
    store.save("still there")
    assert expired(store) == 1
    machine.wait(days=2)
    store.save("and gone")
    assert expired(store) == 0
    assert store.list(include_expired=True).total == 3


def test_an_expired_memory_can_be_kept_during_its_grace_period(
    open_store: OpenStore, machine: Machine
) -> None:
    store = open_store(prune_after_days=10)
    kept = store.save("The quokka smiles", ttl_days=5).memory_id
    machine.wait(days=6)
    store.save("noticed")
    machine.wait(days=9)
    store.update(kept, ttl_days=1)
    machine.wait(days=2)
    store.save("it has expired again: another period begins")
    assert store.get(kept).memory_id == kept
    store.update(kept, ttl_days=None)
    machine.wait(days=100)
    store.save("much later")
    assert kept in {each.memory_id for each in store.list().memories}


def test_a_restart_counts_as_a_day_at_most(open_store: OpenStore, machine: Machine) -> None:
    store = open_store(prune_after_days=3)
    store.save("The quokka smiles", ttl_days=1)
    machine.wait(days=2)
    store.save("noticed")
    for number in range(2):
        machine.wait(days=60)
        machine.restart()
        store.save(f"another start {number}")
        assert expired(store) == 1
    machine.wait(days=1)
    store.save("the third day")
    assert expired(store) == 0


def test_a_clock_that_was_ahead_destroys_no_memory_of_a_file_that_was_away(
    open_store: OpenStore, machine: Machine, tmp_path: Path
) -> None:
    store, root = open_store(), tmp_path / "project"
    root.mkdir()
    for name in ("a.md", "b.md"):
        (root / name).write_text(f"The quokka lives in {name}.", "utf-8")
    store.index(root)
    (root / "a.md").rename(tmp_path / "a.md")
    store.index(root)
    machine.set_clock(days=60)
    store.index(root)
    machine.set_clock()
    (tmp_path / "a.md").rename(root / "a.md")
    store.index(root)
    assert store.list(kind="file").total == 2


def test_a_file_is_indexed_again_after_the_clock_was_set_back(
    store: MemoryStore, machine: Machine, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    file = root / "a.md"
    file.write_text("The quokka smiles.", "utf-8")
    machine.set_clock(days=60)
    store.index(root)
    machine.set_clock()
    file.write_text("The quokka laughs out loud.", "utf-8")
    assert store.index(root).files_indexed == 1
    assert "laughs" in store.search("quokka", mode="fts").results[0].snippet


def test_a_watcher_from_before_the_clock_was_set_back_is_replaced(
    store: MemoryStore, machine: Machine, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.md").write_text("The quokka smiles.", "utf-8")
    store.index(root)
    [workspace] = store.workspaces.list()
    claim = partial(transactions.claim, store._storage, "default")
    machine.set_clock(hours=1)
    assert claim(workspace.workspace_no, "one", 15.0)
    assert not claim(workspace.workspace_no, "two", 15.0)
    machine.set_clock()
    assert claim(workspace.workspace_no, "two", 15.0)


def test_recency_recovers_when_the_clock_is_right_again(
    store: MemoryStore, machine: Machine
) -> None:
    memory_id = store.save("The quokka smiles").memory_id
    machine.set_clock(days=60)
    store.recall("quokka")
    machine.set_clock()
    machine.wait(days=1)
    store.recall("quokka")
    accessed_at = store.get(memory_id).accessed_at
    assert accessed_at is not None
    assert accessed_at <= machine.true_time


def test_what_was_given_last_is_known_again_after_the_clock_was_set_back(
    store: MemoryStore, machine: Machine
) -> None:
    ids = [store.save(f"Fact {n}: the ferry {n} leaves at {n}.").memory_id for n in range(140)]
    machine.set_clock(days=60)
    for each in ids[:-1]:
        store.sessions.note_shown(each, "s")
    machine.set_clock()
    store.sessions.note_shown(ids[-1], "s")
    store._storage.settle()
    with store._storage.reading() as reader:
        assert reader.emitted("default", "s")[0].text.startswith("Fact 139")


# --- Processes --------------------------------------------------------------------------------

SHIFTED = """
import sys
from datetime import timedelta
import byheart
from byheart.system import clock

path, hours, verb, text = sys.argv[1:]
real = clock.now
clock.now = lambda: real() + timedelta(hours=float(hours))
with byheart.open(path, embedding_provider="hash") as store:
    if verb == "log":
        store.log("s", "user", text)
    else:
        store.save(text, ttl_days=1 if verb == "ttl" else None)
"""


def in_a_process(path: Path, hours: float, verb: str, text: str) -> None:
    subprocess.run(
        [sys.executable, "-c", SHIFTED, str(path), str(hours), verb, text], check=True, timeout=120
    )


def test_processes_whose_clocks_differ_keep_order_and_memories(path: Path) -> None:
    SqliteStorage(path).close()
    in_a_process(path, 0, "ttl", "The quokka smiles")
    for number, hours in enumerate([0, 2, -1, 24 * 60, 0]):
        in_a_process(path, hours, "log", words(5)[number])
    in_a_process(path, 24 * 60, "save", "saved while the clock was wrong")
    in_a_process(path, 24 * 60, "save", "saved once more while the clock was wrong")
    in_a_process(path, 0, "save", "saved when it was right")
    connection = apsw.Connection(str(path))
    turns = connection.execute(
        "SELECT content FROM memories JOIN chunks USING (memory_no) WHERE role IS NOT NULL "
        "ORDER BY turn_no"
    ).fetchall()
    assert [row[0] for row in turns] == words(5)
    [row] = connection.execute("SELECT lapsed_at FROM memories WHERE expires_at IS NOT NULL")
    assert row[0] is None
