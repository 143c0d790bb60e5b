"""Which files a path means: mixed, packed, empty, in another encoding, or of no known format."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import InvalidInput
from byheart.store import MemoryStore
from byheart.transfer import json_lines as lines_module
from byheart.transfer.foreign import FOREIGN
from byheart.transfer.foreign import sources as sources_module
from tests.transfer.foreign import samples
from tests.transfer.foreign.samples import SESSION, claude_line, document, lines, pack


def write_everything(folder: Path) -> Path:
    """Put what a person may have collected into one folder."""
    pack(folder / "chatgpt.zip", conversations=samples.CHATGPT, user={"id": "u", "email": "e"})
    samples.write_claude_code(folder / "agent")
    samples.write_obsidian(folder / "notes")
    samples.write_basic_memory(folder)
    samples.write_mem0(folder / "mem0")
    return folder


# --- Mixed folders --------------------------------------------------------------------------------


def test_each_file_of_a_mixed_folder_is_read_as_what_it_is(
    store: MemoryStore, tmp_path: Path
) -> None:
    folder = write_everything(tmp_path / "all")
    other = store.save("kept by ourselves").memory_id
    store.export(folder / "own.jsonl")
    store.forget(other)
    imported = store.import_(folder)
    assert imported.format == "mixed"
    assert imported.files == {
        "jsonl": 1,
        "claude-code": 1,
        "chatgpt": 1,
        "mem0": 1,
        "obsidian": 3,
        "basic-memory": 2,
    }
    assert (imported.sessions, imported.turns, imported.memories) == (3, 11, 7)
    sources = {memory.source for memory in store.list(limit=100).memories}
    assert sources == {"claude-code", "chatgpt", "mem0", "obsidian", "basic-memory"}
    assert imported.left_out["image file"] == 1  # in the vault
    assert imported.left_out["other file"] == 1  # in the archive
    again = store.import_(folder)
    assert (again.imported, again.updated) == (0, 0)
    # A part of it by its own path is what it was as a part of the whole.
    for part in ("chatgpt.zip", "agent", "notes/Second Brain", "knowledge", "mem0"):
        alone = store.import_(folder / part)
        assert (alone.imported, alone.format != "mixed") == (0, True), part


def test_a_template_among_the_notes_stops_no_mixed_folder(
    store: MemoryStore, tmp_path: Path
) -> None:
    samples.write_graph(tmp_path / "graph")
    (tmp_path / "vault" / ".obsidian").mkdir(parents=True)
    (tmp_path / "vault" / "daily.md").write_text("---\ntitle: {{title}}\n---\nText.")
    imported = store.import_(tmp_path)
    assert (imported.files["obsidian"], imported.skipped) == (1, ())
    assert [each.place for each in imported.remarks] == ["vault/daily.md"]


def test_of_a_mixed_folder_only_the_format_that_was_named_is_read(
    store: MemoryStore, tmp_path: Path
) -> None:
    folder = write_everything(tmp_path / "all")
    imported = store.import_(folder, format="mem0")
    assert (imported.format, imported.imported) == ("mem0", 2)
    assert imported.left_out == {
        "file of another format": 2,
        "note": 5,
        "image file": 1,
        "other file": 1,
    }
    with pytest.raises(InvalidInput, match="holds nothing of the format codex") as caught:
        store.import_(folder, format="codex")
    assert (
        caught.value.hint == "its files: 1 of claude-code, 1 of chatgpt, 1 of mem0, 5 of markdown"
    )


def test_a_mixed_folder_with_many_notes_of_no_vault_is_asked_about(
    store: MemoryStore, tmp_path: Path
) -> None:
    samples.write_chatgpt(tmp_path)
    samples.write_mem0(tmp_path)
    for number in range(3):
        (tmp_path / f"n{number}.md").write_text(f"# Note {number}")
    with pytest.raises(InvalidInput, match="3 notes, and data that looks like chatgpt, mem0") as e:
        store.import_(tmp_path)
    assert 'format="markdown" or format="chatgpt" or format="mem0"' in e.value.hint
    assert store.list().total == 0


# --- What is of no known format -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"Dear diary, today nothing happened.\n", "of no known format: there is no JSON object"),
        (b"name,age\nAda,36\n", "there is no JSON object in it"),
        (b'{"a": 1, "b": [2]}', 'it is JSON with the keys "a", "b"'),
        (b'{\n "a": 1,\n "b": 2\n}', 'it is JSON with the keys "a", "b"'),
        (b'[{"title": "x"}]', 'it is JSON with the key "title"'),
        (b'{"text": "no field of save"}\n{"text": "x"}\n', 'it is JSON with the key "text"'),
        (b"[[1, 2], [3, 4]]", "of no known format"),
        (b"{oops", "of no known format"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is not text"),
        (gzip.compress(b"{}", mtime=0), "is packed with gzip"),
        (b"", "is empty"),
        (b"\xef\xbb\xbf\n", "is empty"),
        (b" [ ]", "is empty"),
        (b"[]\n", "is empty"),
        (b"{}", "is empty"),
    ],
)
def test_a_file_of_no_known_format_is_said_to_be_so_and_nothing_changes(
    store: MemoryStore, tmp_path: Path, data: bytes, told: str
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    for on_error in ("stop", "skip"):
        with pytest.raises(InvalidInput, match=told) as caught:
            store.import_(path, on_error=on_error)
        if "no known format" in caught.value.message:
            assert all(name in caught.value.hint for name in ("jsonl", "markdown", *FOREIGN))
    with pytest.raises(InvalidInput, match=told):
        store.import_(io.BytesIO(data))
    assert store.list().total == 0


@pytest.mark.parametrize(
    "name", ["chatgpt", "claude", "mem0", "mcp-memory", "claude-code", "codex"]
)
def test_a_file_with_nothing_of_the_format_that_was_named_is_refused(
    store: MemoryStore, tmp_path: Path, name: str
) -> None:
    for data in ([{"title": "x"}], {"title": "x", "list": [1]}, []):
        with pytest.raises(InvalidInput):
            store.import_(document(tmp_path / "x.json", data), format=name)
        skipped = store.import_(tmp_path / "x.json", format=name, on_error="skip").skipped
        assert "nothing" in skipped[-1].reason
    assert store.list().total == 0


def test_folders_with_nothing_to_import_are_said_to_be_so(
    store: MemoryStore, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="holds nothing of a known format"):
        store.import_(tmp_path)
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    for name in ("markdown", "obsidian", "basic-memory"):
        with pytest.raises(InvalidInput, match="holds no Markdown files"):
            store.import_(tmp_path, format=name)
    with pytest.raises(InvalidInput, match="is a folder"):
        store.import_(tmp_path, format="jsonl")


# --- Archives -------------------------------------------------------------------------------------


def test_an_archive_is_known_though_it_is_called_something_else(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = pack(tmp_path / "download", conversations=samples.CHATGPT)
    assert store.import_(path).turns == 4
    with path.open("rb") as stream, pytest.raises(InvalidInput, match="is an archive"):
        store.import_(stream)


def test_an_archive_of_chatgpt_counts_its_pictures(store: MemoryStore, tmp_path: Path) -> None:
    path = pack(tmp_path / "chatgpt.zip", conversations=samples.CHATGPT, message_feedback=[])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("file-abc-photo.png", b"\x89PNG")
        archive.writestr("conv-1/audio/file-1.wav", b"RIFF")
        archive.writestr("chat.html", "<html></html>")
    imported = store.import_(path)
    assert imported.turns == 4
    assert imported.left_out == {
        "meta": 1,
        "other branch": 1,
        "image": 1,
        "image file": 1,
        "audio file": 1,
        "other file": 1,
        "empty file": 1,
    }


def test_nothing_of_an_archive_is_written_anywhere(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "in" / "evil.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escaped.json", json.dumps([*samples.CHATGPT, {"mapping": 3}]))
        archive.writestr("/abs\x1b[2J.json", json.dumps(samples.CLAUDE))
    imported = store.import_(path, on_error="skip")
    assert imported.turns == 7
    [place] = [each.place for each in imported.skipped]
    assert place == "evil.zip/../../escaped.json conversation 3"
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["in"]
    assert not [*tmp_path.rglob("*.json")]


def test_an_archive_that_would_fill_the_machine_is_refused(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "_HARMLESS_BYTES", 100_000)
    path = pack(tmp_path / "bomb.zip", conversations=[{"mapping": {}, "id": "x" * 1_000_000}])
    with pytest.raises(InvalidInput, match=r"bomb\.zip has [\d,]+ bytes and would unpack to 1,000"):
        store.import_(path)
    samples.write_mem0(tmp_path)
    imported = store.import_(tmp_path, on_error="skip")
    assert (imported.imported, [each.place for each in imported.skipped]) == (2, ["bomb.zip"])


def test_the_list_of_an_archive_is_read_once_however_many_files_are_in_it(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, file: Path) -> None:
            opened.append(file)
            super().__init__(file)

    for name in ("one", "two"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for number in range(5):
                turn = claude_line("user", number, f"turn {number} of {name}")
                archive.writestr(f"{number}.jsonl", json.dumps(turn))
    monkeypatch.setattr(sources_module.zipfile, "ZipFile", Counted)
    assert store.import_(tmp_path / "one.zip").turns == 5
    assert opened == [tmp_path / "one.zip"]
    assert store.import_(tmp_path).turns == 10
    assert len(opened) < 10


@pytest.mark.parametrize("damage", ["version", "name"])
def test_an_archive_that_python_cannot_make_sense_of_is_named(
    damage: str, store: MemoryStore, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gespräch.json", json.dumps(samples.CHATGPT))
    data = bytearray(path.read_bytes())
    if damage == "version":  # by which its list says that it can be unpacked
        data[data.index(b"PK\x01\x02") + 6] = 99
    else:  # no UTF-8, in front of the file itself
        data[data.index("gespräch".encode()) + 5] = 0xFF
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=r"damaged\.zip"):
        store.import_(path)


def test_an_export_of_ours_is_found_in_an_archive_beside_a_note(
    store: MemoryStore, tmp_path: Path
) -> None:
    memory_id = store.save("what was exported").memory_id
    store.export(tmp_path / "own.jsonl")
    store.forget(memory_id, hard=True)
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as archive:
        archive.write(tmp_path / "own.jsonl", "own.jsonl")
        archive.writestr("README.md", "# How to read it")
    imported = store.import_(tmp_path / "own.zip", force=True)
    assert (imported.imported, imported.left_out) == (1, {"note": 1})
    assert store.get(memory_id).content == "what was exported"


def test_an_export_of_a_later_version_keeps_nobody_from_the_rest(
    store: MemoryStore, tmp_path: Path
) -> None:
    later = {"format": "byheart-export", "version": 99, "model": None, "models": []}
    lines(tmp_path / "later.jsonl", [later])
    samples.write_mem0(tmp_path)
    with pytest.raises(InvalidInput, match=r"later\.jsonl line 1: the file has version 99"):
        store.import_(tmp_path)
    imported = store.import_(tmp_path, on_error="skip")
    assert imported.files == {"jsonl": 1, "mem0": 1}
    assert [each.place for each in imported.skipped] == ["later.jsonl line 1"]
    assert imported.imported


def test_of_an_export_that_is_packed_and_broken_what_comes_before_is_kept(
    store: MemoryStore, tmp_path: Path
) -> None:
    memory_id = store.save("what was exported").memory_id
    store.export(tmp_path / "own.jsonl")
    store.forget(memory_id, hard=True)
    first, memory, *others = (tmp_path / "own.jsonl").read_bytes().splitlines(keepends=True)
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as archive:
        archive.writestr("own.jsonl", first + memory + b" " * 400_000 + b"".join(others))
    held = bytearray((tmp_path / "own.zip").read_bytes())
    held[held.rindex(b"PK\x01\x02") + 16] ^= 1  # its checksum is another one now
    (tmp_path / "own.zip").write_bytes(held)
    imported = store.import_(tmp_path / "own.zip", on_error="skip", force=True)
    assert imported.imported == 1
    assert "cannot be unpacked" in imported.skipped[0].reason


def test_a_packed_vault_is_to_be_unpacked(store: MemoryStore, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "vault.zip", "w") as archive:
        archive.writestr("vault/a.md", "# A")
    with pytest.raises(InvalidInput, match="is a packed folder of notes") as caught:
        store.import_(tmp_path / "vault.zip")
    assert "unpack it" in caught.value.hint


# --- Encodings and long lines ---------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_in_another_encoding_is_read_all_the_same(
    store: MemoryStore, tmp_path: Path, encoding: str
) -> None:
    def recode(path: Path) -> Path:
        path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
        return path

    fact = {"content": "Kaffee ist schön: ☕ 𝄞"}
    imports: list[tuple[Path, str]] = [
        (samples.write_claude_code(tmp_path), "claude-code"),
        (samples.write_chatgpt(tmp_path), "chatgpt"),
        (samples.write_mem0(tmp_path), "mem0"),
        (lines(tmp_path / "facts.jsonl", [fact]), "jsonl"),
    ]
    for path, name in imports:
        imported = store.import_(recode(path))
        assert (imported.format, imported.imported > 0) == (name, True)
    assert store.list(limit=1).memories[0].content == fact["content"]
    assert store.import_(io.BytesIO((tmp_path / "facts.jsonl").read_bytes())).unchanged == 1
    note = tmp_path / "note.md"
    note.write_text("# Über alles\n")
    assert store.import_(recode(note)).imported == 1
    assert store.list(limit=1).memories[0].title == "Über alles"


def test_half_a_character_is_named(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes('{"content": "x"}\n'.encode("utf-16") + b"\x00\xd8")
    with pytest.raises(InvalidInput, match="it is not UTF-16"):
        store.import_(path)


def test_a_line_without_end_does_not_fill_the_memory(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "LONGEST_LINE_BYTES", 1000)
    path = lines(
        tmp_path / "t.jsonl",
        [
            claude_line("user", 1, "before it"),
            claude_line("user", 2, "x" * 5000),
            claude_line("user", 3, "behind it"),
        ],
    )
    imported = store.import_(path, on_error="skip")
    assert [turn.content for turn in store.sessions.transcript(SESSION).turns] == [
        "before it",
        "behind it",
    ]
    assert [each.place for each in imported.skipped] == [f"{path} line 2"]
    assert "too long" in imported.skipped[0].reason


# --- What is named, and what is counted -----------------------------------------------------------

GRAPH = {
    "entities": [samples.GRAPH[0], {"no": "name"}, 7],
    "relations": [{"from": "a", "to": "b"}, samples.GRAPH[2]],
}


@pytest.mark.parametrize("indent", [None, 1])
def test_errors_in_a_graph_name_element_and_line(
    store: MemoryStore, tmp_path: Path, indent: int | None
) -> None:
    path = document(tmp_path / "graph.json", GRAPH, indent)
    imported = store.import_(path, on_error="skip")
    assert imported.imported == 3
    at = {None: ("", "", ""), 1: (" (line 12)", " (line 15)", " (line 18)")}[indent]
    assert [each.place for each in imported.skipped] == [
        f"{path} entities[1]{at[0]}",
        f"{path} entities[2]{at[1]}",
        f"{path} relations[0]{at[2]}",
    ]


def test_errors_in_lines_of_a_graph_or_of_memories_name_the_line(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = lines(tmp_path / "memory.jsonl", [samples.GRAPH[0], {"type": "thing"}, samples.GRAPH[2]])
    path.write_text(path.read_text() + "{oops\n" + json.dumps(samples.GRAPH[1]))
    imported = store.import_(path, on_error="skip")
    assert [each.place for each in imported.skipped] == [f"{path} line 2", f"{path} line 4"]
    assert imported.imported == 4
    path = lines(tmp_path / "m.jsonl", [samples.MEM0["results"][0], {"id": "1", "memory": ""}])
    with pytest.raises(InvalidInput, match=r"m\.jsonl line 2: it is no memory"):
        store.import_(path)


def test_errors_among_memories_name_element_and_line(store: MemoryStore, tmp_path: Path) -> None:
    held = {
        "results": [*samples.MEM0["results"], {"id": "x"}],
        "relations": [{"source": "ada", "relationship": "lives_in", "target": "tyrol"}, {}],
    }
    path = document(tmp_path / "m.json", held, 1)
    imported = store.import_(path, on_error="skip")
    assert [each.place for each in imported.skipped] == [
        f"{path} results[2] (line 22)",
        f"{path} relations[1] (line 32)",
    ]
    [relation] = store.list(kind="relationship").memories
    assert relation.content == "ada lives in tyrol"
    assert set(relation.entities) == {"ada", "tyrol"}


def test_what_an_export_of_claude_holds_besides_texts_is_counted(
    store: MemoryStore, tmp_path: Path
) -> None:
    message = samples.claude_message(
        "m1",
        "human",
        "Look at this",
        attachments=[{"file_name": "scan.pdf", "extracted_content": ""}],
        files=[{"file_name": "hive.png"}, {"file_name": "data.xlsx"}],
        content=[
            {"type": "text", "text": "Look at this"},
            {"type": "thinking", "thinking": "hm"},
            {"type": "tool_use", "name": "search", "input": {}},
            {"type": "tool_result", "name": "search", "content": [], "tool_use_id": "t"},
            {"type": "token_budget"},
        ],
    )
    only_a_picture = samples.claude_message(
        "m2", "human", "", content=[], files=[{"file_name": "b.jpg"}]
    )
    talk = {**samples.CLAUDE[0], "chat_messages": [message, only_a_picture]}
    path = document(tmp_path / "conversations.json", [talk])
    left_out = {
        "attachment": 1,
        "image": 2,
        "file": 1,
        "thinking": 1,
        "empty output": 1,
        "token_budget": 1,
    }
    for dry_run in (True, False):
        imported = store.import_(path, dry_run=dry_run)
        assert (imported.turns, imported.left_out) == (1, left_out)


def test_what_a_conversation_with_chatgpt_holds_besides_texts_is_counted(
    store: MemoryStore, tmp_path: Path
) -> None:
    parts: list[Any] = [
        {"content_type": "image_asset_pointer"},
        {"content_type": "audio_transcription", "text": "what I said"},
        {"content_type": "real_time_user_audio_video_asset_pointer"},
    ]
    spoken = samples.chatgpt_message(
        "p",
        "user",
        1_750_001_001,
        "",
        content={"content_type": "multimodal_text", "parts": parts},
        attachments=[{"name": "a.pdf", "mime_type": "application/pdf"}, {"mime_type": "image/png"}],
    )
    shown = samples.chatgpt_message(
        "q",
        "assistant",
        1_750_001_002,
        "",
        content={"content_type": "multimodal_text", "parts": parts[:1]},
    )
    mapping = {
        "p": samples.chatgpt_node("p", None, spoken, "q"),
        "q": samples.chatgpt_node("q", "p", shown),
    }
    path = document(tmp_path / "c.json", [{**samples.CHATGPT[1], "mapping": mapping}])
    for dry_run in (True, False):
        imported = store.import_(path, dry_run=dry_run)
        assert imported.left_out == {"image": 2, "audio": 1, "attachment": 1}
    assert [turn.content for turn in store.sessions.transcript("conv-2").turns] == ["what I said"]


PICTURE_AND_WORDS = [{"type": "image", "source": {}}, {"type": "text", "text": "see?"}]


def test_pictures_in_transcripts_of_claude_code_are_counted(
    store: MemoryStore, tmp_path: Path
) -> None:
    shown = claude_line("user", 1, PICTURE_AND_WORDS)
    output = claude_line("user", 2, [samples.tool_result(1, PICTURE_AND_WORDS)])
    imported = store.import_(lines(tmp_path / "t.jsonl", [shown, output]))
    assert imported.turns == 1
    assert imported.left_out == {"image": 2, "output of tool": 1}


def test_pictures_in_rollouts_of_codex_are_counted(store: MemoryStore, tmp_path: Path) -> None:
    message = samples.codex_message("user", 2, "see?")
    message["payload"]["content"].append({"type": "input_image", "image_url": "data:"})
    imported = store.import_(lines(tmp_path / "t.jsonl", [samples.CODEX[0], message]))
    assert (imported.turns, imported.left_out) == (1, {"image": 1})


def test_what_an_agent_wrote_at_a_compaction_is_context_and_no_running_summary(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.import_(samples.write_claude_code(tmp_path))
    left = store.sessions.resume(SESSION)
    assert left.context is not None
    assert left.context.content.startswith("The conversation so far")
    assert left.summary is None
