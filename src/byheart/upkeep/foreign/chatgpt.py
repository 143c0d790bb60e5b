"""Exports of ChatGPT: conversations as trees, of which the branch that is shown is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.upkeep.foreign.elements import elements
from byheart.upkeep.foreign.pieces import (
    Item,
    LeftOut,
    Piece,
    Unreadable,
    label,
    moment,
    title,
    without_nothing,
    word,
)
from byheart.upkeep.foreign.sources import Source

AGENT = "chatgpt"
_ROLES = ("user", "assistant", "tool")
# What messages hold → what it is kept as; all else is about the conversation, not of it.
_KINDS = {
    "text": "message",
    "multimodal_text": "message",
    "code": "message",
    "execution_output": "tool_output",
    "tether_quote": "tool_output",
}
_THINKING = ("thoughts", "reasoning_recap")


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Give the conversations one after another, each from its first message to its last."""
    for number, conversation in elements(stream):
        place = f"{source.name} conversation {number}"
        if not isinstance(conversation, dict) or not isinstance(conversation.get("mapping"), dict):
            yield Unreadable(place, InvalidInput("it is no conversation: it has no mapping"))
            continue
        yield from _conversation(place, conversation)


def _conversation(place: str, conversation: Mapping[str, Any]) -> Iterator[Item]:
    mapping = conversation["mapping"]
    session = label(conversation.get("conversation_id") or conversation.get("id"))
    if session is None:
        yield Unreadable(place, InvalidInput("the conversation has no id"))
        return
    branch = _branch(mapping, word(conversation.get("current_node")))
    about: dict[str, Any] = {
        "session_id": session,
        "title": title(conversation.get("title")),
    }
    at = conversation.get("create_time")
    for node in branch:
        message = mapping[node].get("message")
        if isinstance(message, dict):
            at = message.get("create_time") or at
            item = _message(f"{place} message {node}", message, {**about, "created_at": at})
            if isinstance(item, Piece):
                about["title"] = None  # one turn that is found by it is enough
            yield item
    said = sum(isinstance(node.get("message"), dict) for node in _nodes(mapping))
    shown = sum(isinstance(mapping[node].get("message"), dict) for node in branch)
    for _ in range(said - shown):
        yield LeftOut(place, "other branch")


def _nodes(mapping: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (node for node in mapping.values() if isinstance(node, dict))


def _branch(mapping: Mapping[str, Any], current: str | None) -> list[str]:
    """Go from the message that was shown last up to the first one."""
    if current not in mapping:
        leaves = [
            name
            for name, node in mapping.items()
            if isinstance(node, dict) and not node.get("children")
        ]
        current = leaves[-1] if leaves else None
    branch: dict[str, None] = {}
    while isinstance(current, str) and current in mapping and current not in branch:
        node = mapping[current]
        if not isinstance(node, dict):
            break
        branch[current] = None
        current = node.get("parent")
    return list(reversed(branch))


def _message(place: str, message: Mapping[str, Any], about: Mapping[str, Any]) -> Item:
    author, content = message.get("author"), message.get("content")
    role = word(author.get("role")) if isinstance(author, dict) else ""
    form = word(content.get("content_type")) if isinstance(content, dict) else ""
    extra = message.get("metadata")
    hidden = isinstance(extra, dict) and extra.get("is_visually_hidden_from_conversation")
    if form in _THINKING:
        return LeftOut(place, "thinking")
    text = _text(content) if isinstance(content, dict) else ""
    if hidden or role not in _ROLES or form not in _KINDS or not text.strip():
        return LeftOut(place, "meta")
    tool = author.get("name") if isinstance(author, dict) and role == "tool" else None
    kind = "tool_output" if role == "tool" else _KINDS[form]
    try:
        fields = without_nothing(
            **{**about, "created_at": moment(about["created_at"])},
            role=role,
            kind=kind,
            content=text,
            agent_id=AGENT,
        )
    except InvalidInput as error:
        return Unreadable(place, error)
    if tool:
        fields["title"] = title(tool)
    return Piece(place, fields, label(message.get("id")) or label(place))


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        texts = (part if isinstance(part, str) else _transcribed(part) for part in parts)
        return "\n\n".join(text for text in texts if text.strip())
    text = content.get("text")
    return text if isinstance(text, str) else ""


def _transcribed(part: object) -> str:
    """Give the words of a part that is no text, if somebody spoke."""
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""
