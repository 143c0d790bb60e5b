"""Files as other programs write them, made up for the tests: each with what it should become."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.transfer.foreign.database_samples import (
    grow_agent_file,
    grow_database,
    write_agent_file,
    write_database,
)

# A key that is none, in pieces so that no scanner takes it for one.
KEY = "gh" + "p_" + "0aB1" * 9


@dataclass(frozen=True, slots=True)
class Sample:
    """How to write a sample of a format, what an import of it must count, and how it grows."""

    format: str
    write: Callable[[Path], Path]
    # Adds something to what was written, and says how much.
    grow: Callable[[Path], int]
    sessions: int
    turns: int
    memories: int
    redacted: int = 0


def lines(path: Path, records: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


def document(path: Path, value: Any, indent: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


# --- Claude Code ----------------------------------------------------------------------------------

SESSION = "5b0c9f1e-0000-4000-8000-000000000001"


def claude_line(kind: str, minute: int, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"uuid-{minute:04}",
        "parentUuid": None,
        "sessionId": SESSION,
        "timestamp": f"2026-03-01T09:{minute:02}:00.000Z",
        "cwd": "/nowhere/shop",
        "gitBranch": "main",
        "version": "2.1.0",
        "isSidechain": False,
        "message": {"role": kind, "content": content},
        **more,
    }


def tool_use(name: str, number: int, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}


def tool_result(number: int, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content}


CLAUDE_CODE = [
    {"type": "summary", "summary": "Why the basket loses items", "leafUuid": "uuid-0004"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    claude_line("user", 1, "Why does the basket lose items when two tabs are open?"),
    claude_line("assistant", 2, [{"type": "thinking", "thinking": "hmm", "signature": "x"}]),
    claude_line(
        "assistant",
        3,
        [{"type": "text", "text": "Let me look."}, tool_use("Bash", 1, command="grep -rn basket")],
    ),
    claude_line("user", 4, [tool_result(1, f"basket.py: TOKEN = '{KEY}'\nbasket.py: save()")]),
    claude_line("assistant", 5, [tool_use("Read", 2, file_path="/nowhere/shop/basket.py")]),
    claude_line("user", 6, [tool_result(2, [{"type": "text", "text": "def save(): ..."}])]),
    claude_line("user", 7, "Caveat: this is about the session", isMeta=True),
    claude_line("user", 8, "look into the cache", isSidechain=True),
    claude_line(
        "user",
        9,
        "<command-message>deploy</command-message>\n<command-name>/deploy</command-name>\n"
        "<command-args>staging</command-args>",
    ),
    claude_line("user", 10, "<local-command-stdout>done</local-command-stdout>"),
    claude_line("assistant", 11, [{"type": "text", "text": "Both tabs write the whole basket."}]),
    claude_line("user", 12, "go on<system-reminder>never mind</system-reminder>"),
    claude_line("user", 13, "go on"),
    claude_line(
        "user", 14, "The conversation so far: the basket is written whole.", isCompactSummary=True
    ),
    claude_line("system", 15, "compacted", subtype="compact_boundary"),
]


def write_claude_code(folder: Path) -> Path:
    return lines(folder / "projects" / "-nowhere-shop" / f"{SESSION}.jsonl", CLAUDE_CODE)


# --- Codex ----------------------------------------------------------------------------------------

ROLLOUT = "019bce9f-0a40-79e2-8351-8818e8487fb6"


def codex_line(kind: str, second: int, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-04-02T10:00:{second:02}.000Z", "type": kind, "payload": payload}


def codex_message(role: str, second: int, text: str) -> dict[str, Any]:
    form = "output_text" if role == "assistant" else "input_text"
    content = [{"type": form, "text": text}]
    return codex_line("response_item", second, type="message", role=role, content=content)


CODEX = [
    codex_line("session_meta", 0, id=ROLLOUT, cwd="/nowhere/mill", cli_version="0.65.0"),
    codex_message("developer", 1, "be brief"),
    codex_message(
        "user", 1, "<environment_context>\n  <cwd>/nowhere</cwd>\n</environment_context>"
    ),
    codex_message("user", 2, "Which port does the mill listen on?"),
    codex_line("event_msg", 2, type="user_message", message="Which port does the mill listen on?"),
    codex_line("turn_context", 2, model="gpt"),
    codex_line("response_item", 3, type="reasoning", summary=[], encrypted_content="x"),
    codex_line(
        "response_item",
        4,
        type="function_call",
        name="exec_command",
        arguments='{"cmd": "grep port mill.toml"}',
        call_id="call_1",
    ),
    codex_line(
        "response_item",
        5,
        type="function_call_output",
        call_id="call_1",
        output=json.dumps({"output": f"port = 7411 # {KEY}\n", "metadata": {"exit_code": 0}}),
    ),
    codex_message("assistant", 6, "The mill listens on port 7411."),
    codex_line("event_msg", 6, type="agent_message", message="The mill listens on port 7411."),
    codex_line("compacted", 7, message="So far: the port of the mill is 7411."),
]


def write_codex(folder: Path) -> Path:
    name = f"rollout-2026-04-02T10-00-00-{ROLLOUT}.jsonl"
    return lines(folder / "sessions" / "2026" / "04" / "02" / name, CODEX)


# --- ChatGPT --------------------------------------------------------------------------------------


def chatgpt_node(name: str, parent: str | None, message: Any, *children: str) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": list(children), "message": message}


def chatgpt_message(
    name: str, role: str, at: float | None, text: str, **more: Any
) -> dict[str, Any]:
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    return {
        "id": name,
        "author": {"role": role, "name": more.pop("tool", None)},
        "create_time": at,
        "content": content,
        "metadata": more,
    }


CHATGPT = [
    {
        "title": "Sourdough",
        "create_time": 1_750_000_000.0,
        "update_time": 1_750_000_100.0,
        "conversation_id": "conv-1",
        "current_node": "d",
        "mapping": {
            "root": chatgpt_node("root", None, None, "sys"),
            "sys": chatgpt_node("sys", "root", chatgpt_message("sys", "system", None, ""), "a"),
            "a": chatgpt_node(
                "a", "sys", chatgpt_message("a", "user", 1_750_000_001.5, "How long?"), "b", "c"
            ),
            "b": chatgpt_node("b", "a", chatgpt_message("b", "assistant", 1_750_000_002, "Old.")),
            "c": chatgpt_node(
                "c",
                "a",
                chatgpt_message(
                    "c",
                    "tool",
                    None,
                    "",
                    tool="python",
                    content={"content_type": "execution_output", "text": "12 hours"},
                ),
                "d",
            ),
            "d": chatgpt_node(
                "d", "c", chatgpt_message("d", "assistant", 1_750_000_003, "Let it rise 12 hours.")
            ),
        },
    },
    {
        "title": "A picture",
        "create_time": 1_750_001_000.0,
        "id": "conv-2",
        "mapping": {
            "p": chatgpt_node(
                "p",
                None,
                chatgpt_message(
                    "p",
                    "user",
                    1_750_001_001,
                    "",
                    content={
                        "content_type": "multimodal_text",
                        "parts": [{"content_type": "image_asset_pointer"}, "What bird is this?"],
                    },
                ),
            )
        },
    },
]


def write_chatgpt(folder: Path) -> Path:
    return document(folder / "conversations.json", CHATGPT)


# --- Claude ---------------------------------------------------------------------------------------


def claude_message(name: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": name,
        "sender": sender,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "created_at": f"2026-05-01T08:00:0{name[-1]}.123456Z",
        "attachments": [],
        "files": [],
        **more,
    }


CLAUDE = [
    {
        "uuid": "chat-1",
        "name": "Bees",
        "created_at": "2026-05-01T08:00:00Z",
        "updated_at": "2026-05-01T08:00:09Z",
        "account": {"uuid": "acct"},
        "chat_messages": [
            claude_message(
                "m1",
                "human",
                "When do bees swarm?",
                attachments=[{"file_name": "hive.txt", "extracted_content": "Hive 3 is heavy."}],
            ),
            claude_message("m2", "assistant", "In May, on a warm day."),
            claude_message("m3", "human", "", content=[]),
        ],
    }
]
CLAUDE_PROJECTS = [
    {
        "uuid": "proj-1",
        "name": "Apiary",
        "description": "Everything about the hives",
        "prompt_template": "Answer in metric units.",
        "created_at": "2026-01-01T00:00:00Z",
        "docs": [{"uuid": "doc-1", "filename": "hives.md", "content": "# Hives\n\nThere are 7."}],
    }
]
CLAUDE_MEMORIES = [
    {
        "conversations_memory": "Keeps bees in Tyrol.",
        "project_memories": {"proj-1": "Seven hives."},
        "account_uuid": "acct",
    }
]


def pack(path: Path, **members: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(f"{name}.json", json.dumps(value))
    return path


def write_claude(folder: Path, talks: Any = CLAUDE) -> Path:
    return pack(
        folder / "data-2026-05-02-batch-0000.zip",
        conversations=talks,
        projects=CLAUDE_PROJECTS,
        memories=CLAUDE_MEMORIES,
        users=[{"uuid": "acct", "full_name": "A"}],
    )


# --- Memories -------------------------------------------------------------------------------------

MEM0 = {
    "results": [
        {
            "id": "7d1f",
            "memory": "Prefers trains to planes",
            "hash": "x",
            "metadata": {"seen": "chat"},
            "categories": ["travel"],
            "user_id": "ada",
            "created_at": "2026-02-03T04:05:06-08:00",
            "updated_at": None,
        },
        {"id": "7d20", "memory": "Is allergic to nuts", "user_id": "ada"},
    ]
}
GRAPH = [
    {
        "type": "entity",
        "name": "Ada_Byron",
        "entityType": "person",
        "observations": ["Speaks French", "Works on the mill"],
    },
    {"type": "entity", "name": "Mill", "entityType": "machine", "observations": []},
    {"type": "relation", "from": "Ada_Byron", "to": "Mill", "relationType": "works_on"},
]


def write_mem0(folder: Path) -> Path:
    return document(folder / "memories.json", MEM0, indent=2)


def write_graph(folder: Path) -> Path:
    return lines(folder / "memory.jsonl", GRAPH)


# --- Vaults ---------------------------------------------------------------------------------------

COFFEE = """---
title: Coffee Brewing
type: note
permalink: coffee-brewing
tags: [coffee]
created: 2026-01-02T03:04:05Z
---

