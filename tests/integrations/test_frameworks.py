"""The adapters, in the real frameworks; each test is skipped where its framework is missing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from byheart.errors import InvalidInput
from byheart.store import MemoryStore


def test_a_session_of_the_openai_agents_sdk_keeps_its_items(store: MemoryStore) -> None:
    pytest.importorskip("agents")
    from agents.memory import Session, SessionSettings

    from byheart.integrations.openai_agents import ByheartSession

    async def run() -> None:
        session = ByheartSession(store, "s1")
        assert isinstance(session, Session)
        items: list[Any] = [
            {"role": "user", "content": "Which port does athena use?"},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "8080"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Port 8080."}]},
        ]
        await session.add_items(items)
        await ByheartSession(store, "s2").add_items([{"role": "user", "content": "other"}])
        assert await ByheartSession(store, "s1").get_items() == items
        assert await session.get_items(limit=2) == items[2:]
        assert await session.get_items(limit=0) == []
        latest = ByheartSession(store, "s1", SessionSettings(limit=1))
        assert await latest.get_items() == items[3:]
        assert await latest.get_items(limit=3) == items[1:]
        assert await session.pop_item() == items[3]
        assert await session.get_items() == items[:3]
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        assert len(await ByheartSession(store, "s2").get_items()) == 1

    asyncio.run(run())


def test_langchain_finds_passages_and_keeps_chat_history(store: MemoryStore) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from byheart.integrations.langchain import ByheartChatHistory, ByheartRetriever

    store.save("The build server is called athena.", tags=["build"])
    store.save("Tea is kept in the kitchen.")
    [found, *_] = ByheartRetriever(store=store, k=2).invoke("build server")
    assert found.page_content == "The build server is called athena."
    assert found.metadata["kind"] == "note"
    only = ByheartRetriever(store=store, filters={"tags": ["build"]}).invoke("kitchen tea")
    assert [each.page_content for each in only] == ["The build server is called athena."]
    said = [
        HumanMessage("Hello"),
        AIMessage("", tool_calls=[{"name": "look", "args": {"a": 1}, "id": "c"}]),
        ToolMessage("8080", tool_call_id="c"),
    ]
    history = ByheartChatHistory(store, "s1")
    history.add_messages(said)
    assert ByheartChatHistory(store, "s1").messages == said
    history.clear()
    assert history.messages == []


def test_llamaindex_finds_passages_and_keeps_chat_memory(store: MemoryStore) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.llms.types import ChatMessage

    from byheart.integrations.llamaindex import ByheartMemory, ByheartRetriever

    store.save("The build server is called athena.")
    [found] = ByheartRetriever(store, similarity_top_k=1).retrieve("build server")
    assert found.node.get_content() == "The build server is called athena."
    memory = ByheartMemory.from_defaults(store=store, session_id="s1")
    said = [ChatMessage(role="user", content="Hello"), ChatMessage(role="assistant", content="Hi")]
    memory.put_messages(said)
    assert ByheartMemory(store, "s1").get() == said
    memory.set(said[:1])
    assert memory.get_all() == said[:1]


def test_an_agent_of_pydantic_ai_saves_and_searches(store: MemoryStore) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from byheart.integrations.pydantic_ai import memory_toolset

    store.save("The build server is called athena.")
    agent = Agent(TestModel(), toolsets=[memory_toolset(store)])
    answer = agent.run_sync("What do you know?")
    assert "memory_search" in answer.output
    assert store.status().index.memories == 2, "the test model calls every tool once"


def test_a_graph_of_langgraph_uses_the_store(store: MemoryStore) -> None:
    pytest.importorskip("langgraph")
    from langgraph.config import get_store
    from langgraph.graph import END, START, StateGraph

    from byheart.integrations.langgraph import ByheartStore

    def remember(_state: dict[str, str]) -> dict[str, str]:
        items = get_store()
        items.put(("users", "ada"), "food", {"text": "Ada eats pizza"})
        [found] = items.search(("users",), query="pizza")
        return {"answer": found.value["text"]}

    graph: Any = StateGraph(dict)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", END)
    assert graph.compile(store=ByheartStore(store)).invoke({}) == {"answer": "Ada eats pizza"}


def test_the_store_of_langgraph_does_what_langgraph_s_own_store_does(store: MemoryStore) -> None:
    pytest.importorskip("langgraph")
    from langgraph.store.memory import InMemoryStore

    from byheart.integrations.langgraph import ByheartStore

    def use(items: Any) -> list[Any]:
        items.put(("users", "ada"), "1", {"text": "pizza", "stars": 5})
        items.put(("users", "bob"), "1", {"text": "pizza", "stars": 5})
        items.put(("users", "bob"), "2", {"text": "rice", "stars": 3})
        items.put(("docs", "a/b"), "1", {"text": "pizza"})
        items.put(("users", "bob"), "1", {"text": "pasta", "stars": 4})
        items.put(("users", "bob"), "3", {"text": "gone"})
        items.delete(("users", "bob"), "3")

        def names(found: Any) -> Any:
            return sorted((each.namespace, each.key, each.value["text"]) for each in found)

        return [
            items.get(("users", "bob"), "1").value,
            items.get(("users", "bob"), "3"),
            names(items.search(("users",))),
            names(items.search(("users", "bob"))),
            names(items.search(())),
            names(items.search(("users",), filter={"stars": 4})),
            names(items.search(("users",), filter={"stars": {"$gte": 4}})),
            len(items.search(("users",), limit=2)),
            items.list_namespaces(),
            items.list_namespaces(prefix=("users",)),
            items.list_namespaces(suffix=("a/b",)),
            items.list_namespaces(max_depth=1),
        ]

    assert use(ByheartStore(store)) == use(InMemoryStore())
    [found] = asyncio.run(ByheartStore(store).asearch(("users",), query="rice", limit=1))
    assert (found.value["text"], found.score is not None) == ("rice", True)


def test_the_store_of_langgraph_filters_as_langgraph_s_own_store_does(store: MemoryStore) -> None:
    pytest.importorskip("langgraph")
    from langgraph.store.memory import InMemoryStore

    from byheart.integrations.langgraph import ByheartStore

    filters: list[Any] = [
        {"color": {"r": 1}},
        {"color": {"r": 1, "g": 3}},
        {"sizes": [1, 2]},
        {"sizes": [1]},
        {"sizes": [1, {"$gt": 1}]},
        {"text": {"$ne": "a"}},
        {"missing": None},
        {"missing": {"r": 1}},
        {"n": {"$gt": 1, "$lt": 3}},
        {},
        None,
    ]

    def use(items: Any) -> list[list[str]]:
        items.put(("f",), "1", {"text": "a", "color": {"r": 1, "g": 2}, "sizes": [1, 2], "n": 1})
        items.put(("f",), "2", {"text": "b", "color": {"r": 2}, "sizes": [2, 1], "n": 2})
        return [
            sorted(each.key for each in items.search(("f",), filter=asked)) for asked in filters
        ]

    assert use(ByheartStore(store)) == use(InMemoryStore())
    for items in (ByheartStore(store), InMemoryStore()):
        assert items.search(("f",), query="a", limit=0) == []
    # Values of two kinds are not compared, where the other store fails.
    assert ByheartStore(store).search(("f",), filter={"text": {"$gt": 1}}) == []
    with pytest.raises(InvalidInput, match="unknown operator"):
        ByheartStore(store).search(("f",), filter={"n": {"$in": [1]}})


def test_the_store_of_langgraph_takes_every_namespace_and_key(store: MemoryStore) -> None:
    pytest.importorskip("langgraph")
    from byheart.integrations.langgraph import ByheartStore

    items = ByheartStore(store)
    spaces = [("a" * 150, "b" * 150), tuple(f"level {n}" for n in range(40)), ("Ü/x", " y")]
    for number, space in enumerate(spaces):
        for key in ("k" * 300, "k/1", "K/1"):
            items.put(space, key, {"text": f"{number} {key}"})
    for number, space in enumerate(spaces):
        assert items.get(space, "k/1").value == {"text": f"{number} k/1"}
        assert items.get(space, "K/1").value == {"text": f"{number} K/1"}
        assert len(items.search(space)) == len(items.search(space[:1])) == 3
    assert sorted(items.list_namespaces()) == sorted(spaces)
    # Anybody may save a memory of this kind; it is no item.
    store.save("not an item", "langgraph-item", tags=["ns:%C3%9C%2Fx"])
    assert len(items.search(("Ü/x",))) == len(items.search(("Ü/x",), query="not an item")) == 3


def test_the_store_of_langgraph_searches_the_paths_that_index_names(store: MemoryStore) -> None:
    pytest.importorskip("langgraph")
    from byheart.integrations.langgraph import ByheartStore

    items = ByheartStore(store)
    value = {"notes": [{"said": "a zebra"}, {"said": "a giraffe"}], "secret": "an elephant"}
    items.put(("p",), "1", value, index=["notes[*].said"])
    assert store.search("giraffe", mode="fts").results
    assert not store.search("elephant", mode="fts").results
    assert items.get(("p",), "1").value == value


def test_the_retriever_passes_the_standard_tests_of_langchain(store: MemoryStore) -> None:
    suite = pytest.importorskip("langchain_tests.integration_tests")
    from byheart.integrations.langchain import ByheartRetriever

    for number in range(5):
        store.save(f"Note {number} about the build server.")

    class Standard(suite.RetrieversIntegrationTests):  # type: ignore[name-defined, misc]
        retriever_constructor = ByheartRetriever
        retriever_constructor_params = {"store": store}  # noqa: RUF012
        retriever_query_example = "build server"

    retriever = ByheartRetriever(store=store)
    checks = Standard()
    checks.test_k_constructor_param()
    checks.test_invoke_with_k_kwarg(retriever)
    checks.test_invoke_returns_documents(retriever)
    asyncio.run(checks.test_ainvoke_returns_documents(retriever))
