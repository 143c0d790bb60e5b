"""Copy a whole store to an empty one in any database, and compare the two.

Each batch of texts is one transaction. A copy that was interrupted goes on where it stopped: it
compares the rows that are there with those of the source, and copies again what has changed since.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from byheart.contracts import CopyMark, CopyReader, CopyRows, Reader, Storage, Writer
from byheart.errors import Do, Hint, StoreError
from byheart.model import Copied, CopyProgress, Filter, to_wire
from byheart.search import SearchRequest, find
from byheart.system import clock
from byheart.transfer import copy_rules as rules

SEARCHES = 50
_BATCH = 200
_SEED = 0
# A copy that was killed can go on after this time; a living one renews its claim.
_CLAIM_SECONDS = 10.0
_RENEW_SECONDS = 2.0
_POLL_SECONDS = 0.5

Step = Literal["copying", "checking", "searching"]
Show = Callable[[CopyProgress], None]


class Copier:
    """Copy one store, which is only read, to another one."""

    def __init__(
        self, source: Storage, open_target: Callable[[], Storage], on_progress: Show | None
    ) -> None:
        self._source = source
        self._open_target = open_target
        self._target = open_target()
        self._on_progress = on_progress
        self._mark = CopyMark("", 0)
        # The name under which this process claims the target, and the time of its last claim.
        self._owner = secrets.token_hex(16)
        self._claimed_at = 0.0
        self._tally = rules.Tally()
        self._total = 0
        self._done: dict[Step, int] = {}

    def run(self) -> Copied:
        """Copy all rows, compare all rows, and compare searches."""
        try:
            resumed = self._begin()
            with self._source.reading() as reader:
                rows = reader.whole_rows
                sizes = {space: len(rows.numbers(space)) for space in rows.spaces()}
            self._total = sum(sizes.values())
            self._copy_store()
            for space in sizes:
                self._copy_space(space)
            self._remove_other_spaces(sizes)
            with self._writing(None) as writer:
                writer.whole_rows.renew_id()
            # Opened again under its new id, by which its indexes are kept.
            self._target.close()
            self._target = self._open_target()
            searches = self._compare_searches(rules.choose_spaces(sizes, SEARCHES))
            self._finish()
        finally:
            self._release()
            self._target.close()
        return Copied(
            source=self._source.location,
            target=self._target.location,
            resumed=resumed,
            spaces=len(sizes),
            memories=self._tally.kinds.total(),
            kinds=dict(sorted(self._tally.kinds.items())),
            rows=dict(self._tally.rows),
            searches=searches,
            damaged=tuple(self._tally.damaged),
        )

    def _finish(self) -> None:
        finished_at = clock.now().isoformat(timespec="seconds")
        with self._writing(None) as writer:
            mark = replace(self._mark, finished_at=finished_at, claimed_by="", claimed_until=0)
            writer.whole_rows.set_mark(mark.to_text())
            self._mark = mark

    def _begin(self) -> bool:
        """Check the target, and claim it; say whether an earlier copy goes on."""
        with self._source.reading() as reader:
            source_id = reader.whole_rows.store_id()
        seen: CopyMark | None = None
        while True:
            with self._target.writing(None) as writer:
                rows = writer.whole_rows
                mark = CopyMark.from_text(rows.mark())
                # Without a mark, any change is one of others.
                stamp = 0 if mark is None else mark.stamp
                state = rules.TargetState(
                    rows.store_id(),
                    mark,
                    is_empty=not rows.spaces() and not rows.of_store()["tokens"],
                    is_used=rows.changed_by_others(stamp),
                )
                resumed = rules.check_target(source_id, state, self._target.location)
                if not rules.is_claimed(mark, self._owner, rows.now_micros()):
                    new = mark or CopyMark(source_id, 1 + secrets.randbits(61))
                    self._mark = replace(new, source=self._source.location)
                    self._claim(rows)
                    return resumed
            # A process that was killed renews its claim no more: wait for the end of its claim.
            if seen is not None and mark != seen:
                raise rules.refuse_second(self._target.location)
            seen = mark
            time.sleep(_POLL_SECONDS)

    def _claim(self, rows: CopyRows) -> None:
        self._claimed_at = time.monotonic()
        self._mark = rules.claim(self._mark, self._owner, rows.now_micros(), _CLAIM_SECONDS)
        rows.set_mark(self._mark.to_text())

    @contextmanager
    def _writing(self, space: str | None) -> Iterator[Writer]:
        """Write to the target, unless another process has taken it over."""
        with self._target.writing(space) as writer:
            rows = writer.whole_rows
            held = CopyMark.from_text(rows.mark())
            rules.refuse_lost_claim(held, self._owner, self._target.location)
            if time.monotonic() - self._claimed_at > _RENEW_SECONDS:
                self._claim(rows)
            yield writer

    def _keep_claim(self) -> None:
        """Renew the claim now and then while nothing is written."""
        if time.monotonic() - self._claimed_at > _RENEW_SECONDS:
            with self._writing(None):
                pass

    def _release(self) -> None:
        """Let another process go on at once."""
        if self._mark.claimed_by == self._owner:
            with contextlib.suppress(StoreError), self._writing(None) as writer:
                mark = replace(self._mark, claimed_by="", claimed_until=0)
                writer.whole_rows.set_mark(mark.to_text())

    def _copy_store(self) -> None:
        with self._source.reading() as reader:
            rows, models = reader.whole_rows.of_store(), reader.models.read()
        with self._writing(None) as writer:
            if not rules.check_models(models, writer.models.read(), self._target.location):
                writer.models.write(models)
            if writer.whole_rows.of_store() != rows:
                writer.whole_rows.replace_store(rows)
        with self._target.reading() as reader:
            same = reader.whole_rows.of_store() == rows
            if not (same and rules.check_models(models, reader.models.read(), "")):
                raise _differs("API keys or models")
        self._tally.add(rows)
        self._tally.rows["models"] = len(models.known)

    def _copy_space(self, space: str) -> None:
        """Copy a space, and compare it with the same snapshot of the source."""
        with self._source.reading(space) as reader:
            source = reader.whole_rows
            self._copy_own_rows(source, space)
            numbers = source.numbers(space)
            kept = self._keep_equal(source, space, numbers)
            self._show("copying", len(kept))
            missing = [each for each in numbers if each not in kept]
            for batch in rules.batches(missing, _BATCH):
                rows = source.of_memories(batch)
                with self._writing(space) as writer:
                    writer.whole_rows.add_memories(rows, self._mark.stamp)
                self._show("copying", len(batch))
            self._check_space(source, space, numbers)

    def _copy_own_rows(self, source: CopyReader, space: str) -> None:
        rows = source.of_space(space)
        with self._writing(space) as writer:
            if writer.whole_rows.of_space(space) != rows:
                writer.whole_rows.replace_space(space, rows)

    def _keep_equal(self, source: CopyReader, space: str, numbers: Sequence[int]) -> set[int]:
        """Remove texts that the source has no longer, or otherwise; give the remaining ones.

        All of them are removed before any is copied again, because an outdated text may be in the
        way of another one.
        """
        with self._target.reading(space) as reader:
            there = reader.whole_rows.numbers(space)
        removed = sorted({*there}.difference(numbers))
        shared = sorted({*there}.intersection(numbers))
        for batch in rules.batches(shared, _BATCH):
            with self._target.reading(space) as reader:
                rows = reader.whole_rows.of_memories(batch)
            removed += rules.outdated(source.of_memories(batch), rows, batch)
        for batch in rules.batches(removed, _BATCH):
            with self._writing(space) as writer:
                writer.whole_rows.remove_memories(batch, self._mark.stamp)
        return {*there}.difference(removed)

    def _check_space(self, source: CopyReader, space: str, numbers: Sequence[int]) -> None:
        with self._target.reading(space) as reader:
            target = reader.whole_rows
            if target.numbers(space) != numbers:
                raise _differs(f"texts of the space {space}")
            rows = source.of_space(space)
            if target.of_space(space) != rows:
                raise _differs(f"rows of the space {space}")
            self._tally.add(rows)
            for batch in rules.batches(numbers, _BATCH):
                rows = source.of_memories(batch)
                if target.of_memories(batch) != rows:
                    raise _differs(f"texts of the space {space}")
                self._tally.add_texts(rows)
                self._show("checking", len(batch))

    def _remove_other_spaces(self, spaces: Collection[str]) -> None:
        """Remove spaces that the source had when an earlier run began, and has no longer."""
        with self._target.reading() as reader:
            others = [each for each in reader.whole_rows.spaces() if each not in spaces]
        for space in others:
            with self._writing(space) as writer:
                rows = writer.whole_rows
                rows.remove_memories(rows.numbers(space), self._mark.stamp)
                rows.replace_space(space, dict.fromkeys(rows.of_space(space), ()))

    # --- Searches -----------------------------------------------------------------------------

    def _compare_searches(self, spaces: Sequence[str]) -> int:
        """Ask both stores the same questions, and count those with the same answers."""
        self._total, asked, differing = SEARCHES, 0, 0
        for at, space in enumerate(spaces):
            wanted = rules.share(SEARCHES - asked, len(spaces) - at)
            with self._source.searching(space) as source, self._target.searching(space) as target:
                for question in _questions(source, space, wanted):
                    differing += _ask(source, space, question) != _ask(
                        target, space, question, vectors_of=source
                    )
                    asked += 1
                    self._show("searching", 1)
        if differing > rules.MOST_DIFFERING * asked:
            raise StoreError(
                f"{differing} of {asked} searches find other passages in the copy, although all "
                "rows are the same",
                Hint(
                    "run the same command again, if the store was in use; otherwise check both "
                    "stores with: ",
                    Do("admin.doctor"),
                ),
            )
        return asked - differing

    def _show(self, step: Step, count: int) -> None:
        self._keep_claim()
        self._done[step] = self._done.get(step, 0) + count
        if self._on_progress is not None:
            total = max(self._total, self._done[step])
            self._on_progress(CopyProgress(step, self._done[step], total))


def _questions(reader: Reader, space: str, wanted: int) -> list[rules.Asked]:
    numbers = reader.index.sample(Filter(space), wanted, _SEED)
    return rules.make_questions(reader.chunks(numbers), wanted)


def _ask(
    reader: Reader, space: str, question: rules.Asked, vectors_of: Reader | None = None
) -> object:
    """Search with the vector that the source has of a passage: no model is needed for it."""
    vectors = (vectors_of or reader).index.vectors([question.chunk_no])
    vector = next((each[0] for each in vectors.values()), None)
    mode = "fts" if vector is None else question.mode
    request = SearchRequest(question.text, Filter(space), mode=mode)
    found = find(request, reader, None if mode == "fts" else vector)
    return to_wire(found.hits), found.more, to_wire(found.judgement)


def _differs(what: str) -> StoreError:
    return StoreError(
        f"the {what} differ in the copy",
        "make sure that nothing else writes to the copy, and run the same command again",
    )
