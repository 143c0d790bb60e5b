"""The OpenAPI document: true, complete, and nothing that it allows breaks the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    negative_data_rejection,
    positive_data_acceptance,
)

import byheart
from byheart.interfaces.rest.docs_page import render_page
from byheart.interfaces.rest.exports import EXPORT_PATH
from byheart.interfaces.rest.openapi import describe_api
from byheart.interfaces.rest.routes import ROUTES
from byheart.settings import load_settings
from tests.interfaces.rest.conftest import REPORT, running

PATHS = {entry.path for entry in ROUTES} | {EXPORT_PATH}


def within_one_space(schema: Any) -> Any:
    """Leave other spaces out: nearly every request would be 403, and get no further."""
    if isinstance(schema, list):
        return [within_one_space(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("name") == "space":
        return {**schema, "schema": {"const": "default"}}
    return {
        key: {"enum": ["default", None]}
        if key == "space" and "description" in each
        else within_one_space(each)
        for key, each in schema.items()
    }


DOCUMENT = within_one_space(describe_api())


@pytest.fixture(params=DOCUMENT["paths"])
def document(request: pytest.FixtureRequest) -> BaseSchema:
    """Give the document of one path.

    All its thousands of cases take ten seconds to make: by a fixture they are made where they are
    run, and not by every worker before its first test.
    """
    # Schemathesis names its cases by an attribute that pytest no longer has since 9.1.
    request.node._nodeid = request.node.nodeid
    one = {path: methods for path, methods in DOCUMENT["paths"].items() if path == request.param}
    schema = schemathesis.openapi.from_dict({**DOCUMENT, "paths": one})
    # A text that is far too long makes the body too large.
    schema.config.checks.negative_data_rejection.expected_statuses.append("413")
    return schema


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, requests.Session]]:
    """Run one server for all examples, and give its address and a connection with a token."""
    folder = tmp_path_factory.mktemp("schemathesis")
    chosen = load_settings(
        {
            "db_path": folder / "memory.db",
            "files_dir": folder / "files",
            "embedding_provider": "hash",
            "max_requests_per_minute": 0,
        },
        {},
        Path(folder / "config.toml"),
    )
    with byheart.open(settings=chosen) as store:
        store.save(REPORT, session_id="s1", entities=["March"])
        secret = store.api_keys.create("schemathesis").secret
        with running(store, chosen) as url, requests.Session() as session:
            session.trust_env = False  # no proxy is asked for on the way to this machine
            session.headers["Authorization"] = f"Bearer {secret}"
            yield url, session


@schemathesis.pytest.from_fixture("document").parametrize()
@settings(
    max_examples=5,  # beside the thousands of cases that the schemas' own bounds give
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_no_request_of_the_document_breaks_the_server_or_the_document(
    case: schemathesis.Case, served: tuple[str, requests.Session]
) -> None:
    url, session = served
    answer = case.call_and_validate(
        base_url=url,
        session=session,
        excluded_checks=[
            # A schema cannot say everything: dates, blank texts, two fields that exclude another.
            positive_data_acceptance,
            # It would ask everything three times; test_guard asks each route without a token.
            ignored_auth,
            # What takes no parameters at all does not mind any.
            *([] if case.path in PATHS else [negative_data_rejection]),
        ],
    )
    assert answer.status_code < 500


def test_every_example_is_what_its_schema_says() -> None:
    described = describe_api()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            places = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in (each.get("content", {}).get("application/json", {}) for each in places):
                if "example" in content:
                    schema = {**content["schema"], "components": described["components"]}
                    jsonschema.Draft202012Validator(schema).validate(content["example"])
            if operation.get("requestBody"):
                assert "example" in operation["requestBody"]["content"]["application/json"], (
                    method,
                    path,
                )


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [
        operation["operationId"]
        for methods in describe_api()["paths"].values()
        for operation in methods.values()
    ]
    assert len(names) == len(set(names))


def test_the_page_shows_every_route_and_loads_nothing_from_elsewhere() -> None:
    page = render_page()
    for path, methods in describe_api()["paths"].items():
        for method, operation in methods.items():
            assert f"id='{operation['operationId']}'" in page, (method, path)
    for marker in ("<script", "src=", "url(", "@import", "<link", "<iframe"):
        assert marker not in page
    assert all(each.startswith(("#", "/")) for each in re.findall(r"href='([^']*)'", page))
    assert set(re.findall(r"href='#([^']*)'", page)) <= set(re.findall(r"id='([^']*)'", page))


def test_the_document_for_people_lists_the_routes_that_exist() -> None:
    text = (Path(__file__).parents[3] / "docs" / "rest.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([A-Z]+) (/\S*)` \| (?:`(\w+)`)? ?\|", text, re.MULTILINE)
    routes = {(entry.method, entry.path): entry.operation.name for entry in ROUTES}
    assert {(method, path): verb for method, path, verb in listed if verb} == routes
    offered = {
        (method.upper(), path)
        for path, methods in describe_api()["paths"].items()
        for method in methods
    }
    assert {(method, path) for method, path, _ in listed} == offered
    statuses = {int(each) for each in re.findall(r"^\| (\d{3}) \|", text, re.MULTILINE)}
    assert statuses == {*map(int, describe_api()["components"]["responses"]), 405}
