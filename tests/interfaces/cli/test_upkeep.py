"""`byheart status` and `byheart doctor`."""

from __future__ import annotations

import pytest

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import Run


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
    assert lines["store"].endswith("memory.db (schema 1)")


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
    assert checks == [finding.check for finding in library.doctor()]


def test_doctor_fails_with_hints_and_mends_what_it_can(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "none")
    run("save", "text without a vector")
    ran = run("doctor")
    assert ran.code == 1
    assert "✗  vectors complete  vectors are missing for 1 chunks" in ran.out
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
