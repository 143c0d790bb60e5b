"""Languages: given by the caller or detected, kept everywhere, usable as a filter."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from byheart.errors import InvalidInput
from byheart.interfaces.mcp.calling import call_tool
from byheart.interfaces.operations import Grant
from byheart.model import MODES
from byheart.storage.sqlite import migrations
from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.databases import sqlite_only

GERMAN = "Der Hafen ist im Winter für große Schiffe nicht zu erreichen, weil er gefroren ist."
ENGLISH = "The harbour cannot be reached by large ships in winter, because it is frozen."


def language_of(store: MemoryStore, memory_id: str) -> str:
    return store.get(memory_id).language


def test_the_language_is_given_or_detected(store: MemoryStore) -> None:
    assert language_of(store, store.save(GERMAN).memory_id) == "de"
    assert language_of(store, store.save(ENGLISH, language="EN-gb").memory_id) == "en-GB"
    assert language_of(store, store.save("kestrel").memory_id) == "und"
    assert language_of(store, store.log("s", "user", GERMAN).memory_id) == "de"
    assert language_of(store, store.log("s", "user", "Ja.", language="de").memory_id) == "de"


def test_undetermined_counts_as_not_given(store: MemoryStore) -> None:
    memory = store.get(store.save(GERMAN, language="und").memory_id)
    assert memory.language == "de"
    assert "language" in memory.derived


def test_a_bad_tag_is_refused_and_nothing_is_saved(store: MemoryStore) -> None:
    for call in (
        lambda: store.save("Tea.", language="English"),
        lambda: store.log("s", "user", "Tea.", language="en_GB"),
        lambda: store.search("tea", language="*"),
        lambda: store.list(language="e"),
    ):
        with pytest.raises(InvalidInput, match="language is not a BCP 47 language tag"):
            call()
    assert store.list().total == 0


def test_a_new_text_is_detected_again_unless_its_language_was_given(store: MemoryStore) -> None:
    detected, given = store.save(GERMAN).memory_id, store.save(GERMAN, "fact", language="de-AT")
    store.update(detected, content=ENGLISH)
    store.update(given.memory_id, content=ENGLISH)
    assert language_of(store, detected) == "en"
    assert language_of(store, given.memory_id) == "de-AT"
    assert store.history(detected)[-1].changes["language"] == {"from": "de", "to": "en"}
    store.update(given.memory_id, language=None)
    assert language_of(store, given.memory_id) == "en"
    assert store.update(detected, tags=["tea"]).version == 3
    assert "language" not in store.history(detected)[-1].changes


@pytest.fixture
def mixed(store: MemoryStore) -> dict[str, str]:
    """Give the ids of one memory about a harbour of each language."""
    return {
        tag: store.save(f"Harbour, number {number}.", language=tag).memory_id
        for number, tag in enumerate(("de", "de-AT", "den", "zh-Hant-TW", "und"))
    }


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("de", {"de", "de-AT"}),
        ("DE-at", {"de-AT"}),
        ("zh", {"zh-Hant-TW"}),
        ("zh-Hans", set()),
        ("und", {"und"}),
        (None, {"de", "de-AT", "den", "zh-Hant-TW", "und"}),
    ],
)
def test_every_way_to_look_can_ask_for_a_language(
    store: MemoryStore, mixed: dict[str, str], asked: str | None, found: set[str]
) -> None:
    wanted = {mixed[tag] for tag in found}
    for mode in MODES:
        hits = store.search("harbour", mode=mode, language=asked).results
        assert {hit.memory_id for hit in hits} == wanted
    assert {each.memory_id for each in store.list(language=asked).memories} == wanted
    assert {each.id for each in store.recall("harbour", language=asked).index} == wanted
    context = store.context("s", "harbour", language=asked, top_k=9)
    assert {item.memory_id for item in context.receipt.items} == wanted
    tool = call_tool(store, "memory_search", {"query": "harbour"} | given(asked), Grant(), 10_000)
    assert {hit["memory_id"] for hit in tool.structured["results"]} == wanted


def given(asked: str | None) -> dict[str, Any]:
    return {} if asked is None else {"language": asked}


def test_forget_can_ask_for_a_language(store: MemoryStore, mixed: dict[str, str]) -> None:
    assert store.forget(language="de-AT").memory_ids == (mixed["de-AT"],)


@pytest.mark.parametrize("target", ["all.jsonl", "vault"])
def test_exports_keep_languages(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path, target: str
) -> None:
    given = store.save(ENGLISH, language="en-GB").memory_id
    detected = store.save(GERMAN).memory_id
    unsure = store.save("kestrel").memory_id
    format_ = "markdown" if target == "vault" else "jsonl"
    store.export(tmp_path / target, format=format_)
    other = open_store(tmp_path / "other.db")
    other.import_(tmp_path / target)
    for memory_id in (given, detected, unsure):
        assert language_of(other, memory_id) == language_of(store, memory_id)
    assert "language" in other.get(unsure).derived
    assert other.import_(tmp_path / target).imported == 0


def test_an_export_of_an_earlier_version_has_no_languages(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path
) -> None:
    memory_id = store.save(GERMAN).memory_id
    out = io.BytesIO()
    store.export(out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    for line in lines:
        line.pop("language", None)
        if "derived" in line:
            line["derived"].remove("language")
    other = open_store(tmp_path / "other.db")
    other.import_(io.BytesIO("\n".join(map(json.dumps, lines)).encode()))
    assert language_of(other, memory_id) == "und"
    other.update(memory_id, content=f"{GERMAN} So ist es.")
    assert language_of(other, memory_id) == "de"


def test_an_export_with_a_bad_tag_is_refused(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path
) -> None:
    store.save(GERMAN)
    out = io.BytesIO()
    store.export(out)
    bad = out.getvalue().replace(b'"language":"de"', b'"language":"German"')
    assert bad != out.getvalue()
    other = open_store(tmp_path / "other.db")
    with pytest.raises(InvalidInput, match="BCP 47"):
        other.import_(io.BytesIO(bad))


@sqlite_only
def test_a_store_from_before_languages_goes_on(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store() as store:
        memory_id = store.save(GERMAN).memory_id
    # Later changes are in the file already: they are not applied a second time.
    known = [each for each in migrations.known_migrations() if each[0] <= 11]
    monkeypatch.setattr(migrations, "known_migrations", lambda: known)
    connection = apsw.Connection(str(path))
    connection.execute("ALTER TABLE memories DROP COLUMN language")
    connection.execute("UPDATE memories SET derived = replace(derived, ',language', '')")
    connection.execute("PRAGMA user_version = 10")
    connection.close()
    with open_store() as store:
        memory = store.get(memory_id)
        assert (memory.language, "language" in memory.derived) == ("und", True)
        assert [each.memory_id for each in store.search("Hafen", language="und").results] == [
            memory_id
        ]
        assert store.update(memory_id, importance=9).status == "updated"
        assert language_of(store, memory_id) == "und"
        store.update(memory_id, language=None)
        assert language_of(store, memory_id) == "de"
