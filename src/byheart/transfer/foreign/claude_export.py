"""Read exports of Claude: conversations, projects with documents, and Claude's memories."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.transfer.foreign.import_items import (
    Item,
    Omission,
    Piece,
    dicts,
    label,
    title,
    without_nothing,
    word,
)
from byheart.transfer.foreign.json_elements import read_elements
from byheart.transfer.foreign.sources import Source
from byheart.transfer.foreign.transcripts import text_of

AGENT = "claude"
_REMEMBERED = frozenset(("conversations_memory", "project_memories"))
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def is_record(element: Mapping[str, Any]) -> bool:
    """Check whether this is a conversation, a project or a memory of such an export."""
    return (
        isinstance(element.get("chat_messages"), list)
        or not _REMEMBERED.isdisjoint(element)
        or {"prompt_template", "docs"} <= element.keys()
    )


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Yield the items of any file of the export."""
    for place, element, _ in read_elements(source, stream, "element"):
        if isinstance(element, InvalidInput):
            yield Item(place, element)
        elif not isinstance(element, dict):
            yield Item(place, InvalidInput("it is no object"))
        elif isinstance(element.get("chat_messages"), list):
            yield from _conversation(place, element)
        elif not _REMEMBERED.isdisjoint(element):
            yield from _memories(place, element)
        elif "prompt_template" in element or "docs" in element:
            yield from _project(place, element)
        else:
            yield Item(place, Omission("record"))


def _conversation(place: str, conversation: Mapping[str, Any]) -> Iterator[Item]:
    session = label(conversation.get("uuid"))
    if session is None:
        yield Item(place, InvalidInput("the conversation has no uuid"))
        return
    about: dict[str, Any] = {
        "session_id": session,
        "title": title(conversation.get("name")),
        "agent_id": AGENT,
    }
    messages = dicts(conversation["chat_messages"])
    shown = _branch(messages, word(conversation.get("current_leaf_message_uuid")))
    at = conversation.get("created_at")
    for number, message in enumerate(messages, start=1):
        where = f"{place} message {number:,}"
        at = message.get("created_at") or at
        if shown and word(message.get("uuid")) not in shown:
            yield Item(where, Omission("other branch"))
            continue
        for held in _message(message, {**about, "created_at": at}):
            if isinstance(held, Piece) and held.fields.get("title") == about["title"]:
                about["title"] = None  # one turn with the title is enough to find the conversation
            yield Item(where, held)


def _branch(messages: list[dict[str, Any]], leaf: str) -> set[str]:
    """Name the messages from the last shown one up to the first, if that is known."""
    parents = {word(each.get("uuid")): word(each.get("parent_message_uuid")) for each in messages}
    branch: set[str] = set()
    while leaf and leaf in parents and leaf not in branch:
        branch.add(leaf)
        leaf = parents[leaf]
    return branch


def _message(message: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[Piece | Omission]:
    role = _ROLES.get(str(message.get("sender")))
    name = label(message.get("uuid"))
    if role is None or name is None:
        yield Omission("meta")
        return
    given = list(_given(message, {**about, "role": role}, name))
    yield from given
    text = text_of(message.get("content"), "text") or word(message.get("text"))
    if text.strip():
        yield Piece(without_nothing(**about, role=role, content=text), name)
    elif not given:
        yield Omission("empty message")


def _given(
    message: Mapping[str, Any], about: Mapping[str, Any], name: str
) -> Iterator[Piece | Omission]:
    """Yield the attachments of a message: texts of files, and tool outputs."""
    for number, each in enumerate(dicts(message.get("attachments"))):
        text = word(each.get("extracted_content"))
        if text.strip():
            file = title(each.get("file_name")) or "attachment"
            fields = {**about, "kind": "file", "content": text, "title": file}
            yield Piece(without_nothing(**fields), f"{name}:{number}")
        else:
            yield Omission("attachment")
    for each in dicts(message.get("files")):
        yield Omission(_file_of(each))
    for number, each in enumerate(dicts(message.get("content"))):
        kind = word(each.get("type"))
        if kind == "tool_result":
            used = each.get("tool_use_id") or f"block {number}"
            yield _output(each, about, f"{name}:{used}")
        elif kind not in ("text", "tool_use"):  # the output describes its call
            yield Omission(kind.removeprefix("redacted_") or "part")


def _file_of(file: Mapping[str, Any]) -> str:
    """Guess the type of a file from its name; an export has nothing else."""
    kind = mimetypes.guess_type(word(file.get("file_name")))[0] or ""
    return "image" if kind.startswith("image/") else "file"


def _output(result: Mapping[str, Any], about: Mapping[str, Any], name: str) -> Piece | Omission:
    output = text_of(result.get("content"), "text")
    if not output.strip():
        return Omission("empty output")
    fields = {
        **about,
        "role": "tool",
        "kind": "tool_output",
        "content": output,
        "title": title(result.get("name")),
    }
    return Piece(without_nothing(**fields), label(name))


def _memories(place: str, held: Mapping[str, Any]) -> Iterator[Item]:
    whose = label(held.get("account_uuid")) or "account"
    texts = {f"memory:{whose}": ("What Claude remembered", held.get("conversations_memory"))}
    of_projects = held.get("project_memories")
    for project, text in of_projects.items() if isinstance(of_projects, dict) else ():
        texts[f"memory:{project}"] = "What Claude remembered of a project", text
    for name, (about, text) in texts.items():
        if isinstance(text, str) and text.strip():
            yield Item(place, Piece({"content": text, "title": about}, label(name)))


def _project(place: str, project: Mapping[str, Any]) -> Iterator[Item]:
    about = title(project.get("name")) or "project"
    uuid = label(project.get("uuid")) or about
    at, tags = project.get("created_at"), [label(about)]
    for field in ("description", "prompt_template"):
        text = word(project.get(field))
        if text.strip():
            heading = about if field == "description" else f"Instructions of {about}"
            fields = {"content": text, "title": heading, "tags": tags}
            yield Item(place, Piece(fields, label(f"{uuid}:{field}"), at))
    for each in dicts(project.get("docs")):
        text = word(each.get("content"))
        if not text.strip():
            yield Item(place, Omission("empty document"))
            continue
        file = title(each.get("filename")) or about
        fields = {"content": text, "kind": "knowledge_base", "title": file, "tags": tags}
        name = label(each.get("uuid") or f"{uuid}:{file}")
        yield Item(place, Piece(fields, name, each.get("created_at") or at))
