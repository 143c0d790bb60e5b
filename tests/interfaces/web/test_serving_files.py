"""The files of the page: their types, their caching, and that they need a login."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from byheart.interfaces.web.page_files import (
    JOINED_STYLES,
    OPEN_FOLDER,
    STYLES,
    read_page_files,
)
from tests.interfaces.web.conftest import Browser, LogIn

FILES = read_page_files()
STATIC = Path(__file__).parents[3] / "src/byheart/interfaces/web/static"


def test_every_file_but_those_for_logging_in_needs_a_login(browser: Browser) -> None:
    for path in FILES.by_path:
        answer = browser.get(f"/web/{FILES.digest}/{path}")
        assert answer.status_code == (200 if path.startswith(OPEN_FOLDER) else 401), path


def test_a_browser_keeps_every_file_for_ever(log_in: LogIn) -> None:
    browser = log_in()
    for path, file in FILES.by_path.items():
        answer = browser.get(f"/web/{FILES.digest}/{path}")
        assert answer.status_code == 200
        assert answer.content == file.body
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-type"] == file.media_type
        cached = browser.get(f"/web/{FILES.digest}/{path}", headers={"If-None-Match": file.etag})
        assert cached.status_code == 304


def test_a_client_that_cannot_unpack_gets_the_same_file(log_in: LogIn) -> None:
    browser, address = log_in(), f"/web/{FILES.digest}/app.js"
    plain = browser.get(address, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == FILES.by_path["app.js"].body
    assert gzip.decompress(FILES.by_path["app.js"].packed) == plain.content
    assert "Accept-Encoding" in plain.headers["vary"]


def test_the_styles_are_one_file_with_every_style_in_it() -> None:
    assert {f"{name}.css" for name in STYLES} == {each.name for each in STATIC.glob("styles/*")}
    joined = FILES.by_path[JOINED_STYLES].body
    assert all((STATIC / f"styles/{name}.css").read_bytes() in joined for name in STYLES)


def test_only_the_first_screen_asks_for_its_list_ahead(log_in: LogIn, browser: Browser) -> None:
    person = log_in()
    assert "/memories?" in person.get("/").headers["link"]
    for address in ("/?q=word", "/ui/review"):
        assert "link" not in person.get(address).headers
    assert "link" not in browser.get("/").headers


@pytest.mark.parametrize(
    "address",
    [
        "0000/login/login.js",
        f"{FILES.digest}/../__init__.py",
        f"{FILES.digest}/%2e%2e/__init__.py",
        f"{FILES.digest}/login/..%2Findex.html",
        f"{FILES.digest}/login//login.js",
        f"{FILES.digest}/login/../../routes.py",
        f"{FILES.digest}/",
    ],
)
def test_nothing_else_is_served(log_in: LogIn, address: str) -> None:
    assert log_in().get(f"/web/{address}").status_code in (401, 404)


def test_a_page_refers_to_files_of_this_version_only(log_in: LogIn, browser: Browser) -> None:
    for page in (log_in().get("/").text, browser.get("/").text):
        assert "{{" not in page
        for address in re.findall(r'(?:src|href)="(/web/[^"]*)"', page):
            digest, _, path = address.removeprefix("/web/").partition("/")
            assert digest == FILES.digest
            assert path in FILES.by_path


def test_every_file_of_the_page_has_a_type_or_is_left_out_on_purpose() -> None:
    left_out = [
        str(each.relative_to(STATIC))
        for each in STATIC.rglob("*")
        if each.is_file() and each.relative_to(STATIC).as_posix() not in FILES.by_path
    ]
    others = [each for each in left_out if not each.endswith(".d.ts")]
    assert sorted(others) == sorted(f"styles/{name}.css" for name in STYLES)
