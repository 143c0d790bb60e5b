"""Write a context as messages for the APIs of language models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from byheart.conversation.prompt.delimiting import broken
from byheart.conversation.prompt.entries import SPEAKERS, Entry, speaks_for_itself
from byheart.model import AnthropicPrompt, PromptMessage, SystemBlock

# A conversation must begin with the user. This text always fits into the budget, because it is
# shorter than the tags of a message, which are counted but not written here.
_LEFT_OUT = "(…)"
_REMEMBER = {"type": "ephemeral"}


def openai_messages(
    stable: str, retrieved: Sequence[Entry], recent: Sequence[Entry]
) -> tuple[PromptMessage, ...]:
    """Make messages for OpenAI's API: the stable part first, the conversation last."""
    system = [PromptMessage("system", stable.rstrip())] if stable.strip() else []
    return (*system, *_brought(retrieved), *_said(recent))


def anthropic_prompt(
    stable: str, retrieved: Sequence[Entry], recent: Sequence[Entry]
) -> AnthropicPrompt:
    """Make a prompt for Anthropic's API: speakers take turns, and the user begins."""
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
    """Quote retrieved passages in a user message, since they may come from tools or web pages."""
    text = "".join(entry.written for entry in retrieved).rstrip()
    if text:  # the APIs refuse empty messages
        yield PromptMessage("user", text)


def _said(recent: Iterable[Entry]) -> Iterator[PromptMessage]:
    """Write turns of user and assistant as their own messages; quote others as the user's.

    Anybody who can log a turn can claim any role, so no turn may speak as the system, and a turn of
    another origin than its role claims is quoted.
    """
    for entry in recent:
        role = entry.item.role
        if not entry.text.strip():
            continue
        if role is not None and role in SPEAKERS and speaks_for_itself(entry.item):
            yield PromptMessage(role, broken(entry.text))
        else:
            yield PromptMessage("user", entry.written.rstrip())
