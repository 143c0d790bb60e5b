"""Check how memories become one, as functions over values decide it."""

from __future__ import annotations

import pytest

from byheart.contracts import Event, MemoryChange
from byheart.errors import Conflict
from byheart.memory import merging
from byheart.model import Merged
from tests.memory.made_memories import NOW, SECOND, held, memory

KEEP = (held(), memory())
OTHER = (held("mem_b", memory_no=8, version=5), memory("mem_b"))
THIRD = (held("mem_c", memory_no=9), memory("mem_c"))


def test_a_memory_that_is_valid_may_be_kept() -> None:
    assert merging.refuse_superseded(held()) is None


def test_a_superseded_memory_is_not_kept() -> None:
    with pytest.raises(Conflict, match="mem_a was superseded by mem_b; nothing was merged") as no:
        merging.refuse_superseded(held(superseded_by="mem_b"))
    assert "mem_a" in no.value.hint


def test_a_merge_adds_labels_in_order_and_each_once() -> None:
    keep = (held(), memory(tags=("tea", "green"), entities=("Anna",)))
    other = (OTHER[0], memory("mem_b", tags=("green", "black"), entities=("Ben", "Anna")))
    third = (THIRD[0], memory("mem_c", tags=("black", "white"), entities=("Carl",)))
    changes, merged = merging.merge(
        keep, [other, third], {"mem_b": [], "mem_c": []}, NOW, "anna", None
    )
    assert merged.tags == ("tea", "green", "black", "white")
    assert merged.entities == ("Anna", "Ben", "Carl")
    labels = changes[-1].labels
    assert labels is not None
    assert (labels.memory_id, labels.tags, labels.entities) == (
        "mem_a",
        merged.tags,
        merged.entities,
    )


def test_a_merge_sums_accesses_and_keeps_the_last_access_and_the_first_pin() -> None:
    keep = (held(), memory(access_count=2, accessed_at=NOW - 5 * SECOND, pinned_at=NOW - SECOND))
    other = (
        OTHER[0],
        memory("mem_b", access_count=3, accessed_at=NOW - 2 * SECOND, pinned_at=NOW - 9 * SECOND),
    )
    third = (THIRD[0], memory("mem_c", access_count=4))
    changes, merged = merging.merge(
        keep, [other, third], {"mem_b": [], "mem_c": []}, NOW, "anna", None
    )
    assert merged.access_count == 9
    assert changes[-1].memory_no == 7
    assert changes[-1].fields == {
        "version": 4,
        "updated_at": NOW,
        "access_count": 9,
        "accessed_at": NOW - 2 * SECOND,
        "pinned_at": NOW - 9 * SECOND,
    }


def test_memories_without_access_and_pin_stay_without_them() -> None:
    changes, _ = merging.merge(KEEP, [OTHER], {"mem_b": []}, NOW, "anna", None)
    fields = changes[-1].fields
    assert (fields["access_count"], fields["accessed_at"], fields["pinned_at"]) == (0, None, None)


def test_the_history_notes_only_the_fields_that_a_merge_changes() -> None:
    other = (OTHER[0], memory("mem_b", tags=("tea",), access_count=3))
    changes, _ = merging.merge(KEEP, [other], {"mem_b": []}, NOW, "anna", None)
    noted = {"tags": {"from": (), "to": ("tea",)}, "access_count": {"from": 0, "to": 3}}
    assert changes[-1].event == Event("update", NOW, "anna", "merged with mem_b", noted)
    changes, _ = merging.merge(KEEP, [OTHER], {"mem_b": []}, NOW, "anna", None)
    assert changes[-1].event == Event("update", NOW, "anna", "merged with mem_b", {})


@pytest.mark.parametrize(("reason", "added"), [(None, ""), ("a double", ": a double")])
def test_a_merge_hides_the_others_and_gives_its_reason(reason: str | None, added: str) -> None:
    changes, merged = merging.merge(
        KEEP, [OTHER, THIRD], {"mem_b": [], "mem_c": []}, NOW, "anna", reason
    )
    event = Event("forget", NOW, "anna", f"merged into mem_a{added}")
    fields = {"forgotten_at": NOW, "lapsed_at": None}
    assert changes[:-1] == [
        MemoryChange(8, fields, event, every_text=True),
        MemoryChange(9, fields, event, every_text=True),
    ]
    assert changes[-1].event is not None
    assert changes[-1].event.reason == f"merged with mem_b, mem_c{added}"
    assert merged == Merged("mem_a", 4, ("mem_b", "mem_c"), (), (), 0)


def test_a_memory_that_is_hidden_already_is_not_hidden_again() -> None:
    hidden = (OTHER[0]._replace(forgotten_at=NOW - SECOND), OTHER[1])
    changes, merged = merging.merge(KEEP, [hidden], {"mem_b": []}, NOW, "anna", None)
    assert [change.memory_no for change in changes] == [7]
    assert merged.merged == ("mem_b",)


def test_the_kept_memory_supersedes_whatever_the_others_superseded() -> None:
    older = held("mem_old", memory_no=4, version=1, superseded_by="mem_b")
    oldest = held("mem_oldest", memory_no=3, version=6, superseded_by="mem_c")
    changes, _ = merging.merge(
        KEEP, [OTHER, THIRD], {"mem_b": [older], "mem_c": [oldest]}, NOW, "anna", "a double"
    )
    assert [change.memory_no for change in changes] == [4, 3, 8, 9, 7]
    for change, before, version in zip(changes, ("mem_b", "mem_c"), (2, 7), strict=False):
        noted = {"superseded_by": {"from": before, "to": "mem_a"}}
        assert change.event == Event("supersede", NOW, "anna", "merged into mem_a", noted)
        assert change.fields == {
            "superseded_by": "mem_a",
            "version": version,
            "updated_at": NOW,
        }
