"""`brief`, `chunks`, `render`, `similar`, `versions` and `timeline` on the command line."""

from __future__ import annotations

import json

import byheart
from tests.interfaces.cli.conftest import Run


def test_memories_are_shown_in_parts_and_versions(run: Run, library: byheart.MemoryStore) -> None:
    kept = library.save("# Tea\n\nAnna likes <tea>.", title="Drinks").memory_id
    library.update(kept, content="# Tea\n\nAnna likes coffee.")
    assert run("render", kept).out == "<h3>Tea</h3><p>Anna likes coffee.</p>\n"
    assert f"{kept}#0" in run("chunks", kept).out
    versions = run("versions", kept).out
    assert versions.index("coffee") < versions.index("<tea>")
    assert run("versions", kept, "--limit", "1").err.startswith("1 of 2; more:")
    brief = run("brief", kept)
    assert "Drinks" in brief.out
    assert "coffee" not in brief.out
    assert json.loads(run("brief", kept, "--json").out)["missing"] == []


def test_similar_memories_are_listed(run: Run, library: byheart.MemoryStore) -> None:
    kept = library.save("The deploy key is in the vault.").memory_id
    assert run("similar", kept).out == "No memory is that similar.\n"
    near = library.save("The deploy key was in the vault.").memory_id
    assert near in run("similar", kept).out


def test_the_timeline_shows_days_and_sessions(run: Run, library: byheart.MemoryStore) -> None:
    assert run("timeline").out == "No memories here.\n"
    library.log("s1", "user", "A turn of this session", created_at="2026-05-01")
    out = run("timeline").out
    assert "2026-05-01" in out
    assert "message 1" in out
    assert "s1" in out
