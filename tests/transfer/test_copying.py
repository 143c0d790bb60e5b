"""Copy stores between SQLite and PostgreSQL: the same rows and answers, whatever interrupts."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import psycopg
import pytest

from byheart import open as open_byheart
from byheart.contracts import MemoryRecord
from byheart.contracts.copies import OF_MEMORIES, OF_SPACE, OF_STORE
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import InvalidInput, StoreBusy, StoreError, StoreReadOnly, StoreUnreachable
from byheart.model import CopyProgress
from byheart.opening import _open_storage, copy_store
from byheart.settings import Settings, load_settings
from byheart.storage.postgres.address import parse_address
from byheart.store import MemoryStore
from byheart.transfer import copying
from byheart.transfer.copying import SEARCHES
from tests.postgres_stores import postgres_store_url

NewTarget = Callable[[], str]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("copies")
    chosen = {"embedding_provider": "hash", "cache_dir": folder / "cache"}
    return load_settings(chosen, environ={}, config_path=folder / "none")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Path:
    """Make a store that has everything a store can have; no test changes it."""
    path = tmp_path_factory.mktemp("source") / "source.db"
    settings = replace(settings, db_path=str(path))
    with open_byheart(settings=settings, embedder=HashEmbedder(64)) as store:
        fill(store, path.with_name("files"))
    with open_byheart(settings=settings) as store:
        store.admin.reembed()  # keeps the vectors of the model before
    with open_byheart(settings=replace(settings, embedding_provider="none")) as store:
        assert store.save("Waits for its vectors.").pending_vectors
    with opened(path, settings) as storage:
        storage.bookmarks.put("/a/transcript.jsonl", "default", "12")
    return path


@pytest.fixture(scope="module")
def everything(source: Path, settings: Settings) -> dict[str, Any]:
    return dump(source, settings)


@pytest.fixture
def own_source(source: Path, tmp_path: Path) -> Path:
    """Give a copy of the source that a test may change."""
    return Path(shutil.copy(source, tmp_path / "own.db"))


@pytest.fixture
def new_postgres() -> Iterator[NewTarget]:
    """Give addresses of empty PostgreSQL stores."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(postgres_store_url())


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path, new_postgres: NewTarget) -> str:
    """Name an empty store in each database."""
    return str(tmp_path / "target.db") if request.param == "sqlite" else new_postgres()


def fill(store: MemoryStore, folder: Path) -> None:
    for at in range(30):
        title = f"Fruit {at}" if at % 2 else None
        text = f"Pear number {at} grows beside Anna's house. \x00 記憶 {'More words. ' * (at * 9)}"
        store.save(text, title=title, tags=[f"t{at % 3}"], entities=["Anna", f"Tree {at % 4}"])
    first = store.list(limit=1).memories[0].memory_id
    for at in range(3):
        store.update(first, content=f"A text, changed {at} times.")
    second = store.save("Hidden for now.", space="other").memory_id
    store.forget(second, space="other")
    gone = store.save("Erased for good.").memory_id
    store.forget(gone, hard=True)
    store.save("Expires.", expires_at="2199-01-01")
    for at in range(5):
        store.log("talk", "user" if at % 2 else "assistant", f"Turn {at} about plums.")
    store.sessions.summarize("talk", "They talked about plums.")
    always = store.save("Always first.").memory_id
    store.pin(always)
    store.review.keep(f"unused:{always}@1")
    store.entities.merge(["Tree 1", "Tree 2"], "Oak")
    store.supersede(first, store.save("A better text.").memory_id)
    store.recall("pear")
    store.context("talk", "plums")
    folder.mkdir()
    for name in ("one.md", "two.md"):
        (folder / name).write_text(f"# {name}\n\nA file about cherries.\n")
    store.index(folder)
    (folder / "two.md").unlink()
    store.index(folder)
    store.api_keys.create("laptop", access="write")
    store.save("Said in another space.", space="other", session_id="s", entities=["Anna"])


def opened(address: str | Path, settings: Settings, *, read_only: bool = False) -> Any:
    """Open the storage of a store alone, until the end of a block."""
    chosen = replace(settings, db_path=str(address))
    return closing(_open_storage(chosen, create=True, read_only=read_only))


