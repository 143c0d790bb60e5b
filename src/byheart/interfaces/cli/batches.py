"""Save and log large inputs in batches, with a progress bar; they can be continued later."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

from byheart.errors import ByheartError, Hint, InvalidInput
from byheart.interfaces.cli.hints import for_terminal
from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.progress import Bar
from byheart.interfaces.cli.screen import count, open_screen, print_json, remark, warn
from byheart.interfaces.cli.store import overrides
from byheart.interfaces.cli.verb import Invocation
from byheart.model import SaveResult
from byheart.settings import load_settings
from byheart.system.file_opening import open_to_read
from byheart.transfer.json_lines import parse_object

if TYPE_CHECKING:
    from byheart.memory.batches import Progress


class Way(NamedTuple):
    """Describe how lines are stored: the verb of the store, and the words for messages."""

    verb: Literal["save_many", "log_many"]
    done: str
    noun: str
    # How to continue after the stored lines.
    again: str = "run the same command again to go on"


SAVING = Way("save_many", "saved", "memory")
LOGGING = Way(
    *("log_many", "logged", "turn"),
    "give the lines from there on: a turn without a client_id, given again, is logged twice",
)


def import_lines(
    invocation: Invocation, jsonl: str, about: Mapping[str, Any], way: Way = SAVING
) -> None:
    """Store each line of a JSONL file, or of stdin for "-"."""
    if jsonl == "-":
        lines = Lines(sys.stdin.buffer, "stdin", about)
        results = Import(invocation, lines, None, way).run()
    else:
        with _open(jsonl) as file:
            size = Path(jsonl).stat().st_size
            results = Import(invocation, Lines(file, jsonl, about), size, way).run()
    warn_of_missing_vectors(invocation, results)
    warn_of_secrets(invocation, results)
    if invocation.json:
        print_json(results)
        return
    unchanged = sum(result.status == "unchanged" for result in results)
    verb = "was" if unchanged == 1 else "were"
    known = f", {unchanged:,} {verb} there already" if unchanged else ""
    open_screen().line(f"{way.done} {count(len(results) - unchanged, way.noun)}{known}")


def warn_of_missing_vectors(invocation: Invocation, results: Sequence[SaveResult]) -> None:
    """Warn if saved texts have no vectors yet, and explain why."""
    # Count by memory: a text that was given twice is one memory.
    lacking = {result.memory_id: result for result in results if result.pending_vectors}
    if lacking:
        waiting = count(sum(result.pending_vectors for result in lacking.values()), "chunk")
        if not load_settings(overrides(invocation)).embed_on_save:
            found = "can be found by keyword only, until a worker makes the vectors"
            remark(invocation, f"{waiting} {found}")
            return
        reason = next((result.degraded for result in lacking.values() if result.degraded), None)
        warn(
            invocation,
            f"{waiting} could not be embedded and can be found by keyword only, until byheart "
            f"doctor --fix makes the vectors{f': {for_terminal(reason)}' if reason else ''}",
        )


def warn_of_secrets(invocation: Invocation, results: Sequence[SaveResult]) -> None:
    """Warn about apparent secrets in the saved texts, and suggest what to do."""
    found: Counter[str] = Counter()
    for result in results:
        found.update(result.secrets_found)
    if not found:
        return
    kinds = ", ".join(f"{number} {kind}" for kind, number in found.items())
    secrets = count(found.total(), "secret")
    if any(result.secrets_redacted for result in results):
        warn(invocation, f"{secrets} replaced before saving: {kinds}")
        return
    saved = next(result.memory_id for result in results if result.secrets_found)
    warn(
        invocation,
        f"{secrets} saved as given: {kinds}; to erase: byheart forget --hard {saved}",
    )


class Watched:
    """Show the progress of saving; if it is interrupted, say what is stored and how to continue.

    Work that may end at once gets no bar before the first progress, unless `at_once` is set.
    """

    def __init__(self, invocation: Invocation, way: Way = SAVING, *, at_once: bool = True) -> None:
        self._invocation = invocation
        self._way = way
        self._at_once = at_once
        self._bar = Bar("saving")
        self._last: Progress | None = None
        self._embedding_since = 0.0

    @property
    def kept(self) -> int:
        """Count the memories that are stored so far."""
        return 0 if self._last is None else self._last.memories

    def __enter__(self) -> Watched:
        if self._at_once:
            self._bar.open()
        return self

    def show(self, saved: Progress, done: float = 0, total: float | None = None) -> None:
        """Move the bar to `done`, or over the chunks of a long text while it is embedded."""
        before, self._last = self._last, saved
        self._bar.open()
        if not saved.vectors_total:
            note = f"{count(saved.memories, self._way.noun)}, {self._rate(saved.chunks, 0.0)}"
            self._bar.show(done, total, note)
            return
        if before is None or saved.vectors <= before.vectors:
            self._embedding_since = self._bar.seconds
        of = f"{saved.vectors:,} of {count(saved.vectors_total, 'chunk')} embedded"
        note = f"{of}, {self._rate(saved.vectors, self._embedding_since)}"
        seconds = self._bar.seconds - self._embedding_since
        waiting = saved.vectors_total - saved.vectors
        left = waiting * seconds / saved.vectors if saved.vectors else None
        self._bar.show(saved.vectors, saved.vectors_total, note, seconds_left=left)

    def _rate(self, chunks: int, since: float) -> str:
        return f"{chunks / max(self._bar.seconds - since, 0.001):,.0f} chunks/s"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.close()
        if not isinstance(error, KeyboardInterrupt):
            return
        kept = count(self.kept, self._way.noun)
        remark(self._invocation, f"\ninterrupted: {kept} kept; {self._way.again}")
        waiting = 0 if self._last is None else self._last.vectors_total - self._last.vectors
        if waiting:
            remark(
                self._invocation,
                f"{count(waiting, 'chunk')} can be found by keyword only, until then or until "
                "byheart doctor --fix makes the vectors",
            )


def _open(jsonl: str) -> BinaryIO:
    try:
        return open_to_read(jsonl)
    except OSError as error:
        raise InvalidInput(f"{jsonl} cannot be read: {error.strerror}", "check the path") from error


class Lines:
    """Yield the texts of a JSONL stream one by one.

    A bad line ends the stream instead of raising, so that the lines before it are saved first.
    """

    def __init__(self, stream: BinaryIO, name: str, about: Mapping[str, Any]) -> None:
        self._stream = stream
        self._name = name
        self._about = about
        self._number = 0
        self._numbers = array("Q")
        self.bytes_read = 0
        self.bad: InvalidInput | None = None

    def place_of(self, item: int) -> str:
        """Name the line of an item; blank lines are not items."""
        return self._place(self._numbers[item])

    def _place(self, number: int) -> str:
        return f"{self._name} line {number}"

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for line in self._stream:
            self._number += 1
            self.bytes_read += len(line)
            if not line.strip():
                continue
            try:
                item = parse_object(line, self._place(self._number))
            except InvalidInput as error:
                self.bad = error
                return
            self._numbers.append(self._number)
            yield {**self._about, **item}


class Import:
    """Save the lines of a stream; saved lines are kept even after an error."""

    def __init__(
        self, invocation: Invocation, lines: Lines, total_bytes: int | None, way: Way
    ) -> None:
        self._invocation = invocation
        self._way = way
        self._lines = lines
        self._total_bytes = total_bytes
        self._watched = Watched(invocation, way)

    def run(self) -> list[SaveResult]:
        """Save everything; on an error, say what is stored."""
        with open_embedding_store(self._invocation, create=True) as store, self._watched:
            try:
                keep = getattr(store, self._way.verb)
                results: list[SaveResult] = keep(self._lines, on_progress=self._show)
            except ByheartError as error:
                raise self._placed(error) from error
        if self._lines.bad is not None:
            raise self._placed(self._lines.bad)
        return results

    def _show(self, saved: Progress) -> None:
        self._watched.show(saved, self._lines.bytes_read, self._total_bytes)

    def _placed(self, error: ByheartError) -> ByheartError:
        """Name the line of an error, and say that the lines before it are stored."""
        item, _, message = for_terminal(error.message).partition(": ")
        if error is not self._lines.bad and item.startswith("item "):
            place = self._lines.place_of(int(item.removeprefix("item ")))
            error.message = f"{place}: {message}"
        kept = f"{count(self._watched.kept, self._way.noun)} before it kept: correct it"
        kept += f", then {self._way.again}" if self._watched.kept else " and run this again"
        error.hint = Hint(error.hint, "; ", kept) if error.hint else kept
        return error
