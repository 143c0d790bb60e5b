"""Origins: whose words a memory holds, told by one rule, kept everywhere, usable as a filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from byheart.errors import InvalidInput
from byheart.interfaces.mcp.calling import call_tool
from byheart.interfaces.operations import Grant
from byheart.model import MODES
from byheart.storage.sqlite import SqliteStorage, migrations
from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.databases import sqlite_only


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ({}, "user"),
        ({"agent_id": "coder"}, "agent"),
        ({"kind": "file"}, "file"),
        ({"path": "notes/tea.md", "agent_id": "coder"}, "file"),
        ({"kind": "tool_output", "path": "notes/tea.md"}, "tool"),
        ({"agent_id": "coder", "origin": "user"}, "user"),
    ],
)
def test_the_origin_of_a_save(store: MemoryStore, given: dict[str, Any], origin: str) -> None:
    assert store.get(store.save("Tea is ready.", **given).memory_id).origin == origin


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ({"role": "user"}, "user"),
        ({"role": "user", "agent_id": "coder"}, "user"),
        ({"role": "assistant"}, "agent"),
        ({"role": "system"}, "agent"),
        ({"role": "tool"}, "tool"),
        ({"role": "assistant", "kind": "tool_output"}, "tool"),
        ({"role": "user", "kind": "file"}, "file"),
        ({"role": "user", "origin": "import"}, "import"),
    ],
)
def test_the_origin_of_a_turn(store: MemoryStore, given: dict[str, Any], origin: str) -> None:
    logged = store.log("s1", content="Tea is ready by now.", **given)
    assert store.get(logged.memory_id).origin == origin


def test_an_unknown_origin_is_refused_by_name(store: MemoryStore) -> None:
    for call in (
        lambda: store.save("Tea.", origin="usr"),
        lambda: store.search("tea", origin=["user", "usr"]),
        lambda: store.list(origin="usr"),
        lambda: store.context("s1", origin="usr"),
    ):
        with pytest.raises(InvalidInput, match="origin 'usr'") as raised:
            call()
        assert "did you mean user" in raised.value.hint
    assert store.list().total == 0


def test_an_agent_that_saves_over_mcp_speaks_for_itself(store: MemoryStore) -> None:
    def call(name: str, **arguments: Any) -> str:
        answer = call_tool(store, name, arguments, Grant(), 10_000)
        return store.get(answer.structured["memory_id"]).origin

    assert call("memory_save", content="Tea is ready.") == "agent"
    assert call("memory_save", content="The user said so.", origin="user") == "user"
    assert call("memory_save", content="From a file.", kind="file") == "file"
    assert call("memory_log", session_id="s", role="user", content="Is it so?") == "user"
    plain = store.save("The tea is green.").memory_id
    assert call("memory_update", memory_id=plain, tags=["tea"]) == "user"
    assert call("memory_update", memory_id=plain, content="The tea is black.") == "agent"


def test_an_update_keeps_the_origin_unless_told(store: MemoryStore) -> None:
    memory_id = store.save("Tea is ready.", origin="tool").memory_id
    store.update(memory_id, content="Tea is cold.")
    assert store.get(memory_id).origin == "tool"
    store.update(memory_id, origin="user")
    assert store.get(memory_id).origin == "user"
    assert store.history(memory_id)[-1].changes["origin"] == {"from": "tool", "to": "user"}
    store.update(memory_id, origin=None, agent_id="coder")
    assert store.get(memory_id).origin == "agent"


@pytest.fixture
def mixed(store: MemoryStore) -> dict[str, str]:
    """Give the ids of one memory about tea of each origin."""
    return {
        origin: store.save(f"Tea, number {number}, of a harbour.", origin=origin).memory_id
        for number, origin in enumerate(("user", "agent", "tool", "file", "import"))
    }


def test_every_way_to_look_can_ask_for_origins(store: MemoryStore, mixed: dict[str, str]) -> None:
    two = {mixed["tool"], mixed["import"]}
    for mode in MODES:
        found = store.search("tea harbour", mode=mode, origin=["tool", "import"]).results
        assert {hit.memory_id for hit in found} == two
        assert {hit.origin for hit in found} == {"tool", "import"}
    raw = store.search("harbour", raw=True, origin="user").results
    assert [hit.memory_id for hit in raw] == [mixed["user"]]
    recalled = store.recall("tea harbour", origin="agent")
    assert [(each.id, each.origin) for each in recalled.details] == [(mixed["agent"], "agent")]
    assert [each.memory_id for each in store.list(origin="file").memories] == [mixed["file"]]
    assert store.forget(origin="import").memory_ids == (mixed["import"],)


def test_a_context_can_leave_out_what_tools_said(store: MemoryStore, mixed: dict[str, str]) -> None:
    answer = store.context("s1", "tea harbour", origin=("user", "agent"), top_k=5)
    items = answer.receipt.items
    assert {item.memory_id: item.origin for item in items} == {
        mixed["user"]: "user",
        mixed["agent"]: "agent",
    }
    assert f"<passage id={mixed['agent'][4:14]} origin=agent" in answer.text


def test_exports_keep_origins_and_roles(
    store: MemoryStore, mixed: dict[str, str], open_store: OpenStore, tmp_path: Path
) -> None:
    turn = store.log("s1", "assistant", "The tea was logged.", client_id="a").memory_id
    summary = store.sessions.summarize("s1", "They spoke of tea.").memory_id
    store.export(tmp_path / "all.jsonl")
    store.export(tmp_path / "vault", format="markdown")
    for number, source in enumerate(("all.jsonl", "vault")):
        other = open_store(tmp_path / f"{number}.db")
        other.import_(tmp_path / source)
        for origin, memory_id in mixed.items():
            assert other.get(memory_id).origin == origin
        said = other.get(turn)
        assert (said.role, said.client_id, said.origin) == ("assistant", "a", "agent")
        assert [each.memory_id for each in other.sessions.transcript("s1").turns] == [turn]
        assert other.sessions.summarize("s1", "They spoke of green tea.").memory_id == summary
        again = other.import_(tmp_path / source)
        assert again.imported == 0


def test_what_is_brought_in_from_elsewhere_says_so(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text(
        '{"content": "Plain."}\n{"content": "Said.", "origin": "user"}\n', "utf-8"
    )
    (tmp_path / "notes").mkdir()
    note = "---\norigin: a book\n---\nA note of others.\n"
    (tmp_path / "notes" / "note.md").write_text(note, "utf-8")
    store.import_(tmp_path / "lines.jsonl")
    store.import_(tmp_path / "notes")
    found = {each.content.strip(): each for each in store.list().memories}
    assert found["Plain."].origin == "import"
    assert found["Said."].origin == "user"
    assert found["A note of others."].origin == "import"
    assert found["A note of others."].metadata["origin"] == "a book"


@sqlite_only
def test_an_older_store_gets_sensible_origins(
    path: Path, monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    with monkeypatch.context() as earlier:
        known = [each for each in migrations.known_migrations() if each[0] < 5]
        earlier.setattr(migrations, "known_migrations", lambda: known)
        SqliteStorage(path).close()
    rows = {
        "mem_note": ("note", None, None, None, None),
        "mem_agent": ("fact", None, None, "coder", None),
        "mem_file": ("file", None, "a.md", "coder", None),
        "mem_user": ("message", "user", None, "coder", None),
        "mem_reply": ("message", "assistant", None, None, None),
        "mem_tool": ("tool_output", "tool", None, None, None),
        "mem_summary": ("session_summary", None, None, None, ""),
    }
    connection = apsw.Connection(str(path))
    for memory_id, (kind, role, where, agent_id, client_id) in rows.items():
        connection.execute(
            "INSERT INTO memories (memory_id, space, session_id, kind, content_hash, summary, "
            "source, agent_id, path, importance, format, created_at, updated_at, role, client_id) "
            "VALUES (?1, 'default', 's', ?2, randomblob(32), '', 'manual', ?3, ?4, 5, 'text', 1, "
            "1, ?5, ?6)",
            (memory_id, kind, agent_id, where, role, client_id),
        )
    connection.close()
    listed = open_store(path).list(limit=100).memories
    assert {each.memory_id.removeprefix("mem_"): each.origin for each in listed} == {
        "note": "user",
        "agent": "agent",
        "file": "file",
        "user": "user",
        "reply": "agent",
        "tool": "tool",
        "summary": "agent",
    }
