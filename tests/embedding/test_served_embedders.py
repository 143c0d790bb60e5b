"""Ollama, OpenAI and Voyage over real HTTP, with everything that goes wrong there."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from byheart.embedding.json_requests import JsonRequests
from byheart.embedding.ollama import ollama_embedder
from byheart.embedding.openai import DEFAULT_URL, openai_embedder
from byheart.embedding.voyage import voyage_embedder
from byheart.errors import EmbedderUnavailable, EmbeddingError
from tests.waiting import PATIENCE_SECONDS

KEY = "sk-very-secret"


class Server:
    """Speaks both protocols; `faults` are played, one per request, before it behaves."""

    def __init__(self):
        self.faults, self.requests, self.headers = [], [], []
        self.dimensions = 4
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                outer.headers.append(dict(self.headers))
                fault = outer.faults.pop(0) if outer.faults else None
                status, headers, answer = fault or (200, {}, outer.answer(self.path, body))
                if callable(answer):
                    answer = answer()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(
                    answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                )

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path, body):
        rows = [[float(len(text)), 1.0, 2.0, 3.0][: self.dimensions] for text in body["input"]]
        if path == "/api/embed":
            return {"model": body["model"], "embeddings": rows}
        items = [{"index": index, "embedding": row} for index, row in enumerate(rows)]
        return {"data": items[::-1]}  # the order is told by the index, not by the place


@pytest.fixture
def server():
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def pauses():
    return []


@pytest.fixture(params=["ollama", "openai", "voyage"])
def embedder(request, server, pauses):
    requests = JsonRequests(timeout_seconds=0.3, sleep=pauses.append)
    if request.param == "ollama":
        return ollama_embedder(url=server.url, requests=requests)
    if request.param == "voyage":
        return voyage_embedder(api_key=KEY, url=server.url, requests=requests)
    return openai_embedder("some-model", api_key=KEY, url=server.url, requests=requests)


def test_vectors_come_back_in_order_and_of_unit_length(embedder):
    vectors = embedder.embed(["a", "bbb", "cc"])
    assert vectors.shape == (3, 4)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.argsort(vectors[:, 0]).tolist() == [0, 2, 1]
    assert np.allclose(embedder.embed_query("bbb"), vectors[1])
    assert embedder.dimensions == 4
    assert embedder.embed([]).shape == (0, 4)


def test_many_texts_go_in_several_requests(embedder, server):
    texts = [f"text {index}" for index in range(600)]
    assert len(embedder.embed(texts)) == 600
    sent = [text for request in server.requests for text in request["input"]]
    assert sorted(text for text in sent if text != "dimensions") == sorted(texts)
    assert max(len(request["input"]) for request in server.requests) <= 256


def test_a_request_holds_texts_of_like_length_and_the_answer_keeps_the_order_asked(
    embedder, server
):
    lengths = [1 + index * 37 % 600 for index in range(600)]
    vectors = embedder.embed(["x" * length for length in lengths])
    # The server tells a text's length by the direction of its vector.
    assert np.allclose(vectors[:, 0] / vectors[:, 1], lengths, rtol=1e-4)
    batches = [request["input"] for request in server.requests if len(request["input"]) > 1]
    batches.sort(key=lambda batch: -len(batch[0]))  # they were sent at the same time
    sent = [len(text) for batch in batches for text in batch]
    assert len(batches) > 2
    assert sent == sorted(lengths, reverse=True)


def test_requests_are_in_flight_at_the_same_time_up_to_a_limit(server):
    several, longest = threading.Barrier(3), threading.Semaphore(3)

    def wait(path, body):
        assert longest.acquire(blocking=False), "more than three at once"
        several.wait(timeout=PATIENCE_SECONDS)
        longest.release()
        return answer(path, body)

    answer, server.answer = server.answer, wait
    embedder = openai_embedder(url=server.url, requests=JsonRequests(parallel=3), dimensions=4)
    assert embedder.embed([f"text {index}" for index in range(90)]).shape == (90, 4)
    assert [len(request["input"]) for request in server.requests] == [30, 30, 30]


def test_few_texts_go_in_one_request(embedder, server):
    embedder.embed(["a", "b", "c"])
    assert [
        len(request["input"]) for request in server.requests if request["input"] != ["dimensions"]
    ] == [3]


def test_voyage_is_told_questions_from_passages(server):
    embedder = voyage_embedder(api_key=KEY, url=server.url)
    embedder.embed(["a passage", ""])
    assert server.requests[0]["input_type"] == "document"
    assert server.requests[0]["input"] == ["a passage", " "]
    embedder.embed_query("a question")
    assert server.requests[-1]["input_type"] == "query"
    assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"
    assert embedder.name == "voyage/voyage-3.5"


def test_voyage_needs_a_key():
    with pytest.raises(EmbedderUnavailable, match="API key") as caught:
        voyage_embedder()
    assert "VOYAGE_API_KEY" in caught.value.hint


def test_a_text_longer_than_the_window_is_sent_in_windows(embedder, server):
    text = "word " * 9000
    assert np.isclose(np.linalg.norm(embedder.embed_query(text)), 1)
    longest = max(len(text) for request in server.requests for text in request["input"])
    assert longest <= embedder.window_tokens * 5


def test_a_text_that_the_model_makes_no_numbers_of_is_refused_at_once(embedder, server, pauses):
    said = b'{"error":"failed to encode response: json: unsupported value: NaN"}'
    server.faults = [(500, {}, said)]
    with pytest.raises(EmbeddingError, match="unsupported value: NaN") as raised:
        embedder.embed(["a"])
    assert not isinstance(raised.value, EmbedderUnavailable)
    assert pauses == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again_after_growing_pauses(embedder, server, pauses, status):
    server.faults = [(status, {}, b"")] * 3
    assert embedder.embed(["a"]).shape == (1, 4)
    assert len(pauses) == 3
    assert 0.3 < pauses[0] < pauses[1] < pauses[2] < 3


def test_the_pause_the_server_asks_for_is_kept(embedder, server, pauses):
    server.faults = [(429, {"Retry-After": "7"}, b"")]
    embedder.embed(["a"])
    assert pauses == [7.0]


def test_a_pause_beyond_the_time_limit_is_not_waited_for(embedder, server, pauses):
    server.faults = [(429, {"Retry-After": "3600"}, b"")]
    with pytest.raises(EmbedderUnavailable, match="429"):
        embedder.embed(["a"])
    assert pauses == []


def test_a_lasting_failure_is_given_up_after_three_retries(embedder, server, pauses):
    server.faults = [(500, {}, b"")] * 9
    with pytest.raises(EmbedderUnavailable, match="failed 4 times: 500"):
        embedder.embed(["a"])
    assert len(server.requests) == 4


def test_a_silent_server_is_given_up(embedder, server):
    server.faults = [(200, {}, lambda: time.sleep(0.6) or b"{}")] * 9
    with pytest.raises(EmbedderUnavailable, match="timed out"):
        embedder.embed(["a"])


def test_no_server_at_all_is_reported(pauses):
    requests = JsonRequests(sleep=pauses.append)
    with pytest.raises(EmbedderUnavailable, match="refused"):
        ollama_embedder(url="http://127.0.0.1:9", requests=requests).embed(["a"])
    assert len(pauses) == 3


@pytest.mark.parametrize("status", [400, 404])
def test_a_refused_request_is_not_repeated(embedder, server, pauses, status):
    server.faults = [(status, {}, b'{"error": "model not found"}')]
    with pytest.raises(EmbeddingError, match="model not found"):
        embedder.embed(["a"])
    assert pauses == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"<html>", "JSON"),
        (b"[]", "no list of vectors"),
        (b'{"embeddings": "x", "data": "x"}', "no list of vectors"),
        (b'{"embeddings": [], "data": []}', "shape"),
        (
            b'{"embeddings": [[1, 2], [1]], "data": [{"index": 0, "embedding": "x"}]}',
            "no list of vectors",
        ),
        (
            b'{"embeddings": [[NaN, 1]], "data": [{"index": 0, "embedding": [NaN, 1]}]}',
            "not finite",
        ),
        (b'{"embeddings": [[0, 0]], "data": [{"index": 0, "embedding": [0, 0]}]}', "zero"),
    ],
)
def test_an_answer_that_is_no_vectors_is_refused(embedder, server, answer, message):
    server.faults = [(200, {}, answer)]
    with pytest.raises(EmbeddingError, match=message) as caught:
        embedder.embed(["a"])
    assert caught.value.hint


def test_too_few_vectors_are_refused(embedder, server):
    one = {"embeddings": [[1.0, 2]], "data": [{"index": 0, "embedding": [1.0, 2]}]}
    server.faults = [(200, {}, one)]
    with pytest.raises(EmbeddingError, match="for 2 texts"):
        embedder.embed(["a", "b"])


def test_vectors_of_another_length_are_refused(embedder, server):
    assert embedder.dimensions == 4
    server.dimensions = 3
    with pytest.raises(EmbeddingError, match="3 dimensions, not 4"):
        embedder.embed(["a"])


def test_the_key_is_sent_and_never_shown(server):
    embedder = openai_embedder("m", api_key=KEY, url=server.url)
    embedder.embed(["a"])
    assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"
    shown = [repr(embedder), repr(vars(embedder))]
    for status in (400, 401, 403):
        server.faults = [(status, {}, f"wrong key {KEY}".encode())]
        with pytest.raises(EmbeddingError) as caught:
            embedder.embed(["a"])
        shown += [str(caught.value), repr(caught.value)]
    assert KEY not in "".join(shown)


def test_a_redirect_does_not_carry_the_key_away(server):
    elsewhere = Server()
    server.faults = [(302, {"Location": elsewhere.url}, b"")]
    with pytest.raises(EmbeddingError, match="302"):
        openai_embedder("m", api_key=KEY, url=server.url).embed(["a"])
    assert elsewhere.requests == []
    elsewhere.http.shutdown()
    elsewhere.http.server_close()


def test_openai_itself_needs_a_key():
    with pytest.raises(EmbedderUnavailable, match="API key") as caught:
        openai_embedder(url=DEFAULT_URL)
    assert "OPENAI_API_KEY" in caught.value.hint


def test_known_models_have_known_dimensions_and_asked_ones_are_sent(server):
    assert openai_embedder(url=server.url).dimensions == 1536
    short = openai_embedder(url=server.url, dimensions=4)
    short.embed(["a", ""])
    assert server.requests[-1]["dimensions"] == 4
    assert server.requests[-1]["input"] == ["a", " "]
    assert short.name == "openai/text-embedding-3-small/4"
