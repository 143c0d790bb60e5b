"""Decide what an import takes in: known texts, erased texts, ids, places and references.

Every function here takes values and gives values. `transfer/loading.py` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Literal

from byheart.contracts import (
    EntityRecord,
    LostLink,
    MemoryChange,
    MemoryRecord,
    MemoryState,
    Model,
    Models,
    StoredText,
    TextKey,
)
from byheart.embedding import generations
from byheart.memory import versions
from byheart.model import HistoryEntry, Memory
from byheart.model.spellings import spelling_key
from byheart.startup.dataclass_types import dataclass

# `known`: the memory here stays as it is. `renews`: the memory here has expired, and is set aside.
Relation = Literal["new", "known", "renews"]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The part of a record that is written, and how many of its texts were refused."""

    record: MemoryRecord
    refused_texts: int


def relation_to(memory: Memory, same: MemoryState | None, now: datetime) -> Relation:
    """Compare an imported memory with the memory here that holds the same text or client id.

    A hidden memory without a client id comes in beside a visible one: both were saved.
    """
    if same is None or (memory.forgotten_at is not None and memory.client_id is None):
        return "new"
    expired = memory.expires_at is not None and memory.expires_at <= now
    return "known" if expired or versions.is_same(same, now) else "renews"


def texts_of(record: MemoryRecord) -> list[TextKey]:
    """Name all texts of a record, the present one first."""
    return [_key(text) for text in (record.text, *record.earlier)]


def admit(record: MemoryRecord, erased: Collection[TextKey], new_id: str | None) -> Admitted | None:
    """Choose what to write of a record; `None` if its present text was erased here.

    Earlier texts that were erased are left out, with the values that the history has of them.
    `new_id` is set if a memory of another space has the record's id: then this one is a copy.
    """
    if _key(record.text) in erased:
        return None
    left_out = [text.memory.version for text in record.earlier if _key(text) in erased]
    record = replace(
        record,
        earlier=tuple(text for text in record.earlier if _key(text) not in erased),
        history=tuple(without_quotes(entry, left_out) for entry in record.history),
    )
    return Admitted(record if new_id is None else rename(record, new_id), len(left_out))


def _key(text: StoredText) -> TextKey:
    return TextKey(text.memory.space, text.memory.content_hash)


def rename(record: MemoryRecord, memory_id: str) -> MemoryRecord:
    """Give a memory another id, in its earlier texts too."""
    text, *earlier = (
        replace(each, memory=replace(each.memory, memory_id=memory_id))
        for each in (record.text, *record.earlier)
    )
    return replace(record, text=text, earlier=tuple(earlier))


def without_quotes(entry: HistoryEntry, left_out: Collection[int]) -> HistoryEntry:
    """Keep an entry, but not its values if they may quote a text that was left out.

    `left_out` are the versions of these texts.
    """
    quotes = bool(left_out) and entry.version <= max(left_out) + 1
    return replace(entry, changes={}) if quotes else entry


def place_to_keep(text: StoredText, *, session_is_own: bool) -> int | None:
    """Give the place that a text keeps in its session, if no memory has it yet.

    A session is the import's own if it was empty before. Otherwise its places are from two
    stores, and only times can be compared.
    """
    return text.turn_no if session_is_own else None


def place_of_earlier(earlier: StoredText, present: Memory, turn_no: int | None) -> int | None:
    """Give the place of an earlier text: that of the present one, if it was in the same session."""
    return turn_no if earlier.memory.session_id == present.session_id else earlier.turn_no


def with_free_aliases(entity: EntityRecord, spellings: Collection[str]) -> EntityRecord:
    """Leave out aliases that belong to an entity here: an import merges no entities.

    `spellings` are the keys of the names and aliases that are in use here.
    """
    used, free = {*spellings, spelling_key(entity.name)}, []
    for alias in entity.aliases:
        if spelling_key(alias) not in used:
            used.add(spelling_key(alias))
            free.append(alias)
    return replace(entity, aliases=tuple(free))


def adopt_models(models: Models, imported: Iterable[Model], active: str | None) -> Models:
    """Record imported models; a store that uses none uses `active` from now on."""
    for each in imported:
        models = generations.note(models, each, None)
    return models if models.active is not None else replace(models, active=active)


def relink(lost: Iterable[LostLink], renamed: Mapping[str, str]) -> list[MemoryChange]:
    """Point to superseding memories by the ids that they have here."""
    return [
        MemoryChange(link.memory_no, {"superseded_by": renamed[link.superseded_by]})
        for link in lost
        if link.superseded_by in renamed
    ]
