"""Exports of Claude: conversations, projects with their documents, and what Claude remembered."""

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
    title,
    without_nothing,
    word,
)
from byheart.upkeep.foreign.sources import Source
from byheart.upkeep.foreign.transcripts import text_of

AGENT = "claude"
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Give what a file of the export holds, whichever of its files it is."""
    for number, element in elements(stream):
        place = f"{source.name} element {number}"
        if not isinstance(element, dict):
            yield Unreadable(place, InvalidInput("it is no object"))
        elif isinstance(element.get("chat_messages"), list):
            yield from _conversation(f"{source.name} conversation {number}", element)
        elif "conversations_memory" in element or "project_memories" in element:
            yield from _memories(place, element)
        elif "prompt_template" in element or "docs" in element:
            yield from _project(place, element)
        else:
            yield LeftOut(place, "record")


def _conversation(place: str, conversation: Mapping[str, Any]) -> Iterator[Item]:
    session = label(conversation.get("uuid"))
    if session is None:
        yield Unreadable(place, InvalidInput("the conversation has no uuid"))
        return
    about: dict[str, Any] = {
        "session_id": session,
        "title": title(conversation.get("name")),
        "agent_id": AGENT,
    }
    messages = [each for each in conversation["chat_messages"] if isinstance(each, dict)]
    shown = _branch(messages, word(conversation.get("current_leaf_message_uuid")))
    at = conversation.get("created_at")
    for number, message in enumerate(messages, start=1):
        where = f"{place} message {number}"
        at = message.get("created_at") or at
        if shown and word(message.get("uuid")) not in shown:
            yield LeftOut(where, "other branch")
        else:
            for item in _message(where, message, {**about, "created_at": at}):
                if isinstance(item, Piece) and item.fields.get("title") == about["title"]:
                    about["title"] = None  # one turn that is found by it is enough
                yield item


def _branch(messages: list[dict[str, Any]], leaf: str) -> set[str]:
    """Name the messages from the one that was shown last up to the first, if that is known."""
    parents = {word(each.get("uuid")): word(each.get("parent_message_uuid")) for each in messages}
    branch: set[str] = set()
    while leaf in parents and leaf not in branch:
        branch.add(leaf)
        leaf = parents[leaf]
    return branch


def _message(place: str, message: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[Item]:
    role = _ROLES.get(str(message.get("sender")))
    name = label(message.get("uuid"))
    if role is None or name is None:
        yield LeftOut(place, "meta")
        return
    for number, each in enumerate(_list(message.get("attachments"))):
        text = each.get("extracted_content")
        if isinstance(text, str) and text.strip():
            file = title(each.get("file_name")) or "attachment"
            fields = {**about, "role": role, "kind": "file", "content": text, "title": file}
            yield Piece(place, without_nothing(**fields), f"{name}:{number}")
    for each in _list(message.get("content")):
        if each.get("type") in ("thinking", "redacted_thinking"):
            yield LeftOut(place, "thinking")
        elif each.get("type") == "tool_result":
            output = text_of(each.get("content"), "text")
            if output.strip():
                fields = {**about, "role": "tool", "kind": "tool_output", "content": output}
                fields["title"] = title(each.get("name"))
                used = label(each.get("tool_use_id") or f"{name}:{len(output)}")
                yield Piece(place, without_nothing(**fields), f"{name}:{used}"[:200])
            else:
                yield LeftOut(place, "empty output")
    text = text_of(message.get("content"), "text") or message.get("text")
    if isinstance(text, str) and text.strip():
        yield Piece(place, without_nothing(**about, role=role, content=text), name)
    else:
        yield LeftOut(place, "empty message")


def _memories(place: str, held: Mapping[str, Any]) -> Iterator[Item]:
    whose = label(held.get("account_uuid")) or "account"
    texts = {f"memory:{whose}": ("What Claude remembered", held.get("conversations_memory"))}
    of_projects = held.get("project_memories")
    for project, text in of_projects.items() if isinstance(of_projects, dict) else ():
        texts[f"memory:{project}"] = "What Claude remembered of a project", text
    for name, (about, text) in texts.items():
        if isinstance(text, str) and text.strip():
            yield Piece(place, {"content": text, "title": about}, label(name))


def _project(place: str, project: Mapping[str, Any]) -> Iterator[Item]:
    about, uuid = title(project.get("name")) or "project", label(project.get("uuid")) or place
    at, tags = project.get("created_at"), [label(about)]
    for field in ("description", "prompt_template"):
        text = project.get(field)
        if isinstance(text, str) and text.strip():
            heading = about if field == "description" else f"Instructions of {about}"
            fields = {"content": text, "title": heading, "tags": tags}
            yield Piece(place, fields, f"{uuid}:{field}"[:200], at)
    for each in _list(project.get("docs")):
        text = each.get("content")
        if isinstance(text, str) and text.strip():
            file = title(each.get("filename")) or about
            fields = {"content": text, "kind": "knowledge_base", "title": file, "tags": tags}
            name = label(each.get("uuid")) or f"{uuid}:{file}"[:200]
            yield Piece(place, fields, name, each.get("created_at") or at)


def _list(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