def dump(address: str | Path, settings: Settings) -> dict[str, Any]:
    """Give everything that a store has, as comparable values."""
    with opened(address, settings, read_only=True) as storage:
        with storage.reading() as reader:
            rows = reader.whole_rows
            found: dict[str, Any] = {
                "models": reader.models.read(),
                "keys": reader.api_keys.find(),
                "store": rows.of_store(),
                "spaces": {space: rows.of_space(space) for space in rows.spaces()},
            }
        for space in found["spaces"]:
            with storage.reading(space) as reader:
                rows = reader.whole_rows
                records = reader.dump(space, vectors=True).records()
                found[space] = [plain(each) for each in records]
                found[f"{space}, rows"] = rows.of_memories(rows.numbers(space))
    return found


def plain(record: Any) -> Any:
    """Write vectors as bytes, which can be compared."""
    if not isinstance(record, MemoryRecord):
        return record
    texts = [
        replace(
            text,
            vectors=tuple(
                {
                    model: [(w.text_hash, np.asarray(w.vector).tobytes()) for w in windows]
                    for model, windows in each.items()
                }
                for each in text.vectors
            ),
        )
        for text in (record.text, *record.earlier)
    ]
    return texts, record.history


def stop_at(step: str, done: int) -> Callable[[CopyProgress], None]:
    """Interrupt a copy at a step, as Ctrl-C does."""

    def show(progress: CopyProgress) -> None:
        if (progress.step, progress.done) == (step, done):
            raise KeyboardInterrupt

    return show


