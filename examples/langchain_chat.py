"""A chain that knows facts and remembers its conversation: run it twice.

Install its framework first: pip install "byheart[langchain]"

It runs without an account: `quote` stands in for the model. With one, put a chat
model in its place.
"""

from __future__ import annotations

import sys
from operator import itemgetter

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

import byheart
from byheart.integrations.langchain import ByheartChatHistory, ByheartRetriever

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from these facts:\n{facts}"),
        MessagesPlaceholder("history"),
        ("human", "{question}"),
    ]
)


def join(found: list[Document]) -> str:
    return "\n".join(each.page_content for each in found)


def quote(prompt: PromptValue) -> AIMessage:
    """Stand in for a model: quote the fact, and say how long the conversation is."""
    facts, *said = prompt.to_messages()
    return AIMessage(f"{facts.text.partition(chr(10))[2]} (message {len(said)})")


def main(path: str) -> None:
    with byheart.open(path) as store:
        store.save("The build server is called Gondor and stands in Berlin.", kind="fact")
        store.save("Maria signs off every release on Thursdays.", kind="fact")
        retriever = ByheartRetriever(store=store, k=1, filters={"kind": "fact"})
        chain = (
            {
                "facts": itemgetter("question") | retriever | join,
                "history": itemgetter("history"),
                "question": itemgetter("question"),
            }
            | PROMPT
            | RunnableLambda(quote)
        )
        history = ByheartChatHistory(store, "chat-1")
        for question in ("Where is the build server?", "Who signs off releases?"):
            answer = chain.invoke({"question": question, "history": history.messages})
            history.add_messages([HumanMessage(question), answer])
            print(question, "->", answer.text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "chain-memory.db")
