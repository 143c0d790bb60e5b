"""The stream of changes: what pages are told, when it ends, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from byheart.interfaces.web import live_changes
from byheart.store import MemoryStore
from tests.databases import database as database
from tests.interfaces.rest.conftest import Server
from tests.interfaces.web.conftest import Browser, LogIn

Event = dict[str, Any]


def read_events(lines: Iterator[str]) -> Iterator[Event]:
    """Parse server-sent events; heartbeats are left out."""
    event: Event = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            event[name] = json.loads(value) if name == "data" else value
        elif event:
            yield event
            event = {}


@contextmanager
def following(browser: Browser, path: str = "/events", **headers: str) -> Iterator[Iterator[Event]]:
    """Open the stream, and give its events as they come."""
    own = {"Sec-Fetch-Site": "same-origin", **headers}
    with browser.client.stream("GET", path, headers=own, timeout=20) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield read_events(answer.iter_lines())


def told(event: Event) -> list[tuple[str, str]]:
    return [(each["memory_id"], each["operation"]) for each in event["data"]["memories"]]


def test_a_save_of_another_process_reaches_every_page_of_its_space(
    server: Server, log_in: LogIn, store: MemoryStore
) -> None:
    one, two, other = log_in(), log_in(), log_in(space="other")
    with following(one) as first, following(two) as second, following(other) as third:
        assert [next(each)["event"] for each in (first, second, third)] == ["hello"] * 3
        kept = store.save("A text that another store object saves.").memory_id
        theirs = store.save("A text of another space.", space="other").memory_id
        for each, memory_id in ((first, kept), (second, kept), (third, theirs)):
            event = next(each)
            assert event["event"] == "changes"
            assert told(event) == [(memory_id, "create")]
        store.forget(kept)
        assert told(next(first)) == [(kept, "forget")]


@pytest.mark.parametrize("way", ["header", "query"])
def test_a_page_that_comes_back_is_told_what_it_missed(
    log_in: LogIn, store: MemoryStore, way: str
) -> None:
    browser = log_in()
    with following(browser) as events:
        mark = next(events)["id"]
    missed = store.save("Nobody was listening.").memory_id
    given = {"Last-Event-ID": mark} if way == "header" else {}
    path = "/events" if way == "header" else f"/events?since={mark}"
    with following(browser, path, **given) as events:
        assert next(events)["event"] == "hello"
        assert told(next(events)) == [(missed, "create")]


def test_a_mark_that_is_none_of_ours_starts_anew(log_in: LogIn) -> None:
    with following(log_in(), **{"Last-Event-ID": "yesterday"}) as events:
        assert next(events)["event"] == "hello"


def test_a_revoked_login_ends_its_stream_and_no_other(
    server: Server, log_in: LogIn, store: MemoryStore
) -> None:
    leaving, staying = log_in(), log_in()
    name = leaving.get("/login").json()["name"]
    with following(leaving) as first, following(staying) as second:
        next(first), next(second)
        server.store.api_keys.revoke(name)
        assert next(first)["event"] == "bye"
        assert next(first, None) is None
        kept = store.save("The other one still listens.").memory_id
        assert told(next(second)) == [(kept, "create")]


def test_only_a_login_may_listen(server: Server, browser: Browser) -> None:
    assert browser.get("/events").status_code == 401
    key = server.store.api_keys.create("agent").secret
    refused = browser.get("/events", headers={"Authorization": f"Bearer {key}"})
    assert refused.status_code == 403
    assert "web page" in refused.json()["detail"]


def test_too_many_streams_are_refused(log_in: LogIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_changes, "_MOST_STREAMS_OF_LOGIN", 1)
    browser = log_in()
    with following(browser) as events:
        next(events)
        refused = browser.get("/events")
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "30"


def test_nothing_is_asked_when_no_page_is_connected(
    server: Server, log_in: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    real = server.store.views.changes

    def count(since: str | None = None, **given: Any) -> Any:
        asked.append(since)
        return real(since, **given)

    monkeypatch.setattr(server.store.views, "changes", count)
    one, two = log_in(), log_in()
    assert asked == []
    with following(one) as first, following(two) as second:
        next(first), next(second)
        before = len(asked)
        server.store.save("One look finds this for both pages.")
        next(first), next(second)
        marks = [each for each in asked[before:] if each is not None]
        assert len(marks) == len(asked) - before
    # Both pages are gone: soon the task is too, and this is the last look that it began.
    with following(one) as events:
        next(events)
    assert asked.count(None) == 3, "each page asks once where it begins"
