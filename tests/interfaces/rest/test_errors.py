"""What goes wrong is a status and a problem with a hint, and nothing of Python's."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import byheart
from byheart.errors import ByheartError
from byheart.interfaces.operations import Forbidden
from byheart.interfaces.rest.problems import STATUSES, problem_of
from tests.interfaces.rest.conftest import Serve, Server


def every_error(kind: type[ByheartError] = ByheartError) -> Iterator[type[ByheartError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from every_error(each)


def assert_problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert problem["detail"]
    assert problem["hint"]
    assert "Traceback" not in answer.text
    return problem


def test_every_error_has_a_status() -> None:
    assert {kind for kind in every_error() if kind.__module__.startswith("byheart.")} == set(
        STATUSES
    )


def test_only_the_callers_own_doing_is_a_4xx() -> None:
    for kind, status in STATUSES.items():
        own = (byheart.InvalidInput, byheart.NotFound, byheart.Conflict, Forbidden)
        is_own = issubclass(kind, own) and not issubclass(kind, byheart.errors.SettingsError)
        assert (status < 500) == is_own, kind


def test_what_passes_by_itself_says_when_to_ask_again() -> None:
    assert problem_of(byheart.errors.StoreBusy("busy")).headers == {"Retry-After": "1"}
    assert "Retry-After" not in problem_of(byheart.errors.StoreFull("full")).headers


def test_a_path_that_does_not_exist_is_404(client: httpx2.Client) -> None:
    for path in ("/nothing", "/memories/x/nothing", "/search/", "/memories/", "/%73earch"):
        assert assert_problem(client.post(path, json={}), 404)["instance"] == path


def test_a_method_that_a_path_does_not_take_is_405_and_names_those_it_takes(
    client: httpx2.Client,
) -> None:
    answer = client.put("/memories/x", json={})
    assert_problem(answer, 405)
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "PATCH", "DELETE"}
    assert_problem(client.get("/search"), 405)
    assert_problem(client.options("/search"), 405)


def test_an_unknown_memory_is_404(client: httpx2.Client) -> None:
    for answer in (
        client.get("/memories/mem_unknown"),
        client.patch("/memories/mem_unknown", json={"title": "x"}),
        client.delete("/memories/mem_unknown"),
        client.get("/chunks/mem_unknown%230"),
    ):
        assert "mem_unknown" in assert_problem(answer, 404)["detail"]


def test_a_change_to_an_outdated_version_is_409(client: httpx2.Client, report: str) -> None:
    answer = client.patch(f"/memories/{report}", json={"title": "x", "expected_version": 7})
    assert "7" in assert_problem(answer, 409)["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b'{"query": NaN}',
        b'{"query": "a", "limit": Infinity}',
        b"\xff\xfe",
        b'{"query": "\xff"}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"query": "a", "limit": ' + b"9" * 5000 + b"}",
    ],
    ids=["cut", "blank", "nan", "infinity", "utf-16", "bad utf-8", "deep", "digits"],
)
def test_what_is_not_json_is_400(shared_client: httpx2.Client, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    expected = 422 if not body else 400  # nothing at all is an empty object, without a query
    answer = shared_client.post("/search", content=body, headers=headers)
    assert assert_problem(answer, expected)["instance"] == "/search"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "image/png"])
def test_a_body_of_another_type_is_415(shared_client: httpx2.Client, kind: str) -> None:
    headers = {"Content-Type": kind}
    answer = shared_client.post("/search", content=b'{"query": "a"}', headers=headers)
    assert "application/json" in str(assert_problem(answer, 415))


def test_a_body_without_a_type_is_415(client: httpx2.Client) -> None:
    request = client.build_request("POST", "/search", content=b'{"query": "a"}')
    request.headers.pop("content-type", None)
    assert "application/json" in str(assert_problem(client.send(request), 415))


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "application/merge-patch+json"]
)
def test_a_body_of_a_json_type_is_read(client: httpx2.Client, kind: str) -> None:
    answer = client.post("/search", content=b'{"query": "a"}', headers={"Content-Type": kind})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("at", "body"),
    [
        ("/search", {"query": "a", "limit": 0}),
        ("/search", {"query": "a", "limit": "many"}),
        ("/search", {"query": "a", "limit": None}),
        ("/search", {"query": "a", "limits": 3}),
        ("/search", {"query": "", "granularity": "fine"}),
        ("/search", {"query": "a", "mode": "magic"}),
        ("/search", {"query": {"a": 1}}),
        ("/search", {"query": "a", "as_of": "some day"}),
        ("/search", {"query": "a", "include_global": "yes"}),
        ("/search", {"query": "a", "tags": "one"}),
        ("/search", {"query": "a", "similarity_threshold": 2}),
        ("/search", {"query": "a", "mode": "magic", "source": "fts"}),
        ("/search", {"query": "a", "limit": 0, "topK": 3}),
        ("/search", {"query": "a", "tags": {"one": 1}}),
        ("/forget", {"memory_id": {"mem_a": 1}}),
        ("/memories/x/restore", {"who": ""}),
        ("/recall", {}),
        ("/recall", {"query": "a", "max_tokens": -1}),
        ("/memories", {}),
        ("/memories", {"content": " "}),
        ("/memories", {"content": "a", "importance": 11}),
        ("/memories", {"content": "a", "ttl_days": 1, "expires_at": "2030-01-01"}),
        ("/memories", {"content": "a", "session_iter": [1]}),
        ("/memories", {"content": "a", "metadata": [1]}),
        ("/memories", {"content": "\ud800"}),
        ("/forget", {}),
        ("/memories/x/merge", {"others": []}),
        ("/memories/x/restore", {"memory_id": "x"}),
        ("/entities/merge", {"names": 3, "into": "a"}),
        ("/dedupe", {"threshold": 0}),
    ],
)
def test_a_value_that_is_not_allowed_is_422(
    shared_client: httpx2.Client, at: str, body: dict[str, Any]
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = shared_client.post(at, content=json.dumps(body), headers=headers)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=1.5", "limit=x", "limit=1_0", "limit= 1", "limit=true", "limit=NaN"),
        *("limit=1&limit=2", "include_global=maybe", "include_global=", "colour=red", "match=some"),
        *("created_after=soon", "min_importance=11", "kind=Not%20A%20Slug", "session_iter=x"),
    ],
)
def test_a_query_string_with_a_bad_value_is_422(shared_client: httpx2.Client, query: str) -> None:
    name = query.partition("=")[0]
    assert name in assert_problem(shared_client.get(f"/memories?{query}"), 422)["detail"]


def test_a_body_is_not_helped_out_by_a_query_string(client: httpx2.Client) -> None:
    answer = client.post("/search?limit=3", json={"query": "a"})
    assert "query string" in assert_problem(answer, 422)["detail"]


def test_a_list_instead_of_an_object_is_422(client: httpx2.Client) -> None:
    assert "object" in str(assert_problem(client.post("/search", json=["query"]), 422))


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("null", "null"),
        ('"x"', "a string"),
        ("[]", "an array"),
        ("5", "a number"),
        ("1.5", "a number"),
        ("true", "a boolean"),
    ],
)
def test_a_body_that_is_no_object_is_named_as_json_names_it(
    shared_client: httpx2.Client, body: str, named: str
) -> None:
    headers = {"Content-Type": "application/json"}
    problem = assert_problem(shared_client.post("/search", content=body, headers=headers), 422)
    assert problem["detail"] == f"the body is {named}, not an object"


def test_a_missing_parameter_is_asked_for_by_its_name(shared_client: httpx2.Client) -> None:
    problem = assert_problem(shared_client.post("/context", json={"query": "tea"}), 422)
    assert problem["hint"].startswith("give session_id: ")


def test_a_raw_query_says_where_it_is_not_valid(client: httpx2.Client, report: str) -> None:
    problem = assert_problem(client.post("/search", json={"query": 'a AND "b', "raw": True}), 422)
    assert isinstance(problem["position"], int)


def test_a_misspelt_parameter_is_named_with_the_nearest_right_one(client: httpx2.Client) -> None:
    problem = assert_problem(client.post("/search", json={"query": "a", "sesion_id": "s"}), 422)
    assert "session_id" in problem["hint"]


def test_a_store_that_another_process_keeps_locked_is_503(serve: Serve, path: Path) -> None:
    import apsw

    server = serve(busy_timeout_seconds=0)
    client = server.client()
    other = apsw.Connection(str(path))
    try:
        other.execute("BEGIN IMMEDIATE")
        answer = client.post("/memories", json={"content": "a"})
        assert_problem(answer, 503)
        assert answer.headers["retry-after"] == "1"
        assert client.post("/search", json={"query": "a"}).status_code == 200
    finally:
        other.close()


def test_a_store_that_was_closed_under_the_server_is_500_without_a_traceback(
    server: Server, client: httpx2.Client
) -> None:
    server.store.close()
    answer = client.post("/search", json={"query": "a"})
    assert_problem(answer, 500)
    assert "Traceback" not in answer.text


def test_a_defect_is_500_and_tells_nothing_but_its_kind(serve: Serve) -> None:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def fail(_: Request) -> Response:
        raise ZeroDivisionError("secret details")

    server = serve(mounts=(Route("/fail", fail),))
    answer = server.client().get("/fail")
    problem = assert_problem(answer, 500)
    assert "ZeroDivisionError" in problem["detail"]
    assert "secret" not in answer.text


def test_a_sane_request_id_is_kept_and_any_other_replaced(client: httpx2.Client) -> None:
    given = client.get("/status", headers={"X-Request-Id": "trace-1.2:3"})
    assert given.headers["x-request-id"] == "trace-1.2:3"
    for bad in ("a b", "x" * 101, "<script>"):
        made = client.get("/status", headers={"X-Request-Id": bad}).headers["x-request-id"]
        assert made not in ("", bad)


def test_head_answers_without_a_body(server: Server, client: httpx2.Client) -> None:
    answer = client.head("/status")
    assert (answer.status_code, answer.content) == (200, b"")


def test_what_is_not_http_ends_the_connection_and_nothing_else(server: Server) -> None:
    raw = http.client.HTTPConnection("127.0.0.1", server.port)
    raw.connect()
    raw.sock.sendall(b"\x00\x01\x02 nonsense\r\n\r\n")
    assert b"400" in raw.sock.recv(100)
    raw.close()
    assert server.client().get("/status").status_code == 200
