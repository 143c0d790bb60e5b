"""`byheart status` and `byheart doctor`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import byheart
from byheart.model import to_wire
from byheart.storage.sqlite.migrations import known_migrations
from tests.interfaces.cli.conftest import Run


@dataclass
class Network:
    """The variables that lead a process to a proxy of ours, and the hosts it asked for there."""

    variables: dict[str, str]
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def network(home: Path) -> Iterator[Network]:
    """Give a network that refuses everybody, with a model to be got from it."""

    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            watched.asked.append(self.path)
            self.send_error(502)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    watched = Network(
        {
            "https_proxy": f"http://127.0.0.1:{server.server_port}",
            "no_proxy": "",
            "BYHEART_MODEL_SOURCES": "hub",
            "BYHEART_EMBEDDING_PROVIDER": "onnx",
        }
    )
    yield watched
    server.shutdown()
    server.server_close()


def test_status_as_json_is_what_the_library_answers(
    run: Run, library: byheart.MemoryStore, report: str
) -> None:
    answer, expected = run("status", "--json").json, to_wire(library.status())
    for each in (answer, expected):  # the size of the log of a database changes as it is read
        del each["size_bytes"], each["index_bytes"]
    assert answer == expected


def test_status_is_readable(run: Run, report: str) -> None:
    lines = dict(line.split(maxsplit=1) for line in run("status").out.splitlines())
    assert lines["memories"] == "1 in 1 session"
    assert lines["chunks"] == "4"
    assert "hash-384" in lines["vectors"]
    assert lines["store"].endswith(f"memory.db (schema {known_migrations()[-1][0]})")


def test_status_warns_of_what_cannot_be_done(
    run: Run, report: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "none")
    assert run("status").err.startswith("warning: ")


def test_doctor_finds_a_sound_store_sound(
    run: Run, library: byheart.MemoryStore, report: str
) -> None:
    ran = run("doctor")
    assert ran.code == 0
    assert all(line.startswith("✓  ") for line in ran.out.splitlines())
    checks = [each["check"] for each in run("doctor", "--json").json]
    assert checks == [finding.check for finding in library.admin.doctor()]


def test_doctor_fails_with_hints_and_mends_what_it_can(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "none")
    run("save", "text without a vector")
    ran = run("doctor")
    assert ran.code == 1
    assert "✗  vectors complete  vectors are missing for 1 chunk\n" in ran.out
    assert "   run: byheart doctor --fix" in ran.out
    assert run("doctor", "--fix").code == 1
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "hash")
    assert run("doctor", "--fix").code == 0
    assert run("status", "--json").json["index"]["pending_vectors"] == 0


def test_doctor_rebuilds_and_compacts(run: Run, library: byheart.MemoryStore, report: str) -> None:
    before = library.search("index dropped").results
    assert run("doctor", "--rebuild", "--optimize").code == 0
    with byheart.open() as again:
        assert again.search("index dropped").results == before


def test_status_says_that_the_model_is_missing_and_downloads_nothing(
    process: Run, network: Network, home: Path
) -> None:
    ran = process("status", **network.variables)
    assert ran.code == 0
    assert "is not downloaded yet (get it with: byheart model download)" in ran.err
    assert network.asked == []
    assert not (home / "cache").exists()


def test_doctor_downloads_the_model_only_to_make_vectors_that_are_missing(
    process: Run, network: Network, home: Path
) -> None:
    for arguments in (["doctor"], ["doctor", "--fix"]):
        ran = process(*arguments, **network.variables)
        assert ran.code == 1
        assert "✗  embedding  the model sentence-transformers/all-MiniLM-L6-v2 is not" in ran.out
        assert "get it with: byheart model download" in ran.out
    assert network.asked == []
    assert not (home / "cache").exists()
    process("save", "text without a vector", BYHEART_EMBEDDING_PROVIDER="none")
    assert "502" in process("doctor", "--fix", **network.variables).out
    assert len(network.asked) == 1


def overwrite_pages(content: bytes) -> bytes:
    """Overwrite 64 bytes in every third page, as a failing disk may do."""
    damaged = bytearray(content)
    for start in range(2 * 4096, len(content), 3 * 4096):
        damaged[start : start + 64] = b"\xaa" * 64
    return bytes(damaged)


@pytest.mark.parametrize(
    "damage",
    [overwrite_pages, lambda content: content[: len(content) // 2 + 100]],
    ids=["overwritten", "cut"],
)
@pytest.mark.parametrize("flags", [(), ("--fix",), ("--rebuild",)], ids=["check", "fix", "rebuild"])
def test_doctor_lists_a_store_that_cannot_be_opened_and_does_not_name_itself(
    run: Run, home: Path, damage: Callable[[bytes], bytes], flags: tuple[str, ...]
) -> None:
    (home / "a b").mkdir()
    path = home / "a b" / "memory.db"
    lines = "".join(f'{{"content": "Note {n}: {n * "tea "}"}}\n' for n in range(200))
    assert run("--db", str(path), "save", "--jsonl", "-", stdin=lines).code == 0
    path.write_bytes(damage(path.read_bytes()))
    refused = run("--db", str(path), "search", "tea")
    recover = f"sqlite3 '{path}' .recover | sqlite3 NEW.db"
    assert refused.code == 1
    assert "byheart doctor" in refused.err
    assert recover in refused.err
    ran = run("--db", str(path), "doctor", *flags)
    assert (ran.code, ran.err) == (1, "")
    assert "✗  database file" in ran.out
    assert recover in ran.out
    assert "byheart doctor" not in ran.out
    assert run("--db", str(path), "doctor", "--json").json[0]["check"] == "database file"


def test_a_file_that_was_never_a_database_is_not_to_be_recovered(run: Run, home: Path) -> None:
    path = home / "notes.txt"
    path.write_text("Anna drinks tea.\n", encoding="utf-8")
    for command in ("list", "doctor"):
        ran = run("--db", str(path), command)
        said = ran.out + ran.err
        assert ran.code == 1
        assert f"{path} is not an SQLite database" in said
        assert "choose another file (setting db_path)" in said
        assert "recover" not in said
    assert path.read_text(encoding="utf-8") == "Anna drinks tea.\n"
