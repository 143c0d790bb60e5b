"""JSON with comments: put in and taken out in place, everything else byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.interfaces.setup import jsonc

PATH = ("mcpServers", "byheart")
ENTRY = {"command": "byheart", "args": ["mcp"]}

# Everything that stands around the place where the entry goes, in as many styles.
TEXTS = {
    "nothing": "",
    "an empty object": "{}",
    "an empty object with a line": "{\n}\n",
    "no servers": '{\n  "theme": "dark"\n}\n',
    "no servers, one line": '{"theme": "dark"}',
    "empty servers": '{\n  "mcpServers": {}\n}\n',
    "minified": '{"a":1,"mcpServers":{"other":{"command":"x"}},"z":[{}]}',
    "tabs": '{\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n',
    "windows line ends": '{\r\n    "mcpServers": {\r\n        "other": {}\r\n    }\r\n}\r\n',
    "a byte order mark": '\ufeff{\n  "mcpServers": {\n    "other": {}\n  }\n}\n',
    "a comment behind the last": '{\n  "mcpServers": {\n    "other": {} // mine, "}": {\n  }\n}\n',
    "a comment before the end": '{\n  "mcpServers": {\n    "o": {}\n    /* , } */\n  }\n}\n',
    "a comment alone": '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    "a comment within one line": '{ /* all */ "mcpServers": { /* none */ } }',
    "trailing commas": '{\n  "mcpServers": {\n    "other": {},\n  },\n  "z": [1, 2,],\n}\n',
    "braces in texts": '{\n  "a": "\\"}{[",\n  "mcpServers": {\n    "}": {"x": "//"}\n  }\n}',
    "servers first": '{\n  "mcpServers": {\n    "o": 1\n  },\n  "p": {"mcpServers": {}}\n}\n',
    "comments around all": '// top\n{\n  // in\n  "a": 1 // b\n}\n// below\n',
    "the same name twice": '{"mcpServers": {"a": 1}, "mcpServers": {"b": 2}}',
}


def expected(before: str, entry: Any) -> Any:
    document = jsonc.parse(before) if before.strip("\ufeff \n") else {}
    return {**document, "mcpServers": {**document.get("mcpServers", {}), "byheart": entry}}


def comments(text: str) -> list[str]:
    return [each.text for each in jsonc._tokens(text) if each.kind == "comment"]


@pytest.mark.parametrize("before", TEXTS.values(), ids=TEXTS)
def test_an_entry_is_put_in_and_everything_else_stays(before: str) -> None:
    after = jsonc.put(before, PATH, ENTRY)
    assert jsonc.parse(after) == expected(before, ENTRY)
    assert comments(after) == comments(before)
    kept = iter(after)  # what was there is still there, in its order
    assert all(character in kept for character in before)
    if "\r\n" in before:
        assert "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize("before", TEXTS.values(), ids=TEXTS)
def test_what_was_put_in_is_taken_out_again(before: str) -> None:
    back = jsonc.remove(jsonc.put(before, PATH, ENTRY), PATH)
    document = jsonc.parse(before) if before.strip("\ufeff \n") else {}
    assert jsonc.parse(back) == {"mcpServers": {}, **document}
    assert comments(back) == comments(before)
    if document.get("mcpServers"):
        assert back == before


@pytest.mark.parametrize("before", TEXTS.values(), ids=TEXTS)
def test_an_entry_is_changed_in_its_place(before: str) -> None:
    once = jsonc.put(before, PATH, {"command": "old", "env": {"A": "1"}})
    twice = jsonc.put(once, (*PATH, "command"), "new")
    assert twice == once.replace('"old"', '"new"')


def test_an_entry_looks_like_the_ones_beside_it() -> None:
    before = json.dumps({"mcpServers": {"other": {"command": "x"}}}, indent=4) + "\n"
    assert (
        jsonc.put(before, PATH, ENTRY)
        == json.dumps({"mcpServers": {"other": {"command": "x"}, "byheart": ENTRY}}, indent=4)
        + "\n"
    )
    assert (
        jsonc.put("", PATH, ENTRY)
        == json.dumps({"mcpServers": {"byheart": ENTRY}}, indent=2) + "\n"
    )
    assert jsonc.put('{"mcpServers": {"o": 1}}', PATH, ENTRY) == (
        '{"mcpServers": {"o": 1, "byheart": {"command": "byheart", "args": ["mcp"]}}}'
    )


def test_the_comma_goes_before_a_comment_not_into_it() -> None:
    after = jsonc.put('{\n  "a": 1 // one\n}\n', ("b",), 2)
    assert after == '{\n  "a": 1, // one\n  "b": 2\n}\n'


@pytest.mark.parametrize("at", ["first", "middle", "last"])
def test_a_member_goes_with_one_comma(at: str) -> None:
    order = {"first": "xab", "middle": "axb", "last": "abx"}[at]
    text = "{\n" + ",\n".join(f'  "{name}": {{}} /* {name} */' for name in order) + "\n}\n"
    left = jsonc.remove(text, ("x",))
    assert jsonc.parse(left) == {"a": {}, "b": {}}
    assert {"/* a */", "/* b */"} <= set(comments(left))


def test_what_is_not_there_is_not_taken_out() -> None:
    for text in TEXTS.values():
        if text.strip("\ufeff \n"):
            assert jsonc.remove(text, PATH) == text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '"text"',
        "{]",
        '{"a": }',
        '{"a" 1}',
        "{'a': 1}",
        '{"a": 1} x',
        "{,}",
        '{"a": 1,,}',
    ],
)
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT012 - a list is read, but not changed
        jsonc.parse(text)
        jsonc.put(text, PATH, ENTRY)


def test_an_error_is_where_it_stands() -> None:
    with pytest.raises(ValueError, match="line 3 column 8"):
        jsonc.parse('{\n  /* a comment, "x": */ "a": 1, // another\n  "b": oops\n}')


def test_a_text_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match="deep"):
        jsonc.parse("[" * 100_000 + "]" * 100_000)


def test_a_server_that_is_no_object_on_the_way_is_refused() -> None:
    with pytest.raises(ValueError, match="mcpServers is not an object"):
        jsonc.put('{"mcpServers": []}', PATH, ENTRY)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    document=st.dictionaries(st.text(max_size=4), values, max_size=4),
    servers=st.none() | st.dictionaries(st.text(max_size=4), values, max_size=3),
    indent=st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    ascii_only=st.booleans(),
)
def test_any_document_gets_the_entry_and_loses_nothing_but_it(
    document: dict[str, Any], servers: dict[str, Any] | None, indent: Any, ascii_only: bool
) -> None:
    if servers is not None:
        document["mcpServers"] = servers
    before = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    after = jsonc.put(before, PATH, ENTRY)
    assert json.loads(after) == {
        **document,
        "mcpServers": {**(servers or {}), "byheart": ENTRY},
    }
    back = jsonc.remove(after, PATH)
    assert json.loads(back) == {**document, "mcpServers": servers or {}}
    if servers:
        assert back == before
