"""Update memories: turn the fields that a caller gives into a revision.

read → merge → check → chunk if the text changed → embed if text or title changed → write, unless
another process has written meanwhile
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from byheart.contracts import Models, Revision, Storage, Window, key_of
from byheart.embedding.vectorizer import Made, Passage, Vectorizer, by_chunk, passages
from byheart.errors import InvalidInput, StoreDamaged, VersionConflict
from byheart.memory import transactions, versions
from byheart.memory.save_requests import (
    SaveRequest,
    check_request,
    look_for_secrets,
    notice,
    tell_secrets,
)
from byheart.memory.saving import Saver
from byheart.model import Chunk, Memory, SaveResult, to_wire
from byheart.model import checks as check
from byheart.model.fields import NOTICED, UPDATE_FIELDS
from byheart.model.spellings import spelling_key
from byheart.settings import Settings

# A time to live is compared as the moment that it leads to.
_COMPARED = tuple(name for name in UPDATE_FIELDS if name != "ttl_days")
_MOST_ATTEMPTS = 50
# The longest pause before another attempt; without one, the same caller may lose every time.
_LONGEST_PAUSE_SECONDS = 0.05
# A change of these fields needs new vectors.
_EMBEDDED = frozenset(("content", "title"))


class _Present(NamedTuple):
    """Hold a memory before a change, the models of the store, and the chunks of the memory.

    `waiting` says whether stored chunks wait for vectors. Models and chunks are read only
    if the change may need them: the chunks are embedded again under another title.
    """

    memory: Memory
    models: Models | None
    waiting: bool
    chunks: Sequence[Chunk]


class Changer:
    """Turn updates into revisions."""

    def __init__(
        self, storage: Storage, saver: Saver, vectorizer: Vectorizer, settings: Settings
    ) -> None:
        self._storage = storage
        self._saver = saver
        self._vectorizer = vectorizer
        self._settings = settings

    def update(
        self,
        memory_id: str,
        space: str,
        given: Mapping[str, Any],
        expected_version: int | None,
        who: str,
    ) -> SaveResult:
        """Change the given fields and no others.

        If `expected_version` is no longer the current version, raise `Conflict`. Without it, merge
        with a change that another process makes at the same moment; the history has both.
        """
        check.check_names(given, UPDATE_FIELDS, "field")
        if not given:
            raise InvalidInput("nothing to change was given", "name at least one field")
        for attempt in range(_MOST_ATTEMPTS):
            present = self._read(memory_id, space, given)
            current = present.memory
            request = self._request(current, given)
            revision, wanted, made = self._revision(present, request, given, who)
            revision = replace(
                revision,
                expected_version=current.version if expected_version is None else expected_version,
            )
            if not revision.changes and revision.expected_version == current.version:
                return tell_secrets(request, self._unchanged(current))
            try:
                result = transactions.revise(self._storage, revision, made.model)
            except VersionConflict:
                if expected_version is not None or attempt + 1 == _MOST_ATTEMPTS:
                    raise
                time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS * attempt / _MOST_ATTEMPTS))
            else:
                reason = self._saver.note_refused([result], wanted, made, space)
                make_others = bool(wanted and present.waiting)
                [complete] = self._saver.complete([result], make_others, reason, space)
                return tell_secrets(request, complete)
        raise AssertionError("unreachable")

    def _unchanged(self, current: Memory) -> SaveResult:
        key = key_of(current)
        known = transactions.known(self._storage, [key]).get(
            key
        )  # an expired one is not known there
        return known or SaveResult(
            current.memory_id,
            "unchanged",
            current.chunks,
            current.content_hash,
            current.created_at,
            0,
            current.version,
        )

    def _read(self, memory_id: str, space: str, given: Mapping[str, Any]) -> _Present:
        with self._storage.reading(space) as reader:
            reader.prefetch(
                lambda: reader.memory(memory_id, space),
                lambda: reader.states([memory_id], space),
                reader.models.read,
                reader.models.any_waiting,
            )
            memory = reader.memory(memory_id, space)
            state = reader.states([memory_id], space).get(memory_id)
            models, waiting = None, False
            if not _EMBEDDED.isdisjoint(given):
                models, waiting = reader.models.read(), reader.models.any_waiting()
            chunks = reader.chunks_of(memory_id, space) if "title" in given else ()
        if state is not None:
            versions.refuse_forgotten(memory_id, state.forgotten_at)
        if memory is None:
            raise versions.unknown_error(memory_id)
        if memory.replaced_at is not None:
            raise InvalidInput(
                f"{memory_id} is an earlier text and cannot be changed",
                f"change the current one: {memory.memory_id}",
            )
        return _Present(memory, models, waiting, [each.chunk for each in chunks])

    def _request(self, current: Memory, given: Mapping[str, Any]) -> SaveRequest:
        """Make a save request for the whole memory; look for secrets in given fields."""
        if current.damaged and "content" not in given:
            raise StoreDamaged(
                f"the text of {current.memory_id} is not the one that was saved, and stays as it "
                "is: nothing was changed",
                "give the whole text again as content, or put a backup in the store's place",
            )
        request = check_request(_merged(current, given), self._settings)
        request = look_for_secrets(request, self._settings, tuple(given))
        return replace(request, origin=replace(request, role=current.role).whose)

    def _revision(
        self, present: _Present, request: SaveRequest, given: Mapping[str, Any], who: str
    ) -> tuple[Revision, Sequence[Passage], Made]:
        current = present.memory
        # The very text that was saved, given again, takes the place of a damaged one.
        changed_text = request.content_hash != current.content_hash or current.damaged
        noticed, derived = _noticed(current, request, given, changed_text)
        expiry_given = "ttl_days" in given or "expires_at" in given
        memory = replace(
            current,
            **{name: getattr(request, name) for name in _COMPARED if name not in NOTICED},
            **noticed,
            content_hash=request.content_hash,
            updated_at=request.at,
        )
        if not expiry_given:
            memory = replace(memory, expires_at=current.expires_at)
        if changed_text:
            tokens = partial(self._vectorizer.tokens, present.models)
            chunks, format_ = self._saver.chunk(request, tokens)
            memory = replace(memory, format=format_, chunks=len(chunks))
        changes = _changes(current, memory, derived)
        revision = Revision(memory, current.version, derived, who, changes, None)
        if changed_text:
            wanted = passages(chunks, request.title)
            made = self._saver.embed(wanted, models=present.models, space=memory.space)
            text = (tuple(chunks), by_chunk(chunks, iter(made.windows)))
            return replace(revision, text=text), wanted, made
        if request.title != current.title:
            windows, made = self._under_title(present, request.title)
            return replace(revision, windows=windows), (), made
        return revision, (), Made([], None, None)

    def _under_title(
        self, present: _Present, title: str | None
    ) -> tuple[tuple[tuple[Window, ...], ...] | None, Made]:
        """Embed a memory again under a new title, because every embedded text begins with it.

        Embed all chunks or none: vectors under the old title are better than no vectors.
        """
        chunks, models = present.chunks, present.models
        wanted = passages(chunks, title)
        space = present.memory.space
        made = self._vectorizer.windows(wanted, models, space) if wanted else Made([], None, None)
        if made.model is None or made.reason is not None:
            return None, Made([], None, made.reason)
        return by_chunk(chunks, iter(made.windows)), made


def _merged(current: Memory, given: Mapping[str, Any]) -> dict[str, Any]:
    """Give all fields of the memory, with the given ones in place of the current ones."""
    fields = {name: getattr(current, name) for name in _COMPARED}
    for name in current.derived:
        fields[name] = None
    if "ttl_days" in given or "expires_at" in given:
        del fields["expires_at"]
    fields |= given
    if given.get("metadata") is not None:
        # Key by key, so that two callers with different keys do not delete each other's.
        changed = check.check_metadata(given["metadata"])
        kept = {key: value for key, value in current.metadata.items() if key not in changed}
        set_ = {key: value for key, value in changed.items() if value is not None}
        fields["metadata"] = {**kept, **set_}
    return {**fields, "space": current.space}


def _noticed(
    current: Memory, request: SaveRequest, given: Mapping[str, Any], changed_text: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Derive fields again: all if the text changed, and those given as `None`."""
    noticed, derived = notice(request)
    for name in derived:
        if not changed_text and name in current.derived and name not in given:
            noticed[name] = getattr(current, name)
    return noticed, derived


def _changes(
    current: Memory, changed: Memory, derived: tuple[str, ...]
) -> dict[str, tuple[Any, Any]]:
    """Return the fields that differ; a text by its hash, since both texts are kept elsewhere.

    A derived field that is now given with the same value counts too: the next text does not derive
    it again.
    """
    differences = {
        name: (to_wire(getattr(current, name)), to_wire(getattr(changed, name)))
        for name in _COMPARED
        if _comparable(name, current) != _comparable(name, changed)
        or (name in current.derived) != (name in derived)
    }
    if "content" in differences:
        differences["content"] = (current.content_hash, changed.content_hash)
    return differences


def _comparable(name: str, memory: Memory) -> Any:
    value = getattr(memory, name)
    if name == "metadata":
        return json.dumps(value, sort_keys=True)  # to Python, true is 1
    if name == "entities":
        return {spelling_key(each) for each in value}  # one entity, however it is spelled
    # Tags are a set: their order means nothing.
    return frozenset(value) if name == "tags" else value
