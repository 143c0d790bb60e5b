"""Define the contents of a prompt, and the receipt that lists what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from byheart.model.answers import IndexState, Mode, Verdict
from byheart.model.memories import Origin
from byheart.startup.dataclass_types import dataclass

ContextPart = Literal["identity", "summary", "pinned", "retrieved", "recent"]
LeftOutReason = Literal[
    "budget",
    "question",
    "recent",
    "pinned",
    "summary",
    "retrieved",
    "duplicate",
    "similar",
    "unrelated",
    "superseded",
    "not valid",
    "untrusted",
    "unreadable",
    "damaged",
]


@dataclass(frozen=True, slots=True)
class ContextItem:
    """An item of a context, and its source; `cut` if its end is missing.

    `stale` says that the file in its workspace has changed or is gone since it was indexed.

    An identity file has a path, and its `memory_id` is empty.
    """

    part: ContextPart
    memory_id: str
    chunk_ids: tuple[str, ...]
    kind: str
    role: str | None
    origin: Origin
    title: str | None
    path: str | None
    start_line: int | None
    end_line: int | None
    session_id: str | None
    created_at: datetime
    score: float | None
    tokens: int
    cut: bool
    relative_path: str | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An item that is not in a context, and the reason."""

    part: ContextPart
    memory_id: str
    chunk_id: str | None
    score: float | None
    reason: LeftOutReason
    tells: str


@dataclass(frozen=True, slots=True)
class ContextReceipt:
    """The items in a context and those left out; `tokens` are by part, `frame` is the markup.

    `counter` is the name of the model whose tokens were counted, or `estimate`.
    """

    items: tuple[ContextItem, ...]
    left_out: tuple[LeftOut, ...]
    tokens: Mapping[str, int]
    max_tokens: int
    counter: str


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message as the APIs of language models take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """A part of a system prompt; with `cache_control`, the provider caches it."""

    text: str
    cache_control: Mapping[str, str] | None = None
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class AnthropicPrompt:
    """A context as Anthropic's API takes it."""

    system: tuple[SystemBlock, ...]
    messages: tuple[PromptMessage, ...]


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """The context for a prompt within a token budget, as one text and as messages.

    `text` begins with `stable`, whose bytes stay the same until its content changes. `receipt_id`
    names the stored receipt; it is null if none is stored.
    """

    session_id: str
    query: str
    mode: Mode
    text: str
    stable: str
    stable_hash: str
    tokens_used: int
    openai: tuple[PromptMessage, ...]
    anthropic: AnthropicPrompt
    receipt: ContextReceipt
    # About the best passage, whether or not it is in the context; null if nothing was asked.
    verdict: Verdict | None = None
    confidence: float = 0.0
    index: IndexState | None = None
    elapsed_ms: float = 0.0
    degraded: str | None = None
    remark: str | None = None
    receipt_id: str | None = None
