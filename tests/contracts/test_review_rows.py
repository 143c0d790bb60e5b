"""What the rows of reviews promise, run on each implementation."""

from datetime import UTC, datetime, timedelta

from byheart.contracts import Listing, Reader, ReviewReader, ReviewRows, Storage, Writer
from byheart.memory import transactions
from byheart.model import Filter
from tests.contracts.covering import covers
from tests.contracts.drafts import draft

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@covers(Reader.reviews, ReviewReader.stamps, ReviewReader.texts)
def test_texts_are_stamped_and_fetched_by_number(storage: Storage) -> None:
    one, two = (
        each.memory_id
        for each in transactions.write(
            storage, [draft("one", kind="fact"), draft("two", kind="note")], None
        )
    )
    transactions.write(storage, [draft("elsewhere", space="other")], None)
    transactions.forget(storage, [two], "space", "me", None)
    with storage.reading("space") as reader:
        [stamp] = reader.reviews.stamps(Filter("space"))
        [forgotten] = reader.reviews.stamps(Filter("space", forgotten=True))
        assert reader.reviews.stamps(Filter("space", kind=("note",))) == []
        numbers = [forgotten.memory_no, 10**9, stamp.memory_no]
        texts = reader.reviews.texts(numbers)
    assert (stamp.version, stamp.kind, stamp.is_turn) == (1, "fact", False)
    assert [(each.memory_id, each.content) for each in texts] == [(two, "two"), (one, "one")]
    assert texts[1].memory_no == stamp.memory_no
    assert (texts[1].kind, texts[1].session_id, texts[1].entities) == ("fact", None, ())


def test_listings_leave_out_turns_pinned_ones_and_kinds_and_choose_what_expires(
    storage: Storage,
) -> None:
    far = datetime.now(UTC) + timedelta(days=300)
    drafts = [
        draft("soon", expires_at=far),
        draft("late", expires_at=far + timedelta(days=9)),
        draft("pinned"),
        draft("a file", kind="file"),
        draft("said", session_id="s", role="user"),
    ]
    ids = [each.memory_id for each in transactions.write(storage, drafts, None)]
    transactions.pin(storage, ids[2], "space", "me", pinned=True)
    where = Filter("space")
    with storage.reading("space") as reader:
        assert (
            reader.ids(Listing(where, "expiring", expires_before=far + timedelta(days=99)))
            == (ids[:2])
        )
        soon = Listing(where, "expiring", expires_before=far + timedelta(days=1))
        assert (reader.ids(soon), reader.count(soon)) == (ids[:1], 1)
        own = Listing(
            where, "untouched", exclude_turns=True, exclude_pinned=True, exclude_kinds=("file",)
        )
        assert reader.ids(own) == ids[:2]


@covers(Writer.reviews, ReviewReader.kept, ReviewRows.keep, ReviewRows.unkeep)
def test_kept_items_are_recorded_by_space_and_go_with_their_memories(storage: Storage) -> None:
    one, two, three = (
        each.memory_id
        for each in transactions.write(
            storage, [draft("one"), draft("two"), draft("three", expires_at=None)], None
        )
    )
    with storage.writing("space") as writer:
        rows = writer.reviews
        assert rows.keep("space", f"unused:{one}@1", [one], NOON, "me")
        assert not rows.keep("space", f"unused:{one}@1", [one], NOON, "me")
        assert rows.keep("space", "a pair", [two, three], NOON, "me")
        assert rows.keep("space", "undone", [three], NOON, "me")
        assert rows.unkeep("space", "undone")
        assert not rows.unkeep("space", "undone")
        assert not rows.unkeep("other", "a pair")
    with storage.reading("space") as reader:
        assert reader.reviews.kept("space") == {f"unused:{one}@1", "a pair"}
        assert reader.reviews.kept("other") == set()
        listing = Listing(Filter("space"), "oldest", not_kept_as="unused")
        assert reader.ids(listing) == [two, three]
        assert reader.count(listing) == 2
        assert reader.count(Listing(Filter("space"), not_kept_as="expiring")) == 3
    with storage.writing("space") as writer:
        [row] = writer.memories.texts(three, "space")
        writer.memories.remove_text(row.memory_no)
        assert writer.reviews.kept("space") == {f"unused:{one}@1"}
