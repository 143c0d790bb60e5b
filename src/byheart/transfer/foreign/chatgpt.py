"""Read exports of ChatGPT: conversations are trees; only the shown branch is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.transfer.foreign.import_items import (
    Item,
    Omission,
    Piece,
    dicts,
    label,
    moment,
    title,
    without_nothing,
    word,
)
from byheart.transfer.foreign.json_elements import read_elements
from byheart.transfer.foreign.sources import Source

AGENT = "chatgpt"
_ROLES = ("user", "assistant", "tool")
# Content type → kind of memory; other types describe the conversation and are not part of it.
_KINDS = {
    "text": "message",
    "multimodal_text": "message",
    "code": "message",
    "execution_output": "tool_output",
    "tether_quote": "tool_output",
}
_THINKING = ("thoughts", "reasoning_recap")
_MEDIA = ("image", "audio", "video")


def is_record(conversation: Mapping[str, Any]) -> bool:
    """Check whether this is a conversation of a ChatGPT export."""
    about = {"create_time", "current_node", "conversation_id"} & conversation.keys()
    return isinstance(conversation.get("mapping"), dict) and bool(about)


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Yield the conversations in order, each from its first message to its last."""
    for place, conversation, _ in read_elements(source, stream, "conversation"):
        if isinstance(conversation, InvalidInput):
            yield Item(place, conversation)
        elif isinstance(conversation, dict) and isinstance(conversation.get("mapping"), dict):
            yield from _conversation(place, conversation)
        else:
            yield Item(place, InvalidInput("it is no conversation: it has no mapping"))


def _conversation(place: str, conversation: Mapping[str, Any]) -> Iterator[Item]:
    mapping = conversation["mapping"]
    session = label(conversation.get("conversation_id") or conversation.get("id"))
    if session is None:
        yield Item(place, InvalidInput("the conversation has no id"))
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
            for held in _message(node, message, {**about, "created_at": at}):
                if isinstance(held, Piece):
                    about["title"] = None  # one turn with the title is enough
                yield Item(f"{place} message {node}", held)
    said = sum(isinstance(node.get("message"), dict) for node in dicts(mapping.values()))
    shown = sum(isinstance(mapping[node].get("message"), dict) for node in branch)
    for _ in range(said - shown):
        yield Item(place, Omission("other branch"))


def _branch(mapping: Mapping[str, Any], current: str | None) -> list[str]:
    """Return the path from the last shown message up to the first one."""
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


def _message(
    node: str, message: Mapping[str, Any], about: Mapping[str, Any]
) -> Iterator[Piece | Omission | InvalidInput]:
    author, content = message.get("author"), message.get("content")
    author = author if isinstance(author, dict) else {}
    content = content if isinstance(content, dict) else {}
    extra = message.get("metadata")
    extra = extra if isinstance(extra, dict) else {}
    role, form = word(author.get("role")), word(content.get("content_type"))
    if form in _THINKING:
        yield Omission("thinking")
        return
    media = [*_media(content), *_uploads(extra)]
    yield from map(Omission, media)
    text, hidden = _text(content), extra.get("is_visually_hidden_from_conversation")
    if hidden or role not in _ROLES or form not in _KINDS or not text.strip():
        if not media:
            yield Omission("meta")
        return
    try:
        fields = without_nothing(
            **{**about, "created_at": moment(about["created_at"])},
            role=role,
            kind="tool_output" if role == "tool" else _KINDS[form],
            content=text,
            agent_id=AGENT,
        )
    except InvalidInput as error:
        yield error
        return
    if role == "tool" and author.get("name"):
        fields["title"] = title(author["name"])
    # A node has the same id in every export, like its message.
    yield Piece(fields, label(message.get("id")) or label(node))


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        texts = (part if isinstance(part, str) else _transcribed(part) for part in parts)
        return "\n\n".join(text for text in texts if text.strip())
    return word(content.get("text"))


def _transcribed(part: object) -> str:
    """Return the transcribed speech of a part that is not text."""
    return word(part.get("text")) if isinstance(part, dict) else ""


def _media(content: Mapping[str, Any]) -> Iterator[str]:
    """Name the pictures, recordings and other media among the texts of a message."""
    for part in dicts(content.get("parts")):
        form = word(part.get("content_type"))
        if not _transcribed(part).strip():
            yield next((kind for kind in _MEDIA if kind in form), form or "part")


def _uploads(extra: Mapping[str, Any]) -> Iterator[str]:
    """Name the files attached to a message; pictures are also among its texts."""
    for file in dicts(extra.get("attachments")):
        if not word(file.get("mime_type") or file.get("mimeType")).startswith("image/"):
            yield "attachment"
