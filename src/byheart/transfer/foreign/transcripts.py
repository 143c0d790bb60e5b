"""Share code between the readers of agents' line-by-line transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from byheart.conversation.agent_events import describe_call
from byheart.errors import InvalidInput
from byheart.transfer.foreign.import_items import Item, Omission, dicts
from byheart.transfer.foreign.sources import Source
from byheart.transfer.json_lines import number_lines, parse_object

Record = Mapping[str, Any]
# Outputs follow their calls closely, so older calls are no longer awaited.
_REMEMBERED_CALLS = 1000


class Calls:
    """Remember the tool calls whose outputs are still to come."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str]] = {}

    def waiting(self) -> dict[str, tuple[str, str]]:
        """Return the calls without an output, each with its tool and a description."""
        return dict(self._calls)

    def restore(self, calls: Mapping[str, tuple[str, str]]) -> None:
        """Restore the calls without an output."""
        self._calls = {name: (tool, about) for name, (tool, about) in calls.items()}

    def note(self, call_id: object, tool: object, given: object) -> None:
        """Remember the tool and the description of a call."""
        if isinstance(call_id, str) and isinstance(tool, str):
            self._calls[call_id] = tool, describe_call(tool, given)
            while len(self._calls) > _REMEMBERED_CALLS:
                del self._calls[next(iter(self._calls))]

    def take(self, call_id: object) -> tuple[str, str]:
        """Return the tool of an output, and a title for the output."""
        return self._calls.pop(str(call_id), ("tool", "tool"))


def text_of(content: object, *kinds: str) -> str:
    """Join the texts of a content: a string, or blocks; only blocks of these kinds are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (
        block if isinstance(block, str) else block.get("text")
        for block in content
        if isinstance(block, str) or (isinstance(block, dict) and block.get("type") in kinds)
    )
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())


def omit_others(place: str, content: object, *kinds: str) -> Iterator[Item]:
    """Report the blocks of other kinds in a content: pictures, thinking, files."""
    for block in dicts(content):
        kind = str(block.get("type"))
        if kind not in kinds:
            name = kind.removeprefix("redacted_").removeprefix("input_")
            yield Item(place, Omission(name))


def read_lines(
    source: Source, stream: BinaryIO, read: Callable[[str, Record], Iterator[Item]]
) -> Iterator[Item]:
    """Yield the items of each line; an unreadable line does not affect the others.

    If an agent is still writing the file, the last line may be incomplete.
    """
    for number, line in number_lines(stream):
        place = f"{source.name} line {number}"
        try:
            yield from read(place, parse_object(line, "it"))
        except InvalidInput as error:
            is_half = not line.endswith(b"\n")
            yield Item(place, Omission("unfinished line") if is_half else error)
