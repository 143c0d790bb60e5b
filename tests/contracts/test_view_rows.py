"""What the lists and counts for people promise, run on each implementation."""

from datetime import UTC, datetime, timedelta

from byheart.contracts import Reader, Storage, ViewReader
from byheart.memory import transactions
from byheart.model import Filter
from tests.contracts.covering import covers
from tests.contracts.drafts import draft

DAY = timedelta(days=1)
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR_MICROS = 3_600_000_000


@covers(Reader.views, ViewReader.briefs)
def test_memories_are_listed_in_brief_in_the_order_asked(storage: Storage) -> None:
    made = [draft(f"text {n}", tags=("b", "a"), session_id="s", title=f"T{n}") for n in range(3)]
    transactions.write(storage, made, None)
    [other] = transactions.write(storage, [draft("far", space="other")], None)
    ids = [each.memory.memory_id for each in made]
    with storage.reading("space") as reader:
        found = reader.views.briefs([ids[2], "mem_none", other.memory_id, ids[0]], "space")
    assert [each.memory_id for each in found] == [ids[2], ids[0]]
    assert (found[0].title, found[0].tags, found[0].session_id) == ("T2", ("a", "b"), "s")
    assert found[0].created_at == made[2].memory.created_at


@covers(ViewReader.days, ViewReader.span)
def test_memories_are_counted_by_local_day_and_kind(storage: Storage) -> None:
    moments = [
        NOON,
        NOON + timedelta(hours=11, minutes=30),
        NOON + DAY,
        datetime(1969, 12, 31, 23, tzinfo=UTC),
    ]
    made = [
        draft(f"text {n}", created_at=at, updated_at=at, kind="fact" if n else "note")
        for n, at in enumerate(moments)
    ]
    transactions.write(storage, [*made, draft("far", space="other")], None)
    day = (NOON - datetime(1970, 1, 1, tzinfo=UTC)).days
    with storage.reading("space") as reader:
        in_utc = reader.views.days(Filter("space"), 0)
        east = reader.views.days(Filter("space"), HOUR_MICROS)
        facts = reader.views.days(Filter("space", kind=("fact",), created_after=NOON + DAY), 0)
        span, none = reader.views.span(Filter("space")), reader.views.span(Filter("empty"))
    assert in_utc == [(-1, "fact", 1), (day, "fact", 1), (day, "note", 1), (day + 1, "fact", 1)]
    assert east == [(0, "fact", 1), (day, "note", 1), (day + 1, "fact", 2)]
    assert facts == [(day + 1, "fact", 1)]
    assert span == (moments[3], moments[2])
    assert none == (None, None)


@covers(ViewReader.languages)
def test_memories_are_counted_by_language(storage: Storage) -> None:
    made = [
        *(draft(f"text {n}", language="de") for n in range(2)),
        draft("one", language="pt-BR"),
        draft("two"),
        draft("far", space="other", language="el"),
    ]
    transactions.write(storage, made, None)
    with storage.reading("space") as reader:
        assert reader.views.languages(Filter("space")) == {"de": 2, "pt-BR": 1, "und": 1}
        assert reader.views.languages(Filter("empty")) == {}


@covers(ViewReader.lanes)
def test_sessions_are_listed_with_their_first_and_last_moment(storage: Storage) -> None:
    made = [
        draft("one", session_id="a", agent_id="bee", created_at=NOON, updated_at=NOON),
        draft("two", session_id="a", agent_id="ant", role="user", created_at=NOON + DAY),
        draft("three", session_id="b", created_at=NOON - DAY, updated_at=NOON),
        draft("global", created_at=NOON),
    ]
    transactions.write(storage, made, None)
    with storage.reading("space") as reader:
        lanes, total = reader.views.lanes(Filter("space"), 10, 0)
        second, _ = reader.views.lanes(Filter("space"), 1, 1)
    assert total == 2
    assert [each.session_id for each in lanes] == ["a", "b"]
    assert (lanes[0].agents, lanes[0].memories, lanes[0].turns) == (("ant", "bee"), 2, 1)
    assert (lanes[0].first_at, lanes[0].last_at) == (NOON, NOON + DAY)
    assert second == [lanes[1]]
    assert lanes[1].agents == ()


@covers(ViewReader.versions)
def test_the_texts_of_a_memory_are_read_from_the_latest_on(storage: Storage) -> None:
    [kept] = transactions.write(storage, [draft("first", title="One")], None)
    with storage.reading("space") as reader:
        found, total = reader.views.versions(kept.memory_id, "space", 10, 0)
        elsewhere = reader.views.versions(kept.memory_id, "other", 10, 0)
    assert total == 1
    assert [(each.version, each.title, each.content) for each in found] == [(1, "One", "first")]
    assert found[0].replaced_at is None
    assert elsewhere == ([], 0)


@covers(ViewReader.mark, ViewReader.changed_since)
def test_changes_of_a_space_are_listed_since_a_mark(storage: Storage) -> None:
    [old] = transactions.write(storage, [draft("old", kind="fact")], None)
    with storage.reading("space") as reader:
        mark = reader.views.mark()
        assert reader.views.changed_since(mark, "space", 10) == []
    new = [draft(f"new {n}", session_id="s", kind="note") for n in range(3)]
    made = transactions.write(storage, [*new, draft("far", space="other")], None)
    transactions.forget(storage, [old.memory_id], "space", "test", None)
    with storage.reading("space") as reader:
        found = reader.views.changed_since(mark, "space", 10)
        first = reader.views.changed_since(mark, "space", 1)
        later = reader.views.mark()
        none = reader.views.changed_since(later, "space", 10)
    assert (found[0].memory_id, found[0].operation, found[0].kind) == (
        old.memory_id,
        "forget",
        "fact",
    )
    assert {each.memory_id for each in found[1:]} == {each.memory_id for each in made[:3]}
    assert {(each.operation, each.session_id) for each in found[1:]} == {("create", "s")}
    assert first == found[:1]
    assert none == []
    assert later.change_no > mark.change_no


@covers(ViewReader.names)
def test_names_are_listed_by_prefix_the_latest_first(storage: Storage) -> None:
    made = [
        draft("one", session_id="spring", tags=("red", "rose"), created_at=NOON),
        draft("two", session_id="summer", tags=("rose",), kind="fact", created_at=NOON + DAY),
        draft("three", session_id="100%", created_at=NOON - DAY),
        draft("far", space="other", session_id="swim", tags=("rust",)),
    ]
    transactions.write(storage, made, None)
    ids = [each.memory.memory_id for each in made]
    with storage.reading("space") as reader:
        names = reader.views.names
        assert names("session_id", Filter("space"), "s", 10) == (["summer", "spring"], 2)
        assert names("session_id", Filter("space"), "100%", 10) == (["100%"], 1)
        assert names("tag", Filter("space"), "r", 1) == (["rose"], 2)
        assert names("tag", Filter("space", session_id="spring"), "", 10)[0] == ["red", "rose"]
        assert names("kind", Filter("space"), "", 10) == (["fact", "note"], 2)
        assert names("memory_id", Filter("space"), ids[0], 10) == ([ids[0]], 1)
