"""An agent whose conversation goes on in the next run: run it twice.

Install its framework first: pip install "byheart[openai-agents]"

It runs without an account: `Echo` stands in for the model. With one, leave `model=Echo()` out.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

import byheart
from byheart.integrations.openai_agents import ByheartSession


class Echo(Model):
    """Stand in for a model: say what was asked before."""

    async def get_response(self, *_: Any, input: Any, **__: Any) -> Any:
        *earlier, question = [each["content"] for each in input if each.get("role") == "user"]
        told = f"You asked {question!r}. Before: {', '.join(map(repr, earlier)) or 'nothing'}."
        text = ResponseOutputText(text=told, type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("this example does not stream")


async def talk(path: str) -> None:
    set_tracing_disabled(True)
    agent = Agent(name="Assistant", instructions="Answer in one sentence.", model=Echo())
    with byheart.open(path) as store:
        session = ByheartSession(store, "chat-1")
        for question in ("Where is the build server?", "And who signs off releases?"):
            done = await Runner.run(agent, question, session=session)
            print(done.final_output)
        # The conversation is in the store like any other: every interface finds it.
        for hit in store.search("build server", session_id="chat-1", limit=1).results:
            print("found:", hit.snippet)


if __name__ == "__main__":
    asyncio.run(talk(sys.argv[1] if len(sys.argv) > 1 else "agents-memory.db"))
