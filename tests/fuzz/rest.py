"""Generated calls to every route: no answer is a 500, and none shows a traceback."""

from __future__ import annotations

import json
import random
import time
from typing import Any
from urllib.parse import quote

import httpx2

from byheart.interfaces.rest.routes import ROUTES, RouteEntry
from tests.fuzz.report import Report
from tests.fuzz.served import Served, find_tracebacks, serving
from tests.fuzz.values import hostile_value, valid_values

_MOST_HELD = 20


def run(seconds: float, seed: int, most: int | None = None) -> Report:
    """Ask for so long, or so many times if that is fewer."""
    report, chance = Report(), random.Random(seed)
    with serving() as served, httpx2.Client(base_url=served.url, trust_env=False) as client:
        end = time.monotonic() + seconds
        held = list(served.ids[:_MOST_HELD])
        while time.monotonic() < end and report.tried != most:
            _ask(client, served, chance, held, report)
        if client.get("/health").status_code != 200:
            report.failures.append("/health does not answer")
        report.failures += find_tracebacks(served)
    return report


def _ask(
    client: httpx2.Client, served: Served, chance: random.Random, held: list[str], report: Report
) -> None:
    entry = chance.choice(ROUTES)
    chance.shuffle(held)
    path, given = _make_path(entry, chance, held), _make_arguments(entry, chance, held)
    key = chance.choice(("write", "write", "write", "read", "session", "elsewhere", "none"))
    headers = {} if key == "none" else {"Authorization": f"Bearer {served.keys[key]}"}
    call = f"{entry.method} {path} {str(given)[:600]} as {key}"
    report.tried += 1
    try:
        carried = _carry(entry, given, chance)
        carried["headers"] = {**headers, **carried.get("headers", {})}
        answer = client.request(entry.method, path, timeout=60, **carried)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        report.failures.append(f"{call}: {type(error).__name__}: {error}")
        return
    report.failures += [f"{call}: {wrong}" for wrong in _look(answer)]
    if entry.method == "POST" and entry.path == "/memories" and answer.status_code == 201:
        held[0] = answer.json()["memory_id"]


def _make_path(entry: RouteEntry, chance: random.Random, held: list[str]) -> str:
    path = entry.path
    for name in entry.in_path:
        usual = {"session_id": "s1", "chunk_id": f"{held[0]}#0"}.get(name, held[0])
        value = usual if chance.random() < 0.8 else str(hostile_value(chance))[:300] or "x"
        path = path.replace(f"{{{name}}}", quote(value, safe="", errors="replace"))
    return path


def _make_arguments(entry: RouteEntry, chance: random.Random, held: list[str]) -> dict[str, Any]:
    names = list(entry.parameters)
    chosen = {name for name in names if entry.parameters[name].required and chance.random() < 0.95}
    chosen |= set(chance.sample(names, chance.randint(0, min(5, len(names)))))
    given = {
        name: chance.choice(valid_values(name, entry.parameters[name].schema, held))
        if chance.random() < 0.6
        else hostile_value(chance)
        for name in chosen
    }
    if given.get("space"):
        given["space"] = chance.choice(("default", "other", given["space"]))
    if entry.operation.several and chance.random() < 0.15:
        return {"items": chance.choice(([given, dict(given)], [given, None], [], given, "x"))}
    if chance.random() < 0.05:
        given[str(hostile_value(chance))[:40]] = hostile_value(chance)
    return given


def _carry(entry: RouteEntry, given: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Put arguments where the route has them; now and then somewhere else, or spoiled."""
    if not entry.has_body:
        return {"params": {_as_text(name): _as_query(value) for name, value in given.items()}}
    body = json.dumps(given, ensure_ascii=chance.random() < 0.9).encode("utf-8", "surrogatepass")
    headers = {"Content-Type": "application/json"}
    roll = chance.random()
    if roll < 0.03 and body:
        body = body[: chance.randrange(len(body))]
    elif roll < 0.06:
        at = chance.randrange(len(body))
        body = body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]
    elif roll < 0.08:
        headers = {"Content-Type": chance.choice(("text/plain", "application/json; charset=x"))}
    elif roll < 0.09:
        body = b'{"metadata": ' + b"[" * 500 + b"]" * 500 + b"}"
    return {"content": body, "headers": headers}


def _as_query(value: Any) -> Any:
    return [_as_text(each) for each in value] if isinstance(value, list) else _as_text(value)


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()[:2_000]


def _look(answer: httpx2.Response) -> list[str]:
    wrong = []
    if answer.status_code in (500, 501, 502) or answer.status_code > 503:
        wrong.append(f"status {answer.status_code}: {answer.text[:500]}")
    if "Traceback" in answer.text or 'File "' in answer.text:
        wrong.append(f"shows its inside: {answer.text[:500]}")
    try:
        body = answer.json()
    except ValueError:
        return [*wrong, f"status {answer.status_code}, no JSON: {answer.text[:200]}"]
    if answer.status_code >= 400 and not (body.get("detail") and "hint" in body):
        wrong.append(f"an error that does not say what is wrong: {answer.text[:300]}")
    return wrong
