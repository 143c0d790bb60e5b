"""Prompts: a context as the messages that the APIs of language models take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from byheart.conversation.prompt.delimiting import broken
from byheart.conversation.prompt.entries import Entry
from byheart.model import AnthropicPrompt, PromptMessage, SystemBlock

# A turn says who spoke, and whoever can log one can say anything: none speaks as the system.
_SPEAKERS = ("user", "assistant")
# A conversation must begin with the user; this is shorter than the tags that are left out here.
_LEFT_OUT = "(…)"
_REMEMBER = {"type": "ephemeral"}


def openai_messages(
    stable: str, retrieved: Sequence[Entry], recent: Sequence[Entry]
) -> tuple[PromptMessage, ...]:
    """Make messages as OpenAI's API takes them: what stays first, the conversation last."""
    system = [PromptMessage("system", stable.rstrip())] if stable.strip() else []
    return (*system, *_brought(retrieved), *_said(recent))


def anthropic_prompt(
    stable: str, retrieved: Sequence[Entry], recent: Sequence[Entry]
) -> AnthropicPrompt:
    """Make a prompt as Anthropic's API takes it: speakers take turns, and the user begins."""
    turns = [
        PromptMessage(role, "\n\n".join(message.content for message in group))
        for role, group in groupby(
            (*_brought(retrieved), *_said(recent)), lambda message: message.role
        )
    ]
    if turns and turns[0].role != "user":
        turns.insert(0, PromptMessage("user", _LEFT_OUT))
    system = (SystemBlock(stable.rstrip(), _REMEMBER),) if stable.strip() else ()
    return AnthropicPrompt(system, tuple(turns))


def _brought(retrieved: Iterable[Entry]) -> Iterator[PromptMessage]:
    """Quote what was retrieved to the user's side: it may be a tool's words, or a web page's."""
    text = "".join(entry.written for entry in retrieved).rstrip()
    if text:  # APIs refuse empty ones
        yield PromptMessage("user", text)


def _said(recent: Iterable[Entry]) -> Iterator[PromptMessage]:
    """Let user and assistant speak for themselves; all others are quoted to the user's side."""
    for entry in recent:
        role = entry.item.role
        if not entry.text.strip():
            continue
        if role in _SPEAKERS:
            yield PromptMessage(role, broken(entry.text))
        else:
            yield PromptMessage("user", entry.written.rstrip())