# Coffee Brewing

## Observations
- [method] Pour over is clearer #filter (tried twice)
- [ ] buy beans

## Relations
- requires [[Grinding]]
- [[Water|soft water]]
"""
DAILY = """Met [[Ada Byron|Ada]] about the [[projects/Mill]] #work

![[plan.png]]

```
#not-a-tag [[Not a link]]
```
"""
ADA = "---\naliases: [Ada]\ntags:\n  - person\n---\nAn engineer. See [[Mill#Power]].\n"


def write_basic_memory(folder: Path) -> Path:
    vault = folder / "knowledge"
    vault.mkdir(parents=True, exist_ok=True)
    (vault / "coffee.md").write_text(COFFEE, encoding="utf-8")
    (vault / "plain.md").write_text("# Plain\n\nNo front matter here.\n", encoding="utf-8")
    return vault


def write_obsidian(folder: Path) -> Path:
    vault = folder / "Second Brain"
    for name in (".obsidian", "daily", "people"):
        (vault / name).mkdir(parents=True, exist_ok=True)
    (vault / ".obsidian" / "app.json").write_text("{}", encoding="utf-8")
    (vault / ".obsidian" / "hidden.md").write_text("hidden", encoding="utf-8")
    (vault / "daily" / "2026-03-05.md").write_text(DAILY, encoding="utf-8")
    (vault / "people" / "Ada Byron.md").write_text(ADA, encoding="utf-8")
    (vault / "empty.md").write_text("\n", encoding="utf-8")
    (vault / "plan.png").write_bytes(b"\x89PNG")
    return vault


# --- Growing --------------------------------------------------------------------------------------


def add_lines(*records: Any) -> Callable[[Path], int]:
    def grow(path: Path) -> int:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(each) + "\n" for each in records)
        return len(records)

    return grow


def grow_chatgpt(path: Path) -> int:
    talks = json.loads(path.read_text())
    answer = chatgpt_message("e", "user", 1_750_000_009, "And in winter?")
    talks[0]["mapping"]["d"]["children"] = ["e"]
    talks[0]["mapping"]["e"] = chatgpt_node("e", "d", answer)
    talks[0]["current_node"] = "e"
    document(path, [{**CHATGPT[1], "id": "conv-0", "title": "Before it"}, *talks])
    return 2


def grow_claude(path: Path) -> int:
    talk = {**CLAUDE[0], "chat_messages": [*CLAUDE[0]["chat_messages"]]}
    talk["chat_messages"].append(claude_message("m4", "human", "And in a cold spring?"))
    write_claude(path.parent, [talk])
    return 1


def grow_mem0(path: Path) -> int:
    held = json.loads(path.read_text())
    held["results"].insert(0, {"id": "7d21", "memory": "Plays the cello", "user_id": "ada"})
    document(path, held, indent=2)
    return 1


def grow_vault(vault: Path) -> int:
    (vault / "new.md").write_text("# New\n\nA note that was not there.\n", encoding="utf-8")
    return 1


SAMPLES = [
    Sample(
        "claude-code",
        write_claude_code,
        add_lines(claude_line("user", 30, "go on"), claude_line("user", 31, "and then stop")),
        sessions=1,
        turns=7,
        memories=1,
        redacted=1,
    ),
    Sample(
        "codex",
        write_codex,
        add_lines(codex_message("user", 30, "Which port does the mill listen on?")),
        sessions=1,
        turns=3,
        memories=1,
        redacted=1,
    ),
    Sample("chatgpt", write_chatgpt, grow_chatgpt, sessions=2, turns=4, memories=0),
    Sample("claude", write_claude, grow_claude, sessions=1, turns=3, memories=5),
    Sample("mem0", write_mem0, grow_mem0, sessions=0, turns=0, memories=2),
    Sample(
        "mcp-memory",
        write_graph,
        add_lines({"type": "relation", "from": "Mill", "to": "Ada_Byron", "relationType": "feeds"}),
        sessions=0,
        turns=0,
        memories=4,
    ),
    Sample("basic-memory", write_basic_memory, grow_vault, sessions=0, turns=0, memories=2),
    Sample("obsidian", write_obsidian, grow_vault, sessions=0, turns=0, memories=2),
    Sample("letta", write_agent_file, grow_agent_file, sessions=1, turns=2, memories=1),
    *(
        Sample(program, write_database(program), grow_database(program), sessions, turns, memories)
        for program, sessions, turns, memories in (
            ("vector-memory", 0, 0, 3),
            ("memory-mcp", 0, 0, 2),
            ("silentclaw", 0, 0, 2),
            ("mcp-memory-service", 0, 0, 2),
            ("claude-mem", 1, 2, 2),
            ("chroma", 0, 0, 2),
        )
    ),
]
