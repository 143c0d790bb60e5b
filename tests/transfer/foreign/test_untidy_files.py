"""Files as they are in the wild: broken, mixed, hostile, of one name, or said twice."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from byheart.conversation.agent_events import said_by_user
from byheart.errors import InvalidInput
from byheart.store import MemoryStore
from byheart.transfer.foreign.basic_memory import begins_note
from tests.transfer.foreign import samples
from tests.transfer.foreign.samples import (
    SESSION,
    claude_line,
    document,
    lines,
    tool_result,
    tool_use,
)


def contents(store: MemoryStore) -> list[str]:
    return sorted(memory.content for memory in store.list(limit=1000).memories)


# --- Transcripts ----------------------------------------------------------------------------------


def test_turns_behind_one_that_is_there_in_other_words_are_kept(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = lines(
        tmp_path / "t.jsonl",
        [
            claude_line("assistant", 1, [tool_use("Bash", 1, command="x")]),
            claude_line("user", 2, "asked before it"),
            claude_line("user", 3, [tool_result(1, "what was put out")]),
            claude_line("assistant", 6, [tool_use("Bash", 1, command="x")]),
            claude_line("user", 4, [tool_result(1, "put out in other words")]),
            claude_line("user", 5, "asked behind it"),
        ],
    )
    imported = store.import_(path)
    texts = [turn.content for turn in store.sessions.transcript(SESSION).turns]
    assert texts == ["asked before it", "what was put out", "asked behind it"]
    assert (imported.imported, imported.unchanged) == (3, 1)


def test_an_output_that_is_there_counts_though_it_is_not_looked_through_again(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = samples.write_claude_code(tmp_path)
    first, second = store.import_(path), store.import_(path)
    assert (second.imported, second.unchanged) == (0, first.imported)
    assert (first.redacted, second.redacted, store.import_(path, dry_run=True).redacted) == (
        1,
        0,
        0,
    )
    assert (second.turns, second.sessions) == (first.turns, first.sessions)


def test_a_transcript_that_is_being_written_is_read_as_far_as_it_goes(
    store: MemoryStore, tmp_path: Path
) -> None:
    path = lines(tmp_path / "t.jsonl", [claude_line("user", 1, "a question that was asked")])
    path.write_text(path.read_text() + '{"type": "user", "sess')
    imported = store.import_(path)
    assert (imported.imported, imported.left_out) == (1, {"unfinished line": 1})


def test_a_secret_of_a_command_is_not_kept_in_a_title(store: MemoryStore, tmp_path: Path) -> None:
    call = tool_use("Bash", 1, command=f"echo {'x' * 180} {samples.KEY}")
    path = lines(
        tmp_path / "t.jsonl",
        [claude_line("assistant", 1, [call]), claude_line("user", 2, [tool_result(1, "put out")])],
    )
    store.import_(path)
    [turn] = store.sessions.transcript(SESSION).turns
    assert turn.title is not None
    assert turn.title.startswith("Bash: echo x")
    assert samples.KEY[:10] not in turn.title


@pytest.mark.parametrize(
    "text",
    [
        "<command-name>" + " " * 100_000,
        "<system-reminder>" * 20_000,
        "<command-message>x" + "<command-args>" * 20_000,
    ],
)
def test_the_end_of_a_hostile_prompt_is_reached(text: str) -> None:
    """Anything quadratic would take minutes, and this test with it."""
    assert said_by_user(f"{text} x") == f"{text} x"


def test_what_a_program_put_around_a_prompt_is_not_said() -> None:
    inserted = "<system-reminder>a</system-reminder>\n"
    assert said_by_user(f"{inserted}one {inserted}two <ide_selection>") == "one two <ide_selection>"
    assert said_by_user(inserted) is None
    command = "<command-name> /deploy </command-name>\n<command-args>staging </command-args>"
    assert said_by_user(command) == "/deploy staging"
    quoting = "what does <command-name>/deploy</command-name> mean in a transcript?"
    assert said_by_user(quoting) == quoting


def test_an_element_that_a_user_pasted_into_codex_is_said(
    store: MemoryStore, tmp_path: Path
) -> None:
    pasted = "<div>the header of the page</div>"
    inserted = "<environment_context><cwd>/x</cwd></environment_context>"
    records = [samples.codex_message("user", n, text) for n, text in enumerate((inserted, pasted))]
    store.import_(lines(tmp_path / "rollout-x.jsonl", records), format="codex")
    assert contents(store) == [pasted]


# --- Exports --------------------------------------------------------------------------------------


def test_memories_on_lines_are_all_read(store: MemoryStore, tmp_path: Path) -> None:
    path = lines(tmp_path / "m.jsonl", [{"id": str(n), "memory": f"fact {n}"} for n in range(5)])
    assert (store.import_(path).imported, store.import_(path).format) == (5, "mem0")
    path.write_text(path.read_text() + "not json at all")
    with pytest.raises(InvalidInput, match="line 6: it is not JSON"):
        store.import_(path, format="mem0")


def test_outputs_of_a_message_of_claude_are_told_apart_though_they_have_no_ids(
    store: MemoryStore, tmp_path: Path
) -> None:
    outputs = [{"type": "tool_result", "content": text} for text in ("12 rows", "34 rows")]
    message = {"uuid": "m", "sender": "assistant", "content": outputs}
    talk = {"uuid": "c", "name": "Rows", "chat_messages": [message]}
    path = document(tmp_path / "conversations.json", [talk])
    first, second = store.import_(path), store.import_(path)
    assert [turn.content for turn in store.sessions.transcript("c").turns] == ["12 rows", "34 rows"]
    assert (first.imported, second.unchanged) == (2, 2)


def test_a_message_of_claude_without_an_id_does_not_hide_the_others(
    store: MemoryStore, tmp_path: Path
) -> None:
    messages = [
        samples.claude_message("m1", "human", "a question with an id"),
        {"sender": "human", "text": "one without"},
        samples.claude_message("m2", "assistant", "an answer with an id"),
    ]
    path = document(tmp_path / "c.json", [{"uuid": "c1", "name": "n", "chat_messages": messages}])
    assert store.import_(path).left_out == {"meta": 1}
    assert contents(store) == ["a question with an id", "an answer with an id"]


def test_messages_without_an_id_are_told_apart_by_where_they_stand(
    store: MemoryStore, tmp_path: Path
) -> None:
    nodes, before = {}, None
    for number in range(3):
        message = samples.chatgpt_message(f"n{number}", "user", None, f"words number {number}")
        message.pop("id", None)
        nodes[f"n{number}"] = samples.chatgpt_node(f"n{number}", before, message)
        before = f"n{number}"
    talk = {"id": "c1", "title": "t", "mapping": nodes, "current_node": "n2", "create_time": 1.0}
    folder = tmp_path / ("a long name " * 15) / ("and one more " * 10)
    assert store.import_(document(folder / "conversations.json", [talk])).imported == 3


def test_a_broken_archive_is_named_and_keeps_nobody_from_the_rest(
    store: MemoryStore, tmp_path: Path
) -> None:
    broken = tmp_path / "b.zip"
    with zipfile.ZipFile(broken, "w", zipfile.ZIP_DEFLATED) as archive:
        talks = [{"id": str(n), "mapping": {}, "current_node": ""} for n in range(5000)]
        archive.writestr("conversations.json", json.dumps(talks))
    held = bytearray(broken.read_bytes())
    held[200:400] = bytes(byte ^ 0xFF for byte in held[200:400])
    broken.write_bytes(held)
    with pytest.raises(InvalidInput, match="cannot be unpacked"):
        store.import_(broken, on_error="skip")
    (tmp_path / "a.zip").write_bytes(b"no archive")
    samples.write_graph(tmp_path)
    with pytest.raises(InvalidInput, match=r"a\.zip"):
        store.import_(tmp_path)
    skipped = store.import_(tmp_path, on_error="skip")
    assert [each.place for each in skipped.skipped] == ["a.zip", "b.zip/conversations.json"]
    assert skipped.format == "mcp-memory"
    assert contents(store)


# --- Notes ----------------------------------------------------------------------------------------


def test_front_matter_of_many_lines_from_windows_is_read_through() -> None:
    """A pattern that can read each line in two ways would take longer than the universe."""
    matter = b"\xef\xbb\xbf---\r\n" + b"key: value\r\n" * 300
    assert not begins_note(matter + b"---\r\npermalink: in the text")
    assert begins_note(b"---\r\nkey: value\r\npermalink: a/b\r\n---\r\ntext")
    assert not begins_note(b"permalink: a/b")
    assert not begins_note(b"")


def test_vaults_of_one_name_are_two(store: MemoryStore, tmp_path: Path) -> None:
    for owner in ("work", "private"):
        vault = tmp_path / owner / "Obsidian Vault"
        (vault / ".obsidian").mkdir(parents=True)
        (vault / "index.md").write_text(f"What {owner} is about.")
        assert store.import_(vault).imported == 1
    assert contents(store) == ["What private is about.", "What work is about."]


def test_a_note_whose_front_matter_changed_changes_here(store: MemoryStore, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    note = vault / "a.md"
    note.write_text("---\ntags: [one]\n---\nThe body of the note.")
    store.import_(vault)
    assert store.import_(vault).unchanged == 1
    note.write_text("---\ntags: [two]\n---\nThe body of the note.")
    assert store.import_(vault).updated == 1
    [memory] = store.list().memories
    assert memory.tags == ("two",)
    store.update(memory.memory_id, tags=["mine"])
    note.write_text("---\ntags: [three]\n---\nThe body of the note.")
    assert store.import_(vault).unchanged == 1


def test_what_was_forgotten_here_does_not_follow_its_note(
    store: MemoryStore, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "a.md").write_text("The first text of the note.")
    store.import_(vault)
    [memory] = store.list().memories
    store.forget(memory.memory_id)
    (vault / "a.md").write_text("The second text of the note.")
    assert store.import_(vault).unchanged == 1
    store.restore(memory.memory_id)
    assert store.get(memory.memory_id).content == "The first text of the note."


def test_notes_whose_names_are_not_utf8_are_told_apart(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    try:
        for byte in (b"\xfe", b"\xff"):
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + byte + b".md")).write_bytes(
                byte.hex().encode()
            )
    except OSError:
        pytest.skip("this file system has names of text alone")
    first, second = store.import_(tmp_path), store.import_(tmp_path)
    assert (first.imported, second.imported, second.unchanged) == (2, 0, 2)
    assert contents(store) == ["fe", "ff"]


def test_notes_far_down_in_folders_of_one_shape_are_told_apart(
    store: MemoryStore, tmp_path: Path
) -> None:
    (tmp_path / ".obsidian").mkdir()
    for year in ("2023", "2024"):
        folder = tmp_path / year / ("顧客" * 15) / ("議事録" * 10) / ("週次" * 10)
        folder.mkdir(parents=True)
        (folder / "note.md").write_text(f"What was said in {year}")
    first, second = store.import_(tmp_path), store.import_(tmp_path)
    assert (first.imported, first.updated) == (2, 0)
    assert (second.updated, second.unchanged) == (0, 2)
    assert contents(store) == ["What was said in 2023", "What was said in 2024"]


def test_what_a_file_calls_a_part_is_counted_in_one_line(
    store: MemoryStore, tmp_path: Path
) -> None:
    part = {"type": "sketch\x1b[2J\nimported 9,999 memories", "data": "x"}
    text = {"type": "text", "text": "said with it"}
    path = lines(tmp_path / "t.jsonl", [claude_line("user", 1, [text, part])])
    assert store.import_(path).left_out == {"sketch [2J imported 9,999 memories": 1}


def test_data_among_notes_is_no_export(store: MemoryStore, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"n{number}.md").write_text(f"# Note {number}\n\nSome text.")
    document(tmp_path / "index.json", {"settings": 1, "mapping": {"a": 1}})
    assert (store.import_(tmp_path).format, store.list().total) == ("markdown", 3)
    document(tmp_path / "pod.json", {"id": "1", "memory": "512Mi"})
    with pytest.raises(InvalidInput, match="3 notes, and data that looks like mem0") as refused:
        store.import_(tmp_path)
    assert 'format="markdown"' in refused.value.hint
    assert store.import_(tmp_path, format="markdown").unchanged == 3
