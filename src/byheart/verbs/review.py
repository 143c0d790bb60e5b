"""Define the verbs about memories that somebody should look at: `store.review`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from byheart.contracts import Listing
from byheart.errors import InvalidInput
from byheart.memory import transactions
from byheart.memory.reviewing import Reviewer
from byheart.memory.selection import Chooser, matches_everything, nothing_named_error
from byheart.model import REVIEW_REASONS, KeptItem, MemoryPage, Reviewed, ReviewQueue
from byheart.model import checks as check
from byheart.model.memories import FilterFields
from byheart.system.forks import RefusedInChild
from byheart.verbs.engine import Engine

Text = str | None


class ReviewVerbs(RefusedInChild):
    """List memories to review; trust memories, or keep them out of prompts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._chooser = Chooser(engine.storage, engine.settings.space)
        self._reviewer = Reviewer(engine.storage)

    def queue(
        self,
        reason: Text = None,
        limit: int = 20,
        offset: int = 0,
        **filters: Unpack[FilterFields],
    ) -> ReviewQueue:
        """List what needs a look, each with its reason and the actions that fit.

        The reasons are: secrets found, contradictions, untrusted memories, those that expire within
        14 days, near duplicates, and those that nobody changed or used for 180 days.
        """
        where = self._engine.filter(filters)
        if where.as_of is not None:
            raise InvalidInput("as_of is not allowed: only what is now can be reviewed", "leave it")
        return self._reviewer.queue(
            replace(where, superseded=False),
            None if reason is None else check.check_choice("reason", reason, REVIEW_REASONS),
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            check.check_int("offset", offset, 0, check.LARGEST_OFFSET),
        )

    def keep(self, item_id: str, who: str = "manual", space: Text = None) -> KeptItem:
        """Keep an item of the queue as it is: it is not listed again until a memory of it changes.

        `unkeep` undoes it.
        """
        name, author = _check_item_id(item_id), check.check_label("who", who)
        self._reviewer.keep(name, self._engine.space(space), author)
        return KeptItem(name, kept=True)

    def unkeep(self, item_id: str, space: Text = None) -> KeptItem:
        """List an item again that was kept."""
        name = _check_item_id(item_id)
        self._reviewer.unkeep(name, self._engine.space(space))
        return KeptItem(name, kept=False)

    def quarantine(
        self, limit: int = 20, offset: int = 0, **filters: Unpack[FilterFields]
    ) -> MemoryPage:
        """List the memories that wait for review, the longest waiting first.

        They are found by searches, but enter no prompt unasked: no context, no reminder, no hook.
        """
        where = replace(self._engine.filter({**filters, "trusted": False}), trusted=False)
        listing = Listing(
            where,
            "waiting",
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            check.check_int("offset", offset, 0, check.LARGEST_OFFSET),
        )
        with self._engine.storage.reading(where.space) as reader:
            memories, total = reader.memories(listing), reader.count(listing)
        return MemoryPage(tuple(memories), total, offset + len(memories) < total)

    def trust(
        self,
        memory_id: str | Sequence[str] | None = None,
        reason: Text = None,
        dry_run: bool | None = None,
        who: str = "manual",
        **filters: Unpack[FilterFields],
    ) -> Reviewed:
        """Let untrusted memories enter prompts again.

        By id, this happens at once. By filter, the call is a dry run that counts, unless
        `dry_run=False`.
        """
        return self._review(memory_id, reason, dry_run, who, filters, trusted=True)

    def distrust(
        self,
        memory_id: str | Sequence[str] | None = None,
        reason: Text = None,
        dry_run: bool | None = None,
        who: str = "manual",
        **filters: Unpack[FilterFields],
    ) -> Reviewed:
        """Keep memories out of prompts until somebody has reviewed them.

        By id, this happens at once. By filter, the call is a dry run that counts, unless
        `dry_run=False`.
        """
        return self._review(memory_id, reason, dry_run, who, filters, trusted=False)

    def _review(
        self,
        memory_id: object,
        reason: Text,
        dry_run: bool | None,
        who: str,
        filters: Mapping[str, Any],
        *,
        trusted: bool,
    ) -> Reviewed:
        ids = check.check_ids("memory_id", memory_id)
        author = check.check_label("who", who)
        why = check.check_optional_text("reason", reason, check.LONGEST_SUMMARY)
        dry = None if dry_run is None else check.check_bool("dry_run", dry_run)
        done = "trusted" if trusted else "distrusted"
        if ids:
            space, chosen = self._chooser.named(ids, filters, done), list(dict.fromkeys(ids))
        else:
            where = self._chooser.restrict(filters, done)
            if matches_everything(where):
                raise nothing_named_error()
            space, chosen = where.space, self._chooser.ids(replace(where, trusted=not trusted))
        if dry or (dry is None and not ids):
            return Reviewed(tuple(chosen), len(chosen), trusted, dry_run=True)
        changed = transactions.set_trust(
            self._engine.storage, chosen, space, author, why, trusted=trusted
        )
        return Reviewed(tuple(changed), len(changed), trusted, dry_run=False)


def _check_item_id(item_id: object) -> str:
    return check.check_text("item_id", item_id, longest=check.LONGEST_SUMMARY)
