"""Load the records of an export, those of a batch and space in one transaction."""

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
        # The ids of this batch that are in use in any space.
        self._taken: set[str] = set()
        self._entities: list[EntityRecord] = []
        self._spaces: set[str] = set()

    def adopt_models(self, models: Sequence[Model], active: str | None) -> None:
        """Record models whose vectors will be loaded; a store without a model adopts `active`."""
        with self._storage.writing(None) as writer:
            before = writer.models.read()
            after = rules.adopt_models(before, models, active)
            if after != before:
                writer.models.write(after)

    def load(self, records: Sequence[Record]) -> list[Loaded]:
        """Write records as they were in another store; leave out known and erased texts."""
        ids = [each.text.memory.memory_id for each in records if isinstance(each, MemoryRecord)]
        with self._storage.reading() as reader:
            # A transaction for one space need not see the ids of other spaces.
            self._taken = reader.taken(ids)
        by_number: dict[int, Loaded] = {}
        for space in dict.fromkeys(map(_space_of, records)):
            own = {at: each for at, each in enumerate(records) if _space_of(each) == space}
            with self._storage.writing(space) as writer:
                by_number |= {at: self._load(writer, each) for at, each in own.items()}
        loaded = [by_number[at] for at in range(len(records))]
        self._spaces.update(map(_space_of, records))
        for record, (_, memory_id, _) in zip(records, loaded, strict=True):
            if isinstance(record, EntityRecord):
                self._entities.append(record)
            elif isinstance(record, MemoryRecord) and memory_id != record.text.memory.memory_id:
                self._renamed[record.text.memory.memory_id] = memory_id
        return loaded

    def finish(self) -> None:
        """Drop entities that no memory names, and change references to the ids of this store."""
        for space in sorted(self._spaces):
            with self._storage.writing(space) as writer:
                # Only entities of this import: the memories of another import may still follow.
                for each in self._entities:
                    if each.space == space:
                        writer.entities.remove_unnamed(each.name, space)
                if self._renamed:
                    lost = writer.archive.lost_links(space)
                    writer.memories.change(rules.relink(lost, self._renamed))

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
        is_taken = space is not None or memory.memory_id in self._taken
        admitted = rules.admit(record, erased, new_memory_id() if is_taken else None)
        if admitted is None:
            return Loaded("refused", memory.memory_id, 1)
        if same is not None and relation == "renews":
            aside = versions.set_aside(same, now, memory.source)
            writer.memories.change([] if aside is None else [aside])
        self._insert(writer, admitted.record)
        self._taken.add(admitted.record.text.memory.memory_id)
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


def _space_of(record: Record) -> str:
    return record.text.memory.space if isinstance(record, MemoryRecord) else record.space
