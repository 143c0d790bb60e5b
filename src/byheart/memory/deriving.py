"""Derive the chunks and the missing fields of a text: all that is saved with it, except vectors.

This needs no store, so helper processes can do it ahead of the process that writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from hashlib import sha256
from typing import Any

from byheart.contracts import TokenCounter
from byheart.errors import TooManyChunks
from byheart.memory.redaction import take_out_secrets
from byheart.memory.save_requests import SaveRequest, notice
from byheart.model import Chunk
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass

# The names of the fields from which secrets are removed: the user did not ask to keep this text.
Redacted = Sequence[str]


@dataclass(frozen=True, slots=True)
class Derived:
    """Hold a request with its chunks, its format and all its fields.

    `noticed` are the fields that can be derived, and `derived` names those that were. `secrets`
    counts the secrets that were removed from the content, by their kinds.
    """

    request: SaveRequest
    chunks: Sequence[Chunk]
    format: str
    noticed: Mapping[str, Any]
    derived: tuple[str, ...]
    secrets: Mapping[str, int] = field(default_factory=dict)


def derive(
    request: SaveRequest,
    settings: Settings,
    give_tokens: Callable[[], TokenCounter],
    redacted: Redacted = (),
) -> Derived:
    """Cut a text into chunks and derive its fields; first remove secrets from some fields."""
    request, secrets = _without_secrets(request, settings, redacted)
    chunks, format_ = cut(request, settings, give_tokens)
    noticed, derived = notice(replace(request, content=request.own_words))
    return Derived(request, chunks, format_, noticed, derived, secrets)


def cut(
    request: SaveRequest, settings: Settings, give_tokens: Callable[[], TokenCounter]
) -> tuple[list[Chunk], str]:
    """Split a text according to its format, and name the format."""
    # Imported here, so that a process that only searches does not wait for the parsers.
    from byheart.chunking import guess_format, is_short, keep_aside, set_apart, split

    if request.role is not None and is_short(request.content, settings.min_turn_words):
        return list(keep_aside(request.content)), "text"
    format_ = request.format or guess_format(request.content, request.path)
    tokens = give_tokens()
    try:
        chunks = split(
            request.content,
            format=format_,
            tokens=tokens,
            target_tokens=settings.chunk_tokens,
            max_chunks=settings.max_chunks,
            by_script=True,
        )
    except TooManyChunks as error:
        error.content_hash = request.content_hash
        raise
    if request.echoes:
        chunks = set_apart(chunks, request.echoes, tokens, settings.min_turn_words)
    return chunks, format_


def _without_secrets(
    request: SaveRequest, settings: Settings, redacted: Redacted
) -> tuple[SaveRequest, Mapping[str, int]]:
    """Remove secrets from some fields; every line of the content keeps its number."""
    secrets: Mapping[str, int] = {}
    for name in redacted:
        in_content = name == "content"
        taken = take_out_secrets(
            getattr(request, name), settings, "captured", keep_lines=in_content
        )
        if not taken.found:
            continue
        changed: dict[str, Any] = {name: taken.text}
        if in_content:
            changed["content_hash"] = sha256(taken.text.encode()).hexdigest()
            secrets = taken.found
        request = replace(request, **changed)
    return request, secrets
