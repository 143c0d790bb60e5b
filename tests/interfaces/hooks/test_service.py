"""A running server answers hooks over a local socket, and hooks do without one."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.interfaces.hooks import handing_over, service, sockets
from byheart.interfaces.hooks.attempts import Deadline
from byheart.interfaces.hooks.handing_over import hand_over
from byheart.interfaces.hooks.service import HookService
from byheart.settings import Settings, load_settings
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not sockets.HAS_SOCKETS, reason="needs Unix sockets")


def event(name: str, **said: Any) -> dict[str, Any]:
    return {
        "name": name,
        "said": {"session_id": "s1", "cwd": "/nowhere", **said},
        "environ": {},
        "seconds": 20,
    }


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path_factory.mktemp("s") / "byheart"
    for module in (handing_over, service):
        monkeypatch.setattr(module, "socket_folder", lambda: made)
    return made


@pytest.fixture
def settings(path: Path) -> Settings:
    return load_settings({"db_path": str(path), "embedding_provider": "hash"})


@pytest.fixture
def served(settings: Settings, folder: Path) -> Iterator[byheart.MemoryStore]:
    with byheart.open(settings=settings) as store:
        running = HookService(store, settings)
        running.start()
        yield store
        running.close()
    assert not list(folder.iterdir()), "the socket is removed"


def test_a_running_server_answers_and_stores_a_prompt(
    served: byheart.MemoryStore, settings: Settings
) -> None:
    served.save("The deploy key of the shop is in the vault")
    asked = event("UserPromptSubmit", prompt="where is the deploy key?")
    answer = hand_over(settings, asked, Deadline(20))
    assert answer is not None
    assert "in the vault" in answer
    # The agent gets its answer before the prompt is stored.
    wait_until(lambda: served.sessions.transcript("s1").turns)
    assert [each.content for each in served.sessions.transcript("s1").turns] == [
        "where is the deploy key?"
    ]


def test_an_event_without_an_answer_is_done_when_the_hook_is_told(
    served: byheart.MemoryStore, settings: Settings
) -> None:
    output = event("PostToolUse", tool_name="Bash", tool_response="a b c", tool_input={})
    assert hand_over(settings, output, Deadline(20)) == ""
    assert [each.content for each in served.sessions.transcript("s1").turns] == ["a b c"]


def test_only_the_owner_can_use_the_socket(served: byheart.MemoryStore, folder: Path) -> None:
    [path] = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_server_of_other_settings_is_not_asked(
    served: byheart.MemoryStore, settings: Settings
) -> None:
    prompt = event("UserPromptSubmit", prompt="where is the key?")
    assert hand_over(replace(settings, space="other"), prompt, Deadline(20)) is None
    assert hand_over(replace(settings, serve_port=1), prompt, Deadline(20)) is not None


def test_the_socket_of_a_server_that_is_gone_is_removed(settings: Settings, folder: Path) -> None:
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(folder / f"{sockets.name_sockets(settings)}1"))
    assert hand_over(settings, event("Stop"), Deadline(20)) is None
    assert not list(folder.iterdir())


@pytest.mark.parametrize("bad", [{"said": {}}, {"said": {"session_id": 1}}, {}])
def test_a_bad_event_is_refused_and_the_next_one_answered(
    served: byheart.MemoryStore, settings: Settings, bad: dict[str, Any]
) -> None:
    for _ in range(6):  # more than are worked on at once
        assert hand_over(settings, {"name": "Stop", **bad}, Deadline(20)) is None
    assert hand_over(settings, event("Stop"), Deadline(20)) == ""


def test_a_path_that_is_too_long_for_a_socket_stops_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    monkeypatch.setattr(service, "socket_folder", lambda: long)
    with byheart.open(settings=settings) as store:
        running = HookService(store, settings)
        running.start()
        running.close()
    assert not list(long.iterdir())
