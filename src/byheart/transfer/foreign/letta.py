"""Read agent files of Letta (`.af`): the blocks of an agent's memory, and its messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.transfer.foreign.import_items import (
    Item,
    Omission,
    Piece,
    dicts,
    label,
    name_by_text,
    without_nothing,
    word,
)
from byheart.transfer.foreign.sources import Source

_SPEAKERS = {"user": "user", "assistant": "assistant"}


def is_record(held: Mapping[str, Any]) -> bool:
    """Check whether this is an agent file, of the present form or of the first one."""
    several = isinstance(held.get("agents"), list) and "blocks" in held
    return several or ("core_memory" in held and "messages" in held)


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Yield each block of memory as a note, and each message of a person or the agent as a turn."""
    try:
        held = json.load(stream)
    except ValueError as error:
        raise InvalidInput(f"it is not JSON: {error}") from error
    if not isinstance(held, dict) or not is_record(held):
        raise InvalidInput("it is no agent file of Letta")
    blocks = [*dicts(held.get("blocks")), *dicts(held.get("core_memory"))]
    for number, block in enumerate(blocks):
        yield Item(f"{source.name} block {number}", _block(block))
    for agent in dicts(held.get("agents")) or [held]:
        yield from _messages(source, agent)


def _block(block: Mapping[str, Any]) -> Piece | Omission:
    text = word(block.get("value"))
    if not text.strip():
        return Omission("empty block")
    name = label(block.get("label"))
    fields = without_nothing(content=text, kind="note", title=name, tags=[name] if name else [])
    known = block.get("id") and f"letta:{block['id']}"
    return Piece(fields, label(known) or name_by_text("letta", text), block.get("created_at"))


def _messages(source: Source, agent: Mapping[str, Any]) -> Iterator[Item]:
    session = label(agent.get("name") or agent.get("id")) or "letta"
    for number, message in enumerate(dicts(agent.get("messages"))):
        place = f"{source.name} message {number}"
        role, text = _SPEAKERS.get(word(message.get("role"))), _words(message)
        if role is None or not text.strip():
            yield Item(place, Omission("other message"))
            continue
        fields = {"content": text, "role": role, "session_id": session, "agent_id": "letta"}
        known = message.get("id") and label(f"letta:{session}:{message['id']}")
        yield Item(place, Piece(fields, known or None, message.get("created_at")))


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content", message.get("text"))
    if isinstance(content, str):
        return content
    return "\n".join(word(each.get("text")) for each in dicts(content)).strip()
