"""A chat that remembers: a whole loop against a server that speaks OpenAI's protocol.

    python examples/chat.py

Each turn is logged, the context is put together and sent, and the reply is logged. The server here
is a stand-in that runs in this process and answers from nothing but the context it was given, so
that what it says shows what it was told. Point `--url` at a real one (llama.cpp, Ollama, vLLM) to
chat with a model, and `--db` at a store of your own to remember it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import byheart
from byheart import MemoryStore
from byheart.model import PromptMessage

FACTS = (
    "The deploy key is kept in the vault under ci/deploy.",
    "Staging is restarted every Sunday at five.",
)
QUESTIONS = (
    "My favourite tea is Darjeeling, second flush.",
    "Where do we keep the deploy key?",
    "Thanks!",
    "When is staging restarted?",
    "Which tea is my favourite?",
)


# --- The loop -----------------------------------------------------------------------------------


def chat(store: MemoryStore, session_id: str, said: str, url: str) -> str:
    """Say something, and give what is answered: log, context, ask, log."""
    store.log(session_id, "user", said)
    context = store.context(session_id, max_tokens=1500)
    reply = ask(url, context.openai)
    store.log(session_id, "assistant", reply)
    return reply


def ask(url: str, messages: Sequence[PromptMessage]) -> str:
    """Send messages to a server that speaks OpenAI's protocol."""
    body = {
        "model": "local",
        "messages": [{"role": each.role, "content": each.content} for each in messages],
    }
    request = Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


# --- The stand-in -------------------------------------------------------------------------------


class StandIn(BaseHTTPRequestHandler):
    """Answer with the sentence of the context that shares most words with the question."""

    def do_POST(self) -> None:
        """Answer a request for a completion."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = {"role": "assistant", "content": answer_from(asked["messages"])}
        body = json.dumps({"object": "chat.completion", "choices": [{"message": reply}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


def answer_from(messages: Sequence[dict[str, str]]) -> str:
    """Quote what was given about the question, with its id; or say that nothing was."""
    question = messages[-1]["content"]
    wanted = _words(question)
    passages = [
        (name, text)
        for message in messages
        for name, text in re.findall(
            r"<(?:passage|pinned) id=([^ >]+)[^>]*>\n(.*?)\n</", message["content"], re.DOTALL
        )
    ]
    said = [each["content"] for each in messages[:-1] if each["role"] == "user"]
    earlier = [("", text) for text in said if not text.startswith("<passage ")]
    best = max((*passages, *earlier), key=lambda each: len(wanted & _words(each[1])), default=None)
    if "?" not in question or best is None or not wanted & _words(best[1]):
        return "I see."
    name, text = best
    return f"{text.strip()} [{name}]" if name else f"You said: {text.strip()}"


def _words(text: str) -> set[str]:
    stop = {"the", "is", "my", "we", "do", "a", "at", "in", "which", "when", "where", "every"}
    return set(re.findall(r"[a-z]+", text.lower())) - stop


@contextmanager
def standing_in() -> Iterator[str]:
    """Run the stand-in, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


# --- The command --------------------------------------------------------------------------------


def main() -> None:
    """Chat with whoever is there: at the terminal, or with the questions above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", help="a server that speaks OpenAI's protocol")
    parser.add_argument("--db", help="a store to remember it in")
    parser.add_argument("--session-id", default="chat")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        standing_in() as stand_in,
        byheart.open(given.db or Path(folder) / "memory.db") as store,
    ):
        store.save_many({"content": fact, "kind": "fact"} for fact in FACTS)
        for line in sys.stdin if sys.stdin.isatty() else QUESTIONS:
            print(f"you: {line.strip()}")
            try:
                reply = chat(store, given.session_id, line.strip(), given.url or stand_in)
            except URLError as error:
                sys.exit(f"{given.url} does not answer: {error.reason}")
            print(f"it:  {reply}")


if __name__ == "__main__":
    main()
