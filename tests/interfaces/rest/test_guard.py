"""No token, no entry; and no way from one space, or from one session, into another."""

from __future__ import annotations

import http.client
from typing import Any

import httpx2
import pytest

from byheart.interfaces.rest.routes import ROUTES
from tests.interfaces.rest.conftest import Serve, Server

EVERY_ROUTE = [(entry.method, entry.path) for entry in ROUTES] + [("GET", "/metrics")]


def ask(server: Server, path: str = "/health", **headers: str) -> http.client.HTTPResponse:
    """Ask with exactly these headers, Host included."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    return connection.getresponse()


# --- API keys -----------------------------------------------------------------------------------


def test_without_a_token_no_route_answers(server: Server, stranger: httpx2.Client) -> None:
    for method, path in EVERY_ROUTE:
        answer = stranger.request(method, path, json={"query": "a"})
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"
    assert server.store.status().index.memories == 0


def test_health_answers_without_a_token_and_tells_nothing_about_the_store(
    server: Server, stranger: httpx2.Client
) -> None:
    server.store.save("A secret")
    assert stranger.get("/health").json() == {"status": "ok"}
    ready = stranger.get("/health/ready").json()
    assert ready == {"status": "ready", "degraded": False, "reason": None}


def test_a_path_that_does_not_exist_is_no_hint_to_strangers(stranger: httpx2.Client) -> None:
    assert stranger.get("/nothing").status_code == 401
    assert stranger.get("/health/").status_code == 401
    assert stranger.post("/health").status_code == 401
    assert stranger.get("/health/../status").status_code in (401, 404)


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer wrong",
        "Bearer bh_" + "a" * 43,
        "Bearer bh_" + "a" * 100_00,
        "Basic dXNlcjpwYXNz",
        "bh_" + "a" * 43,
        "Bearer bh_ü",
    ],
)
def test_a_wrong_token_is_401(stranger: httpx2.Client, authorization: str) -> None:
    answer = stranger.get("/status", headers={"Authorization": authorization.encode()})
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_a_revoked_token_is_refused_at_once(server: Server) -> None:
    client = server.client("brief")
    assert client.get("/status").status_code == 200
    server.store.api_keys.revoke("brief")
    assert client.get("/status").status_code == 401


def test_an_expired_token_is_401(server: Server) -> None:
    assert server.client("late", ttl_days=1e-9).get("/status").status_code == 401


def test_a_token_that_only_reads_cannot_write(server: Server) -> None:
    kept = server.store.save("Anna likes tea.", entities=["Anna"]).memory_id
    other = server.store.save("Bob likes coffee.", entities=["Bob"]).memory_id
    before = server.store.history(kept)
    client = server.client("reader", access="read")
    writing: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/memories", {"content": "x"}),
        ("POST", "/memories", {"items": [{"content": "x"}]}),
        ("POST", "/memories", {"items": []}),
        ("PATCH", f"/memories/{kept}", {"title": "x"}),
        ("POST", f"/memories/{kept}/restore", {}),
        ("POST", f"/memories/{kept}/supersede", {"by": other}),
        ("POST", f"/memories/{kept}/merge", {"others": [other]}),
        ("POST", f"/memories/{kept}/pin", {}),
        ("POST", f"/memories/{kept}/unpin", {}),
        ("POST", "/sessions/s1/log", {"role": "user", "content": "a"}),
        ("POST", "/sessions/s1/log", {"items": [{"role": "user", "content": "a"}]}),
        ("POST", "/sessions/s1/summarize", {"text": "a"}),
        ("POST", f"/memories/{kept}/write_to_file", {"output_path": "x/y.md"}),
        ("POST", "/forget", {"kind": "note", "dry_run": False}),
        ("POST", "/forget", {"memory_id": kept}),
        ("POST", "/cleanup", {"days_old": 0, "dry_run": False}),
        ("POST", "/dedupe", {"apply": True}),
        ("POST", "/entities/rename", {"name": "Anna", "new_name": "Ann"}),
        ("POST", "/entities/merge", {"names": ["Anna"], "into": "Bob"}),
        ("POST", "/stats", {"reset": True}),
    ]
    for method, path, body in writing:
        assert client.request(method, path, json=body).status_code == 403, (method, path)
    assert client.delete(f"/memories/{kept}").status_code == 403
    assert server.store.history(kept) == before
    assert server.store.list().total == 2
    assert not server.settings.files_dir.exists()
    for path in (f"/memories/{kept}", "/memories", "/entities", "/sessions", "/stats", "/metrics"):
        assert client.get(path).status_code == 200
    assert client.post("/search", json={"query": "tea"}).json()["count"] == 2


# --- Spaces -----------------------------------------------------------------------------------


@pytest.fixture
def secret(server: Server) -> str:
    """Save something in a space that the client's token is not for."""
    saved = server.store.save(
        "The launch code is 0000.", space="other", session_id="s9", entities=["Launch"]
    )
    return saved.memory_id


