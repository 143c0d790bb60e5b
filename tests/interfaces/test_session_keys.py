"""A key of one session gets the same answers whatever other sessions hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from byheart.errors import ByheartError
from byheart.interfaces.mcp import calling, prompts, resources
from byheart.interfaces.mcp.tool_texts import TOOLS, load_definitions
from byheart.interfaces.operations import Grant
from byheart.interfaces.rest.routes import ROUTES
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from tests.conftest import WatchedEmbedder
from tests.fuzz.values import valid_values
from tests.interfaces.rest.conftest import make_client, running

# How long something took, when it happened, and ids, which name the time and have any tokens.
_VARYING = re.compile(
    r"(mem|rcp)_[0-9a-z]{26}|\b0[0-9a-z]{9}\b|"
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:[\d.]+)?(Z|\+00:00)?|[0-9a-f]{16,64}"
)
_WRITING = {tool.name for tool in TOOLS if not tool.reads_only}
_TIMES = ("elapsed_ms", "tokens_used", "seconds", "request_id", "file_path", "removal")


def normal(value: Any) -> Any:
    """Write an answer without what differs from one run to the next."""
    if isinstance(value, dict):
        return {key: normal(each) for key, each in value.items() if key not in _TIMES}
    if isinstance(value, list):
        return [normal(each) for each in value]
    return _VARYING.sub("…", value) if isinstance(value, str) else value


def assert_same(one: Any, other: Any, *place: object) -> None:
    """Compare answers; how recent something is differs by milliseconds, and so do scores."""
    if isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, abs=1e-3), place
    elif isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            assert_same(one[key], other[key], *place, key)
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        assert len(one) == len(other), place
        for number, (first, second) in enumerate(zip(one, other, strict=True)):
            assert_same(first, second, *place, number)
    else:
        assert one == other, place


@contextmanager
def make_store(folder: Path, others: bool) -> Iterator[tuple[MemoryStore, list[str]]]:
    """Fill a store with a session, what is global, and another session if there are others."""
    folder.mkdir()
    embedder = WatchedEmbedder()
    settings = load_settings(
        {"embedding_provider": "hash", "files_dir": folder / "files"},
        environ={},
        config_path=folder / "none",
    )
    with MemoryStore(SqliteStorage(folder / "memory.db"), embedder, settings) as store:
        if others:
            _fill_other_session(store)
        ids = [
            store.save(
                f"The crane of dock {each} stops at night.", session_id="s1", tags=["harbour"]
            ).memory_id
            for each in range(6)
        ]
        store.log("s1", "user", "When does the crane stop?")
        store.log("s1", "assistant", "The crane stops at night.")
        store.save("Everybody knows that the harbour opens at six.")
        if others:
            _leave_without_vectors(store, embedder)
        yield store, ids


def _fill_other_session(store: MemoryStore) -> None:
    """Let another session hold the same and similar texts."""
    for each in range(6):
        store.save(f"The crane of dock {each} stops at night.", session_id="s2", tags=["harbour"])
    store.save("The crane of dock 2 stops at night!", session_id="s2", path="notes/3.md")
    store.log("s2", "user", "When does the crane stop?", client_id="turn-1")


def _leave_without_vectors(store: MemoryStore, embedder: WatchedEmbedder) -> None:
    """Let another session hold texts without vectors.

    They are few: what is said right after one another is ranked together, unless more than eight
    memories of other sessions were saved in between.
    """
    embedder.down = True
    for each in range(3):
        store.save(f"Nobody embedded report {each} of the harbour.", session_id="s2")
    embedder.down = False


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[tuple[MemoryStore, list[str]]]]:
    folder = tmp_path_factory.mktemp("pair")
    with make_store(folder / "alone", False) as alone, make_store(folder / "among", True) as among:
        yield [alone, among]


def ask_tools(store: MemoryStore, ids: list[str]) -> Iterator[tuple[object, object]]:
    """Call every tool with every argument, under the grant of the session."""
    grant = Grant(access="write", space="default", session_id="s1", who="bound")
    # Reading first: the first save makes the vectors that are missing.
    for definition in sorted(load_definitions("full"), key=lambda each: each["name"] in _WRITING):
        schema = definition["inputSchema"]
        values = {
            name: valid_values(name, each, ids) for name, each in schema["properties"].items()
        }
        needed = {name: values[name][0] for name in schema["required"]}
        for argument, several in [("", [None]), *values.items()]:
            for value in several:
                given = {**needed, argument: value} if argument else needed
                try:
                    answer = calling.call_tool(store, definition["name"], given, grant, 8_000)
                except ByheartError as error:
                    yield (definition["name"], argument), normal(str(error))
                else:
                    shown = normal(answer.structured), normal(answer.text)
                    yield (definition["name"], argument), shown
    yield "resources", normal(str(resources.list_resources(store, grant, None)))
    for name in prompts.PROMPTS:
        filled = prompts.fill(store, grant, name, {"topic": "crane", "session_id": "s1"})
        yield name, normal(str(filled))


def ask_routes(client: httpx2.Client, ids: list[str]) -> Iterator[tuple[object, object]]:
    """Ask every route with every parameter, under the key of the session."""
    for entry in sorted(ROUTES, key=lambda each: each.operation.needs):
        values = {
            name: valid_values(name, each.schema, ids) for name, each in entry.parameters.items()
        }
        needed = {name: values[name][0] for name, each in entry.parameters.items() if each.required}
        in_path = {
            "memory_id": ids[0],
            "keep": ids[0],
            "session_id": "s1",
            "chunk_id": f"{ids[0]}#0",
            "receipt_id": "rcp_1",
        }
        path = entry.path.format(**in_path).replace("#", "%23")
        for argument, several in [("", [None]), *values.items()]:
            for value in several:
                given = {**needed, argument: value} if argument else needed
                where = {"json": given} if entry.has_body else {"params": given}
                answer = client.request(entry.method, path, **where)
                assert answer.status_code < 500, (entry.path, given, answer.text)
                key = (entry.method, entry.path, argument)
                yield key, (answer.status_code, normal(answer.json()))
    for path in ("/health/ready", "/metrics"):
        answer = client.get(path)
        yield path, (answer.status_code, normal(answer.json()))


def test_agents_of_a_session_learn_nothing_of_another(
    pair: list[tuple[MemoryStore, list[str]]],
) -> None:
    alone, among = (list(ask_tools(store, ids)) for store, ids in pair)
    assert {name for name, _ in alone if isinstance(name, str)} >= {"resources"}
    assert {name[0] for name, _ in alone if isinstance(name, tuple)} == {t.name for t in TOOLS}
    for one, other in zip(alone, among, strict=True):
        assert_same(one, other, one[0])


def test_programs_of_a_session_learn_nothing_of_another(tmp_path: Path) -> None:
    heard = []
    for name in ("alone", "among"):
        settings = load_settings(
            {"files_dir": tmp_path / f"{name}-files", "max_requests_per_minute": 0},
            environ={},
            config_path=tmp_path / "none",
        )
        with make_store(tmp_path / name, name == "among") as (store, ids):
            secret = store.api_keys.create("bound", session_id="s1").secret
            headers = {"Authorization": f"Bearer {secret}"}
            with (
                running(store, settings) as url,
                make_client(url, headers=headers) as client,
            ):
                heard.append(list(ask_routes(client, ids)))
    alone, among = heard
    for one, other in zip(alone, among, strict=True):
        assert_same(one, other, one[0])
