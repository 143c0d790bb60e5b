"""A text that is not the one that was saved is never given out as if it were."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from byheart.errors import ByheartError, StoreDamaged, StoreError
from byheart.storage.sqlite import migrations
from byheart.store import MemoryStore
from tests.fuzz.faults import failing_disk
from tests.fuzz.verbs import reading

OpenStore = Callable[..., MemoryStore]
LONG = "\n\n".join(
    f"## Part {n}\n\n" + f"Sentence about harbour {n} and its ships. " * 40 for n in range(6)
)


def damage(path: Path, old: bytes, new: bytes) -> None:
    """Change bytes in the file as a failing disk does: nothing in SQLite notices."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    content = path.read_bytes()
    assert len(old) == len(new)
    assert content.count(old)
    path.write_bytes(content.replace(old, new))


@pytest.fixture
def damaged(open_store: OpenStore, path: Path) -> tuple[MemoryStore, str, str]:
    """Give a store with a damaged memory, its id, and the id of a sound one."""
    store = open_store()
    bad = store.save("The lighthouse keeper is called Annabel Strand.").memory_id
    good = store.save("The lighthouse is painted red and white.").memory_id
    store.close()
    damage(path, b"Annabel Strand", b"Annabel Strend")
    return open_store(), bad, good


def test_get_refuses_it_and_says_what_to_do(damaged: tuple[MemoryStore, str, str]) -> None:
    store, bad, good = damaged
    with pytest.raises(StoreDamaged, match=bad) as raised:
        store.get(bad)
    assert "backup" in raised.value.hint
    for read in (store.reconstruct, lambda name: store.expand(f"{name}#0")):
        with pytest.raises(StoreDamaged):
            read(bad)
    assert store.get(good).content.startswith("The lighthouse is")


@pytest.mark.parametrize("granularity", ["fine", "medium", "coarse"])
def test_a_hit_is_marked(damaged: tuple[MemoryStore, str, str], granularity: str) -> None:
    store, bad, good = damaged
    found = store.search("lighthouse", granularity=granularity)
    assert {hit.memory_id: hit.damaged for hit in found.results} == {bad: True, good: False}


def test_listings_mark_it(damaged: tuple[MemoryStore, str, str]) -> None:
    store, bad, good = damaged
    listed = store.list().memories
    assert {each.memory_id: each.damaged for each in listed} == {bad: True, good: False}


def test_recall_and_context_leave_it_out_and_say_so(damaged: tuple[MemoryStore, str, str]) -> None:
    store, bad, good = damaged
    recalled = store.recall("lighthouse")
    assert [each.id for each in recalled.details] == [good]
    assert recalled.remark is not None
    assert bad in recalled.remark
    store.pin(bad)
    answer = store.context("chat", "lighthouse")
    assert "Annabel" not in answer.text
    reasons = {each.memory_id: each.reason for each in answer.receipt.left_out}
    assert reasons[bad] == "damaged"
    assert answer.remark is not None
    assert bad in answer.remark


def test_an_export_names_it_and_an_import_refuses_it(
    damaged: tuple[MemoryStore, str, str], open_store: OpenStore, tmp_path: Path
) -> None:
    store, bad, good = damaged
    exported = store.export(tmp_path / "all.jsonl")
    assert exported.damaged == (bad,)
    other = open_store(tmp_path / "other.db")
    taken = other.import_(tmp_path / "all.jsonl", on_error="skip")
    assert [each.memory_id for each in other.list().memories] == [good]
    assert len(taken.skipped) == 1


@pytest.mark.parametrize("more", ["", " And again."])
def test_a_text_given_anew_takes_its_place(
    damaged: tuple[MemoryStore, str, str], more: str
) -> None:
    store, bad, _ = damaged
    text = f"The lighthouse keeper is called Annabel Strand.{more}"
    store.update(bad, content=text)
    assert store.get(bad).content == text
    [hit] = [each for each in store.search("lighthouse").results if each.memory_id == bad]
    assert not hit.damaged