def copy_in_part(source: Path, target: str, settings: Settings) -> None:
    """Begin a copy, and interrupt it after the first batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "_BATCH", 7)
        with pytest.raises(KeyboardInterrupt):
            copy_store(source, target, settings=settings, on_progress=stop_at("copying", 14))


def test_a_store_that_was_filled_on_postgresql_goes_to_a_file(
    settings: Settings, new_postgres: NewTarget, tmp_path: Path
) -> None:
    first, file = new_postgres(), str(tmp_path / "file.db")
    with open_byheart(settings=replace(settings, db_path=first)) as store:
        fill(store, tmp_path / "files")
    copied = copy_store(first, file, settings=settings)
    assert copied.searches == SEARCHES
    assert dump(file, settings) == dump(first, settings)
    for address in (first, file):
        with opened(address, settings) as storage:
            assert [each for each in storage.examine() if not each.ok] == []


def test_a_store_goes_to_postgresql_and_back_with_everything(
    source: Path,
    everything: dict[str, Any],
    settings: Settings,
    new_postgres: NewTarget,
    tmp_path: Path,
) -> None:
    middle, other, back = new_postgres(), new_postgres(), str(tmp_path / "back.db")
    copied = [
        copy_store(*each, settings=settings)
        for each in ((source, middle), (middle, other), (other, back))
    ]
    for address in (middle, other, back):
        assert dump(address, settings) == everything
    first = copied[0]
    assert {(each.searches, each.resumed) for each in copied} == {(SEARCHES, False)}
    assert {tuple(each.kinds.items()) for each in copied} == {tuple(first.kinds.items())}
    assert first.memories == sum(first.kinds.values()) > 40
    empty = [table for table, count in first.rows.items() if not count]
    assert empty == [], "the store of this test should have rows in every table"
    with opened(back, settings) as storage:
        assert [each for each in storage.examine() if not each.ok] == []


def test_the_source_stays_as_it_is(
    own_source: Path, settings: Settings, new_postgres: NewTarget
) -> None:
    before = {each.name: each.read_bytes() for each in own_source.parent.iterdir()}
    copy_store(own_source, new_postgres(), settings=settings)
    assert {each.name: each.read_bytes() for each in own_source.parent.iterdir()} == before


def test_the_log_of_a_source_that_crashed_is_read_and_stays(
    own_source: Path, settings: Settings, tmp_path: Path
) -> None:
    crashed = tmp_path / "crashed.db"
    with open_byheart(settings=replace(settings, db_path=str(own_source))) as store:
        store.save("Only in the log.")
        for name in ("own.db", "own.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / name.replace("own", "crashed"))
    files = [crashed, crashed.with_name("crashed.db-wal")]
    before = [each.read_bytes() for each in files]
    assert before[1]
    copy_store(crashed, tmp_path / "target.db", settings=settings)
    assert [each.read_bytes() for each in files] == before
    with open_byheart(settings=replace(settings, db_path=str(tmp_path / "target.db"))) as store:
        assert store.search("only in the log", mode="fts").results[0].memory_id


def test_every_column_goes_with_a_copy_or_is_left_out_on_purpose(
    source: Path, new_postgres: NewTarget
) -> None:
    copied = {**OF_MEMORIES, **OF_SPACE, **OF_STORE}
    derived = ("chunk_words_", "published_index", "ledger_", "vocabulary")
    # Derived from other rows, or a claim for a while, or the log of this store alone.
    left_out = {
        *("changes", "chunk_words", "memory_counts", "models", "spaces"),
        *("workspaces.watcher", "workspaces.beat_at", "workspaces.behind", "workspaces.trouble"),
        *("pending_vectors.claimed_until", "pending_vectors.claimed_by"),
    }
    for columns in (sqlite_columns(source), postgres_columns(new_postgres())):
        listed = {f"{table}.{column}" for table, own in copied.items() for column in own}
        others = {each for each in columns - listed if each.partition(".")[0] not in left_out}
        others = {each for each in others if not each.startswith(derived)}
        assert others <= left_out
        assert listed <= columns


def sqlite_columns(path: Path) -> set[str]:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        rows = connection.execute(
            "SELECT t.name, c.name FROM pragma_table_list t JOIN pragma_table_info(t.name) c "
            "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'"
        )
        return {f"{table}.{column}" for table, column in rows}


def postgres_columns(url: str) -> set[str]:
    address = parse_address(url)
    with psycopg.connect(address.conninfo) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = %s AND column_name <> 'part'",
            (address.schema,),
        )
        return {f"{table}.{column}" for table, column in rows}


@pytest.mark.parametrize(
    ("step", "done"), [("copying", 7), ("copying", 21), ("checking", 7), ("searching", 3)]
)
def test_an_interrupted_copy_goes_on_where_it_stopped(
    source: Path,
    everything: dict[str, Any],
    settings: Settings,
    target: str,
    step: str,
    done: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "_BATCH", 7)
    with pytest.raises(KeyboardInterrupt):
        copy_store(source, target, settings=settings, on_progress=stop_at(step, done))
    shown: list[CopyProgress] = []
    copied = copy_store(source, target, settings=settings, on_progress=shown.append)
    assert copied.resumed
    assert shown[0].done >= done
    assert dump(target, settings) == everything


def test_a_killed_copy_goes_on_and_doubles_nothing(
    source: Path, everything: dict[str, Any], settings: Settings, target: str
) -> None:
    program = (
        "import sys, byheart.transfer.copying as copying\n"
        "from pathlib import Path\n"
        "from byheart.opening import copy_store\n"
        "from byheart.settings import load_settings\n"
        "copying._BATCH, copying._CLAIM_SECONDS = 3, 0.5\n"
        "settings = load_settings({'cache_dir': Path(sys.argv[3])}, environ={})\n"
        "show = lambda progress: print(progress.step, flush=True)\n"
        "copy_store(sys.argv[1], sys.argv[2], settings=settings, on_progress=show)\n"
    )
    arguments = [str(source), target, str(settings.cache_dir)]
    for lines in (2, 3):
        with subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout is not None
            assert [running.stdout.readline() for _ in range(lines)] == ["copying\n"] * lines
            running.kill()
    assert copy_store(source, target, settings=settings).resumed
    assert dump(target, settings) == everything


def test_changes_of_the_source_between_two_runs_are_copied(
    own_source: Path, settings: Settings, target: str
) -> None:
    copy_in_part(own_source, target, settings)
    with open_byheart(settings=replace(settings, db_path=str(own_source))) as store:
        first, second, third, *_ = store.list(limit=50).memories[::-1]
        store.update(first.memory_id, content="Changed since.", tags=["new"])
        store.forget(second.memory_id, hard=True)
        store.forget(third.memory_id)
        store.save(third.content, title="Saved again while the other is hidden")
        store.entities.rename("Anna", "Anne")
        store.recall("pear")
        store.api_keys.create("another")
    expected = dump(own_source, settings)
    assert copy_store(own_source, target, settings=settings).resumed
    assert dump(target, settings) == expected


def test_a_space_that_the_source_has_no_longer_is_removed_from_an_unfinished_copy(
    own_source: Path, settings: Settings, target: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        copy_store(own_source, target, settings=settings, on_progress=stop_at("searching", 1))
    with opened(own_source, settings) as storage, storage.writing("other") as writer:
        rows = writer.whole_rows
        rows.remove_memories(rows.numbers("other"), 1)
        rows.replace_space("other", dict.fromkeys(rows.of_space("other"), ()))
    expected = dump(own_source, settings)
    copied = copy_store(own_source, target, settings=settings)
    assert (copied.spaces, dump(target, settings)) == (1, expected)


def test_the_copy_is_a_store_like_any_other(
    source: Path, everything: dict[str, Any], settings: Settings, target: str
) -> None:
    copy_store(source, target, settings=settings)
    with open_byheart(settings=replace(settings, db_path=target)) as store:
        saved = store.save("Saved into the copy, about apricots.", entities=["Anna", "Zoe"])
        hits = store.search("apricots").results
        assert hits[0].memory_id == saved.memory_id
        logged = store.log("talk", "user", "Another turn.")
        assert store.sessions.transcript("talk").turns[-1].memory_id == logged.memory_id
        [key] = everything["keys"]
        assert [each.name for each in store.api_keys.list()] == [key.name]


def test_an_api_key_of_the_source_is_valid_in_the_copy(
    own_source: Path, settings: Settings, target: str
) -> None:
    with open_byheart(settings=replace(settings, db_path=str(own_source))) as store:
        secret = store.api_keys.create("phone", access="read").secret
    copy_store(own_source, target, settings=settings)
    with open_byheart(settings=replace(settings, db_path=target)) as store:
        found = store.api_keys.check(secret)
        assert (found.name, found.access) == ("phone", "read")


def test_more_passages_than_a_sample_has_are_found_with_the_same_scores(
    tmp_path: Path, settings: Settings, new_postgres: NewTarget
) -> None:
    path = tmp_path / "many.db"
    words = ["pear", "plum", "quince", "cherry", "apple", "fig", "grape", "sloe", "rye", "oat"]
    texts = (
        {
            "content": f"{words[at % 10]} {words[at * 7 % 9]} {words[at % 7]} of basket {at}",
            "space": "default" if at % 3 else "other",
        }
        for at in range(1500)
    )
    with open_byheart(settings=replace(settings, db_path=str(path))) as store:
        store.save_many(texts)
    assert copy_store(path, new_postgres(), settings=settings).searches == SEARCHES


# --- Refusals -----------------------------------------------------------------------------------


def test_a_target_that_is_not_empty_is_refused_and_stays_as_it_is(
    source: Path, settings: Settings, target: str
) -> None:
    with open_byheart(settings=replace(settings, db_path=target)) as store:
        store.save("I was here first.")
    before = dump(target, settings)
    with pytest.raises(InvalidInput, match="is not empty") as caught:
        copy_store(source, target, settings=settings)
    assert "new file" in str(caught.value)
    assert dump(target, settings) == before


def test_a_target_with_nothing_but_an_api_key_is_not_empty(
    source: Path, settings: Settings, target: str
) -> None:
    with open_byheart(settings=replace(settings, db_path=target)) as store:
        store.api_keys.create("phone")
    with pytest.raises(InvalidInput, match="is not empty"):
        copy_store(source, target, settings=settings)


def test_an_unfinished_copy_that_was_written_to_is_refused(
    source: Path, settings: Settings, target: str
) -> None:
    copy_in_part(source, target, settings)
    storage = _open_storage(replace(settings, db_path=target), create=False, for_copy=True)
    with MemoryStore(storage, HashEmbedder(), settings) as store:
        saved = store.save("Saved too early.").memory_id
        with pytest.raises(InvalidInput, match="written to since"):
            copy_store(source, target, settings=settings)
        assert store.get(saved).content == "Saved too early."


def test_an_unfinished_copy_can_only_be_read_and_says_how_to_go_on(
    source: Path, settings: Settings, target: str
) -> None:
    copy_in_part(source, target, settings)
    with open_byheart(settings=replace(settings, db_path=target)) as store:
        assert not store.status().writable
        location = store.status().store
        [finding] = [each for each in store.admin.doctor() if each.check == "copy"]
        assert not finding.ok
        with pytest.raises(StoreReadOnly) as caught:
            store.save("Saved too early.")
        for message, hint in (
            (str(store.search("pear").degraded), str(store.status().degraded)),
            (caught.value.message, caught.value.hint),
            (finding.message, finding.hint),
        ):
            assert f"is an unfinished copy of {source}" in message
            # A shell takes the & of an address for its own, unless it is quoted.
            assert f"byheart copy {shlex.quote(str(source))} {shlex.quote(location)}" in hint
    copy_store(source, target, settings=settings)
    with open_byheart(settings=replace(settings, db_path=target)) as store:
        assert "unfinished" not in str(store.search("pear").degraded)
        assert "copy" not in {each.check for each in store.admin.doctor()}
        store.save("Saved in time.")


def test_two_copies_to_one_target_do_not_meet(
    source: Path,
    everything: dict[str, Any],
    settings: Settings,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "_BATCH", 7)
    monkeypatch.setattr(copying, "_RENEW_SECONDS", 0.0)
    monkeypatch.setattr(copying, "_POLL_SECONDS", 0.05)
    refused: list[StoreBusy] = []

    def copy_too(_progress: CopyProgress) -> None:
        if refused or second.is_alive():
            time.sleep(0.02)  # leaves the other one time to see that this one lives
        elif not started:
            started.append(1)
            second.start()

    def copy_second() -> None:
        try:
            copy_store(source, target, settings=settings)
        except StoreBusy as error:
            refused.append(error)

    started: list[int] = []
    second = threading.Thread(target=copy_second)
    assert not copy_store(source, target, settings=settings, on_progress=copy_too).resumed
    second.join(30)
    assert "another process copies to" in refused[0].message
    assert dump(target, settings) == everything


def test_a_copy_that_another_process_took_over_stops(
    source: Path,
    everything: dict[str, Any],
    settings: Settings,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "_BATCH", 7)
    monkeypatch.setattr(copying, "_CLAIM_SECONDS", 0.0)  # as after a long pause

    def take_over(progress: CopyProgress) -> None:
        if progress.done == 14 and progress.step == "copying":
            assert copy_store(source, target, settings=settings).resumed

    with pytest.raises(StoreError, match="goes on with the copy"):
        copy_store(source, target, settings=settings, on_progress=take_over)
    assert dump(target, settings) == everything


def test_an_unfinished_copy_of_another_store_is_refused(
    source: Path, settings: Settings, target: str, tmp_path: Path
) -> None:
    copy_in_part(source, target, settings)
    with open_byheart(settings=replace(settings, db_path=str(tmp_path / "other.db"))) as store:
        store.save("Another store.")
    with pytest.raises(InvalidInput, match="copy of another store"):
        copy_store(tmp_path / "other.db", target, settings=settings)


def test_a_finished_copy_is_not_copied_to_again(
    source: Path, settings: Settings, target: str
) -> None:
    copy_store(source, target, settings=settings)
    with pytest.raises(InvalidInput, match="copy of this store already"):
        copy_store(source, target, settings=settings)


def test_a_store_is_not_copied_to_itself(own_source: Path, settings: Settings) -> None:
    with pytest.raises(InvalidInput, match="the store itself"):
        copy_store(own_source, own_source, settings=settings)


def test_a_source_that_does_not_exist_is_not_created(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="there is no store"):
        copy_store(tmp_path / "missing.db", tmp_path / "target.db", settings=settings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE chunks SET content = 'Changed.'", "texts of the space default differ"),
        ("DELETE FROM vectors", "texts of the space default differ"),
        ("UPDATE memories SET access_count = 7", "texts of the space default differ"),
        ("DELETE FROM tombstones", "rows of the space default differ"),
    ],
)
def test_a_copy_that_differs_is_noticed(
    source: Path,
    settings: Settings,
    tmp_path: Path,
    statement: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "_BATCH", 1000)
    target = tmp_path / "target.db"

    def damage(progress: CopyProgress) -> None:
        if progress.step == "copying" and progress.done:
            with closing(apsw.Connection(str(target))) as connection:
                connection.execute(statement)

    with pytest.raises(StoreError, match=message):
        copy_store(source, target, settings=settings, on_progress=damage)
