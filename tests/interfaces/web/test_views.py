"""What the screens of the page ask for: parts, versions, similar memories and the timeline."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from byheart.errors import InvalidInput, NotFound
from byheart.interfaces.operations import OPERATIONS, Forbidden, Grant, perform
from byheart.model import Changes
from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.databases import database as database
from tests.interfaces.web.conftest import LogIn


def test_versions_are_the_texts_that_a_memory_has_had(store: MemoryStore) -> None:
    kept = store.save("Anna likes tea.", title="Drinks").memory_id
    store.update(kept, tags=["people"])
    store.update(kept, content="Anna likes coffee.")
    found = store.views.versions(kept)
    assert [each.content for each in found.versions] == ["Anna likes coffee.", "Anna likes tea."]
    assert [each.version for each in found.versions] == [3, 2]
    assert found.versions[1].replaced_at == found.versions[0].since_at
    first = store.views.versions(kept, limit=1)
    assert (first.total, first.has_more) == (2, True)
    store.forget(kept)
    with pytest.raises(NotFound, match="was forgotten"):
        store.views.versions(kept)
    with pytest.raises(NotFound):
        store.views.versions("mem_none")


def test_chunks_are_paged(store: MemoryStore) -> None:
    text = "\n\n".join(f"## Part {number}\n\n{'word ' * 60}" for number in range(12))
    kept = store.save(text).memory_id
    whole = store.views.chunks(kept)
    assert "".join(each.content for each in whole.chunks) == text
    assert whole.total == len(whole.chunks)
    page = store.views.chunks(kept, limit=2, offset=1)
    assert page.chunks == whole.chunks[1:3]
    assert page.has_more
    assert page.chunks[0].chunk_id == f"{kept}#1"


def test_similar_memories_are_those_nearest_in_meaning(store: MemoryStore) -> None:
    kept = store.save("The deploy key is kept in the vault under ci.").memory_id
    near = store.save("The deploy key was kept in the vault under ci.").memory_id
    store.save("Bananas ripen faster in a paper bag.")
    found = store.views.similar(kept, threshold=0.6)
    assert [each.memory_id for each in found.similar] == [near]
    assert found.similar[0].similarity > 0.6
    assert store.views.similar(kept, threshold=0, limit=1).similar[0].memory_id == near


def test_similar_memories_of_another_session_stay_there(store: MemoryStore) -> None:
    kept = store.save("The deploy key is kept in the vault.").memory_id
    theirs = store.save("The deploy key is in the vault.", session_id="theirs").memory_id
    assert theirs in [each.memory_id for each in store.views.similar(kept, threshold=0).similar]
    grant = Grant("read", "default", "ours")
    told = perform(store, OPERATIONS["similar"], {"memory_id": kept, "threshold": 0}, grant)
    assert theirs not in str(told)


def test_a_memory_without_vectors_says_so(store: MemoryStore) -> None:
    kept = store.log("s", "user", "ok").memory_id
    assert "no vectors" in str(store.views.similar(kept).degraded)


def test_brief_names_what_is_missing(store: MemoryStore) -> None:
    kept = store.save("Anna likes tea.").memory_id
    found = store.views.brief(["mem_none", kept])
    assert [each.memory_id for each in found.memories] == [kept]
    assert found.missing == ("mem_none",)
    with pytest.raises(InvalidInput, match="too many"):
        store.views.brief(["x"] * 1001)


def test_the_timeline_counts_days_and_lists_sessions_as_of_a_time(store: MemoryStore) -> None:
    for number in range(3):
        at = datetime(2026, 5, 1 + number, 23, 30, tzinfo=UTC)
        store.log("s1", "user", f"Turn number {number} of them", created_at=at)
    store.save("A fact for all", kind="fact")
    found = store.views.timeline(created_before="2026-06-01")
    assert [(each.day, each.memories) for each in found.days] == [
        ("2026-05-01", 1),
        ("2026-05-02", 1),
        ("2026-05-03", 1),
    ]
    assert found.days[0].kinds == {"message": 1}
    assert [(each.session_id, each.turns) for each in found.sessions] == [("s1", 3)]
    east = store.views.timeline(created_before="2026-06-01", utc_offset_minutes=60)
    assert next(each.day for each in east.days) == "2026-05-02"
    assert store.views.timeline().memories == 4
    assert store.views.timeline(as_of="2020-01-01").memories == 0
    assert store.views.timeline(kind="fact").sessions_total == 0
    with pytest.raises(InvalidInput):
        store.views.timeline(utc_offset_minutes=10_000)


def test_a_timeline_at_the_end_of_the_calendar_has_a_day(store: MemoryStore) -> None:
    store.log("s1", "user", "Far away in time", created_at="9999-12-31T23:30:00Z")
    assert store.views.timeline(utc_offset_minutes=60).days[0].day == "9999-12-31"


def test_a_key_of_a_session_sees_only_its_own_timeline(store: MemoryStore) -> None:
    store.log("theirs", "user", "A turn of theirs")
    store.log("ours", "user", "A turn of ours")
    found = perform(store, OPERATIONS["timeline"], {}, Grant("read", "default", "ours"))
    assert [each["session_id"] for each in found["sessions"]] == ["ours"]
    assert found["memories"] == 1
    with pytest.raises(Forbidden):
        perform(store, OPERATIONS["versions"], {"memory_id": "x"}, Grant("read", "default", "ours"))


def test_the_page_asks_over_rest(log_in: LogIn, server: object, store: MemoryStore) -> None:
    browser = log_in()
    made = browser.post("/memories", {"content": "# Tea\n\n<script>x</script>"}).json()
    at = f"/memories/{made['memory_id']}"
    rendered = browser.get(f"{at}/rendered").json()
    assert rendered["html"] == "<h3>Tea</h3><p>&lt;script&gt;x&lt;/script&gt;</p>"
    assert browser.get(f"{at}/chunks").json()["total"] == 1
    assert browser.get(f"{at}/versions").json()["versions"][0]["version"] == 1
    assert browser.get(f"{at}/similar").json()["similar"] == []
    assert browser.post("/brief", {"memory_id": [made["memory_id"]]}).json()["missing"] == []
    assert browser.get("/timeline", params={"kind": "note"}).json()["memories"] == 1


def test_changes_are_those_since_a_mark_whoever_made_them(
    store: MemoryStore, open_store: OpenStore
) -> None:
    old = store.save("Anna likes tea.", kind="fact").memory_id
    mark = store.views.changes().mark
    assert store.views.changes(mark) == Changes(mark, (), False)
    elsewhere = open_store()  # another connection to the same store
    new = elsewhere.save("Anna likes cake.", session_id="s").memory_id
    elsewhere.update(old, content="Anna likes coffee.")
    elsewhere.save("Another space.", space="other")
    found = store.views.changes(mark)
    told = [(each.memory_id, each.operation, each.session_id) for each in found.memories]
    assert told == [(old, "update", None), (new, "create", "s")]
    assert store.views.changes(mark, limit=1).more
    elsewhere.update(new, content="Anna likes pie.")
    again = store.views.changes(found.mark)
    assert [(each.memory_id, each.operation) for each in again.memories] == [(new, "update")]
    both = store.views.changes(mark)
    assert (new, "create") in [(each.memory_id, each.operation) for each in both.memories]


def test_a_mark_of_another_store_says_that_there_is_more(store: MemoryStore) -> None:
    store.save("Anna likes tea.")
    now = store.views.changes().mark
    assert store.views.changes("9000000000000000000-1") == Changes(now, (), True)
    with pytest.raises(InvalidInput, match="no mark"):
        store.views.changes("yesterday")
