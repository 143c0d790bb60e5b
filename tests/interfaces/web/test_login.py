"""No page without a login; a login is good for one space, one access, and pages of this server."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from byheart.contracts.copies import COPY_MARK, CopyMark
from byheart.interfaces.rest.routes import ROUTES
from byheart.system import clock
from tests.conftest import OpenStore
from tests.databases import database as database
from tests.databases import sqlite_only
from tests.interfaces.rest.conftest import Server, make_client
from tests.interfaces.web.conftest import KEY, Browser, LogIn, serve_page

SCREENS = ("/", "/ui/memory/mem_1", "/ui/sessions/a%2Fb", "/ui/timeline", "/ui/review")
FOREIGN = ("http://evil.example", "http://127.0.0.1:1", "https://localhost", "null", "")


def cookie_of(answer: Any) -> str:
    return str(answer.headers["set-cookie"])


def test_a_code_logs_a_browser_in_once(server: Server, browser: Browser) -> None:
    code = server.store.logins.create_code("write", "default").secret
    answer = browser.log_in(code)
    assert answer.status_code == 200
    assert answer.json()["space"] == "default"
    assert answer.json()["access"] == "write"
    assert answer.json()["writable"] is True
    assert "secret" not in answer.text
    assert browser.get("/memories").status_code == 200
    assert browser.get("/login").json()["name"].startswith("login-")
    with make_client(server.url) as client:
        again = Browser(client, server.url).log_in(code)
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    assert "byheart open" in again.json()["hint"]


def test_a_login_is_in_a_cookie_that_no_script_and_no_other_site_can_use(
    server: Server, browser: Browser
) -> None:
    cookie = cookie_of(browser.log_in(server.store.logins.create_code().secret))
    name, _, rest = cookie.partition("=")
    assert name == f"byheart_{server.port}", "servers on one host share their cookies"
    flags = rest.split("; ")[1:]
    assert flags == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]


def test_behind_tls_the_cookie_is_secure(serve: Any, open_store: OpenStore) -> None:
    server = serve_page(serve, open_store(), allowed_hosts="memory.example")
    headers = {"Host": "memory.example", "Origin": "https://memory.example"}
    with make_client(server.url, headers=headers) as client:
        code = server.store.logins.create_code().secret
        cookie = cookie_of(client.post("/login", json={"code": code}))
        assert cookie.startswith("__Host-byheart_login=bhl_")
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Secure")
        pair = cookie.partition(";")[0]
        assert client.get("/login", headers={"Cookie": pair}).status_code == 200


@pytest.mark.parametrize("code", ["", "bhc_", "bhc_" + "a" * 43, "bh_" + "a" * 43, 7, None, ["a"]])
def test_a_wrong_code_lets_nobody_in(browser: Browser, code: object) -> None:
    answer = browser.post("/login", {"code": code})
    assert answer.status_code in (401, 422)
    assert "set-cookie" not in answer.headers


def test_an_old_code_lets_nobody_in(
    server: Server, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = server.store.logins.create_code().secret
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(seconds=61))
    assert browser.log_in(code).status_code == 401


def test_an_expired_login_is_401_and_says_what_to_do(
    log_in: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = log_in()
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(hours=12, minutes=1))
    answer = browser.get("/memories")
    assert answer.status_code == 401
    assert "expired" in answer.json()["detail"]
    assert "log in again" in answer.json()["hint"]
    assert "byheart open" in browser.get("/").text
    assert "Log in" in browser.get("/").text


def test_a_revoked_login_is_refused_at_once(server: Server, log_in: LogIn) -> None:
    browser = log_in()
    [login] = [each for each in server.store.api_keys.list() if each.purpose == "login"]
    server.store.api_keys.revoke(login.name)
    assert browser.get("/memories").status_code == 401
    assert browser.get("/").status_code == 401


def test_logging_out_ends_the_login_and_removes_the_cookie(server: Server, log_in: LogIn) -> None:
    browser = log_in()
    cookies = dict(browser.client.cookies)
    answer = browser.ask("DELETE", "/login")
    assert answer.status_code == 204
    assert "Max-Age=0" in cookie_of(answer)
    browser.client.cookies.update(cookies)
    assert browser.get("/memories").status_code == 401
    assert [each.purpose for each in server.store.api_keys.list()] == []


def test_a_login_sees_its_own_space_only(server: Server, log_in: LogIn) -> None:
    kept = server.store.save("Secret of another space", space="other").memory_id
    browser = log_in(space="mine")
    assert browser.get("/memories").json()["total"] == 0
    assert browser.get(f"/memories/{kept}").status_code == 404
    assert browser.get("/memories", params={"space": "other"}).status_code == 403
    answer = browser.post("/search", {"query": "secret", "space": "other"})
    assert answer.status_code == 403
    assert "this login is bound to the space 'mine'" in answer.json()["detail"]


def test_a_login_for_reading_cannot_write(server: Server, log_in: LogIn) -> None:
    kept = server.store.save("Anna likes tea.").memory_id
    browser = log_in("read")
    assert browser.get(f"/memories/{kept}").status_code == 200
    for answer in (
        browser.post("/memories", {"content": "x"}),
        browser.ask("PATCH", f"/memories/{kept}", json={"title": "x"}),
        browser.ask("DELETE", f"/memories/{kept}"),
        browser.post("/forget", {"memory_id": kept}),
    ):
        assert answer.status_code == 403
        assert "this login may read only" in answer.json()["detail"]
        assert "for writing" in answer.json()["hint"]
    assert server.store.list().total == 1


def test_changes_on_the_page_have_its_name_in_the_history(server: Server, log_in: LogIn) -> None:
    kept = server.store.save("Anna likes tea.").memory_id
    assert log_in().post(f"/memories/{kept}/pin", {"who": "somebody else"}).status_code == 200
    assert server.store.history(kept)[-1].who == "web"


def test_a_login_creates_no_api_keys(server: Server, log_in: LogIn) -> None:
    assert not [each for each in ROUTES if "token" in each.path or "key" in each.path.split("/")]
    browser = log_in()
    for path in ("/tokens", "/api_keys", "/login/code", "/token/create"):
        assert browser.post(path, {"name": "more"}).status_code in (404, 405)
    assert [each.purpose for each in server.store.api_keys.list()] == ["login"]


def test_a_login_is_not_for_agents(serve: Any, log_in: LogIn, browser: Browser) -> None:
    assert log_in().post("/mcp", {}).status_code == 401


# --- Requests that other pages make ---------------------------------------------------------------


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_page_of_another_origin_cannot_write(server: Server, log_in: LogIn, origin: str) -> None:
    kept = server.store.save("Anna likes tea.").memory_id
    client = log_in().client
    for method, path, body in (
        ("POST", "/memories", {"content": "planted"}),
        ("POST", "/forget", {"memory_id": kept}),
        ("DELETE", f"/memories/{kept}", None),
        ("DELETE", "/login", None),
        ("PATCH", f"/memories/{kept}", {"title": "x"}),
    ):
        for more in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-origin"}):
            headers = {"Origin": origin, **more}
            answer = client.request(method, path, json=body, headers=headers)
            assert answer.status_code == 403, (method, path, more)
    assert server.store.list().total == 1


def test_an_allowed_origin_cannot_use_a_login(serve: Any, open_store: OpenStore) -> None:
    server = serve_page(serve, open_store(), allowed_origins="http://localhost:3000")
    login = server.store.logins.exchange(server.store.logins.create_code().secret)
    assert login is not None
    cookie = f"byheart_{server.port}={login.secret}"
    headers = {"Cookie": cookie, "Origin": "http://localhost:3000"}
    with make_client(server.url, headers=headers) as client:
        answer = client.post("/memories", json={"content": "planted"})
        assert answer.status_code == 403
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("site", [None, "cross-site", "same-site", "none"])
def test_without_an_origin_only_the_browser_s_word_counts(
    log_in: LogIn, server: Server, site: str | None
) -> None:
    headers = {} if site is None else {"Sec-Fetch-Site": site}
    answer = log_in().client.post("/memories", json={"content": "planted"}, headers=headers)
    assert answer.status_code == 403
    assert server.store.list().total == 0


def test_the_browser_s_word_counts_if_it_sends_no_origin(log_in: LogIn) -> None:
    headers = {"Sec-Fetch-Site": "same-origin"}
    answer = log_in().client.post("/memories", json={"content": "mine"}, headers=headers)
    assert answer.status_code == 201


@pytest.mark.parametrize(
    "media_type",
    ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", ""],
)
def test_a_form_cannot_write(server: Server, log_in: LogIn, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    answer = log_in().ask("POST", "/memories", content=b'{"content": "x"}', headers=headers)
    assert answer.status_code == 415
    assert server.store.list().total == 0


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_page_cannot_read_with_a_login(log_in: LogIn, site: str) -> None:
    browser = log_in()
    assert browser.client.get("/memories", headers={"Sec-Fetch-Site": site}).status_code == 403
    typed = browser.client.get("/memories", headers={"Sec-Fetch-Site": "none"})
    assert typed.status_code == 200


@pytest.mark.parametrize("origin", [*FOREIGN, None])
def test_a_foreign_page_cannot_log_a_browser_in(
    server: Server, browser: Browser, origin: str | None
) -> None:
    code = server.store.logins.create_code().secret
    headers = {} if origin is None else {"Origin": origin}
    answer = browser.client.post("/login", json={"code": code}, headers=headers)
    assert answer.status_code == 403
    assert browser.log_in(code).status_code == 200, "the code is still there"


@sqlite_only
def test_a_host_name_that_only_resolves_to_this_machine_is_refused(
    server: Server, log_in: LogIn
) -> None:
    browser = log_in()
    for path in ("/", "/memories", "/login", "/ui/review"):
        answer = browser.get(path, headers={"Host": f"evil.example:{server.port}"})
        assert answer.status_code == 421


def test_a_bearer_key_works_as_before_even_with_a_bad_cookie(server: Server) -> None:
    client = server.client("laptop")
    client.cookies.set(f"byheart_{server.port}", "bhl_" + "a" * 43)
    assert client.post("/memories", json={"content": "x"}).status_code == 201
    assert client.get("/login").status_code == 401, "an API key is no login"


def test_a_login_is_no_bearer_key(server: Server, log_in: LogIn) -> None:
    secret = log_in().client.cookies[f"byheart_{server.port}"]
    with make_client(server.url, headers={"Authorization": f"Bearer {secret}"}) as client:
        assert client.get("/memories").status_code == 401


# --- The page -------------------------------------------------------------------------------------


@sqlite_only
@pytest.mark.parametrize("address", SCREENS)
def test_without_a_login_every_address_shows_how_to_log_in(browser: Browser, address: str) -> None:
    answer = browser.get(address)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "byheart open" in answer.text
    assert "app.js" not in answer.text


@sqlite_only
@pytest.mark.parametrize("address", SCREENS)
def test_with_a_login_every_address_shows_the_page(log_in: LogIn, address: str) -> None:
    browser = log_in()
    answer = browser.get(address)
    assert answer.status_code == 200
    assert "login/login.js" not in answer.text
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    again = browser.get(address, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


@sqlite_only
def test_the_server_proves_to_byheart_open_that_it_knows_its_key(browser: Browser) -> None:
    from byheart.interfaces.web.running_server import prove

    answer = browser.client.get("/login/server", params={"challenge": "abc"})
    assert answer.text == prove(KEY, "abc")


@sqlite_only
def test_a_store_that_cannot_be_written_is_told_to_the_page(
    serve: Any, open_store: OpenStore, path: Path
) -> None:
    store = open_store()
    created = store.logins.exchange(store.logins.create_code().secret)
    assert created is not None
    store.close()
    mark = CopyMark("another store", 1, source="another store").to_text()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO store (key, value) VALUES (?, ?)", (COPY_MARK, mark))
        connection.commit()
    server = serve_page(serve, open_store())
    with make_client(server.url) as client:
        client.cookies.set(f"byheart_{server.port}", created.secret)
        browser = Browser(client, server.url)
        assert browser.get("/login").json()["writable"] is False
        refused = browser.post("/memories", {"content": "Saved too early."})
    assert refused.status_code == 503
    assert "unfinished copy" in refused.json()["detail"]
