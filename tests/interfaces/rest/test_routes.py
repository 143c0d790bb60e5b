"""Every route does what its verb does, and answers what the library answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from byheart.interfaces.operations import OPERATIONS
from byheart.interfaces.rest.openapi import describe_api
from byheart.interfaces.rest.routes import ROUTES, WRITE_TO_FILE
from byheart.model import to_wire
from tests.conftest import OpenStore
from tests.interfaces.rest.conftest import Server

# How long something took is never the same twice.
VARYING = (
    "receipt_id",
    "elapsed_ms",
)


def stable(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {key: stable(each) for key, each in answer.items() if key not in VARYING}
    return [stable(each) for each in answer] if isinstance(answer, list) else answer


def test_every_operation_has_a_route() -> None:
    offered = {entry.operation.name for entry in ROUTES}
    assert offered == {*OPERATIONS, WRITE_TO_FILE.name}


def test_every_parameter_of_a_verb_can_be_said_over_rest_with_its_default() -> None:
    paths = describe_api()["paths"]
    for name, operation in OPERATIONS.items():
        offered: dict[str, Any] = {}
        for entry in ROUTES:
            if entry.operation.name != name:
                continue
            described = paths[entry.path][entry.method.lower()]
            offered |= {each["name"]: each["schema"] for each in described["parameters"]}
            body = described.get("requestBody", {}).get("content", {}).get("application/json", {})
            schema = body.get("schema", {})
            if operation.several:
                [reference] = [each["$ref"] for each in schema["anyOf"] if "$ref" in each]
                schema = describe_api()["components"]["schemas"][reference.rpartition("/")[2]]
            offered |= schema.get("properties", {})
        assert set(offered) == set(operation.parameters), name
        for parameter in operation.parameters.values():
            assert offered[parameter.name].get("default") == parameter.default, (name, parameter)


def test_search_takes_the_body_and_answers_the_shape_of_other_systems(
    client: httpx2.Client, report: str
) -> None:
    body = {"query": "slow order query", "limit": 5, "source": "hybrid"}
    answer = client.post("/search", json=body).json()
    assert answer["count"] == len(answer["results"]) == 3
    assert {"path", "score", "snippet", "source"} <= set(answer["results"][0])


def test_search_answers_what_the_library_answers(
    server: Server, client: httpx2.Client, report: str
) -> None:
    for asked in (
        {"query": "order query", "explain": True},
        {"query": "order query", "mode": "fts", "granularity": "medium", "limit": 1},
        {"query": "order query", "vector": [1.0] + [0.5] * 383},
        {"granularity": "coarse", "session_id": "s1", "kind": ["report", "note"], "topK": 3},
        {"query": "slow AND march", "raw": True, "include_global": False},
    ):
        expected = to_wire(server.store.search(**asked))
        expected["count"] = expected["total_results"]
        assert stable(client.post("/search", json=asked).json()) == stable(expected)


def test_recall_answers_what_the_library_answers(
    server: Server, client: httpx2.Client, report: str
) -> None:
    expected = to_wire(server.store.recall("slow order query", max_tokens=300, as_of=None))
    answer = client.post("/recall", json={"query": "slow order query", "max_tokens": 300}).json()
    assert answer["index"] == expected["index"]
    assert set(answer) == set(expected)
    assert set(answer["details"][0]) == set(expected["details"][0])


def test_recall_takes_raw_syntax(server: Server, client: httpx2.Client) -> None:
    program = server.store.save("The program is written in typescript.").memory_id
    server.store.save("A concert is on the programme.", title="Typescript")
    answer = client.post("/recall", json={"query": "{content}: typescript", "raw": True}).json()
    assert [each["id"] for each in answer["index"]] == [program]
    assert (
        client.post("/recall", json={"query": "program*", "raw": True}).json()["total_count"] == 2
    )
    wrong = client.post("/recall", json={"query": "program AND", "raw": True})
    assert wrong.status_code == 422


def test_metadata_source_and_scope_filter_in_bodies_and_query_strings(
    server: Server, client: httpx2.Client
) -> None:
    own = {"source": "wiki", "metadata": {"team": "core", "n": 1}}
    wanted = server.store.save("Anna likes tea.", **own).memory_id
    server.store.save("Anna likes tea too.", session_id="s1", metadata={"team": "core", "n": "1"})
    for given in ({"metadata": {"n": 1}}, {"source_label": ["wiki"]}, {"scope": "global"}):
        found = client.post("/search", json={"query": "tea", **given}).json()["results"]
        assert [each["memory_id"] for each in found] == [wanted]
    for query in ({"metadata": '{"n": 1}'}, {"source_label": "wiki"}, {"scope": "global"}):
        listed = client.get("/memories", params=query).json()["memories"]
        assert [each["memory_id"] for each in listed] == [wanted]
    for wrong in ("[1]", "n=1", "[" * 5000):
        refused = client.get("/memories", params={"metadata": wrong})
        assert (refused.status_code, refused.json()["hint"]) == (422, "give a JSON object")


def test_a_saved_memory_is_created_once_and_found_at_its_location(
    server: Server, client: httpx2.Client
) -> None:
    body = {"content": "Anna likes tea.", "kind": "fact", "tags": ["tea"], "metadata": {"a": [1]}}
    first, second = client.post("/memories", json=body), client.post("/memories", json=body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert (first.json()["status"], second.json()["status"]) == ("created", "unchanged")
    memory = client.get(first.headers["location"]).json()
    assert memory == to_wire(server.store.get(first.json()["memory_id"]))
    assert (memory["content"], memory["tags"], memory["metadata"]) == (
        "Anna likes tea.",
        ["tea"],
        {"a": [1]},
    )


def test_a_file_is_found_by_its_path_and_a_passage_of_it_by_a_line(
    server: Server, client: httpx2.Client
) -> None:
    server.store.save("Kelp.\nEels.\n", path="/sea/two\nlines.md")
    path = quote("/sea/two\nlines.md", safe="")
    assert client.get(f"/memories/{path}").json()["content"] == "Kelp.\nEels.\n"
    assert client.get(f"/chunks/{path}:2").json()["expanded_content"] == "Kelp.\nEels.\n"
    for place in (f"/memories/{path}:9", f"/chunks/{path}:9"):
        refused = client.get(place)
        assert refused.status_code == 404
        assert "no line 9" in refused.text


def test_many_memories_are_saved_in_one_request(server: Server, client: httpx2.Client) -> None:
    items = [{"content": f"Fact number {each}.", "kind": "fact"} for each in range(100)]
    answer = client.post("/memories", json={"items": [*items, items[0]]})
    assert answer.status_code == 200
    assert [each["status"] for each in answer.json()] == ["created"] * 100 + ["unchanged"]
    assert server.store.status().index.memories == 100


@pytest.mark.parametrize(
    "body",
    [
        {"items": [{"content": "a"}], "kind": "note"},
        {"items": {"content": "a"}},
        {"items": ["a"]},
        {"items": []},
        {"items": None},
        {"items": [{"content": "fine"}, {"content": "a", "importance": 11}]},
        {"items": [{"content": "a", "colour": "red"}]},
    ],
)
def test_bad_items_are_refused(client: httpx2.Client, body: dict[str, Any]) -> None:
    assert client.post("/memories", json=body).status_code == 422


@pytest.mark.parametrize("place", ["/memories", "/sessions/s1/log"])
def test_a_bad_item_leaves_nothing_written_however_many_came_before(
    server: Server, client: httpx2.Client, place: str
) -> None:
    items = [{"content": f"Fact number {each}."} for each in range(300)]
    if place != "/memories":
        items = [{**each, "role": "user"} for each in items]
    answer = client.post(place, json={"items": [*items, {**items[0], "created_at": "never"}]})
    assert answer.status_code == 422
    assert "item 300" in answer.json()["detail"]
    assert server.store.status().index.memories == 0


def test_a_large_body_is_read_beside_the_others(server: Server, client: httpx2.Client) -> None:
    text = "word " * 100_000
    saved = client.post("/memories", json={"content": text})
    assert saved.status_code == 201
    assert client.get(saved.headers["location"]).json()["content"] == text
    headers = {"Content-Type": "application/json"}
    for body, status in ((b"[" * 200_000, 400), (b'"' + b"x" * 200_000 + b'"', 422)):
        assert client.post("/memories", content=body, headers=headers).status_code == status


def test_a_listing_takes_its_filters_from_the_query_string(
    server: Server, client: httpx2.Client
) -> None:
    for number in range(6):
        server.store.save(
            f"Text {number}",
            kind=("note", "fact", "report")[number % 3],
            session_id="s1" if number % 2 else None,
            session_iter=number,
            tags=["even", "odd"][number % 2 :][:1],
            importance=number,
        )
    asked = (
        ("kind=note", {"kind": "note"}),
        ("kind=note&kind=fact", {"kind": ["note", "fact"]}),
        ("tags=even&tags=odd&match=all", {"tags": ["even", "odd"], "match": "all"}),
        ("tags=even", {"tags": ["even"]}),
        ("session_id=s1&include_global=false", {"session_id": "s1", "include_global": False}),
        ("limit=2&offset=1", {"limit": 2, "offset": 1}),
        ("min_importance=2.5&session_iter=v3", {"min_importance": 2.5, "session_iter": "v3"}),
        ("created_before=2000-01-01", {"created_before": "2000-01-01"}),
        ("forgotten=true", {"forgotten": True}),
        ("", {}),
    )
    for query, given in asked:
        answer = client.get(f"/memories?{query}")
        assert answer.json() == to_wire(server.store.list(**given)), query


def test_a_change_is_a_new_version_and_stands_in_the_history(
    server: Server, client: httpx2.Client, report: str
) -> None:
    changed = client.patch(f"/memories/{report}", json={"importance": 9, "expected_version": 1})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert client.patch(f"/memories/{report}", json={"expected_version": 1, "title": "x"}).is_error
    cleared = client.patch(f"/memories/{report}", json={"title": None, "session_id": None})
    assert cleared.json()["version"] == 3
    memory = client.get(f"/memories/{report}").json()
    assert (memory["title"], memory["session_id"], memory["importance"]) == (None, None, 9)
    history = client.get(f"/memories/{report}/history").json()
    assert history == to_wire(server.store.history(report))
    assert [each["who"] for each in history[1:]] == ["tester", "tester"]


def test_a_memory_is_forgotten_and_restored(client: httpx2.Client, report: str) -> None:
    looked = client.delete(f"/memories/{report}", params={"dry_run": True}).json()
    assert (looked["count"], looked["dry_run"]) == (1, True)
    gone = client.delete(f"/memories/{report}", params={"reason": "old"}).json()
    assert gone["memory_ids"] == [report]
    assert client.get(f"/memories/{report}").status_code == 404
    assert client.post(f"/memories/{report}/restore").json()["memory_id"] == report
    assert client.get(f"/memories/{report}").status_code == 200
    hard = client.delete(f"/memories/{report}?hard=true").json()
    assert (hard["hard"], hard["removal"]["traces"]) == (True, [])
    assert client.post(f"/memories/{report}/restore", json={}).status_code == 404


def test_memories_are_forgotten_by_filter(server: Server, client: httpx2.Client) -> None:
    for number in range(3):
        server.store.save(f"Text {number}", session_id="s1")
    kept = server.store.save("Global text").memory_id
    assert client.post("/forget", json={"session_id": "s1"}).json()["dry_run"] is True
    done = client.post("/forget", json={"session_id": "s1", "dry_run": False}).json()
    assert done["count"] == 3
    assert [each.memory_id for each in server.store.list().memories] == [kept]


def test_one_memory_holds_instead_of_another(server: Server, client: httpx2.Client) -> None:
    old, new = (server.store.save(text).memory_id for text in ("It is red.", "It is blue."))
    answer = client.post(f"/memories/{old}/supersede", json={"by": new, "reason": "painted"})
    assert answer.json()["superseded_by"] == new
    assert client.post(f"/memories/{old}/supersede").json()["superseded_by"] is None


def test_memories_are_merged(server: Server, client: httpx2.Client) -> None:
    keep, other = (
        server.store.save(text, tags=[text[0]]).memory_id for text in ("A text", "B text")
    )
    answer = client.post(f"/memories/{keep}/merge", json={"others": other}).json()
    assert (answer["memory_id"], answer["merged"], answer["tags"]) == (keep, [other], ["A", "B"])


def test_turns_are_logged_one_or_several_at_a_time_and_read_again(
    server: Server, client: httpx2.Client
) -> None:
    turn = {"role": "user", "content": "Hello", "client_id": "1"}
    first = client.post("/sessions/chat%2F7/log", json=turn)
    again = client.post("/sessions/chat%2F7/log", json=turn)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["memory_id"] == first.json()["memory_id"]
    several = {"items": [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "?"}]}
    logged = client.post("/sessions/chat%2F7/log", json=several).json()
    assert [each["status"] for each in logged] == ["created", "created"]
    transcript = client.get("/sessions/chat%2F7/transcript?limit=2&latest=true").json()
    assert transcript == to_wire(server.store.sessions.transcript("chat/7", limit=2, latest=True))
    assert [each["content"] for each in transcript["turns"]] == ["Hi", "?"]
    assert len(client.get("/sessions/chat%2F7/transcript?role=user").json()["turns"]) == 2
    elsewhere = {"items": [{"role": "user", "content": "a", "session_id": "other"}]}
    assert client.post("/sessions/chat%2F7/log", json=elsewhere).status_code == 422


def test_a_context_is_put_together_from_summary_pins_and_turns(
    server: Server, client: httpx2.Client
) -> None:
    client.post("/sessions/s1/log", json={"role": "user", "content": "May I deploy on Saturday?"})
    pinned = server.store.save("Deploys are frozen on weekends.").memory_id
    assert client.post(f"/memories/{pinned}/pin").json()["pinned_at"]
    set_ = client.post("/sessions/s1/summarize", json={"text": "We plan a release."}).json()
    assert (set_["content"], set_["extracted"]) == ("We plan a release.", False)
    answer = client.post("/context", json={"session_id": "s1", "max_tokens": 500}).json()
    expected = to_wire(server.store.context("s1", max_tokens=500))
    assert stable(answer) == stable(expected)
    for text in ("We plan a release.", "frozen on weekends", "on Saturday?"):
        assert text in answer["text"]
    assert client.post(f"/memories/{pinned}/unpin").json()["pinned_at"] is None


def test_a_chunk_is_expanded_by_its_id(server: Server, client: httpx2.Client, report: str) -> None:
    answer = client.get(f"/chunks/{quote(report + '#0', safe='')}", params={"around": 0})
    assert answer.json() == to_wire(server.store.expand(f"{report}#0", around=0))


def test_sessions_entities_status_and_stats_answer_what_the_library_answers(
    server: Server, client: httpx2.Client, report: str
) -> None:
    server.store.save("PostgreSQL is down.", entities=["PG"])
    store = server.store
    assert client.get("/sessions?limit=5").json() == to_wire(store.sessions.list(limit=5))
    assert client.get("/entities?prefix=P").json() == to_wire(store.entities.list(prefix="P"))
    # Where the store lies, and what it takes with all its spaces, is not told to a token of one.
    status = to_wire(store.status())
    for withheld in ("store", "spaces", "size_bytes", "index_bytes"):
        del status[withheld]
    assert client.get("/status").json() == status
    stats = client.get("/stats").json()
    assert set(stats) == set(to_wire(store.admin.stats())) - {"store", "sizes"}
    assert str(server.settings.db_path) not in str(stats)
    renamed = client.post("/entities/rename", json={"name": "PG", "new_name": "PostgreSQL"})
    assert (renamed.json()["name"], renamed.json()["aliases"]) == ("PostgreSQL", ["PG"])
    server.store.save("Postgres again.", entities=["Postgres"])
    merged = client.post("/entities/merge", json={"names": "Postgres", "into": "PostgreSQL"})
    assert merged.json()["memories"] == 2


def test_counting_begins_anew_by_post_and_never_by_get(
    server: Server, client: httpx2.Client, report: str
) -> None:
    client.post("/search", json={"query": "march"})
    assert client.get("/stats?reset=true").status_code == 422
    assert client.get("/stats").json()["queries"]["total"]["count"] == 1
    assert client.post("/stats", json={"reset": True}).json()["queries"]["total"]["count"] == 1
    assert client.get("/stats").json()["queries"]["total"]["count"] == 0


def test_cleanup_and_dedupe_only_propose_unless_told(
    server: Server, client: httpx2.Client, report: str
) -> None:
    proposed = client.post("/cleanup", json={"days_old": 0}).json()
    assert (proposed["dry_run"], proposed["count"]) == (True, 1)
    assert client.post("/dedupe").json() == to_wire(server.store.admin.dedupe())
    assert server.store.status().index.memories == 1


def test_an_id_with_any_characters_is_reached_percent_encoded(
    server: Server, client: httpx2.Client, open_store: OpenStore, tmp_path: Path
) -> None:
    elsewhere = open_store(tmp_path / "elsewhere.db")
    made = elsewhere.save("Odd id").memory_id
    lines = tmp_path / "odd.jsonl"
    elsewhere.export(lines)
    lines.write_text(lines.read_text("utf-8").replace(made, "notes/a b?ü.md"), "utf-8")
    server.store.import_(lines)
    [memory] = server.store.list().memories
    path = f"/memories/{quote(memory.memory_id, safe='')}"
    assert client.get(path).json()["memory_id"] == "notes/a b?ü.md"
    assert len(client.get(f"{path}/history").json()) == 1


def test_a_mounted_app_sees_the_grant_of_the_token(serve: Any) -> None:
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def show(request: Request) -> Response:
        grant = request.state.grant
        return JSONResponse([grant.access, grant.space, grant.session_id, grant.who])

    server = serve(mounts=(Route("/mcp", show),))
    answer = server.client("helper", access="read", session_id="s1", space="work").get("/mcp")
    assert answer.json() == ["read", "work", "s1", "helper"]
    assert httpx2.get(f"{server.url}/mcp", trust_env=False).status_code == 401


def test_a_secret_in_what_is_saved_is_reported(client: httpx2.Client) -> None:
    said = {"content": "The password for the router is hunt" + "er2."}
    answer = client.post("/memories", json=said).json()
    assert (answer["secrets_found"], answer["secrets_redacted"]) == ({"password": 1}, False)
