"""Define the verbs about memories that wait for review: `store.review`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from byheart.contracts import Listing
from byheart.memory import transactions
from byheart.memory.choosing import Chooser, matches_everything, nothing_named_error
from byheart.model import MemoryPage, Reviewed
from byheart.model import checks as check
from byheart.model.memories import FilterFields
from byheart.system.forks import RefusedInChild
from byheart.verbs.engine import Engine

Text = str | None


class ReviewVerbs(RefusedInChild):
    """List untrusted memories, trust them, and put others among them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._chooser = Chooser(engine.storage, engine.settings.space)

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
