"""Read a verb's parameters from a request's path, query string and body."""

from __future__ import annotations

import json
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, NoReturn
from urllib.parse import unquote

from starlette.requests import Request

from byheart.errors import InvalidInput
from byheart.interfaces.operations import Parameter
from byheart.interfaces.rest.json_shape import MOST_VALUES, MOST_VALUES_OF_CALL, JsonShape
from byheart.interfaces.rest.limits import MOST_BYTES_OF_CALL, limit_body
from byheart.interfaces.rest.problems import Problem
from byheart.interfaces.rest.routes import RouteEntry
from byheart.model.checks import check_names
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

Given = dict[str, Any]
# Parsing a body of up to this size takes a few milliseconds, whatever it contains.
_LARGE_BYTES = 100_000
_NUMBER = late_pattern(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_JSON_TYPES: dict[type, str] = {
    type(None): "null",
    str: "a string",
    list: "an array",
    int: "a number",
    float: "a number",
    bool: "a boolean",
}
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Asked:
    """Hold the parameters of a request; the body is still unparsed.

    A large body is parsed in a worker thread, not in the event loop.
    """

    route: RouteEntry
    in_path: Given
    in_query: Given
    body: bytes

    @property
    def is_large(self) -> bool:
        """Tell whether parsing the body would keep other requests waiting."""
        return len(self.body) > _LARGE_BYTES

    def read(self) -> Given:
        """Return all parameters, in the types that the verb takes."""
        said = self._parse() if self.body else self.in_query
        for name in self.in_path:
            if name in said:
                raise InvalidInput(f"{name} is already in the path", f"leave {name} out")
        return {**said, **self.in_path}

    def _parse(self) -> Given:
        JsonShape(MOST_VALUES if self.route.takes_text else MOST_VALUES_OF_CALL).feed(self.body)
        return parse_object(self.body, _PATIENT if self.is_large else _QUICK)


async def take(request: Request, route: RouteEntry) -> Asked:
    """Take in a request; its body stays unparsed."""
    in_path = {name: unquote(request.path_params[name]) for name in route.in_path}
    if not route.has_body:
        return Asked(route, in_path, _read_query(request, route), b"")
    body = await _take_body(request, takes_text=route.takes_text)
    if request.query_params:
        raise InvalidInput(
            f"{request.method} {route.path} takes no query string",
            "say it in the body, as JSON",
        )
    return Asked(route, in_path, {}, body)


async def read_json(request: Request) -> Given:
    """Read the JSON object of a call without a text to save."""
    body = await _take_body(request, takes_text=False)
    JsonShape(MOST_VALUES_OF_CALL).feed(body)
    return parse_object(body, _QUICK) if body else {}


async def _take_body(request: Request, *, takes_text: bool) -> bytes:
    """Read the bytes of a JSON object; a missing body counts as an empty object."""
    if not takes_text:
        request = Request(request.scope, limit_body(request.receive, MOST_BYTES_OF_CALL))
    body = await request.body()
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body and not media_type:
        return body
    # This check also protects browsers: a page of another origin can send plain text without
    # asking first, but not JSON.
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise Problem(
            415,
            f"the body is {media_type or 'of no named type'}, not JSON",
            "send the header Content-Type: application/json",
        )
    return body


def parse_object(body: bytes, decoder: json.JSONDecoder) -> Given:
    """Parse a JSON object; refuse constants, such as NaN, that only Python accepts."""
    try:
        value = decoder.decode(body.decode("utf-8-sig"))
    except RecursionError:
        raise Problem(400, "the body is nested too deeply", "send a flatter object") from None
    except ValueError as error:  # bad UTF-8, bad JSON, numbers of thousands of digits
        raise Problem(400, f"the body is not JSON: {error}", 'send an object: {"…": …}') from None
    if not isinstance(value, dict):
        raise InvalidInput(
            f"the body is {_JSON_TYPES[type(value)]}, not an object", 'send {"…": …}'
        )
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


class _PatientDecoder(json.JSONDecoder):
    """Parse in Python, so that other threads get their turn: the C parser keeps the interpreter.

    9 MB of empty lists block every thread for 2.3 s in C, but for at most 0.3 s (garbage
    collection) here. Most large bodies consist of long strings, which are read in C in both cases.
    """

    def __init__(self) -> None:
        super().__init__(parse_constant=_refuse_constant)
        self.scan_once = py_make_scanner(self)


_QUICK, _PATIENT = json.JSONDecoder(parse_constant=_refuse_constant), _PatientDecoder()


def _read_query(request: Request, route: RouteEntry) -> Given:
    asked = request.query_params
    check_names(asked, tuple(route.parameters), f"parameter of {request.method} {route.path}")
    return {name: _typed(route.parameters[name], asked.getlist(name)) for name in asked}


def _typed(parameter: Parameter, texts: list[str]) -> Any:
    """Read the texts of a query string as the type that the parameter's schema names."""
    several = parameter.schema.get("type") == "array"
    if several or (len(texts) > 1 and _may_be_several(parameter)):
        return texts
    if len(texts) > 1:
        raise InvalidInput(f"{parameter.name} was given {len(texts)} times", "give it once")
    return _typed_one(parameter, texts[0])


def _may_be_several(parameter: Parameter) -> bool:
    return any(each.get("type") == "array" for each in parameter.schema.get("anyOf", ()))


def _typed_one(parameter: Parameter, text: str) -> Any:
    kind = parameter.schema.get("type")
    try:
        if kind == "boolean":
            return _FLAGS[text.lower()]
        if kind == "object":
            return _typed_object(text)
        if kind in ("integer", "number"):
            # Only JSON's notation is allowed: Python would accept "1_000", "١" and "nan" as well.
            if _NUMBER.fullmatch(text):
                return json.loads(text)
            raise ValueError
    except (KeyError, ValueError, RecursionError):
        allowed = "true or false" if kind == "boolean" else f"a JSON {kind}"
        raise InvalidInput(f"{parameter.name} {text!r} is not allowed", f"give {allowed}") from None
    return text


def _typed_object(text: str) -> Given:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError
    return value
