"""A provider is looked for on first use, and its absence is told and remembered."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from byheart.embedding import LazyEmbedder, open_embedder
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import EmbedderUnavailable, SettingsError


class Flaky(HashEmbedder):
    """Works until it is told not to."""

    def __init__(self):
        super().__init__(8)
        self.down = False
        self.calls = 0

    def embed(self, texts):
        self.calls += 1
        if self.down:
            raise EmbedderUnavailable("it is away", "wait")
        return super().embed(texts)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Ollama(BaseHTTPRequestHandler):
    """Answers like Ollama, with the same vector for every text."""

    def do_GET(self):
        self.answer({"version": "0.9.0"})

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        self.answer({"embeddings": [[1.0, 2.0, 3.0] for _ in texts]})

    def answer(self, body):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def ollama_url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ollama)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def away():
    raise EmbedderUnavailable("nobody there", "call somebody")


def test_opening_imports_nothing_heavy():
    script = (
        "import sys, pathlib; from byheart.embedding import open_embedder;"
        "open_embedder('auto', cache_dir=pathlib.Path('nowhere'));"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'tokenizers', 'urllib.request'};"
        "print(*heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == [], done.stderr


def test_the_first_opener_that_succeeds_is_used_from_then_on():
    opened = []

    def hashing():
        opened.append(1)
        return HashEmbedder(8)

    embedder = LazyEmbedder([away, hashing])
    assert opened == []
    assert embedder.unavailable() is None
    assert (embedder.name, embedder.dimensions, embedder.window_tokens) == ("hash-8", 8, 254)
    assert embedder.embed(["a"]).shape == (1, 8)
    assert opened == [1]


def test_a_missing_provider_is_told_with_reason_and_hint():
    embedder = LazyEmbedder([away])
    assert embedder.unavailable() == "nobody there (call somebody)"
    with pytest.raises(EmbedderUnavailable, match="nobody there"):
        embedder.embed(["a"])


def test_a_missing_provider_is_asked_again_after_a_minute_not_before():
    clock, asked = Clock(), []

    def later():
        asked.append(clock.now)
        return away() if clock.now < 60 else HashEmbedder(8)

    embedder = LazyEmbedder([later], clock=clock)
    for clock.now in (0, 1, 59):
        assert embedder.unavailable()
    assert asked == [0]
    clock.now = 61
    assert embedder.unavailable() is None


def test_a_provider_that_goes_away_is_left_alone_for_a_minute():
    clock, flaky = Clock(), Flaky()
    embedder = LazyEmbedder([lambda: flaky], clock=clock)
    embedder.embed(["a"])
    flaky.down = True
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable, match="away"):
            embedder.embed(["a"])
    assert flaky.calls == 2
    assert embedder.unavailable() == "it is away (wait)"
    flaky.down, clock.now = False, 61
    assert embedder.unavailable() is None
    embedder.embed(["a"])


def test_questions_are_remembered_even_while_the_provider_is_away():
    flaky = Flaky()
    embedder = LazyEmbedder([lambda: flaky])
    first = embedder.embed_query("a question")
    flaky.down = True
    assert embedder.embed_query("a question") is first
    assert not first.flags.writeable
    assert flaky.calls == 1


def test_the_last_thousand_questions_are_remembered():
    embedder = LazyEmbedder([lambda: HashEmbedder(8)])
    for number in range(1000):
        embedder.embed_query(f"question {number}")
    embedder.embed_query("question 1")
    assert embedder.query_cache() == (1, 1000)
    embedder.embed_query("question 1000")  # the one that nobody asked for longest makes room
    embedder.embed_query("question 1")
    assert embedder.query_cache() == (2, 1001)
    embedder.embed_query("question 0")
    assert embedder.query_cache() == (2, 1002)


def test_looking_opens_nothing_that_would_have_to_be_downloaded():
    clock, opened, downloaded = Clock(), [], []

    def download():
        opened.append(clock.now)
        return HashEmbedder(8) if downloaded else away()

    def check_at_hand():
        if not downloaded:
            raise EmbedderUnavailable("not downloaded yet")

    embedder = LazyEmbedder([download], check_at_hand=check_at_hand, clock=clock)
    assert embedder.unavailable() == "not downloaded yet"
    assert opened == []
    with pytest.raises(EmbedderUnavailable, match="nobody there"):
        embedder.embed(["a"])
    assert embedder.unavailable() == "nobody there (call somebody)"
    clock.now = 61
    assert embedder.unavailable() == "not downloaded yet"
    assert opened == [0]
    downloaded.append(True)
    assert embedder.unavailable() is None


@pytest.mark.parametrize("provider", ["auto", "onnx"])
def test_a_model_that_is_not_in_the_cache_is_told_without_a_download(provider, tmp_path):
    embedder = open_embedder(provider, cache_dir=tmp_path / "cache", model="org/tiny")
    assert embedder.unavailable() == (
        "the model org/tiny is not downloaded yet (get it with: byheart model download)"
    )
    assert list(tmp_path.iterdir()) == []


def test_tokens_are_estimated_while_there_is_no_model():
    assert list(LazyEmbedder([away]).token_starts("one two")) == [0, 4]


def test_hash_and_none_are_providers_too(tmp_path):
    assert open_embedder("hash", cache_dir=tmp_path).name == "hash-384"
    assert "switched off" in open_embedder("none", cache_dir=tmp_path).unavailable()


def test_an_unknown_provider_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="'clever'"):
        open_embedder("clever", cache_dir=tmp_path)


def test_openai_without_a_key_says_so(tmp_path):
    assert "OPENAI_API_KEY" in open_embedder("openai", cache_dir=tmp_path).unavailable()


def test_auto_without_model_network_and_ollama_names_both(tmp_path):
    embedder = open_embedder(
        "auto", cache_dir=tmp_path, offline=True, ollama_url="http://127.0.0.1:9"
    )
    reason = embedder.unavailable()
    assert "offline" in reason
    assert "no Ollama server" in reason


def test_auto_takes_the_model_at_the_configured_path(tmp_path, write_tiny_model):
    folder = write_tiny_model(tmp_path / "tiny")
    embedder = open_embedder("auto", cache_dir=tmp_path / "cache", model_path=folder)
    assert embedder.unavailable() is None
    assert embedder.name.startswith("tiny@")
    assert np.isclose(np.linalg.norm(embedder.embed_query("a")), 1)


def test_auto_falls_back_to_an_ollama_that_answers(tmp_path, ollama_url):
    embedder = open_embedder("auto", cache_dir=tmp_path, offline=True, ollama_url=ollama_url)
    assert embedder.unavailable() is None
    assert embedder.name == "ollama/all-minilm:l6-v2"
    assert embedder.dimensions == 3


@pytest.mark.parametrize(
    ("provider", "model", "spec"),
    [
        ("hash", None, ("hash", "hash-384")),
        ("hash", "hash-32", ("hash", "hash-32")),
        ("onnx", None, ("onnx", "sentence-transformers/all-MiniLM-L6-v2")),
        ("onnx", "BAAI/bge-small-en-v1.5", ("onnx", "BAAI/bge-small-en-v1.5")),
        ("auto", None, ("onnx", "sentence-transformers/all-MiniLM-L6-v2")),
        ("openai", None, ("openai", "text-embedding-3-small")),
        ("voyage", None, ("voyage", "voyage-3.5")),
        ("none", None, ("none", "")),
    ],
)
def test_an_embedder_says_how_it_is_opened_again(tmp_path, provider, model, spec):
    assert open_embedder(provider, cache_dir=tmp_path, model=model).spec == spec


def test_a_model_in_a_folder_is_opened_again_from_there(tmp_path):
    embedder = open_embedder("onnx", cache_dir=tmp_path, model_path=tmp_path / "model")
    assert embedder.spec == ("onnx", str(tmp_path / "model"))


def test_auto_is_opened_again_by_whoever_answered(ollama_url, tmp_path):
    embedder = open_embedder(
        "auto", cache_dir=tmp_path, offline=True, ollama_url=ollama_url, model_sources=()
    )
    assert embedder.dimensions == 3
    assert embedder.spec.provider == "ollama"


def test_the_hash_embedder_takes_its_dimensions_from_its_name(tmp_path):
    embedder = open_embedder("hash", cache_dir=tmp_path, model="hash-32")
    assert (embedder.name, embedder.dimensions) == ("hash-32", 32)
    assert embedder.embed_query("text").shape == (32,)
    with pytest.raises(EmbedderUnavailable, match="has no model 'bge'"):
        open_embedder("hash", cache_dir=tmp_path, model="bge").embed_query("text")


def test_a_question_that_nobody_asked_is_neither_remembered_nor_counted() -> None:
    embedder = LazyEmbedder([lambda: HashEmbedder()])
    asked = embedder.embed_query("where is the harbour")
    before = embedder.query_cache()
    assert (embedder.embed_once("where is the harbour") == asked).all()
    embedder.embed_once("where is the library")
    assert embedder.query_cache() == before
