"""The doctor's findings for the page: who sees them, and how often the store is checked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.interfaces.rest.conftest import Server
from tests.interfaces.web.conftest import Browser, LogIn


@pytest.fixture
def runs(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Count how often the doctor really looks."""
    counted: list[dict[str, Any]] = []
    real = server.store.admin.doctor

    def doctor(**given: Any) -> Any:
        counted.append(given)
        return real(**given)

    monkeypatch.setattr(server.store.admin, "doctor", doctor)
    return counted


def test_the_findings_are_those_of_the_doctor_and_nothing_is_repaired(
    server: Server, log_in: LogIn, runs: list[dict[str, Any]]
) -> None:
    answer = log_in("read").get("/doctor")
    assert answer.status_code == 200
    found = answer.json()
    expected = [(each.check, each.ok) for each in server.store.admin.doctor()]
    assert [(each["check"], each["ok"]) for each in found["findings"]] == expected
    assert found["elapsed_ms"] > 0
    assert runs[0] == {}


def test_reloading_does_not_check_again_and_pages_share_one_check(
    log_in: LogIn, runs: list[dict[str, Any]]
) -> None:
    browsers = [log_in() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(lambda each: each.get("/doctor").json(), browsers)]
    again = browsers[0].get("/doctor?again=true").json()
    assert len(runs) == 1
    assert all(each == answers[0] for each in [*answers, again])


def test_only_logins_to_the_servers_own_space_see_the_findings(
    server: Server, browser: Browser, log_in: LogIn, runs: list[dict[str, Any]]
) -> None:
    assert browser.get("/doctor").status_code == 401
    key = server.store.api_keys.create("agent").secret
    refused = browser.get("/doctor", headers={"Authorization": f"Bearer {key}"})
    elsewhere = log_in(space="other").get("/doctor")
    assert [refused.status_code, elsewhere.status_code] == [403, 403]
    assert "byheart doctor" in elsewhere.json()["hint"]
    assert runs == []
