"""The Markdown folder: written for people, read back with what they changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from byheart.errors import Conflict, InvalidInput
from byheart.store import MemoryStore

OpenStore = Callable[..., MemoryStore]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "vault"


@pytest.fixture
def other(open_store: OpenStore, tmp_path: Path) -> MemoryStore:
    return open_store(tmp_path / "other.db")


def only_file(folder: Path) -> Path:
    [path] = folder.rglob("*.md")
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_bytes().decode()
    assert old in text
    path.write_bytes(text.replace(old, new).encode())


# --- Writing ------------------------------------------------------------------------------------


def test_a_memory_is_a_file_named_after_it_in_the_folder_of_its_kind(
    store: MemoryStore, folder: Path
) -> None:
    saved = store.save("text", kind="report", title="Größe & Form: März!").memory_id
    assert store.export(folder, format="markdown").memories == 1
    assert only_file(folder).relative_to(folder) == Path(f"report/grösse-form-märz-{saved[-8:]}.md")


def test_front_matter_is_yaml_with_tags_as_a_plain_list_and_the_text_is_exact(
    store: MemoryStore, folder: Path
) -> None:
    text = "\n---\ntitle: not front matter\n---\r\nText \x00 with 記憶 and no newline at its end"
    saved = store.save(
        text,
        title='A "quoted": title\nof two lines \x85 \u2028',
        tags=["people", "two words"],
        entities=["Anna"],
        metadata={"n": 1},
        importance=7,
        expires_at="2090-01-01",
        session_iter=3,
    )
    store.export(folder, format="markdown")
    _, matter, body = only_file(folder).read_bytes().decode().split("---\n", 2)
    loaded = yaml.safe_load(matter)
    assert loaded["id"] == saved.memory_id
    assert loaded["title"] == 'A "quoted": title\nof two lines \x85 \u2028'
    assert (loaded["tags"], loaded["entities"]) == (["people", "two words"], ["Anna"])
    assert (loaded["importance"], loaded["metadata"], loaded["session_iter"]) == (7, {"n": 1}, 3)
    assert loaded["expires"].year == 2090
    assert body == "\n" + text


def test_what_is_hidden_or_has_run_out_is_not_for_people(store: MemoryStore, folder: Path) -> None:
    store.forget(store.save("hidden").memory_id)
    store.save("stale", expires_at="2020-01-01")
    saved = store.save("old text").memory_id
    store.update(saved, content="new text")
    assert store.export(folder, format="markdown").memories == 1
    assert only_file(folder).read_text().endswith("new text")


def test_with_all_spaces_each_has_its_folder_and_goes_back_into_it(
    store: MemoryStore, other: MemoryStore, folder: Path
) -> None:
    store.save("mine")
    store.save("theirs", space="Team B")
    store.export(folder, format="markdown", all_spaces=True)
    assert {each.name for each in folder.iterdir()} == {"default", "team-b"}
    other.import_(folder)
    assert [each.content for each in other.list(space="Team B").memories] == ["theirs"]


def test_a_folder_with_something_in_it_is_written_to_only_when_asked(
    store: MemoryStore, folder: Path
) -> None:
    saved = store.save("text", title="First").memory_id
    store.export(folder, format="markdown")
    (folder / "mine.md").write_text("my own")
    store.update(saved, title="Second")
    with pytest.raises(InvalidInput, match="is not empty"):
        store.export(folder, format="markdown")
    store.export(folder, format="markdown", overwrite=True)
    # A memory is one file, also after its title changed; what is not ours stays.
    assert {each.name for each in folder.rglob("*.md")} == {
        f"second-{saved[-8:]}.md",
        "mine.md",
    }


def test_ids_cannot_lead_out_of_the_folder(
    store: MemoryStore, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "evil.md"
    path.write_text(
        '---\nid: "../../../etc/passwd"\nversion: 1\ncontent_hash: "x"\n'
        'kind: note\ntitle: "../../up"\n---\n\ntext'
    )
    store.import_(path)
    store.export(folder, format="markdown")
    assert only_file(folder).name == "up-tcpasswd.md"


def test_vectors_and_streams_are_not_for_markdown(store: MemoryStore, folder: Path) -> None:
    with pytest.raises(InvalidInput, match="without vectors"):
        store.export(folder, format="markdown", vectors=True)
    folder.write_text("a file")
    with pytest.raises(InvalidInput, match="is a file"):
        store.export(folder, format="markdown")


# --- Reading back -------------------------------------------------------------------------------


def test_a_folder_that_nobody_touched_changes_nothing(store: MemoryStore, folder: Path) -> None:
    store.save_many({"content": f"text {n}\r\n", "tags": ["b", "a"]} for n in range(5))
    store.export(folder, format="markdown")
    result = store.import_(folder)
    assert (result.unchanged, result.imported, result.updated) == (5, 0, 0)


def test_in_another_store_memories_keep_their_ids_and_ages(
    store: MemoryStore, other: MemoryStore, folder: Path
) -> None:
    saved = store.save("text", title="Title", tags=["a"], importance=9).memory_id
    store.export(folder, format="markdown")
    assert other.import_(folder).imported == 1
    ours, theirs = store.get(saved), other.get(saved)
    assert (theirs.content, theirs.title, theirs.tags) == (ours.content, ours.title, ours.tags)
    assert (theirs.created_at, theirs.importance) == (ours.created_at, 9)
    assert other.import_(folder).unchanged == 1


def test_a_changed_text_is_an_update_with_history(store: MemoryStore, folder: Path) -> None:
    saved = store.save("Anna drinks tea.", tags=["a"]).memory_id
    store.export(folder, format="markdown")
    edit(only_file(folder), "drinks tea", "drinks coffee")
    assert store.import_(folder).updated == 1
    memory = store.get(saved)
    assert (memory.content, memory.version, memory.tags) == ("Anna drinks coffee.", 2, ("a",))
    assert store.history(saved)[-1].who == f"import of {only_file(folder).resolve()}"
    assert store.import_(folder).unchanged == 1
    # And again, from the same file, without a new export in between.
    edit(only_file(folder), "drinks coffee", "drinks juice")
    assert store.import_(folder).updated == 1


def test_a_file_may_have_a_name_that_is_not_utf8(store: MemoryStore, folder: Path) -> None:
    store.save("Anna drinks tea.")
    store.export(folder, format="markdown")
    try:
        path = only_file(folder).rename(folder / os.fsdecode(b"caf\xe9.md"))
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    edit(path, "tea", "juice")
    assert store.import_(folder).updated == 1


def test_changed_front_matter_is_an_update_as_well(store: MemoryStore, folder: Path) -> None:
    saved = store.save("Anna drinks tea.", title="Tea", tags=["a"]).memory_id
    store.export(folder, format="markdown")
    edit(only_file(folder), '  - "a"', "  - b\n  - '#c'")
    edit(only_file(folder), 'title: "Tea"', "title: 2026")
    assert store.import_(folder).updated == 1
    assert (store.get(saved).tags, store.get(saved).title) == (("b", "c"), "2026")


def test_a_file_that_is_merely_older_than_its_memory_takes_nothing_back(
    store: MemoryStore, folder: Path
) -> None:
    saved = store.save("first text").memory_id
    store.export(folder, format="markdown")
    store.update(saved, content="second text")
    assert store.import_(folder).unchanged == 1
    assert store.get(saved).content == "second text"


def test_a_file_and_a_memory_that_both_changed_are_named_and_force_lets_the_file_win(
    store: MemoryStore, folder: Path
) -> None:
    saved = store.save("first text").memory_id
    store.export(folder, format="markdown")
    store.update(saved, content="second text")
    edit(only_file(folder), "first text", "third text")
    with pytest.raises(Conflict, match=r"note/first-text-\w+\.md: .* has changed since"):
        store.import_(folder)
    assert len(store.import_(folder, on_error="skip").skipped) == 1
    assert store.import_(folder, force=True).updated == 1
    assert store.get(saved).content == "third text"


def test_an_old_folder_takes_nothing_back_from_a_newer_one(
    store: MemoryStore, tmp_path: Path
) -> None:
    saved = store.save("first text", tags=["a"], importance=3).memory_id
    old, new = tmp_path / "old", tmp_path / "new"
    store.export(old, format="markdown")
    store.update(saved, content="second text", importance=4)
    store.export(new, format="markdown")
    edit(only_file(new), "second text", "third text")
    assert store.import_(new).updated == 1
    assert store.import_(old).unchanged == 1
    assert store.get(saved).content == "third text"
    edit(only_file(new), '- "a"', "- b")
    assert store.import_(new).updated == 1
    assert store.import_(old).unchanged == 1
    assert (store.get(saved).tags, store.get(saved).importance) == (("b",), 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [("first text", "third text"), ('- "a"', "- c"), ("importance: 3", "importance: 9")],
)
def test_two_folders_do_not_overwrite_each_other_unseen(
    store: MemoryStore, tmp_path: Path, old: str, new: str
) -> None:
    saved = store.save("first text", tags=["a"], importance=3).memory_id
    one, two = tmp_path / "one", tmp_path / "two"
    store.export(one, format="markdown")
    store.export(two, format="markdown")
    edit(only_file(one), '- "a"', "- b")
    edit(only_file(two), old, new)
    assert store.import_(one).updated == 1
    with pytest.raises(Conflict, match="has changed since"):
        store.import_(two)
    assert (store.get(saved).content, store.get(saved).tags) == ("first text", ("b",))
    assert store.import_(two, force=True).updated == 1
    # The file won: from here on it can be changed again.
    edit(only_file(two), "text", "words")
    assert store.import_(two).updated == 1


def test_another_store_takes_newer_files_only(
    store: MemoryStore, other: MemoryStore, tmp_path: Path
) -> None:
    saved = store.save("first text").memory_id
    folders = [tmp_path / name for name in ("1", "2", "3")]
    store.export(folders[0], format="markdown")
    store.update(saved, content="second text")
    store.export(folders[1], format="markdown")
    assert other.import_(folders[1]).imported == 1
    with pytest.raises(Conflict):
        other.import_(folders[0])
    store.update(saved, content="third text")
    store.export(folders[2], format="markdown")
    assert other.import_(folders[2]).updated == 1
    assert other.import_(folders[1]).unchanged == 1
    assert other.get(saved).content == "third text"


def test_the_second_file_of_an_id_is_named(
    store: MemoryStore, other: MemoryStore, folder: Path
) -> None:
    saved = store.save("first text").memory_id
    store.export(folder, format="markdown")
    path = only_file(folder)
    copy = path.with_name(f"{path.stem} 1.md")
    copy.write_bytes(path.read_bytes().replace(b"first", b"other"))
    for each in (store, other):
        with pytest.raises(
            InvalidInput, match=rf"{copy.name}: it has the same id as .*{path.name}"
        ):
            each.import_(folder)
        assert len(each.import_(folder, on_error="skip").skipped) == 1
        assert each.get(saved).content == "first text"
    edit(copy, f'id: "{saved}"\n', "")
    assert store.import_(folder).imported == 1
    assert {each.content for each in store.list().memories} == {"first text", "other text"}


def test_a_file_of_a_forgotten_memory_does_not_bring_it_back(
    store: MemoryStore, folder: Path
) -> None:
    saved = store.save("first text").memory_id
    store.export(folder, format="markdown")
    store.forget(saved)
    with pytest.raises(Conflict, match="was forgotten here"):
        store.import_(folder)
    store.restore(saved)
    store.forget(saved, hard=True)
    assert store.import_(folder).refused == 1
    assert store.import_(folder, force=True).imported == 1


# --- Files of others ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title", "tags", "content"),
    [
        ("# My day\n\nIt rained.\n", "My day", (), "# My day\n\nIt rained.\n"),
        ("It rained.", "diary", (), "It rained."),
        ("---\ntags: [rain, '#sun']\n---\nIt rained.", "diary", ("rain", "sun"), "It rained."),
        ("---\ntags: rain, sun\n---\n# Hi\n", "Hi", ("rain", "sun"), "# Hi\n"),
        ("---\r\ntitle: Weather\r\n---\r\nRain.\r\n", "Weather", (), "Rain.\r\n"),
        ("---\n---\nRain.", "diary", (), "Rain."),
        ("---\n\nA rule, not front matter", "diary", (), "---\n\nA rule, not front matter"),
        ("---\n\nTea: a: [b\n\n---\n", "diary", (), "---\n\nTea: a: [b\n\n---\n"),
    ],
)
def test_any_markdown_becomes_a_note(
    store: MemoryStore,
    folder: Path,
    text: str,
    title: str,
    tags: tuple[str, ...],
    content: str,
) -> None:
    (folder / "journal").mkdir(parents=True)
    (folder / "journal" / "diary.md").write_bytes(text.encode())
    (folder / ".obsidian").mkdir()
    (folder / ".obsidian" / "notes.md").write_text("settings")
    assert store.import_(folder).imported == 1
    [memory] = store.list().memories
    assert (memory.kind, memory.title, memory.tags) == ("note", title, tags)
    assert (memory.content, memory.path) == (content, "journal/diary.md")
    assert store.import_(folder).unchanged == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('---\nid: "mem_1"\nnot: [yaml\n---\nRain.', r"not YAML: expected ',' or ']'.* in line 4"),
        ("---\nid: mem_1\na: &x [1]\nb: [*x, *x]\n---\nRain.", "references are not followed"),
        ("---\nnot: [yaml\nversion: 1\ncontent_hash: x\n---\nRain.", "not YAML"),
        ('---\nid: "mem_1"\nversion: 1\n\nRain.', "front matter has no end"),
        ("---\nid: [7]\nversion: 1\ncontent_hash: x\n---\n\nRain.", r"not one: \[7\]"),
    ],
)
def test_broken_front_matter_of_ours_is_named_and_becomes_no_note(
    store: MemoryStore, folder: Path, text: str, reason: str
) -> None:
    folder.mkdir()
    (folder / "broken.md").write_text(text)
    with pytest.raises(InvalidInput, match=rf"broken\.md: .*{reason}"):
        store.import_(folder)
    assert [each.place for each in store.import_(folder, on_error="skip").skipped] == ["broken.md"]
    assert store.list().total == 0


@pytest.mark.parametrize(
    ("matter", "reason"),
    [
        ("title: {{title}}", "it is not YAML: found unhashable key in line 2"),
        ("tags:\n\t- a", r"it is not YAML: .* in line 3"),
        ("tags: [unclosed", "it is not YAML: expected ',' or ']'.* in line 3"),
        ("# a comment\nid: [2024", "it is not YAML"),
        ("a: &x [1]\nb: [*x, *x]", "references are not followed"),
        ("date: 2026-13-45", "month must be in 1..12"),
        ('n: !!int ""', "a value is not of its type"),
        ("n: !!timestamp x", "a value is not of its type"),
        ("n: .nan", "cannot be written as JSON"),
        ('title: "\\ud800"', "cannot be written as JSON"),
        ("n: " + "[" * 2000 + "]" * 2000, "nested too deeply"),
        ("- " * 2000 + "a", "nested too deeply"),
    ],
)
@pytest.mark.parametrize("hidden", [".obsidian", ".other"])
def test_a_note_whose_front_matter_cannot_be_read_comes_whole_with_a_remark(
    store: MemoryStore, folder: Path, matter: str, reason: str, hidden: str
) -> None:
    (folder / hidden).mkdir(parents=True)
    text = f"---\n{matter}\n---\n# Rain\n\nIt rained."
    (folder / "a.md").write_text(text)
    (folder / "b.md").write_text("behind it")
    counted, imported = store.import_(folder, dry_run=True), store.import_(folder)
    assert (counted.imported, imported.imported, imported.skipped) == (2, 2, ())
    assert counted.remarks == imported.remarks
    [remark] = imported.remarks
    assert (remark.place, remark.what) == ("a.md", "front matter kept as text")
    assert re.search(reason, remark.reason)
    [note] = store.list(path="a.md").memories
    assert (note.title, note.content, note.kind) == ("Rain", text, "note")
    assert store.import_(folder).unchanged == 2


def test_a_field_by_which_others_mean_something_else_becomes_metadata(
    store: MemoryStore, folder: Path
) -> None:
    folder.mkdir()
    (folder / "a.md").write_text(
        "---\nimportance: high\nexpires: never\nsource: [a, b]\nkind: Book Review\norigin: web\n"
        "metadata: words\ntags: [tea]\nsummary: ''\n---\nText."
    )
    imported = store.import_(folder)
    [note] = store.list().memories
    assert note.metadata == {
        "importance": "high",
        "expires": "never",
        "source": ["a", "b"],
        "kind": "Book Review",
        "origin": "web",
        "metadata": "words",
    }
    assert (note.content, note.tags, note.kind, note.origin) == (
        "Text.",
        ("tea",),
        "note",
        "import",
    )
    assert {each.what for each in imported.remarks} == {"field kept as metadata"}
    assert len(imported.remarks) == 5  # an origin of another kind is nothing to speak of


def test_an_empty_note_stops_no_folder_but_alone_it_is_refused(
    store: MemoryStore, folder: Path
) -> None:
    folder.mkdir()
    (folder / "a.md").write_text(" \n")
    (folder / "b.md").write_text("Text.")
    imported = store.import_(folder)
    assert (imported.imported, imported.left_out) == (1, {"empty note": 1})
    with pytest.raises(InvalidInput):
        store.import_(folder / "a.md")


def test_an_id_that_names_a_text_or_a_chunk_is_refused(store: MemoryStore, folder: Path) -> None:
    memory_id = store.save("The quokka smiles").memory_id
    folder.mkdir()
    for number, name in enumerate((f"{memory_id}@1", f"{memory_id}#0")):
        matter = f'---\nid: "{name}"\nversion: 1\ncontent_hash: "x"\n---\n\n'
        (folder / f"{number}.md").write_text(f"{matter}Text {number}.")
    done = store.import_(folder, on_error="skip")
    assert (done.imported, len(done.skipped)) == (0, 2)
    assert store.update(memory_id, content="The quokka laughs").status == "updated"


def test_front_matter_of_others_is_kept_as_metadata(store: MemoryStore, folder: Path) -> None:
    folder.mkdir()
    (folder / "a.md").write_text("---\naliases: [x]\ndate: 2026-03-14\nid: 7\n---\nText.")
    store.import_(folder)
    [memory] = store.list().memories
    assert memory.metadata == {"aliases": ["x"], "date": "2026-03-14", "id": 7}


def test_a_file_that_cannot_be_saved_is_named(store: MemoryStore, folder: Path) -> None:
    folder.mkdir()
    (folder / "a.md").write_bytes(b"caf\xe9")
    (folder / "b.md").write_text("---\ntitle: empty\n---\n")
    (folder / "c.md").write_text("fine")
    result = store.import_(folder, on_error="skip")
    assert [each.place for each in result.skipped] == ["a.md"]
    assert "is not UTF-8 text" in result.skipped[0].reason
    assert (result.imported, result.left_out) == (1, {"empty note": 1})
    with pytest.raises(InvalidInput, match=r"a\.md: it is not UTF-8"):
        store.import_(folder)
