"""Forgetting: soft with a way back, for good without a trace, by filter, by age and by expiry."""

import json
import random
import string
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from byheart.errors import Conflict, InvalidInput, NotFound, StoreBusy
from byheart.memory import erasing
from byheart.model import GRANULARITIES, MODES
from byheart.storage.sql.writer import SqlWriter
from byheart.storage.sqlite.database import Database
from byheart.store import MemoryStore
from tests.clocks import Machine, on_machine
from tests.conftest import WatchedEmbedder
from tests.databases import sqlite_only
from tests.storage.test_processes import OPEN, finish, start

Open = Callable[..., MemoryStore]

# Answers what another process sees: the ids a search finds, or that it holds a transaction open.
ON_REQUEST = (
    OPEN
    + """
store = open_store()
for line in sys.stdin:
    request = json.loads(line)
    if "query" in request:
        answer = store.search(request["query"], mode=request["mode"], limit=100)
        print(json.dumps([hit.memory_id for hit in answer.results]), flush=True)
    elif request["hold"]:
        import contextlib
        held = contextlib.ExitStack()
        connection = held.enter_context(store._storage._backend.database.reading())
        print(json.dumps(connection.execute("SELECT count(*) FROM memories").get), flush=True)
    else:
        held.close()
        print(json.dumps(None), flush=True)
"""
)


class Other:
    """Another process that has the store open."""

    def __init__(self, path: Path) -> None:
        self._process = start(ON_REQUEST, path)

    def ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def finish(self) -> None:
        finish(self._process)


def now() -> datetime:
    return datetime.now(UTC)


def age(path: Path, memory_id: str, days: float) -> None:
    """Make a memory as old as if nobody had touched it for some days."""
    micros = int(days * 86_400 * 1e6)
    apsw.Connection(str(path)).execute(
        "UPDATE memories SET created_at = created_at - ?1, updated_at = updated_at - ?1, "
        "since_at = since_at - ?1 WHERE memory_id = ?2",
        (micros, memory_id),
    )


