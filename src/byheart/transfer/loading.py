"""Load the records of an export, each batch in one transaction: read, decide, write."""

from __future__ import annotations

from collections.abc import Sequence

from byheart.contracts import (
    EntityRecord,
    EntityRows,
    Loaded,
    MemoryRecord,
    Model,
    Record,
    Storage,
    StoredText,
    Writer,
    key_of,
)
from byheart.memory import turn_places, versions
from byheart.model.ids import new_memory_id
from byheart.model.spellings import spelling_key
from byheart.system import clock
from byheart.transfer import import_rules as rules


class Loader:
    """Load one export, batch by batch; with `force`, erased texts come back."""

    def __init__(self, storage: Storage, *, force: bool) -> None:
        self._storage = storage
        self._force = force
        # The sessions that were empty when this import came to them.
        self._own_sessions: set[tuple[str, str]] = set()
        self._renamed: dict[str, str] = {}
        self._entities: list[EntityRecord] = []

    def adopt_models(self, models: Sequence[Model], active: str | None) -> None:
        """Record models whose vectors will be loaded; a store without a model adopts `active`."""
        with self._storage.writing() as writer:
            before = writer.models.read()
            after = rules.adopt_models(before, models, active)
            if after != before:
                writer.models.write(after)

    def load(self, records: Sequence[Record]) -> list[Loaded]:
        """Write records as they were in another store; leave out known and erased texts."""
        with self._storage.writing() as writer:
            loaded = [self._load(writer, record) for record in records]
        for record, (_, memory_id, _) in zip(records, loaded, strict=True):
            if isinstance(record, EntityRecord):
                self._entities.append(record)
            elif isinstance(record, MemoryRecord) and memory_id != record.text.memory.memory_id:
                self._renamed[record.text.memory.memory_id] = memory_id
        return loaded

    def finish(self) -> None:
        """Drop entities that no memory names, and change references to the ids of this store."""
        with self._storage.writing() as writer:
            # Only entities of this import: the memories of another import may still follow.
            for each in self._entities:
                writer.entities.remove_unnamed(each.name, each.space)
            if self._renamed:
                writer.memories.change(rules.relink(writer.archive.lost_links(), self._renamed))

    def _load(self, writer: Writer, record: Record) -> Loaded:
        if isinstance(record, MemoryRecord):
            return self._load_memory(writer, record)
        if isinstance(record, EntityRecord):
            _add_entity(writer.entities, record)
            return Loaded("imported", "")
        return Loaded("imported" if writer.tombstones.add([record]) else "unchanged", "")

    def _load_memory(self, writer: Writer, record: MemoryRecord) -> Loaded:
        memory = record.text.memory
        space = writer.archive.space_of(memory.memory_id)
        if space == memory.space:
            return Loaded("unchanged", memory.memory_id)
        same, now = writer.memories.find(key_of(memory)), clock.now()
        relation = rules.relation_to(memory, same, now)
        if same is not None and relation == "known":
            return Loaded("unchanged", same.memory_id)
        texts = rules.texts_of(record)
        if self._force:
            writer.tombstones.remove(texts)
        erased = set() if self._force else writer.tombstones.find(texts)
        admitted = rules.admit(record, erased, None if space is None else new_memory_id())
        if admitted is None:
            return Loaded("refused", memory.memory_id, 1)
        if same is not None and relation == "renews":
            aside = versions.set_aside(same, now, memory.source)
            writer.memories.change([] if aside is None else [aside])
        self._insert(writer, admitted.record)
        return Loaded("imported", admitted.record.text.memory.memory_id, admitted.refused_texts)

    def _insert(self, writer: Writer, record: MemoryRecord) -> None:
        rows, present = writer.archive, record.text.memory
        turn_no = self._place(writer, record.text)
        # The oldest text goes in first: the order of numbers is the order of an export.
        for text in record.earlier:
            rows.insert(text, rules.place_of_earlier(text, present, turn_no))
        rows.add_history(rows.insert(record.text, turn_no), record.history)

    def _place(self, writer: Writer, text: StoredText) -> int | None:
        memory = text.memory
        space, session_id = memory.space, memory.session_id
        if session_id is None:
            return None
        kept = rules.place_to_keep(text, session_is_own=self._is_own(writer, space, session_id))
        if kept is not None and not writer.archive.has_place(space, session_id, kept):
            return kept
        return turn_places.choose(writer.memories, space, session_id, memory.created_at)

    def _is_own(self, writer: Writer, space: str, session_id: str) -> bool:
        """Say whether this import alone fills a session."""
        session = space, session_id
        if session not in self._own_sessions:
            if writer.memories.places(space, session_id, None).last is not None:
                return False
            self._own_sessions.add(session)
        return True


def _add_entity(rows: EntityRows, record: EntityRecord) -> None:
    """Add an entity with the aliases that are free; a known entity gets them in addition."""
    known = {spelling_key(each) for each in record.aliases if rows.find(each, record.space)}
    entity, free = rows.add(record.name, record.space), rules.with_free_aliases(record, known)
    if free.aliases:
        rows.put(entity._replace(aliases=(*entity.aliases, *free.aliases)))
