"""A chat engine that knows facts and remembers its conversation: run it twice.

Install its framework first: pip install "byheart[llamaindex]"

It runs without an account: `Quote` stands in for the model. With one, put another LLM in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import CustomLLM

import byheart
from byheart.integrations.llamaindex import ByheartMemory, ByheartRetriever

FACTS = (
    "The build server is called Gondor and stands in Berlin.",
    "Maria signs off every release on Thursdays.",
)


class Quote(CustomLLM):
    """Stand in for a model: quote the fact, and say how long the conversation is."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)

    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        known = next(fact for fact in FACTS if fact in (messages[0].content or ""))
        told = f"{known} (message {len(messages) - 1})"
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=told))

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        raise NotImplementedError("this example only chats")

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError("this example does not stream")


def main(path: str) -> None:
    with byheart.open(path) as store:
        for fact in FACTS:
            store.save(fact, kind="fact")
        chat = ContextChatEngine.from_defaults(
            retriever=ByheartRetriever(store, similarity_top_k=1, kind="fact"),
            memory=ByheartMemory(store, "chat-1"),
            llm=Quote(),
        )
        for question in ("Where is the build server?", "Who signs off releases?"):
            print(question, "->", chat.chat(question))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "engine-memory.db")
