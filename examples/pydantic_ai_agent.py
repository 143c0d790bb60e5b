"""An agent with tools to remember and to search.

Install its framework first: pip install "byheart[pydantic-ai]"

It runs without an account: `think` stands in for the model. With one, put its name in place of
`FunctionModel(think)`.
"""

from __future__ import annotations

import sys

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

import byheart
from byheart.integrations.pydantic_ai import memory_toolset


def think(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Stand in for a model: search for a question, save anything else, and tell the result."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    part = last.parts[-1]
    if isinstance(part, ToolReturnPart):
        return ModelResponse([TextPart(f"{part.tool_name}: {part.content}")])
    assert isinstance(part, UserPromptPart)
    said = str(part.content)
    if said.endswith("?"):
        return ModelResponse([ToolCallPart("memory_search", {"query": said, "limit": 1})])
    return ModelResponse([ToolCallPart("memory_save", {"content": said})])


def main(path: str) -> None:
    with byheart.open(path) as store:
        agent = Agent(FunctionModel(think), toolsets=[memory_toolset(store)])
        for said in ("Maria signs off every release on Thursdays.", "Who signs off releases?"):
            print(said, "->", agent.run_sync(said).output)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "agent-memory.db")
