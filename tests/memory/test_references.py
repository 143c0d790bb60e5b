"""Which memory a name means: an id, or else the place of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from byheart.errors import InvalidInput, NotFound
from byheart.model.ids import short_form
from byheart.store import MemoryStore


def test_a_path_is_seen_from_the_working_folder(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = store.save("The kelp grows.", path=f"{tmp_path}/deep/mem_kelp.md")
    monkeypatch.chdir(tmp_path)
    for name in ("deep/mem_kelp.md", "./deep/../deep/mem_kelp.md:1"):
        assert store.get(name).memory_id == saved.memory_id
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert store.get("mem_kelp.md").memory_id == saved.memory_id


def test_a_file_is_found_through_a_link_to_its_folder(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / "sea").mkdir()
    (tmp_path / "sea/kelp.md").write_text("The kelp grows.\n")
    (tmp_path / "link").symlink_to("sea")
    store.index(tmp_path / "link")
    for folder in ("sea", "link"):
        assert store.get(f"{tmp_path}/{folder}/kelp.md").content == "The kelp grows.\n"
        assert store.expand(f"{tmp_path}/{folder}/kelp.md:1").chunks_returned == 1


def test_a_file_may_be_called_like_a_line_or_a_chunk(store: MemoryStore) -> None:
    odd = [store.save(f"{path} is odd.", path=path) for path in ("/n/a:12", "/n/b#3", "/n/a")]
    assert store.get("/n/a:12").memory_id == odd[0].memory_id
    assert store.get("/n/b#3").memory_id == odd[1].memory_id
    assert store.get("/n/a:1").memory_id == odd[2].memory_id


def test_the_name_of_a_memory_is_no_path(store: MemoryStore) -> None:
    ours = store.save("Ours.")
    store.save("Others may be called what they like.", path=f"{ours.memory_id}#0")
    store.save("Even so.", path=ours.memory_id)
    assert store.get(ours.memory_id).content == "Ours."
    assert store.expand(f"{ours.memory_id}#0").expanded_content == "Ours."
    assert store.sessions.of([ours.memory_id, "/nowhere"]) == {ours.memory_id: None}


def test_a_working_folder_that_was_deleted_only_hides_what_is_named_from_there(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = store.save("The kelp grows.", path="/sea/kelp.md")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert store.get("/sea/kelp.md").memory_id == saved.memory_id
    with pytest.raises(NotFound):
        store.get("kelp.md")


@pytest.mark.parametrize("line", [0, 4, 999, 999_999_999])
def test_a_line_that_is_not_there_is_refused_with_the_last_one_that_is(
    store: MemoryStore, line: int
) -> None:
    store.save("Kelp.\nEels.\n", path="/sea/kelp.md")
    for fetch in (store.get, store.expand, store.reconstruct):
        with pytest.raises(NotFound, match=f"/sea/kelp.md has no line {line:,}") as caught:
            fetch(f"/sea/kelp.md:{line}")
        assert "its last one is 2" in caught.value.hint


@pytest.mark.parametrize("content", ["Kelp.\nEels.", "Kelp.\nEels.\n", "Kelp.\r\nEels.\r\n"])
def test_the_line_where_an_editor_stands_at_the_end_is_there(
    store: MemoryStore, content: str
) -> None:
    store.save(content, path="/sea/kelp.md")
    last = 3 if content.endswith("\n") else 2
    assert store.expand(f"/sea/kelp.md:{last}").expanded_content == content
    assert store.get(f"/sea/kelp.md:{last}:5").content == content
    with pytest.raises(NotFound, match="no line"):
        store.expand(f"/sea/kelp.md:{last + 1}")


def test_a_file_may_be_called_anything_and_its_hit_opens_it(
    store: MemoryStore, tmp_path: Path
) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    names = (
        "two\nlines.md",
        "a\tb.md",
        "bell\x07.md",
        "esc\x1b[31m.md",
        "\x7f.md",
        "a#1.md",
        "a:3.md",
    )
    for name in names:
        (folder / name).write_text("The walrus sings.\n")
    store.index(folder)
    hits = store.search("walrus", limit=20).results
    assert {Path(hit.path or "").name for hit in hits} == set(names)
    for hit in hits:
        assert store.get(str(hit.path)).memory_id == hit.memory_id
        assert store.expand(f"{hit.path}:1").memory_id == hit.memory_id


@pytest.fixture
def project(store: MemoryStore, tmp_path: Path) -> Path:
    for path in ("src/app.py", "old/src/run.py", "src/run.py", "src/xapp.py"):
        file = tmp_path / "project" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {path}\nprint('kelp')\n")
    store.index(tmp_path / "project")
    return tmp_path / "project"


@pytest.mark.parametrize("name", ["app.py", "src/app.py", "./src/app.py", "project/src/app.py"])
def test_a_path_that_leads_nowhere_from_here_is_the_file_that_ends_so(
    store: MemoryStore, project: Path, name: str
) -> None:
    whole = store.get(f"{project}/src/app.py")
    assert store.get(name).memory_id == whole.memory_id
    assert store.expand(f"{name}:2").memory_id == whole.memory_id
    assert store.sessions.identify(name, [None]) == f"{whole.memory_id}#0"
    with pytest.raises(NotFound, match="no line 99"):
        store.expand(f"{name}:99")


@pytest.mark.parametrize("name", ["pp.py", "/src/app.py", "../src/app.py", "~/src/app.py", "src"])
def test_a_path_ends_at_a_folder_and_a_whole_one_is_no_end(
    store: MemoryStore, project: Path, name: str
) -> None:
    with pytest.raises(NotFound):
        store.get(name)
    assert store.sessions.identify(name, [None]) is None


def test_of_several_files_that_end_so_a_few_are_named(
    store: MemoryStore, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fetch in (store.get, store.expand):
        with pytest.raises(InvalidInput, match="several files are called src/run") as caught:
            fetch("src/run.py:1" if fetch == store.expand else "src/run.py")
        assert f"{project}/src/run.py" in caught.value.hint
        assert f"{project}/old/src/run.py" in caught.value.hint
    assert store.get("old/src/run.py").content.startswith("# old")
    monkeypatch.chdir(project)
    assert store.get("src/run.py").path == f"{project}/src/run.py"


def test_what_is_forgotten_or_in_another_space_is_no_end_of_a_path(
    store: MemoryStore, project: Path
) -> None:
    store.forget(store.get("old/src/run.py").memory_id)
    assert store.get("run.py").path == f"{project}/src/run.py"
    with pytest.raises(NotFound):
        store.get("run.py", space="other")


def test_a_path_by_its_end_tells_nothing_of_other_sessions(
    store: MemoryStore, project: Path
) -> None:
    hidden = store.get("old/src/run.py").memory_id
    store.update(hidden, session_id="s1")
    shown = store.get(f"{project}/src/run.py").memory_id
    assert store.sessions.identify("run.py", ["s2", None]) == f"{shown}#0"
    assert store.sessions.identify("old/src/run.py", ["s2", None]) is None
    assert store.sessions.identify("old/src/run.py", ["s1", None]) == f"{hidden}#0"
    assert store.sessions.of(["run.py", "old/src/run.py"]) == {}
    with pytest.raises(InvalidInput, match="several"):
        store.sessions.identify("run.py", ["s1", None])


def test_a_name_is_made_an_id_only_for_the_sessions_that_hold_it(store: MemoryStore) -> None:
    ours = store.save("Ours.\n", session_id="s1", path="/n/ours.md").memory_id
    shared = store.save("For all.\n", path="/n/shared.md").memory_id
    assert store.sessions.identify("/n/ours.md", ["s1"]) == f"{ours}#0"
    assert store.sessions.identify("/n/ours.md:1", ["s1", None]) == f"{ours}#0"
    assert store.sessions.identify("/n/shared.md", ["s1", None]) == f"{shared}#0"
    assert store.sessions.identify(ours, ["s1"]) == ours
    for name in ("/n/ours.md", "/n/ours.md:1", "/n/ours.md:99", ours, f"{ours}#0", "/nowhere.md"):
        assert store.sessions.identify(name, ["s2", None]) is None
    assert store.sessions.identify("/n/shared.md", ["s1"]) is None
    with pytest.raises(NotFound, match="no line 99"):
        store.sessions.identify("/n/ours.md:99", ["s1"])


def test_short_ids_name_one_memory_each(store: MemoryStore) -> None:
    saved = [store.save(f"Text number {n}.").memory_id for n in range(20)]
    short = store.admin.short_ids([*saved, "not-an-id"])
    assert short["not-an-id"] == "not-an-id"
    assert [store.admin.complete_id(short[each]) for each in saved] == saved
    assert all(len(short[each]) in (14, 30) for each in saved)
    assert store.admin.complete_id(f"{short[saved[3]]}#0") == f"{saved[3]}#0"


def test_ids_as_prompts_write_them_name_their_memory(store: MemoryStore) -> None:
    [saved] = store.save_many([{"content": "# One\n\nfirst\n\n# Two\n\nsecond"}])
    memory_id = saved.memory_id
    assert short_form(memory_id) == short_form(f"{memory_id}#0") == memory_id[4:14]
    assert short_form(f"{memory_id}@2") == f"{memory_id[4:14]}@2"
    assert short_form("a-name-of-mine") == "a-name-of-mine"
    short = short_form(memory_id)
    assert store.get(short).memory_id == store.get(f"{short}#1").memory_id == memory_id
    assert store.expand(short, around=0).chunk_id == f"{memory_id}#0"
    assert store.expand(f"{short}#1", around=0).chunk_id == f"{memory_id}#1"
    with pytest.raises(NotFound):
        store.get("0000000000")


def test_memories_that_are_saved_together_have_short_ids_of_their_own(store: MemoryStore) -> None:
    saved = store.save_many({"content": f"text {n}"} for n in range(300))
    assert len({short_form(each.memory_id) for each in saved}) == 300