def _read(file: Path) -> bytes:
    # Not by `read_bytes`: closing a file of one's own drops every lock this process has on it.
    handle = apsw.VFSFile("", str(file), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    try:
        return handle.xRead(handle.xFileSize(), 0)
    finally:
        handle.xClose()


def left_in(folder: Path, words: set[str]) -> dict[str, list[str]]:
    """Look for words in every file of a folder, byte for byte and in lower case."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            contents = _read(file)
            lower = contents.lower()
            there = [word for word in words if word.encode() in contents]
            there += [word for word in words if word.lower().encode() in lower]
            if there:
                found[file.name] = sorted(set(there))
    return found


class Marks:
    """Words that occur nowhere else."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        self.made: set[str] = set()

    def __call__(self, letters: int = 16) -> str:
        word = "".join(self._random.choice(string.ascii_lowercase) for _ in range(letters))
        self.made.add(word)
        return word


# --- Soft -------------------------------------------------------------------------------------


def test_what_is_forgotten_is_gone_from_every_verb_at_once(open_store: Open) -> None:
    store, other = open_store(), open_store()
    memory_id = store.save("The quokka smiles", session_id="s1", tags=["t"]).memory_id
    then = now()
    store.update(memory_id, content="The quokka smiles again", title="Smile")
    other.search("quokka")
    done = store.forget(memory_id, reason="no longer true", who="anna")
    assert (done.memory_ids, done.count, done.hard, done.dry_run) == ((memory_id,), 1, False, False)
    for each in (store, other, open_store()):
        for mode in MODES:
            for granularity in GRANULARITIES:
                for filters in ({}, {"include_expired": True}, {"as_of": then}, {"tags": ["t"]}):
                    answer = each.search("quokka", 10, mode, granularity, **filters)
                    assert answer.results == ()
                    assert answer.index.memories == answer.index.chunks == 0
        assert each.search("quokka", mode="fts", raw=True).results == ()
        assert each.search(None, granularity="coarse").results == ()
        assert each.recall("quokka").total_count == 0
        assert each.list().total == each.list(include_expired=True).total == 0
        assert each.list(as_of=then).total == 0
        assert each.sessions.list() == ()
        assert (each.status().vectors, each.status().sessions) == (0, 0)
        for name in (memory_id, f"{memory_id}@1", f"{memory_id}#0"):
            with pytest.raises(NotFound, match="forgotten"):
                each.get(name)
        for look in (
            lambda each=each: each.expand(f"{memory_id}#0"),
            lambda each=each: each.expand(f"{memory_id}@1#0"),
            lambda each=each: each.update(memory_id, title="x"),
            lambda each=each: each.supersede(memory_id),
        ):
            with pytest.raises(NotFound):
                look()
        assert [memory.memory_id for memory in each.list(forgotten=True).memories] == [memory_id]
        assert each.list(forgotten=True).memories[0].forgotten_at is not None


@sqlite_only
@pytest.mark.parametrize("mode", MODES)
def test_forgetting_and_restoring_show_at_once_in_another_process(
    open_store: Open, path: Path, mode: str, make_watched: Callable[..., Any]
) -> None:
    store = open_store(embedder=make_watched(32, "hash-32"))
    ids = [store.save(f"quokka {number}").memory_id for number in range(5)]
    other = Other(path)

    def seen() -> set[str]:
        return set(other.ask(query="quokka", mode=mode))

    assert seen() == set(ids)
    store.forget(ids[2])
    assert seen() == set(ids) - {ids[2]}
    store.restore(ids[2])
    assert seen() == set(ids)
    store.update(ids[3], content="quokka number three", title="New")
    assert seen() == set(ids)
    store.forget(ids[1:3])
    store.admin.doctor(optimize=True)  # writes the index file anew
    assert seen() == set(ids) - set(ids[1:3])
    store.restore(ids[1])
    assert seen() == set(ids) - {ids[2]}
    store.forget(ids[0], hard=True)
    assert seen() == set(ids) - {ids[2], ids[0]}
    other.finish()


def test_restoring_brings_back_everything(open_store: Open) -> None:
    store = open_store()
    memory_id = store.save(
        "The quokka smiles", title="Smile", tags=["t"], session_id="s1"
    ).memory_id
    then = now()
    store.update(memory_id, content="The quokka laughs")
    before = store.get(memory_id)
    store.forget(memory_id)
    store.admin.doctor(optimize=True)
    assert store.restore(memory_id) == before
    for each in (store, open_store()):
        for mode in MODES:
            assert each.search("quokka", mode=mode).results[0].memory_id == memory_id
            past = each.search("quokka", mode=mode, as_of=then).results
            assert [hit.text_id for hit in past] == [f"{memory_id}@1"]
        assert each.list(tags=["t"]).total == 1
        assert each.list(forgotten=True).total == 0
    assert all(finding.ok for finding in store.admin.doctor())


def test_forgetting_and_restoring_twice_change_nothing_more(store: MemoryStore) -> None:
    memory_id = store.save("The quokka smiles").memory_id
    assert store.forget(memory_id).count == 1
    again = store.forget([memory_id, memory_id])
    assert (again.count, again.memory_ids) == (0, ())
    store.restore(memory_id)
    assert store.restore(memory_id).memory_id == memory_id
    operations = [entry.operation for entry in store.history(memory_id)]
    assert operations == ["create", "forget", "restore"]


def test_a_text_that_was_saved_again_meanwhile_stands_in_the_way_of_restoring(
    store: MemoryStore,
) -> None:
    memory_id = store.save("The quokka smiles").memory_id
    store.forget(memory_id)
    again = store.save("The quokka smiles")
    assert (again.status, again.memory_id != memory_id) == ("created", True)
    with pytest.raises(Conflict, match=again.memory_id):
        store.restore(memory_id)
    with pytest.raises(NotFound):
        store.get(memory_id)
    store.forget(again.memory_id)
    assert store.restore(memory_id).content == "The quokka smiles"


def test_of_several_ids_all_are_known_or_none_is_forgotten(store: MemoryStore) -> None:
    memory_id = store.save("The quokka smiles").memory_id
    elsewhere = store.save("The quokka smiles", space="other").memory_id
    for unknown in ("mem_nothing", elsewhere, f"{memory_id}@1", f"{memory_id}#0", "@", "a@b#c"):
        for hard in (False, True):
            with pytest.raises(NotFound, match="nothing was forgotten"):
                store.forget([memory_id, unknown], hard=hard)
        with pytest.raises(NotFound):
            store.restore(unknown)
    with pytest.raises(NotFound):
        store.forget("a file may be\ncalled so.md")
    assert store.get(memory_id).forgotten_at is None


@pytest.mark.parametrize("memory_id", [5, "", " ", b"mem", [5], {"x": object()}.values()])
def test_what_is_no_id_is_refused(store: MemoryStore, memory_id: Any) -> None:
    with pytest.raises(InvalidInput):
        store.forget(memory_id)


# --- For good ---------------------------------------------------------------------------------


def stocked(store: MemoryStore, mark: Callable[[], str]) -> str:
    """Save a memory of many words and let it live; neighbours come before, between and after."""

    def neighbour(number: int) -> None:
        store.save(
            f"Neighbour {number} " + "says nothing of it. " * (number % 90), title=f"N{number}"
        )

    def text(words: int) -> str:
        lines = (f"{mark()} and {mark()} with plain words around." for _ in range(words))
        return "# Heading " + mark() + "\r\n\r\n" + "\r\n\r\n".join(lines)

    for number in range(40):
        neighbour(number)
    memory_id = store.save(
        text(400),
        title=f"Title {mark()}",
        summary=f"Summary {mark()}",
        tags=[mark(), mark()],
        entities=[mark(), mark().upper()],
        metadata={mark(): {"deep": [mark()]}},
        session_id=mark(),
        agent_id=mark(),
        task_code=mark(),
        path=f"folder/{mark()}.md",
    ).memory_id
    for number in range(40, 80):
        neighbour(number)
    for _ in range(4):
        store.update(memory_id, title=f"Title {mark()}", metadata={mark(): mark() * 200})
        store.update(memory_id, content=text(30), tags=[mark()], entities=[mark()])
        store.update(memory_id, summary=mark(), path=mark(), who=mark())
        neighbour(random.Random(0).randrange(80, 10**9))
    store.forget(memory_id, reason=mark())
    store.restore(memory_id, who=mark())
    return memory_id


@sqlite_only
def test_what_is_forgotten_for_good_is_in_no_file_of_the_store(
    open_store: Open, path: Path, tmp_path: Path
) -> None:
    mark = Marks()
    store, other = open_store(), open_store()
    memory_id = stocked(store, mark)
    before = store.get(memory_id)
    path.with_name(f"{path.name}.backup-schema-1").write_bytes(_read(path))
    for mode in MODES:  # what was asked is kept in the statistics
        store.search(before.content[:300], mode=mode)
        other.search(before.content[:300], mode=mode)
    store.admin.doctor(optimize=True)
    assert left_in(tmp_path, mark.made)
    done = store.forget(memory_id, hard=True)
    assert (done.count, done.memory_ids, done.hard, done.still_found) == (1, (memory_id,), True, ())
    removal = done.removal
    assert removal is not None
    assert removal.traces == ()
    assert (removal.memories, removal.texts) == (1, 5)
    assert removal.chunks >= 5
    assert removal.vectors >= removal.chunks
    assert removal.history == 15
    assert [Path(each).name for each in removal.files_removed] == [f"{path.name}.backup-schema-1"]
    searched = {Path(each).name for each in removal.files_searched}
    assert {path.name, f"{path.name}-index", f"{path.name}-wal"} <= searched
    assert left_in(tmp_path, mark.made) == {}
    for each in (store, other):
        each.close()
    assert left_in(tmp_path, mark.made) == {}
    with open_store() as again:
        with pytest.raises(NotFound):
            again.get(memory_id)
        with pytest.raises(NotFound):
            again.restore(memory_id)
        with pytest.raises(NotFound):
            again.history(memory_id)
        assert all(finding.ok for finding in again.admin.doctor())
        assert again.list(forgotten=True).total == 0


def test_what_was_hidden_first_leaves_no_trace_either(
    open_store: Open, path: Path, tmp_path: Path
) -> None:
    mark = Marks()
    store = open_store()
    memory_id = stocked(store, mark)
    store.search(store.reconstruct(memory_id)[:300])
    store.forget(memory_id)
    assert store.forget(memory_id, hard=True).count == 1
    store.close()
    assert left_in(tmp_path, mark.made) == {}


@sqlite_only
def test_tombstones_are_hashes_and_go_when_the_text_is_said_again(
    store: MemoryStore, path: Path
) -> None:
    def tombstones() -> set[str]:
        rows = apsw.Connection(str(path)).execute("SELECT lower(hex(content_hash)) FROM tombstones")
        return {row[0] for row in rows}

    memory_id = store.save("The quokka smiles").memory_id
    first = store.get(memory_id).content_hash
    store.update(memory_id, content="The quokka laughs")
    second = store.get(memory_id).content_hash
    store.forget(memory_id, hard=True)
    assert tombstones() == {first, second}
    assert store.save("The quokka smiles").status == "created"
    assert tombstones() == {second}
    store.update(store.save("Something else").memory_id, content="The quokka laughs")
    assert tombstones() == set()


def test_a_text_that_another_memory_holds_too_stays_there(store: MemoryStore) -> None:
    text = "The quokka smiles at everybody who comes to the island by boat in summer."
    gone = store.save(text, session_id="s1").memory_id
    kept = store.save(text, session_id="s2").memory_id
    done = store.forget(gone, hard=True)
    assert done.removal is not None
    assert (done.removal.traces, done.still_found) == ((), ())
    assert store.get(kept).content == text
    for mode in MODES:
        assert [hit.memory_id for hit in store.search("quokka", mode=mode).results] == [kept]
    assert all(finding.ok for finding in store.admin.doctor())


@pytest.mark.parametrize(
    ("gone", "kept"),
    [
        ("authentication-service", {"content": "We use Authentication-Service daily."}),
        ("donaudampfschiff", {"content": "The DonauDampfSchiff sails."}),
        ("pending_vectors", {"content": "Something else"}),
        ("a path of its own", {"content": "Other", "path": "notes/a path of its own.md"}),
        ("blue whales sing", {"content": "Other", "tags": ["blue whales sing"]}),
        ("blue whales sing", {"content": "Other", "metadata": {"song": "blue whales sing"}}),
    ],
)
def test_what_others_say_as_well_is_no_trace(
    store: MemoryStore, gone: str, kept: dict[str, Any]
) -> None:
    store.save(**kept)
    done = store.forget(store.save(gone, kind="fact").memory_id, hard=True)
    assert done.removal is not None
    assert done.removal.traces == ()


@sqlite_only
def test_a_file_beside_the_store_that_holds_the_text_is_named(
    store: MemoryStore, path: Path
) -> None:
    text = "The quokka smiles at everybody who comes to the island."
    copy = path.with_name(f"{path.name}.my-copy")
    copy.write_text(f"before {text} after")
    done = store.forget(store.save(text).memory_id, hard=True)
    assert done.removal is not None
    assert done.removal.traces == (str(copy),)


@sqlite_only
def test_a_store_whose_name_has_brackets_is_searched_all_the_same(
    open_store: Open, tmp_path: Path
) -> None:
    path = tmp_path / "my [1] store?.db"
    store = open_store(path)
    memory_id = store.save("The quokka smiles at everybody who comes to the island.").memory_id
    backup = path.with_name(f"{path.name}.backup-schema-1")
    backup.write_bytes(b"The quokka smiles at everybody who comes to the island.")
    done = store.forget(memory_id, hard=True)
    assert done.removal is not None
    assert done.removal.files_removed == (str(backup),)
    assert str(path) + "-wal" in done.removal.files_searched


@sqlite_only
@pytest.mark.slow
def test_what_another_process_still_reads_is_said_to_be_there(
    open_store: Open,
    path: Path,
    tmp_path: Path,
    make_watched: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("byheart.storage.sqlite.erasing._LONGEST_WAIT_SECONDS", 0.2)
    mark = Marks()
    store = open_store(embedder=make_watched(32, "hash-32"))
    memory_id = store.save(f"The {mark()} smiles at {mark()} on the island").memory_id
    other = Other(path)
    assert other.ask(hold=True) == 1
    done = store.forget(memory_id, hard=True)
    assert done.removal is not None
    assert done.removal.memories == 1
    assert done.removal.traces, "the other's transaction still sees it, so it must be there"
    assert {Path(each).name for each in done.removal.traces} == set(left_in(tmp_path, mark.made))
    assert done.still_found == ()
    [finding] = [each for each in store.admin.doctor(fix=True) if each.check == "forgetting"]
    assert not finding.ok, "the other keeps the doctor from it as well"
    other.ask(hold=False)
    [finding] = [each for each in store.admin.doctor(fix=True) if each.check == "forgetting"]
    assert finding.fixed
    assert left_in(tmp_path, mark.made) == {}
    assert all(each.ok for each in store.admin.doctor())
    other.finish()


def test_a_copy_of_the_users_own_is_nothing_that_the_doctor_could_finish(
    store: MemoryStore, path: Path
) -> None:
    text = "The quokka smiles at everybody who comes to the island."
    path.with_name(f"{path.name}.my-copy").write_text(text)
    store.forget(store.save(text).memory_id, hard=True)
    assert all(finding.ok for finding in store.admin.doctor())


@sqlite_only
def test_what_an_earlier_one_left_is_not_taken_for_finished_by_one_that_was_less_thorough(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byheart.storage.sqlite.erasing._SMALL_FILE_BYTES", 0)
    with store._storage._backend.database.writing() as connection:
        connection.execute("INSERT INTO store VALUES ('unswept', '1')")
    store.forget(store.save("The quokka smiles").memory_id, hard=True)
    assert [each.check for each in store.admin.doctor() if not each.ok] == ["forgetting"]
    assert all(each.ok for each in store.admin.doctor(fix=True))


@sqlite_only
@pytest.mark.slow
def test_a_removal_that_was_committed_is_not_reported_as_failed(
    open_store: Open, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that comes in between keeps the file from being built anew, not from being told."""
    monkeypatch.setattr("byheart.storage.sqlite.erasing._LONGEST_WAIT_SECONDS", 0.2)
    store = open_store(busy_timeout_seconds=0.2)
    memory_id = store.save("The quokka smiles at everybody who comes to the island.").memory_id
    stop, started = threading.Event(), threading.Event()

    def hold() -> None:
        connection = apsw.Connection(str(path))
        connection.set_busy_timeout(20_000)
        started.set()
        # Waits for the removal and takes the lock right after it.
        while not stop.is_set():
            connection.execute("BEGIN IMMEDIATE")
            if not connection.execute("SELECT 1 FROM memories").get:
                stop.wait(30)
            connection.execute("ROLLBACK")
            time.sleep(0.001)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    try:
        while True:
            try:
                done = store.forget(memory_id, hard=True)
                break
            except StoreBusy:  # the lock was taken before it: nothing was removed yet
                assert store.get(memory_id)
    finally:
        stop.set()
        thread.join()
    assert done.removal is not None
    assert done.removal.memories == 1


@sqlite_only
@pytest.mark.slow
def test_a_process_that_is_killed_while_it_forgets_leaves_a_sound_store(
    open_store: Open, path: Path, make_watched: Callable[..., Any]
) -> None:
    script = (
        OPEN
        + """
store = open_store()
ids = [store.save(f"quokka {number} " + "words " * 50).memory_id for number in range(60)]
print(json.dumps(ids), flush=True)
for turn, memory_id in enumerate(ids):
    verb = turn % 4
    if verb == 0: store.update(memory_id, content=f"wallaby {turn} " + "words " * 50, title="T")
    if verb == 1: store.forget(memory_id)
    if verb == 2: store.forget(memory_id, hard=True)
    if verb == 3: store.update(memory_id, title=f"New {turn}", tags=["t"])
    print(turn, flush=True)
"""
    )
    for pause in (0.0, 0.004, 0.03):
        process = start(script, path)
        assert process.stdout is not None
        ids = json.loads(process.stdout.readline())
        done = [int(process.stdout.readline()) for _ in range(10)][-1]
        time.sleep(pause)
        process.kill()
        rest, _ = process.communicate()
        done = max([done, *map(int, rest.split())])
        store = open_store(embedder=make_watched(32, "hash-32"))
        assert all(finding.ok for finding in store.admin.doctor(fix=True)), store.admin.doctor()
        for turn, memory_id in enumerate(ids[: done + 1]):
            if turn % 4 in (1, 2):
                with pytest.raises(NotFound):
                    store.get(memory_id)
            else:
                assert store.get(memory_id).version == 2
        found = {hit.memory_id for hit in store.search("words", limit=500).results}
        assert found == {each.memory_id for each in store.list(limit=500).memories}
        store.forget(older_than=0, hard=True, dry_run=False)
        assert store.list(limit=1, include_expired=True).total == 0


# --- By filter --------------------------------------------------------------------------------


@pytest.fixture
def various(store: MemoryStore, path: Path) -> dict[str, str]:
    """Save memories that filters tell apart; `old` and `older` were made long ago."""
    ids = {
        "mine": store.save("mine", session_id="s1", agent_id="a1").memory_id,
        "fact": store.save("fact", session_id="s1", kind="fact").memory_id,
        "other": store.save("other", session_id="s2", agent_id="a1").memory_id,
        "global": store.save("global", tags=["t"]).memory_id,
        "old": store.save("old", session_id="s1", tags=["t"]).memory_id,
        "older": store.save("older", kind="tool_output").memory_id,
    }
    age(path, ids["old"], 31)
    age(path, ids["older"], 400)
    return ids


@sqlite_only
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"session_id": "s1"}, ["mine", "fact", "old"]),
        ({"session_id": "s1", "include_global": True}, ["mine", "fact", "old", "global", "older"]),
        ({"session_id": "s1", "kind": "fact"}, ["fact"]),
        ({"agent_id": "a1"}, ["mine", "other"]),
        ({"kind": ["fact", "tool_output"]}, ["fact", "older"]),
        ({"tags": ["t"]}, ["global", "old"]),
        ({"older_than": "30d"}, ["old", "older"]),
        ({"older_than": 32}, ["older"]),
        ({"older_than": "30d", "session_id": "s1"}, ["old"]),
        ({"older_than": "2y"}, []),
        ({"created_before": "2020-01-01"}, []),
    ],
    ids=str,
)
def test_by_filter_it_is_counted_first_and_done_when_told(
    store: MemoryStore,
    various: dict[str, str],
    filters: dict[str, Any],
    names: list[str],
    hard: bool,
) -> None:
    chosen = {various[name] for name in names}
    counted = store.forget(hard=hard, **filters)
    assert (set(counted.memory_ids), counted.count, counted.dry_run) == (chosen, len(names), True)
    assert store.list().total == len(various)
    if names:
        made = [store.get(memory_id).created_at for memory_id in chosen]
        assert (counted.oldest, counted.newest) == (min(made), max(made))
    done = store.forget(hard=hard, dry_run=False, **filters)
    assert (set(done.memory_ids), done.count, done.dry_run) == (chosen, len(names), False)
    left = {each.memory_id for each in store.list().memories}
    assert left == set(various.values()) - chosen
    assert all(finding.ok for finding in store.admin.doctor())


@sqlite_only
@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"space": "default"},
        {"include_global": True},
        {"match": "all"},
        {"include_expired": True},
        {"tags": [], "kind": [], "session_id": None, "older_than": None},
    ],
    ids=str,
)
def test_without_a_filter_nothing_is_forgotten(
    store: MemoryStore, various: dict[str, str], filters: dict[str, Any]
) -> None:
    for dry_run in (None, True, False):
        with pytest.raises(InvalidInput, match="no filter"):
            store.forget(dry_run=dry_run, **filters)
        with pytest.raises(InvalidInput, match="no filter"):
            store.forget([], dry_run=dry_run, **filters)
    assert store.list().total == len(various)


@sqlite_only
@pytest.mark.parametrize(
    "arguments",
    [
        {"session": "s1"},
        {"as_of": "2020-01-01", "kind": "note"},
        {"older_than": "soon"},
        {"older_than": "-1d"},
        {"older_than": "1 fortnight"},
        {"older_than": True},
        {"older_than": float("nan")},
        {"older_than": "9" * 30},
        {"older_than": "30d", "created_before": "2020-01-01"},
        {"kind": "note", "dry_run": "no"},
        {"kind": "note", "hard": 1},
        {"memory_id": "mem_x", "kind": "note"},
        {"memory_id": "mem_x", "older_than": 1},
    ],
    ids=str,
)
def test_what_is_not_allowed_is_refused_and_nothing_is_forgotten(
    store: MemoryStore, various: dict[str, str], arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        store.forget(**{"dry_run": False, **arguments})
    assert store.list().total == len(various)


@sqlite_only
@pytest.mark.parametrize(
    ("given", "days"),
    [
        *((30, 30), (0.5, 0.5), ("30", 30), ("30d", 30), (" 12 h ", 0.5), ("2w", 14)),
        *(("6m", 182.5), ("1y", 365.25), ("1.5d", 1.5)),
    ],
)
def test_ages_are_days_or_have_a_unit(
    store: MemoryStore, path: Path, given: float | str, days: float
) -> None:
    older, younger = store.save("older").memory_id, store.save("younger").memory_id
    age(path, older, days + 0.01)
    age(path, younger, days - 0.01)
    assert store.forget(older_than=given).memory_ids == (older,)


def test_a_dry_run_by_id_only_counts(store: MemoryStore) -> None:
    memory_id = store.save("The quokka smiles").memory_id
    for hard in (False, True):
        done = store.forget(memory_id, hard=hard, dry_run=True)
        assert (done.count, done.dry_run, done.removal) == (1, True, None)
    assert store.get(memory_id)


def test_for_good_by_filter_also_takes_what_is_hidden_or_has_run_out(store: MemoryStore) -> None:
    hidden = store.save("hidden", session_id="s1").memory_id
    expired = store.save("expired", session_id="s1", ttl_days=0).memory_id
    shown = store.save("shown", session_id="s1").memory_id
    store.forget(hidden)
    assert store.forget(session_id="s1").memory_ids == (shown,)
    done = store.forget(session_id="s1", hard=True, dry_run=False)
    assert set(done.memory_ids) == {hidden, expired, shown}
    assert store.list(include_expired=True).total == store.list(forgotten=True).total == 0


def test_forgetting_never_crosses_spaces(store: MemoryStore) -> None:
    mine = store.save("The quokka smiles", session_id="s1").memory_id
    other = store.save("The quokka smiles", session_id="s1", space="other").memory_id
    assert store.forget(session_id="s1", dry_run=False).memory_ids == (mine,)
    assert store.get(other, space="other")
    assert store.forget(session_id="s1", dry_run=False, space="other").memory_ids == (other,)


# --- By age of the last touch -----------------------------------------------------------------


@sqlite_only
def test_cleanup_forgets_what_was_neither_changed_nor_recalled(
    store: MemoryStore, path: Path
) -> None:
    untouched = store.save("untouched words").memory_id
    changed = store.save("changed words").memory_id
    recalled = store.save("recalled quokka").memory_id
    fresh = store.save("fresh words").memory_id
    for memory_id in (untouched, changed, recalled):
        age(path, memory_id, 100)
    store.update(changed, title="Changed")
    assert store.recall("quokka", limit=1).details[0].id == recalled
    counted = store.admin.cleanup()
    assert (counted.memory_ids, counted.dry_run, counted.hard) == ((untouched,), True, False)
    assert store.admin.cleanup(days_old=101).count == 0
    assert store.list().total == 4
    done = store.admin.cleanup(dry_run=False)
    assert (done.memory_ids, done.count) == ((untouched,), 1)
    assert {each.memory_id for each in store.list().memories} == {changed, recalled, fresh}
    entry = store.history(untouched)[-1]
    assert (entry.operation, entry.who) == ("forget", "cleanup")
    assert store.restore(untouched)


def test_cleanup_forgets_what_has_expired_in_what_it_was_asked_to_clean(
    store: MemoryStore,
) -> None:
    expired = store.save("one", ttl_days=0).memory_id
    kinds = store.save("two", ttl_days=0, kind="fact").memory_id
    spaces = store.save("three", ttl_days=0, space="other").memory_id
    hidden = store.save("four").memory_id
    store.forget(hidden)
    counted = store.admin.cleanup(kind="note")
    assert (counted.expired, counted.memory_ids) == (1, (expired,))
    assert store.get(expired)
    done = store.admin.cleanup(kind="note", dry_run=False)
    assert (done.expired, done.memory_ids) == (1, (expired,))
    with pytest.raises(NotFound):
        store.get(expired)
    assert store.restore(expired), "without hard, nothing is lost"
    assert store.get(kinds)
    assert store.get(spaces, space="other")
    assert store.restore(hidden)


@pytest.mark.parametrize("days", [-1, "90", float("nan"), float("inf"), 10**9, True, None])
def test_cleanup_refuses_what_is_no_age(store: MemoryStore, days: Any) -> None:
    with pytest.raises(InvalidInput):
        store.admin.cleanup(days, dry_run=False)


@sqlite_only
def test_cleanup_for_good_leaves_nothing(store: MemoryStore, path: Path, tmp_path: Path) -> None:
    mark = Marks()
    memory_id = store.save(f"{mark()} {mark()} {mark()}", title=mark()).memory_id
    age(path, memory_id, 91)
    done = store.admin.cleanup(dry_run=False, hard=True)
    assert done.removal is not None
    assert done.removal.traces == done.still_found == ()
    store.close()
    assert left_in(tmp_path, mark.made) == {}


# --- Expiry and pruning -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_memory_is_found_until_the_moment_it_runs_out(open_store: Open, mode: str) -> None:
    store = open_store()
    memory_id = store.save("The quokka smiles", expires_at=now() + timedelta(seconds=0.5)).memory_id
    store.save("The quokka stays", ttl_days=1)
    expires_at = store.get(memory_id).expires_at
    assert expires_at is not None
    while True:
        asked = now()
        found = {hit.memory_id for hit in store.search("quokka", mode=mode).results}
        count = store.search("quokka", mode=mode).index.memories
        if now() < expires_at:
            assert memory_id in found
            assert count == 2
        elif asked >= expires_at:
            assert memory_id not in found
            assert (count, store.list().total) == (1, 1)
            break
        time.sleep(0.02)
    assert store.list(include_expired=True).total == 2
    assert store.search("quokka", mode=mode, as_of=expires_at - timedelta(microseconds=1)).results
    past = store.search("quokka", mode=mode, as_of=expires_at).results
    assert memory_id not in {hit.memory_id for hit in past}


def test_ttl_days_is_exact(store: MemoryStore) -> None:
    saved = store.save("The quokka smiles", ttl_days=1.5)
    assert store.get(saved.memory_id).expires_at == saved.created_at + timedelta(days=1.5)


@pytest.fixture
def machine() -> Iterator[Machine]:
    with on_machine(Machine()) as each:
        yield each


@sqlite_only
def test_saves_take_out_what_ran_out_long_enough_ago(
    open_store: Open, path: Path, machine: Machine
) -> None:
    store = open_store(prune_after_days=10)
    ids = [store.save(f"quokka {number}", ttl_days=0).memory_id for number in range(40)]
    store.update(ids[0], content="quokka changed")
    store.save("one more quokka", ttl_days=0)
    machine.wait(days=5)
    recent = store.save("recent quokka", ttl_days=0).memory_id
    machine.wait(days=6)
    connection = apsw.Connection(str(path))
    left = [len(store.list(limit=100, include_expired=True).memories)]
    for number in range(4):
        store.save(f"something new {number}")
        left.append(len(store.list(limit=100, include_expired=True).memories) - number - 1)
    assert left[0] == 42
    assert left == sorted(left, reverse=True)
    assert left[0] - left[1] < 20, "a save takes out a few, not all"
    assert left[-1] == 1
    assert store.get(recent)
    assert connection.execute("SELECT count(*) FROM memories").get == 5
    assert connection.execute("SELECT count(*) FROM tombstones").get == 0
    assert all(finding.ok for finding in store.admin.doctor())


def test_what_a_search_still_finds_is_named(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = store.save(" " * 600 + "The quokka smiles").memory_id
    kept = erasing.erase(store._storage, [], "default", tombstones=True)
    monkeypatch.setattr(store._storage, "erase", lambda *_: kept)
    assert store.forget(memory_id, hard=True).still_found == (memory_id,)
    stats = store.admin.stats().queries
    assert (stats.total.count, stats.slowest) == (0, ()), "nobody asked for it"


@sqlite_only  # the clock of the server counts on PostgreSQL
@pytest.mark.parametrize("how", ["save", "save_many", "unchanged"])
def test_what_ran_out_is_taken_out_also_while_no_vectors_can_be_made(
    open_store: Open, machine: Machine, how: str
) -> None:
    away = WatchedEmbedder()
    away.down = True
    store = open_store(embedder=away, prune_after_days=1)
    store.save("The quokka smiles", ttl_days=0)
    store.save("something known")
    machine.wait(days=2)
    if how == "save_many":
        store.save_many([{"content": "something new"}])
    else:
        store.save("something known" if how == "unchanged" else "something new")
    assert "quokka" not in str(store.list(include_expired=True))


@sqlite_only
def test_pruning_waits_for_nobody_who_searches(open_store: Open, path: Path) -> None:
    store, other = open_store(prune_after_days=0), open_store()
    for number in range(20):
        store.save(f"quokka {number}")
    apsw.Connection(str(path)).execute("UPDATE memories SET expires_at = 1, updated_at = 1")
    with other._storage.searching("default"):  # in the middle of a search
        store.save("something new")
        assert store.list(limit=100, include_expired=True).total < 21
    assert [hit.snippet for hit in other.search("new", mode="fts").results]


@pytest.mark.parametrize(
    ("importance", "days"),
    [
        *((10, None), (9.9, 365), (8, 365), (7.9, 180), (6, 180), (5, 90), (4, 90)),
        *((3, 30), (2, 30), (1.9, 7), (0, 7)),
    ],
)
def test_with_the_retention_policy_importance_says_how_long(
    open_store: Open, importance: float, days: int | None
) -> None:
    store = open_store(retention_policy=True)
    saved = store.save("The quokka smiles", importance=importance)
    expected = None if days is None else saved.created_at + timedelta(days=days)
    assert store.get(saved.memory_id).expires_at == expected
    given = store.save("The quokka laughs", importance=importance, ttl_days=3)
    assert store.get(given.memory_id).expires_at == given.created_at + timedelta(days=3)
    store.update(saved.memory_id, ttl_days=None)
    assert store.get(saved.memory_id).expires_at is None


def test_without_the_policy_nothing_expires(store: MemoryStore) -> None:
    assert store.get(store.save("The quokka", importance=0).memory_id).expires_at is None


# --- The index --------------------------------------------------------------------------------


def test_scores_are_as_if_what_is_forgotten_had_never_been(
    open_store: Open, tmp_path: Path
) -> None:
    store, plain = open_store(), open_store(tmp_path / "plain.db")
    for number, text in enumerate(["the quokka eats", "the wallaby eats leaves", "a bird"]):
        store.forget(store.save(f"quokka quokka eats {number}").memory_id)
        for each in (store, plain):
            each.save(text)
    expected = [(hit.snippet, hit.score) for hit in plain.search("the quokka eats").results]
    for each in (store, open_store()):
        found = [(hit.snippet, hit.score) for hit in each.search("the quokka eats").results]
        assert found == expected


@sqlite_only
def test_an_index_file_of_any_moment_is_caught_up(open_store: Open, path: Path) -> None:
    store = open_store()
    index = path.with_name(path.name + "-index")
    ids = [store.save(f"quokka number {number}").memory_id for number in range(6)]
    files: list[bytes] = []

    def keep() -> None:
        store.admin.doctor(optimize=True)
        files.append(index.read_bytes())

    keep()
    store.forget(ids[0])
    keep()
    store.update(ids[1], content="quokka changed", title="T")
    store.update(ids[2], title="U")
    keep()
    store.restore(ids[0])
    store.forget(ids[3], hard=True)
    keep()
    store.forget(ids[5])
    store.supersede(ids[4], ids[1])
    expected = [
        (hit.chunk_id, hit.score) for hit in store.search("quokka changed", limit=50).results
    ]
    assert len(expected) == 4
    assert expected[-1][0].startswith(ids[4])
    store.close()
    for contents in (*files, b"", b"not an index"):
        index.write_bytes(contents)
        for _ in range(2):
            with open_store() as again:
                found = again.search("quokka changed", limit=50).results
                assert [(hit.chunk_id, hit.score) for hit in found] == expected
                again.admin.doctor(optimize=True)


@pytest.mark.slow
def test_threads_that_search_while_others_forget_see_only_what_holds(open_store: Open) -> None:
    store, other = open_store(), open_store()
    ids = [store.save(f"quokka number {number}").memory_id for number in range(30)]
    hidden: set[str] = set()
    over = threading.Event()
    wrong: list[str] = []

    def search(each: MemoryStore) -> None:
        while not over.is_set():
            gone = set(hidden)
            found = {hit.memory_id for hit in each.search("quokka", limit=100).results}
            wrong.extend(found & gone)

    threads = [threading.Thread(target=search, args=(each,)) for each in (store, other)]
    for thread in threads:
        thread.start()
    try:
        for turn, memory_id in enumerate(ids):
            (store if turn % 2 else other).forget(memory_id, hard=turn % 5 == 0)
            hidden.add(memory_id)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []


@sqlite_only
def test_a_forgetting_that_was_cut_off_is_noticed_and_finished_by_the_doctor(
    open_store: Open, path: Path, tmp_path: Path
) -> None:
    store, mark = open_store(), Marks()
    memory_id = store.save(f"{mark()} {mark()} {mark()}", title=mark()).memory_id
    store.search("anything")
    store.close()
    # What a process has done when it dies right after its transaction.
    database = Database(path, 1)
    with database.writing() as connection:
        erasing.remove(SqlWriter(connection), [memory_id], "default", tombstones=True)
        connection.execute("INSERT INTO store VALUES ('unswept', '1')")
    database.close()
    assert left_in(tmp_path, mark.made), "the keyword index still has the words"
    with open_store() as again:
        [finding] = [each for each in again.admin.doctor() if not each.ok]
        assert (finding.check, "fix=True" in finding.hint) == ("forgetting", True)
        assert all(each.ok for each in again.admin.doctor(fix=True))
        assert all(each.ok for each in again.admin.doctor())
    assert left_in(tmp_path, mark.made) == {}