def test_a_token_of_another_space_finds_nothing_by_id(server: Server, secret: str) -> None:
    client = server.client()
    for path in ("", "/history"):
        assert client.get(f"/memories/{secret}{path}").status_code == 404
    assert client.get(f"/chunks/{secret}%230").status_code == 404
    assert client.patch(f"/memories/{secret}", json={"title": "x"}).status_code == 404
    assert client.delete(f"/memories/{secret}").status_code == 404
    assert client.post(f"/memories/{secret}/restore").status_code == 404
    written = client.post(f"/memories/{secret}/write_to_file", json={"output_path": "a.md"})
    assert written.status_code == 404
    own = server.store.save("Mine").memory_id
    assert client.post(f"/memories/{own}/merge", json={"others": [secret]}).status_code == 404
    assert client.post(f"/memories/{own}/supersede", json={"by": secret}).status_code == 404
    assert server.store.get(secret, space="other").title is None


def test_a_token_of_another_space_finds_nothing_by_search_or_listing(
    server: Server, secret: str
) -> None:
    client = server.client()
    for body in ({"query": "launch code"}, {"granularity": "coarse"}):
        assert client.post("/search", json=body).json()["results"] == []
    recalled = client.post("/recall", json={"query": "launch code"}).json()
    assert (recalled["index"], recalled["total_count"]) == ([], 0)
    assert client.get("/memories").json()["total"] == 0
    assert client.get("/sessions").json() == []
    assert client.get("/entities").json()["total"] == 0
    assert client.get("/stats").json()["memories"] == 0
    assert "byheart_memories 0" in client.get("/metrics").text
    forgotten = client.post("/forget", json={"session_id": "s9", "dry_run": False}).json()
    assert forgotten["count"] == 0


def test_a_token_cannot_name_another_space(server: Server, secret: str) -> None:
    client = server.client()
    assert client.get("/memories?space=other").status_code == 403
    assert client.get(f"/memories/{secret}?space=other").status_code == 403
    assert client.post("/search", json={"query": "a", "space": "other"}).status_code == 403
    assert client.post("/memories", json={"content": "a", "space": "other"}).status_code == 403
    several = {"items": [{"content": "mine"}, {"content": "a", "space": "other"}]}
    assert client.post("/memories", json=several).status_code == 403
    assert server.store.status().index.memories == 0  # and nothing of the half that was allowed
    assert client.get("/stats?space=other").status_code == 403
    assert client.get("/status?space=default").status_code == 200


def test_requests_of_another_space_are_not_in_the_metrics(server: Server) -> None:
    for _ in range(3):
        server.client("o", space="other").post("/recall", json={"query": "x"})
        server.store.api_keys.revoke("o")
    assert 'route="/recall"' not in server.client().get("/metrics").text


# --- Sessions ---------------------------------------------------------------------------------


@pytest.fixture
def bound(server: Server) -> httpx2.Client:
    """Ask with a token that is bound to the session s1."""
    return server.client("bound", session_id="s1")


def test_a_token_of_a_session_sees_that_session_and_what_is_global(
    server: Server, bound: httpx2.Client
) -> None:
    own = server.store.save("Own tea", session_id="s1").memory_id
    general = server.store.save("General tea").memory_id
    foreign = server.store.save("Foreign tea", session_id="s2").memory_id
    found = bound.post("/search", json={"query": "tea"}).json()["results"]
    assert {each["memory_id"] for each in found} == {own, general}
    listed = bound.get("/memories").json()["memories"]
    assert {each["memory_id"] for each in listed} == {own, general}
    recalled = bound.post("/recall", json={"query": "tea"}).json()["index"]
    assert {each["id"] for each in recalled} == {own, general}
    assert bound.get(f"/memories/{general}").status_code == 200
    for path in (f"/memories/{foreign}", f"/memories/{foreign}/history", f"/chunks/{foreign}%230"):
        assert bound.get(path).status_code == 404
    assert bound.get(f"/memories/{foreign}%401").status_code == 404


def test_a_token_of_a_session_cannot_name_another_or_ask_about_the_whole_space(
    server: Server, bound: httpx2.Client
) -> None:
    server.store.save("Foreign tea", session_id="s2")
    assert bound.post("/search", json={"query": "tea", "session_id": "s2"}).status_code == 403
    assert bound.get("/memories?session_id=s2").status_code == 403
    assert bound.post("/memories", json={"content": "a", "session_id": "s2"}).status_code == 403
    for path in ("/sessions", "/entities", "/status", "/stats", "/metrics"):
        assert bound.get(path).status_code == 403, path
    assert server.store.list().total == 1


