"""Check what short commands and hooks load: every module costs each of their calls time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import byheart

# Runs the command line without a second process, and writes the names of the loaded modules.
_RUN = """
import atexit, json, os, sys
from pathlib import Path

place = Path(sys.argv[1])

def write():
    place.write_text(json.dumps(sorted(sys.modules)))

atexit.register(write)
del os.fork
leave = os._exit
os._exit = lambda code: (write(), leave(code))
from byheart.interfaces.cli import main
sys.argv = [sys.argv[0], *sys.argv[2:]]
main()
"""
_SERVERS = {"mcp", "starlette", "uvicorn", "anyio", "asyncio", "http.client", "ssl"}
_UPKEEP = {
    "byheart.storage.postgres",
    "byheart.storage.sqlite.doctor_checks",
    "byheart.storage.sqlite.erasing",
    "byheart.storage.sqlite.copying",
    "byheart.storage.sqlite.repairs",
    "byheart.transfer.importing",
    "byheart.workspace",
    "byheart.interfaces.rest",
    "byheart.interfaces.mcp",
}
_SELDOM = {"rich", "yaml", "tomlkit", "watchfiles", "subprocess", "importlib.metadata", "email"}
_GRAMMARS = {"tree_sitter", "markdown_it"}
_MODEL = {"onnxruntime", "tokenizers", "onnx", "safetensors"}
_ENGINE = {"numpy", "apsw", "byheart.store", "byheart.model.answers"}
_WRITING = {"byheart.chunking", "byheart.extraction"}
_ALWAYS_NEEDLESS = _SERVERS | _UPKEEP | _SELDOM | _GRAMMARS


def loaded(
    arguments: list[str], folder: Path, event: Mapping[str, object] | None = None
) -> set[str]:
    """Return the modules that a command loads, with a store in the folder."""
    names = folder / "modules.json"
    environment = {key: value for key, value in os.environ.items() if key[:8] != "BYHEART_"}
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, str(names), *arguments],
        input=json.dumps(event or {}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment
        | {
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "BYHEART_DB_PATH": str(folder / "memory.db"),
            "BYHEART_EMBEDDING_PROVIDER": "none",
            "BYHEART_HOOK_TIMEOUT_SECONDS": "60",
            "BYHEART_HOOK_CAPTURE_SECONDS": "60",
        },
    )
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(names.read_text()))


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_help_and_version_load_no_engine(argument: str, tmp_path: Path) -> None:
    found = loaded([argument], tmp_path)

    assert (
        found & (_ALWAYS_NEEDLESS | _ENGINE | _MODEL | {"platformdirs", "logging.config"}) == set()
    )
    assert len(found) < 230


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a store in it: making one loads more modules."""
    with byheart.open(tmp_path / "memory.db", embedding_provider="none") as store:
        store.save("Dogs bark at night.")
    return tmp_path


def test_a_save_loads_no_model_and_no_grammar(folder: Path) -> None:
    found = loaded(["save", "Cats sleep all day."], folder)

    assert "byheart.chunking" in found
    assert found & (_ALWAYS_NEEDLESS | _MODEL) == set()


def test_a_keyword_search_loads_no_model_and_nothing_that_writes(folder: Path) -> None:
    found = loaded(["search", "dogs", "--mode", "fts"], folder)

    assert "byheart.search" in found
    assert found & (_ALWAYS_NEEDLESS | _MODEL | _WRITING) == set()


def hook(name: str, folder: Path, **said: object) -> set[str]:
    """Return the modules that a hook loads."""
    event = {"session_id": "s1", "cwd": str(folder), "hook_event_name": name, **said}
    found = loaded(["hook", name], folder, event)
    log = folder / "state" / "byheart" / "hooks.log"
    assert not log.exists(), log.read_text()
    return found


def test_the_start_of_a_session_loads_only_what_it_shows(folder: Path) -> None:
    found = hook("SessionStart", folder, source="startup")

    assert "byheart.interfaces.hooks.answers" in found
    captures = {"byheart.interfaces.hooks.captures", "byheart.transfer.foreign"}
    assert found & (_ALWAYS_NEEDLESS | _MODEL | _WRITING | captures) == set()


def test_a_prompt_loads_no_grammar_and_no_transcripts(folder: Path) -> None:
    found = hook("UserPromptSubmit", folder, prompt="What do cats do all day?")

    assert "byheart.interfaces.hooks.answers" in found
    assert found & (_ALWAYS_NEEDLESS | _MODEL | {"byheart.transfer.foreign"}) == set()


def test_an_output_loads_only_what_keeps_it(folder: Path) -> None:
    found = hook(
        "PostToolUse",
        folder,
        tool_name="WebFetch",
        tool_use_id="t1",
        tool_response={"result": "Cats sleep all day."},
    )

    assert "byheart.interfaces.hooks.captures" in found
    answers = {"byheart.interfaces.hooks.answers", "byheart.transfer.foreign"}
    assert found & (_ALWAYS_NEEDLESS | _MODEL | answers | {"numpy"}) == set()


def test_an_output_of_a_tool_that_is_not_captured_loads_no_engine(folder: Path) -> None:
    found = hook("PostToolUse", folder, tool_name="Read", tool_response="x")

    assert found & (_ALWAYS_NEEDLESS | _MODEL | _ENGINE) == set()
