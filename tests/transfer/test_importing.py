"""Importing: what is there stays, what was erased stays out, what is damaged is named."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import InvalidInput, StoreFull
from byheart.model import TransferProgress
from byheart.model.field_types import Field
from byheart.store import MemoryStore
from byheart.transfer.jsonl import _Fields, _take

OpenStore = Callable[..., MemoryStore]
Lines = list[dict[str, Any]]


@pytest.fixture
def other(open_store: OpenStore, tmp_path: Path) -> MemoryStore:
    return open_store(tmp_path / "other.db")


def dumped(store: MemoryStore, **options: Any) -> Lines:
    out = io.BytesIO()
    store.export(out, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def joined(lines: Lines) -> io.BytesIO:
    return io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def sound(store: MemoryStore) -> bool:
    return all(finding.ok for finding in store.admin.doctor())


def test_an_import_into_a_session_that_went_on_here_is_ordered_by_time(
    store: MemoryStore, other: MemoryStore
) -> None:
    for number in (1, 2, 3):
        store.log("s", "user", f"A{number}", created_at=f"2026-01-01T10:0{number}:00Z")
    for number in (1, 2):
        other.log("s", "user", f"B{number}", created_at=f"2026-01-02T10:0{number}:00Z")
    other.import_(joined(dumped(store)))
    said = [turn.content for turn in other.sessions.transcript("s").turns]
    assert said == ["A1", "A2", "A3", "B1", "B2"]


# --- What is there already ----------------------------------------------------------------------


def test_a_known_id_is_left_as_it_is(store: MemoryStore, other: MemoryStore) -> None:
    saved = store.save("first text")
    lines = dumped(store)
    other.import_(joined(lines))
    other.update(saved.memory_id, content="changed there")
    result = other.import_(joined(lines))
    assert (result.imported, result.unchanged) == (0, 1)
    assert other.get(saved.memory_id).content == "changed there"


def test_the_same_text_under_another_id_is_left_as_it_is(
    store: MemoryStore, other: MemoryStore
) -> None:
    store.save("same text", session_id="s1")
    mine = other.save("same text", session_id="s1").memory_id
    other.save("same text", session_id="s2")
    assert other.import_(joined(dumped(store))).unchanged == 1
    assert {each.memory_id for each in other.list(session_id="s1").memories} == {mine}


def test_what_superseded_a_memory_is_named_by_its_id_here(
    store: MemoryStore, other: MemoryStore
) -> None:
    old, new = store.save("old fact").memory_id, store.save("new fact").memory_id
    store.supersede(old, new)
    here = other.save("new fact").memory_id
    other.import_(joined(dumped(store)))
    assert other.get(old).superseded_by == here


def test_a_text_that_ran_out_here_makes_room_for_one_that_did_not(
    store: MemoryStore, other: MemoryStore
) -> None:
    fresh = store.save("offer of the day").memory_id
    stale = other.save("offer of the day", expires_at="2020-01-01").memory_id
    assert other.import_(joined(dumped(store))).imported == 1
    assert [each.memory_id for each in other.list(include_expired=True).memories] == [fresh]
    assert stale != fresh


def test_what_is_hidden_there_is_hidden_here_and_can_be_restored(
    store: MemoryStore, other: MemoryStore
) -> None:
    saved = store.save("hidden text").memory_id
    store.forget(saved, reason="old")
    other.import_(joined(dumped(store)))
    assert other.list().total == 0
    assert other.restore(saved).content == "hidden text"


def test_spaces_are_kept_and_only_this_one_is_exported_unless_asked(
    store: MemoryStore, other: MemoryStore
) -> None:
    store.save("mine")
    store.save("theirs", space="elsewhere")
    assert "theirs" not in json.dumps(dumped(store))
    other.import_(joined(dumped(store, all_spaces=True)))
    assert [each.content for each in other.list().memories] == ["mine"]
    assert [each.content for each in other.list(space="elsewhere").memories] == ["theirs"]
    with pytest.raises(InvalidInput, match="both given"):
        store.export(io.BytesIO(), all_spaces=True, space="elsewhere")


# --- What was forgotten for good ----------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
def test_an_erased_text_stays_out_unless_forced(
    store: MemoryStore, other: MemoryStore, plain: bool
) -> None:
    store.save("the secret text")
    lines = [{"content": "the secret text"}] if plain else dumped(store)
    other.forget(other.save("the secret text").memory_id, hard=True)
    result = other.import_(joined(lines))
    assert (result.imported, result.refused) == (0, 1)
    assert other.list().total == 0
    assert other.import_(joined(lines), force=True).imported == 1
    assert other.list().total == 1
    assert sound(other)


def test_an_erased_earlier_text_stays_out_and_the_current_one_comes(
    store: MemoryStore, other: MemoryStore
) -> None:
    saved = store.save("the secret text").memory_id
    store.update(saved, content="a harmless text")
    other.forget(other.save("the secret text").memory_id, hard=True)
    result = other.import_(joined(dumped(store)))
    assert (result.imported, result.refused) == (1, 1)
    assert "secret" not in json.dumps(dumped(other))


def test_a_refused_record_leaves_the_expired_memory_with_its_text_visible(
    store: MemoryStore, other: MemoryStore
) -> None:
    fresh = store.save("offer of the day").memory_id
    lines = dumped(store)
    store.forget(fresh, hard=True)
    stale = other.save("offer of the day", expires_at="2020-01-01").memory_id
    other.import_(joined(dumped(store)))  # brings the tombstone of the text
    assert other.import_(joined(lines)).refused == 1
    assert [each.memory_id for each in other.list(include_expired=True).memories] == [stale]


def test_tombstones_come_along(store: MemoryStore, other: MemoryStore) -> None:
    lines = [{"content": "the secret text"}]
    store.forget(store.save("the secret text").memory_id, hard=True)
    other.import_(joined(dumped(store)))
    assert other.import_(joined(lines)).refused == 1


# --- Vectors ------------------------------------------------------------------------------------


def test_vectors_in_the_file_are_not_made_again(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path, watched: Any
) -> None:
    store.save("some text")
    watched.name, watched.dimensions = "hash-384", 384
    other = open_store(tmp_path / "other.db", embedder=watched)
    result = other.import_(joined(dumped(store, vectors=True)))
    assert (result.pending_vectors, watched.embedded) == (0, [])
    assert other.search("some text", mode="vector").results[0].similarity == pytest.approx(1)


def test_without_vectors_in_the_file_they_are_made_unless_told_not_to(
    store: MemoryStore, other: MemoryStore
) -> None:
    store.save("some text")
    assert other.import_(joined(dumped(store)), embed=False).pending_vectors == 1
    assert other.import_(joined(dumped(store))).pending_vectors == 0


def test_vectors_of_another_model_are_kept_but_not_searched(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path
) -> None:
    store.save("some text")
    other = open_store(tmp_path / "other.db", embedder=HashEmbedder(32))
    other.save("a text that was here")
    result = other.import_(joined(dumped(store, vectors=True)), embed=False)
    assert result.pending_vectors == 1
    assert other.status().index.model == "hash-32"
    [memory] = [each for each in dumped(other, vectors=True) if each.get("content") == "some text"]
    assert list(memory["chunks"][0]["vectors"]) == ["hash-384"]
    assert other.admin.embed_pending() == 1
    assert sound(other)


def test_when_no_vectors_can_be_made_everything_else_is_done_and_the_reason_is_given(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path, watched: Any
) -> None:
    store.save("some text")
    watched.down = True
    other = open_store(tmp_path / "other.db", embedder=watched)
    result = other.import_(joined(dumped(store)))
    assert (result.imported, result.pending_vectors) == (1, 1)
    assert "holiday" in (result.degraded or "")


# --- Damage -------------------------------------------------------------------------------------


def damage(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], bytes]:
    def apply(line: dict[str, Any]) -> bytes:
        change(line)
        return json.dumps(line).encode()

    return apply


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], bytes], str]] = {
    "bad json": (lambda line: json.dumps(line).encode()[:-5], "it is not JSON"),
    "not an object": (lambda line: b"[]", "it is not an object"),
    "not utf-8": (lambda line: b'{"caf\xe9": 1}', "it is not UTF-8"),
    "half a character": (
        damage(lambda line: line.update(title="\ud800")),
        "it cannot be stored: 'utf-8' codec can't encode",
    ),
    "not a number": (damage(lambda line: line["metadata"].update(x=float("nan"))), "cannot be"),
    "no type": (damage(lambda line: line.pop("type")), "type is missing"),
    "unknown type": (damage(lambda line: line.update(type="thing")), "the type 'thing'"),
    "missing field": (damage(lambda line: line.pop("importance")), "importance is missing"),
    "wrong type": (damage(lambda line: line.update(title=3)), "title must be text, not a number"),
    "unknown field": (damage(lambda line: line.update(colour="red")), "colour is not known"),
    "bad date": (damage(lambda line: line.update(created_at="soon")), "created_at 'soon'"),
    "bad importance": (damage(lambda line: line.update(importance=11)), "importance 11"),
    "no iteration": (
        damage(lambda line: line.update(session_iter=2**31)),
        "session_iter 2147483648 is not an iteration",
    ),
    "changed text": (
        damage(lambda line: line.update(content="other text")),
        "content is not the text that content_hash was made of",
    ),
    "gap": (
        damage(lambda line: line["chunks"][1].update(start_char=99)),
        r"chunks\[1\] goes from character 99",
    ),
    "cut short": (damage(lambda line: line["chunks"].pop()), "chunks end at character"),
    "strange headings": (
        damage(lambda line: line["chunks"][0].update(headings=["Tea"])),
        r"chunks\[0\].headings must be a list of",
    ),
    "short vector": (
        damage(lambda line: line["chunks"][0]["vectors"]["hash-384"][0].__setitem__(1, "AAAA")),
        r"chunks\[0\].vectors have 3 bytes instead of 1,536",
    ),
    "broken vector": (
        damage(lambda line: line["chunks"][0]["vectors"]["hash-384"][0].__setitem__(1, "?")),
        r"chunks\[0\].vectors cannot be decoded",
    ),
    "vector of nobody": (
        damage(lambda line: line["chunks"][0].update(vectors={"x": []})),
        "which the header does not name",
    ),
    "strange history": (
        damage(lambda line: line["history"][0].update(operation="sing")),
        "operation 'sing' is not known",
    ),
    "id of a chunk": (damage(lambda line: line.update(memory_id="mem_1#2")), "names a text or"),
}


@pytest.mark.parametrize(("spoil", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_line_is_named_and_stops_or_is_skipped_and_nothing_of_it_is_written(
    store: MemoryStore, other: MemoryStore, spoil: Callable[..., bytes], reason: str
) -> None:
    store.save("one")
    store.save("# Tea\n\nGreen.\n\n# Coffee\n\nBlack.\n", metadata={"a": 1})
    store.save("three")
    lines = dumped(store, vectors=True)
    encoded = [json.dumps(line).encode() for line in lines]
    number = next(at for at, line in enumerate(lines) if "Coffee" in line.get("content", ""))
    encoded[number] = spoil(lines[number])
    file = b"\n".join(encoded) + b"\n"
    with pytest.raises(InvalidInput, match=f"the file line {number + 1}: .*{reason}") as caught:
        other.import_(io.BytesIO(file))
    assert "what came before it is kept (1 new or changed)" in caught.value.hint
    assert [each.content for each in other.list().memories] == ["one"]
    result = other.import_(io.BytesIO(file), on_error="skip")
    assert (result.imported, result.unchanged) == (1, 1)
    assert result.skipped[0].place == f"the file line {number + 1}"
    assert {each.content for each in other.list().memories} == {"one", "three"}
    assert sound(other)


def test_a_file_that_was_cut_off_is_noticed_and_what_was_there_is_kept(
    store: MemoryStore, other: MemoryStore
) -> None:
    store.save("one")
    store.save("two")
    lines = dumped(store)
    with pytest.raises(InvalidInput, match="its last line is missing: the file was cut off"):
        other.import_(joined(lines[:-1]))
    assert other.list().total == 2
    with pytest.raises(InvalidInput, match="it should have 2 memories, but has 1"):
        other.import_(joined([*lines[:-2], lines[-1]]))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"format": "something"}, "the format 'something' is not known"),
        ({"format": "byheart-export", "version": 2}, "the file has version 2"),
        ({"format": "byheart-export", "version": 1}, "models is missing"),
        (
            {"format": "byheart-export", "version": 1, "model": "m", "models": []},
            "'m' is not among the models",
        ),
    ],
)
def test_a_header_that_cannot_be_understood_stops_everything(
    store: MemoryStore, header: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        store.import_(joined([header, {"type": "end", "memories": 0}]), on_error="skip")


def test_plain_lines_are_saved_as_save_does(store: MemoryStore) -> None:
    lines = [{"content": "one", "kind": "fact", "tags": ["a"]}, {"content": "two"}]
    assert store.import_(joined(lines)).imported == 2
    assert store.import_(joined(lines)).unchanged == 2
    with pytest.raises(InvalidInput, match="line 2: importance 11"):
        store.import_(joined([{"content": "three"}, {"content": "four", "importance": 11}]))
    result = store.import_(joined([{"kind": "fact"}, {"content": "five"}]), on_error="skip")
    assert [each.place for each in result.skipped] == ["the file line 1"]
    assert {each.content for each in store.list().memories} == {"one", "two", "three", "five"}


def test_an_export_without_its_first_line_is_recognized(
    store: MemoryStore, other: MemoryStore
) -> None:
    store.save("text")
    with pytest.raises(InvalidInput, match="line 1: this looks like lines of an export without"):
        other.import_(joined(dumped(store)[1:]))


def test_a_store_is_recognized(store: MemoryStore, other: MemoryStore, tmp_path: Path) -> None:
    store.save("text")
    store.admin.backup(tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match=r"copy\.db is a store, .*open it as a store"):
        other.import_(tmp_path / "copy.db", on_error="skip")


def test_bad_json_is_placed_in_its_line(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match=r"line 2: it is not JSON: .* at column 13 \("):
        store.import_(io.BytesIO(b'{"content": "one"}\n{"content": two}\n'))


def test_an_empty_file_is_said_to_be_empty(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="is empty: there is nothing to import"):
        store.import_(io.BytesIO(b"\n\n"))


# --- Interruptions ------------------------------------------------------------------------------


def test_an_interrupted_import_goes_on_where_it_was(
    store: MemoryStore, other: MemoryStore, tmp_path: Path
) -> None:
    store.save_many({"content": f"text number {number}"} for number in range(300))
    store.export(tmp_path / "all.jsonl")

    def interrupt(progress: TransferProgress) -> None:
        if progress.memories >= 128:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        other.import_(tmp_path / "all.jsonl", on_progress=interrupt)
    assert other.list().total == 128
    seen: list[TransferProgress] = []
    result = other.import_(tmp_path / "all.jsonl", on_progress=seen.append)
    assert (result.imported, result.unchanged) == (172, 128)
    read = [each for each in seen if not each.embedded][-1]
    assert read.done == read.total == (tmp_path / "all.jsonl").stat().st_size
    assert (seen[-1].embedded, seen[-1].total) == (300, 300)
    assert sound(other)
    other.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()


def test_an_export_that_fails_leaves_no_half_file(store: MemoryStore, tmp_path: Path) -> None:
    store.save("text")

    def fail(progress: TransferProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.export(tmp_path / "all.jsonl", on_progress=fail)
    assert not list(tmp_path.glob("all.jsonl*"))


def test_a_file_that_exists_is_replaced_only_when_asked(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text("precious")
    with pytest.raises(InvalidInput, match="exists already"):
        store.export(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_text() == "precious"
    store.export(tmp_path / "all.jsonl", overwrite=True)
    assert "byheart-export" in (tmp_path / "all.jsonl").read_text()


def test_an_export_follows_links_and_leaves_devices_and_pipes_what_they_are(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.save("text")
    target, link, pipe = (tmp_path / name for name in ("all.jsonl", "link", "pipe"))
    target.write_text("old")
    link.symlink_to(target)
    store.export(link, overwrite=True)
    assert link.is_symlink()
    assert "byheart-export" in target.read_text()
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        store.export(pipe, overwrite=True)
        assert os.read(reading, 1_000_000) == target.read_bytes()
    finally:
        os.close(reading)
    assert pipe.is_fifo()
    with pytest.raises(InvalidInput, match="is a device or a pipe"):
        store.admin.backup(pipe, overwrite=True)
    assert not list(tmp_path.glob("*.partial*"))


def test_a_space_can_be_copied_under_another_name(open_store: Any, tmp_path: Path) -> None:
    store = open_store()
    old, new = (store.save(text).memory_id for text in ("The limit is 1.", "The limit is 2."))
    store.update(old, content="The limit is 1.5.")
    store.supersede(old, by=new)
    store.export(tmp_path / "ours.jsonl")
    lines = (tmp_path / "ours.jsonl").read_text().replace('"space":"default"', '"space":"copy"')
    assert lines.count('"space":"copy"') >= 2
    (tmp_path / "copy.jsonl").write_text(lines)
    assert store.import_(tmp_path / "copy.jsonl").imported == 2
    assert store.import_(tmp_path / "copy.jsonl").unchanged == 2
    copies = {each.content: each for each in store.list(space="copy").memories}
    assert set(copies) == {"The limit is 1.5.", "The limit is 2."}
    assert copies["The limit is 1.5."].superseded_by == copies["The limit is 2."].memory_id
    assert {each.memory_id for each in copies.values()}.isdisjoint((old, new))
    assert store.get(old).superseded_by == new
    assert all(finding.ok for finding in store.admin.doctor())


# --- A full disk ----------------------------------------------------------------------------------


def test_when_the_disk_is_full_it_is_said_what_is_kept_and_how_to_go_on(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """A store that may not grow is what a full disk is to SQLite."""
    store = open_store()
    lines = [{"content": f"text number {number} " + "word " * 20} for number in range(160)]
    with store._storage._backend.database.writing() as connection:
        pages = connection.execute("PRAGMA page_count").get
        connection.execute(f"PRAGMA max_page_count = {pages + 100}")
    with pytest.raises(StoreFull) as raised:
        store.import_(joined(lines))
    kept = store.list().total
    assert 0 < kept < 160
    assert "nothing was changed" not in str(raised.value)
    assert raised.value.hint.startswith(f"what came before it is kept ({kept:,} new or changed): ")
    assert "run the command again; it goes on from there" in raised.value.hint
    with store._storage._backend.database.writing() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    result = store.import_(joined(lines))
    assert (result.imported, result.unchanged) == (160 - kept, kept)


# --- Whole numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize("nullable", [False, True])
def test_the_least_whole_number_is_that_of_the_table(nullable: bool) -> None:
    field = Field(name="number", codec="whole", nullable=nullable, least=3)
    assert _take(_Fields({"number": 3}), field) == 3
    with pytest.raises(InvalidInput, match="number"):
        _take(_Fields({"number": 2}), field)


def test_a_field_without_a_least_number_can_be_negative() -> None:
    field = Field(name="number", codec="whole", nullable=True, least=None)
    assert _take(_Fields({"number": -7}), field) == -7
    assert _take(_Fields({"number": None}), field) is None