def test_a_new_title_does_not_make_it_look_sound(damaged: tuple[MemoryStore, str, str]) -> None:
    store, bad, _ = damaged
    with pytest.raises(StoreDamaged, match="nothing was changed"):
        store.update(bad, title="The keeper")
    [hit] = [each for each in store.search("lighthouse").results if each.memory_id == bad]
    assert hit.damaged


def test_of_a_long_text_only_the_changed_passage_is_marked(
    open_store: OpenStore, path: Path
) -> None:
    store = open_store()
    saved = store.save(LONG)
    assert saved.chunks > 2
    store.close()
    damage(path, b"harbour 3", b"harbour 9")
    again = open_store()
    hits = again.search("harbour ships", limit=50).results
    marked = [hit for hit in hits if hit.damaged]
    assert 0 < len(marked) < len(hits)
    assert all("harbour 9" in hit.chunk_content for hit in marked)
    assert all(hit.damaged for hit in again.search("harbour", granularity="coarse").results)


def return_to_schema_9(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back the schema changes 10 and 11; those that follow are in the file and stay there."""
    known = [each for each in migrations.known_migrations() if each[0] <= 11]
    monkeypatch.setattr(migrations, "known_migrations", lambda: known)
    connection = apsw.Connection(str(path))
    connection.execute("ALTER TABLE memories DROP COLUMN language")
    connection.execute("ALTER TABLE chunks DROP COLUMN checksum")
    connection.execute("PRAGMA user_version = 9")
    connection.close()


def test_an_upgrade_marks_texts_that_were_damaged_before(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    bad = store.save("The lighthouse keeper is called Annabel Strand.").memory_id
    good = store.save("The lighthouse is painted red and white.").memory_id
    store.close()
    damage(path, b"Annabel Strand", b"Annabel Strend")
    return_to_schema_9(path, monkeypatch)
    found = open_store().search("lighthouse").results
    assert {hit.memory_id: hit.damaged for hit in found} == {bad: True, good: False}


def test_an_upgrade_of_a_store_with_bytes_that_are_no_text_still_opens(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    store.save("The lighthouse keeper is called Annabel Strand.")
    store.save("Quite another matter: pelicans.")
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE chunks SET content = CAST(x'616cff62' AS TEXT) WHERE chunk_no = 1")
    connection.close()
    return_to_schema_9(path, monkeypatch)
    checks = {finding.check: finding.ok for finding in open_store().admin.doctor()}
    assert not all(checks.values())


# --- Rows that make no sense, and disks that fail ---------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memories SET created_at = 9000000000000000000",
        "UPDATE chunks SET headings = '[5]'",
        "UPDATE chunks SET headings = '{}'",
        "UPDATE memories SET metadata = '7'",
        "UPDATE chunks SET memory_no = 999",
        "DELETE FROM chunks",
    ],
)
def test_rows_that_were_never_written_so_give_errors_of_our_own(
    open_store: OpenStore, path: Path, statement: str
) -> None:
    store = open_store()
    memory_id = store.save("# Title\n\nThe lighthouse keeper is called Annabel.").memory_id
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(statement)
    connection.close()
    path.with_name("memory.db-index").unlink(missing_ok=True)
    again = open_store()
    for _, ask in reading(memory_id):
        with contextlib.suppress(ByheartError):
            ask(again)


def test_a_disk_that_fails_once_is_not_taken_for_a_damaged_file(
    open_store: OpenStore, path: Path
) -> None:
    store = open_store()
    store.save("The lighthouse is painted red and white.")
    store.close()
    with failing_disk() as faults:
        faults.rates = {"read": 1.0}
        with pytest.raises(StoreError) as raised:
            open_store()
        assert not isinstance(raised.value, StoreDamaged)
        assert raised.value.hint.startswith("try again")
        assert "backup" not in raised.value.hint
        faults.rates = {}
        assert open_store().search("lighthouse").total_results == 1