def test_a_token_of_a_session_writes_to_that_session_alone(
    server: Server, bound: httpx2.Client
) -> None:
    general = server.store.save("General tea").memory_id
    foreign = server.store.save("Foreign tea", session_id="s2").memory_id
    own = bound.post("/memories", json={"content": "Own tea"}).json()["memory_id"]
    [item] = bound.post("/memories", json={"items": [{"content": "Own item"}]}).json()
    for each in (own, item["memory_id"]):
        assert server.store.get(each).session_id == "s1"
    for each in (general, foreign):
        assert bound.patch(f"/memories/{each}", json={"title": "x"}).status_code == 404
        assert bound.delete(f"/memories/{each}").status_code == 404
        assert bound.post("/forget", json={"memory_id": [own, each]}).status_code == 404
        merged = bound.post(f"/memories/{own}/merge", json={"others": [each]})
        assert merged.status_code == 404
    for moved in ("s2", None):
        answer = bound.patch(f"/memories/{own}", json={"session_id": moved})
        assert answer.status_code == 403, moved
    # Neither by a filter, nor by an empty list of ids beside one.
    for body in ({"kind": "note"}, {"kind": "note", "memory_id": []}):
        bound.post("/forget", json={**body, "dry_run": False})
    bound.post("/cleanup", json={"days_old": 0, "dry_run": False, "include_global": True})
    bound.post("/dedupe", json={"apply": True})
    assert {each.memory_id for each in server.store.list().memories} == {general, foreign}


def test_a_token_of_a_session_converses_in_that_session_alone(
    server: Server, bound: httpx2.Client
) -> None:
    server.store.log("s2", "user", "Foreign words")
    turn = {"role": "user", "content": "Own words"}
    assert bound.post("/sessions/s1/log", json=turn).status_code == 201
    assert bound.post("/sessions/s2/log", json=turn).status_code == 403
    assert bound.post("/sessions/s2/log", json={"items": [turn]}).status_code == 403
    assert bound.post("/sessions/s2/log", json={"items": []}).status_code == 403
    assert bound.get("/sessions/s2/transcript").status_code == 403
    assert bound.post("/sessions/s2/summarize", json={"text": "a"}).status_code == 403
    assert bound.post("/context", json={"session_id": "s2"}).status_code == 403
    answer = bound.post("/context", json={"query": "words"}).json()
    assert "Own words" in answer["text"]
    assert "Foreign" not in answer["text"]


def test_a_token_of_a_session_forgets_its_own_memories_by_id(
    server: Server, bound: httpx2.Client
) -> None:
    own = server.store.save("Own tea", session_id="s1").memory_id
    assert bound.delete(f"/memories/{own}").json()["count"] == 1
    assert bound.post(f"/memories/{own}/restore").status_code == 200


# --- Host and Origin --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "localhost:99", "[::1]:8765", "LOCALHOST", "127.0.0.2"]
)
def test_names_of_this_machine_are_answered(server: Server, host: str) -> None:
    assert ask(server, Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.com", "evil.com:8765", "127.0.0.1.evil.com", "localhost.evil.com", "", "0.0.0.0"),
        *("127.0.0.1@evil.com", "[::2]", "[evil", "192.168.1.5", "evil.com\t127.0.0.1"),
    ],
)
def test_a_name_that_a_page_made_mean_this_machine_is_421(server: Server, host: str) -> None:
    answer = ask(server, Host=host)
    assert answer.status in (421, 400), host
    assert ask(server, "/docs", Host=host).status in (421, 400)


def test_a_request_without_a_host_is_refused(server: Server) -> None:
    assert ask(server).status in (400, 421)


def test_pages_of_others_are_refused_even_with_a_token(server: Server) -> None:
    client = server.client()
    for origin in ("https://evil.com", "null", "http://localhost:1", f"{server.url}.evil.com", ""):
        answer = client.post("/search", json={"query": "a"}, headers={"Origin": origin})
        assert answer.status_code == 403, origin
        assert "access-control-allow-origin" not in answer.headers
    own = client.post("/search", json={"query": "a"}, headers={"Origin": server.url})
    assert own.status_code == 200


def test_hosts_and_origins_can_be_allowed(serve: Serve) -> None:
    server = serve(allowed_hosts="memory.example", allowed_origins="https://app.example")
    assert ask(server, Host="memory.example:80").status == 200
    assert ask(server, Host="other.example").status == 421
    client = server.client()
    allowed = client.get("/status", headers={"Origin": "https://app.example"})
    assert allowed.headers["access-control-allow-origin"] == "https://app.example"
    preflight = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    answer = httpx2.options(f"{server.url}/search", headers=preflight, trust_env=False)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    preflight["Origin"] = "https://evil.example"
    answer = httpx2.options(f"{server.url}/search", headers=preflight, trust_env=False)
    assert answer.status_code == 403


def test_any_host_can_be_allowed(serve: Serve) -> None:
    assert ask(serve(allowed_hosts="*"), Host="anything.example").status == 200


# --- Descriptions -----------------------------------------------------------------------------


def test_the_description_is_open_on_this_machine_alone(serve: Serve, stranger: Any) -> None:
    for path in ("/docs", "/openapi.json"):
        assert stranger.get(path).status_code == 200
    beyond = serve(serve_host="0.0.0.0", allowed_hosts="memory.example")
    for path in ("/docs", "/openapi.json"):
        assert ask(beyond, path, Host="memory.example").status == 401
        assert ask(beyond, path, Host="127.0.0.1").status == 401
        assert beyond.client(path[1:]).get(path).status_code == 200
