"""What becomes of the files of each program, beyond what holds for all of them."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from byheart.conversation.agent_events import project_of
from byheart.errors import InvalidInput
from byheart.model import Memory
from byheart.store import MemoryStore
from byheart.transfer.foreign import json_elements as elements_module
from byheart.transfer.foreign.json_elements import Element, read_elements
from byheart.transfer.foreign.sources import streamed
from tests.transfer.foreign import samples
from tests.transfer.foreign.samples import ROLLOUT, SESSION, claude_line, document, lines

OpenStore = Callable[..., MemoryStore]


def said(store: MemoryStore, session_id: str) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in store.sessions.transcript(session_id).turns]


def elements(stream: BinaryIO, head: bytes = b"[", *lists: str) -> Iterator[Element]:
    return read_elements(streamed(stream, "x.json", head), stream, "element", lists)


def by_title(store: MemoryStore) -> dict[str | None, Memory]:
    return {each.title: each for each in store.list(limit=1000).memories}


# --- Claude Code ----------------------------------------------------------------------------------


def test_a_transcript_of_claude_code_is_a_session_in_order(
    store: MemoryStore, tmp_path: Path
) -> None:
    imported = store.import_(samples.write_claude_code(tmp_path))
    roles = [role for role, _ in said(store, SESSION)]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "user", "user"]
    turns = store.sessions.transcript(SESSION).turns
    assert turns[0].content == "Why does the basket lose items when two tabs are open?"
    assert turns[0].created_at == datetime(2026, 3, 1, 9, 1, tzinfo=UTC)
    assert [turn.title for turn in turns[:2]] == ["Why the basket loses items", None]
    assert (turns[2].kind, turns[2].title) == ("tool_output", "Bash: grep -rn basket")
    assert "[redacted: " in turns[2].content
    assert turns[3].content == "/deploy staging"
    # The same words, said twice, are two turns; what the program inserted is not said.
    assert [turn.content for turn in turns[5:]] == ["go on", "go on"]
    assert imported.left_out == {
        "thinking": 1,
        "record": 2,
        "meta": 2,
        "sidechain": 1,
        "output of Read": 1,
    }
    [summary] = store.list(kind="session_context").memories
    assert (summary.session_id, summary.origin) == (SESSION, "agent")
    assert {turn.agent_id for turn in turns} == {"claude-code"}
    projects = {memory.task_code for memory in store.list(session_id=SESSION).memories}
    assert projects == {project_of("/nowhere/shop")}


def test_of_a_transcript_that_has_grown_only_the_new_lines_come(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = samples.write_claude_code(tmp_path)
    before = store.import_(path)
    more = [
        claude_line("user", 20, "go on"),
        claude_line("user", 21, "go on", uuid="uuid-0020"),  # written again under the same uuid
        claude_line("assistant", 22, [{"type": "text", "text": "Done."}]),
    ]
    with path.open("a") as file:
        file.write("".join(json.dumps(each) + "\n" for each in more))
    after = store.import_(path)
    assert (after.imported, after.unchanged) == (2, before.imported)
    assert [text for _, text in said(store, SESSION)][-3:] == ["go on", "go on", "Done."]


def test_a_broken_line_stops_the_import_or_is_skipped_and_is_named(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = samples.write_claude_code(tmp_path)
    text = path.read_text().splitlines()
    path.write_text("\n".join([*text[:3], '{"type": "user", "cut', *text[3:]]))
    with pytest.raises(InvalidInput, match=r"\.jsonl line 4: it is not JSON"):
        store.import_(path)
    assert len(said(store, SESSION)) == 1
    skipped = store.import_(path, on_error="skip").skipped
    assert [each.place for each in skipped] == [f"{path} line 4"]
    assert len(said(store, SESSION)) == 7


def test_settings_say_which_outputs_are_kept_and_how_much_of_them(
    open_store: OpenStore, tmp_path: Path
) -> None:
    long = "first " + "x" * 5000 + " last"
    path = lines(
        tmp_path / "t.jsonl",
        [
            claude_line("assistant", 1, [samples.tool_use("Read", 1, file_path="/a.py")]),
            claude_line("user", 2, [samples.tool_result(1, long)]),
            claude_line("assistant", 3, [samples.tool_use("mcp__byheart__memory_search", 2)]),
            claude_line("user", 4, [samples.tool_result(2, "what was remembered")]),
        ],
    )
    store = open_store(capture_tools="read,mcp__*", capture_chars=100)
    imported = store.import_(path)
    assert (imported.imported, imported.shortened) == (1, 1)
    [(_, text)] = said(store, SESSION)
    assert text.startswith("first ")
    assert text.endswith(" last")
    assert "[… 4,911 characters left out …]" in text
    assert imported.left_out == {"output of mcp__byheart__memory_search": 1}


# --- Codex ----------------------------------------------------------------------------------------


def test_a_rollout_of_codex_holds_each_message_once(store: MemoryStore, tmp_path: Path) -> None:
    imported = store.import_(samples.write_codex(tmp_path))
    assert said(store, ROLLOUT) == [
        ("user", "Which port does the mill listen on?"),
        ("tool", "port = 7411 # [redacted: github]\n"),
        ("assistant", "The mill listens on port 7411."),
    ]
    assert store.sessions.transcript(ROLLOUT).turns[1].title == "exec_command: grep port mill.toml"
    assert imported.left_out == {"meta": 2, "record": 3, "thinking": 1}


def test_a_rollout_of_an_early_codex_is_read_too(store: MemoryStore, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "rollout.jsonl",
        [
            {"id": "early", "timestamp": "2025-06-01T00:00:00Z", "instructions": None, "git": {}},
            {"record_type": "state"},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Which port is it?"}],
            },
        ],
    )
    assert store.import_(path).format == "codex"
    assert said(store, "early") == [("user", "Which port is it?")]
    assert store.sessions.transcript("early").turns[0].created_at == datetime(
        2025, 6, 1, tzinfo=UTC
    )


# --- ChatGPT and Claude ---------------------------------------------------------------------------


def test_of_a_conversation_with_chatgpt_the_branch_that_is_shown_comes(
    store: MemoryStore, tmp_path: Path
) -> None:
    imported = store.import_(samples.write_chatgpt(tmp_path))
    assert said(store, "conv-1") == [
        ("user", "How long?"),
        ("tool", "12 hours"),
        ("assistant", "Let it rise 12 hours."),
    ]
    first, output, _ = store.sessions.transcript("conv-1").turns
    assert first.created_at == datetime.fromtimestamp(1_750_000_001.5, UTC)
    assert (first.title, output.title) == ("Sourdough", "python")
    assert output.created_at == first.created_at  # it has no time of its own
    assert said(store, "conv-2") == [("user", "What bird is this?")]
    assert imported.left_out == {"meta": 1, "other branch": 1, "image": 1}


def test_a_conversation_that_is_none_is_named_and_the_others_come(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = document(tmp_path / "conversations.json", [samples.CHATGPT[0], {"mapping": 3}, 7])
    imported = store.import_(path, on_error="skip")
    assert imported.imported == 3
    assert [each.place for each in imported.skipped] == [
        f"{path} conversation 2",
        f"{path} conversation 3",
    ]


def test_an_export_that_was_cut_off_is_named_after_what_could_be_read(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = samples.write_chatgpt(tmp_path)
    path.write_text(path.read_text()[:-200])
    with pytest.raises(InvalidInput, match="after element 1 in the middle of JSON"):
        store.import_(path)
    assert len(said(store, "conv-1")) == 3


def test_an_export_of_claude_brings_conversations_documents_and_memories(
    store: MemoryStore, tmp_path: Path
) -> None:
    imported = store.import_(samples.write_claude(tmp_path))
    assert said(store, "chat-1") == [
        ("user", "Hive 3 is heavy."),
        ("user", "When do bees swarm?"),
        ("assistant", "In May, on a warm day."),
    ]
    memories = by_title(store)
    assert memories["hives.md"].kind == "knowledge_base"
    assert memories["hives.md"].tags == ("Apiary",)
    assert memories["Instructions of Apiary"].content == "Answer in metric units."
    assert memories["What Claude remembered"].content == "Keeps bees in Tyrol."
    assert memories["hives.md"].created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert imported.left_out == {"empty message": 1, "other file": 1}


def test_an_archive_of_something_else_is_refused_with_the_formats(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = tmp_path / "photos.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("users.json", "[]")
    with pytest.raises(InvalidInput, match="holds nothing of a known format") as caught:
        store.import_(path)
    assert "chatgpt" in caught.value.hint
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(InvalidInput, match="is no archive that can be read"):
        store.import_(path)


# --- Memories and graphs --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["results", "memories", "list", "lines"])
def test_memories_of_mem0_come_in_any_of_their_shapes(
    store: MemoryStore, tmp_path: Path, shape: str
) -> None:
    held = samples.MEM0["results"]
    value: Any = held if shape == "list" else {shape: held}
    path = document(tmp_path / "m.json", value)
    if shape == "lines":
        path.write_text(json.dumps(held[0]))
    store.import_(path, format="mem0")
    first = next(each for each in store.list().memories if "trains" in each.content)
    assert (first.kind, first.tags, first.origin) == ("fact", ("travel",), "import")
    assert first.created_at == datetime(2026, 2, 3, 12, 5, 6, tzinfo=UTC)
    assert first.metadata == {"seen": "chat", "user_id": "ada"}


def test_a_memory_that_changed_there_changes_here_unless_it_was_changed_here(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.import_(document(tmp_path / "m.json", samples.MEM0))
    trains, nuts = sorted(store.list().memories, key=lambda each: "nuts" in each.content)
    store.update(nuts.memory_id, content="Is allergic to peanuts")
    changed = json.loads(json.dumps(samples.MEM0).replace("planes", "cars").replace("nuts", "oats"))
    path = document(tmp_path / "m.json", changed)
    assert store.import_(path, dry_run=True).updated == 1
    assert store.get(trains.memory_id).content == "Prefers trains to planes"
    imported = store.import_(path)
    assert (imported.imported, imported.updated, imported.unchanged) == (0, 1, 1)
    assert store.get(trains.memory_id).content == "Prefers trains to cars"
    assert store.get(nuts.memory_id).content == "Is allergic to peanuts"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_graph_becomes_facts_about_its_entities(
    store: MemoryStore, tmp_path: Path, indent: int | None
) -> None:
    graph = {"entities": samples.GRAPH[:2], "relations": samples.GRAPH[2:]}
    imported = store.import_(document(tmp_path / "graph.json", graph, indent))
    assert (imported.format, imported.imported) == ("mcp-memory", 4)
    held = {each.content: each for each in store.list().memories}
    assert held["Ada_Byron (person): Speaks French"].entities == ("Ada_Byron",)
    assert held["Ada_Byron (person): Speaks French"].kind == "fact"
    assert held["Mill (machine)"].kind == "entity"
    assert held["Ada_Byron works on Mill"].kind == "relationship"
    assert set(held["Ada_Byron works on Mill"].entities) == {"Ada_Byron", "Mill"}


# --- Vaults ---------------------------------------------------------------------------------------


def test_a_note_of_basic_memory_keeps_its_text_tags_and_relations(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.import_(samples.write_basic_memory(tmp_path))
    note = by_title(store)["Coffee Brewing"]
    assert note.content == samples.COFFEE.split("---\n", 2)[2]
    assert set(note.tags) == {"coffee", "filter"}
    assert set(note.entities) == {"Coffee Brewing", "Grinding", "Water"}
    assert note.metadata["relations"] == [
        {"relation": "requires", "to": "Grinding"},
        {"relation": "relates_to", "to": "Water"},
    ]
    assert note.metadata["categories"] == ["method"]
    assert note.metadata["permalink"] == "coffee-brewing"
    assert note.created_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_vault_of_obsidian_brings_links_tags_aliases_and_days(
    store: MemoryStore, tmp_path: Path
) -> None:
    vault = samples.write_obsidian(tmp_path)
    imported = store.import_(vault)
    assert imported.left_out == {"empty note": 1, "image file": 1}
    memories = {each.path: each for each in store.list().memories}
    day = memories["daily/2026-03-05.md"]
    assert day.created_at == datetime(2026, 3, 5, tzinfo=UTC)
    assert day.tags == ("work",)
    assert set(day.entities) == {"2026-03-05", "Ada Byron", "Mill"}
    ada = memories["people/Ada Byron.md"]
    assert set(ada.entities) == {"Ada Byron", "Ada", "Mill"}
    assert (ada.tags, ada.metadata["aliases"]) == (("person",), ["Ada"])


def test_a_clipping_still_says_where_it_is_from(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / "clip.md").write_text("---\nsource: https://example.org/tea\n---\nTea.")
    store.import_(tmp_path)
    [note] = store.list().memories
    assert (note.source, note.metadata["source"]) == ("obsidian", "https://example.org/tea")


def test_a_note_that_was_changed_changes_its_memory(store: MemoryStore, tmp_path: Path) -> None:
    vault = samples.write_obsidian(tmp_path)
    store.import_(vault)
    (vault / "daily" / "2026-03-05.md").write_text("Nothing happened.\n")
    imported = store.import_(vault)
    assert (imported.imported, imported.updated) == (0, 1)
    (vault / "daily" / "2026-03-05.md").write_text("Something happened.\n")
    assert store.import_(vault).updated == 1
    [day] = store.list(path="daily/*").memories
    assert (day.content, day.version) == ("Something happened.\n", 3)


def test_a_vault_that_byheart_wrote_is_read_back_though_obsidian_opened_it(
    store: MemoryStore, tmp_path: Path
) -> None:
    memory_id = store.save("The deploy key is in the vault.").memory_id
    vault = tmp_path / "vault"
    store.export(vault, format="markdown")
    (vault / ".obsidian").mkdir()
    [file] = vault.rglob("*.md")
    file.write_text(file.read_text().replace("in the vault", "in the safe"))
    assert store.import_(vault).updated == 1
    assert store.get(memory_id).content == "The deploy key is in the safe."


# --- Streams and folders --------------------------------------------------------------------------


def test_a_stream_is_recognised_by_how_it_begins(store: MemoryStore, tmp_path: Path) -> None:
    data = samples.write_codex(tmp_path).read_bytes()
    assert store.import_(io.BytesIO(data)).format == "codex"
    plain = b'{"content": "a plain line"}\n{"content": "and another"}\n'
    assert store.import_(io.BytesIO(plain)).format == "jsonl"
    assert store.search("another", mode="fts").results


def test_a_pipe_is_read_as_what_comes_through_it(store: MemoryStore, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, samples.write_chatgpt(tmp_path).read_bytes())
        os.close(writing)
        assert store.import_(f"/dev/fd/{reading}").turns == 4
    finally:
        os.close(reading)


def test_a_folder_with_several_files_of_one_format_is_read_whole(
    store: MemoryStore, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions"
    for number in range(3):
        record = claude_line("user", 1, f"question number {number}", sessionId=f"s{number}")
        lines(folder / f"project-{number}" / f"s{number}.jsonl", [record])
    document(folder / "sessions-index.json", {"version": 1, "entries": []})
    (folder / "memory").mkdir()
    (folder / "memory" / "MEMORY.md").write_text("# Memory")
    imported = store.import_(folder)
    assert (imported.sessions, imported.turns, imported.files) == (3, 3, {"claude-code": 3})
    assert imported.left_out == {"other file": 1, "note": 1}


def test_a_gigabyte_need_not_fit_into_memory(tmp_path: Path) -> None:
    """Count what is held at once, not bytes of the process: elements come one after another."""

    class Endless(io.RawIOBase):
        """An array that has no end."""

        def __init__(self) -> None:
            self.given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            part = (b"[" if not self.given else b"") + b'{"mapping": "' + b"x" * 1000 + b'"},'
            part = part[: len(buffer)]
            buffer[: len(part)] = part
            self.given += len(part)
            return len(part)

    endless = Endless()
    found = elements(io.BufferedReader(endless, 4096))
    for _ in range(5):
        assert next(found).value["mapping"]
    assert endless.given < 2_000_000


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_elements_are_the_same_however_they_are_cut(size: int, monkeypatch: Any) -> None:
    values = [{"a": "x" * n, "b": [n, None, {"c": 'quote " and \\ and ü'}]} for n in range(60)]
    monkeypatch.setattr(elements_module, "_BLOCK_CHARS", size)
    stream = io.BytesIO(json.dumps(values, indent=1).encode())
    found = list(elements(stream))
    assert [each.value for each in found] == values
    assert [each.place for each in found[:2]] == [
        "x.json element 1 (line 2)",
        "x.json element 2 (line 12)",
    ]
    assert found[-1].place == f"x.json element 60 (line {2 + 59 * 10})"


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_lists_of_a_document_come_element_by_element(size: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(elements_module, "_BLOCK_CHARS", size)
    document = {"count": 1234567, "results": [{"n": 12}, 345], "relations": [{"m": "ü"}]}
    data = json.dumps(document, indent=1).encode()
    found = list(elements(io.BytesIO(data), data, "results", "relations"))
    assert [(each.within, each.value) for each in found] == [
        ("results", {"n": 12}),
        ("results", 345),
        ("relations", {"m": "ü"}),
    ]
    assert [each.place for each in found] == [
        "x.json results[0] (line 4)",
        "x.json results[1] (line 7)",
        "x.json relations[0] (line 10)",
    ]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'[{"a": 1}, {"b" 2}, {"c": 3}]', r"not JSON after element 1 \(line 1, character 17 "),
        (b"[1,\n2,\n oops]", r"not JSON after element 2 \(line 3, character 9 "),
        (b'[{"a": 1}\n {"b": 2}]', r"after element 1 \(line 2, .*Expecting ','"),
        (b"[1] 2", "something follows its end"),
        (b'[1, {"a": tru', "after element 1 in the middle of JSON"),
        (b'[1, {"a": "b', "the file was cut off"),
        (b'{"results": [1, 2', "after element 2 in the middle of JSON"),
        (b'{"results": [1], 5}', "Expecting property name"),
        (b"[" + b"1" * 5000 + b"]", "not JSON .*digits"),
        (b'["caf\xe9"]', "it is not UTF-8 text: byte 0xe9"),
    ],
)
def test_what_is_wrong_in_a_document_is_told_with_its_place(data: bytes, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        list(elements(io.BytesIO(data), data, "results"))


def test_an_error_in_the_middle_is_told_before_the_rest_is_read() -> None:
    found = elements(io.BytesIO(b'[{"a": 1}, {"b" 2}, ' + b'{"c": 3},' * 100 + b"]"))
    assert next(found) == Element("x.json element 1", {"a": 1})
    with pytest.raises(InvalidInput, match="not JSON after element 1"):
        next(found)


def test_deeply_nested_json_is_refused() -> None:
    depth = sys.getrecursionlimit() * 100
    with pytest.raises(InvalidInput):
        list(elements(io.BytesIO(b"[" * depth)))
