"""A graph that remembers between runs: run it twice.

Install its framework first: pip install "byheart[langgraph]"
"""

from __future__ import annotations

import sys
from typing import TypedDict

from langgraph.config import get_store
from langgraph.graph import END, START, StateGraph

import byheart
from byheart.integrations.langgraph import ByheartStore


class State(TypedDict, total=False):
    said: str
    known: list[str]


def answer(state: State) -> State:
    items = get_store()
    known = [each.value["text"] for each in items.search(("users", "me"), query=state["said"])]
    if not state["said"].endswith("?"):
        items.put(("users", "me"), state["said"], {"text": state["said"]})
    return {"known": known}


def main(path: str) -> None:
    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    with byheart.open(path) as store:
        ready = graph.compile(store=ByheartStore(store))
        for said in ("I like green tea.", "Which tea do I like?"):
            print(said, "->", ready.invoke({"said": said})["known"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "graph-memory.db")
