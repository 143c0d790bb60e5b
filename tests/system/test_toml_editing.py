"""Editing TOML: values and tables are set and removed, and every other byte stays."""

from __future__ import annotations

import tomllib

import pytest

from byheart.system.toml_editing import Uneditable, put_values, remove_value

PATH = ("mcp_servers", "byheart")
ENTRY = {"command": "byheart", "args": ["mcp", "--db", 'C:\\a "b"\\ü.db']}

TEXTS = {
    "nothing": "",
    "a setting": 'model = "x"\n',
    "no line end": 'model = "x"',
    "a comment at the end": 'model = "x"\n# [mcp_servers.byheart]',
    "other servers": (
        '# mine\nmodel = "x" # y\n\n[mcp_servers.other] # z\ncommand = "o"\nargs = [\n  "a", # 1\n'
        '  "]",\n]\n\n[mcp_servers.other.env]\nA = "1"\n\n# below\n'
    ),
    "windows line ends": '[a]\r\nb = 1\r\n\r\n[c]\r\nd = """x\r\n[mcp_servers.byheart]\r\n"""\r\n',
    "arrays of tables": "[[a]]\nb = 1\n[[a]]\nb = 2\n",
    "a byte order mark": "\ufeffa = 1\n",
    "the separator of lines in a comment": "a = 1 # \u2028 b = 2\n",
}


def parsed(text: str) -> dict[str, object]:
    return tomllib.loads(text.removeprefix("\ufeff"))


@pytest.mark.parametrize("before", TEXTS.values(), ids=TEXTS)
def test_a_table_is_put_at_the_end_and_everything_else_stays(before: str) -> None:
    after = put_values(before, PATH, ENTRY)
    servers = parsed(before).get("mcp_servers", {})
    assert isinstance(servers, dict)
    assert parsed(after) == {**parsed(before), "mcp_servers": {**servers, "byheart": ENTRY}}
    assert after.startswith(before)
    if "\r\n" in before:
        assert "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize("before", TEXTS.values(), ids=TEXTS)
def test_a_table_is_taken_out_again(before: str) -> None:
    back = remove_value(put_values(before, PATH, ENTRY), PATH)
    assert parsed(back) == parsed(before)
    assert back.rstrip("\r\n") == before.rstrip("\r\n")


OWN = """\
[mcp_servers.byheart] # ours
# how it starts
command = "old" # a remark
args = [
  "mcp",
]
startup_timeout_sec = 20

[mcp_servers.byheart.env]
A = "1"
# of the next one
[mcp_servers.other]
command = "o"
"""


def test_only_what_differs_is_changed_in_a_table_that_is_there() -> None:
    after = put_values(OWN, PATH, {"command": "new", "args": ["mcp"]})
    assert after == OWN.replace('"old"', '"new"')
    longer = put_values(OWN, PATH, {"command": "old", "args": ["mcp", "--space", "work"]})
    assert longer == OWN.replace('[\n  "mcp",\n]', '["mcp", "--space", "work"]')


def test_missing_values_are_added_before_the_comments_at_the_end_of_a_table() -> None:
    before = "[mcp_servers.byheart]\n# nothing yet\n[z]\na = 1\n"
    assert put_values(before, PATH, {"command": "c", "args": []}) == (
        '[mcp_servers.byheart]\ncommand = "c"\nargs = []\n# nothing yet\n[z]\na = 1\n'
    )
    assert put_values("[mcp_servers.byheart]", PATH, {"command": "c"}) == (
        '[mcp_servers.byheart]\ncommand = "c"\n'
    )


def test_a_table_goes_with_those_below_it_and_leaves_the_comments_of_others() -> None:
    left = remove_value(OWN, PATH)
    assert left == '# of the next one\n[mcp_servers.other]\ncommand = "o"\n'


def test_a_header_is_known_however_it_is_written() -> None:
    for header in (
        '[mcp_servers."byheart"]',
        "[ mcp_servers . byheart ]",
        "[mcp_servers.'byheart']",
    ):
        text = f'a = 1\n\n{header}\ncommand = "x"\n'
        assert parsed(put_values(text, PATH, {"command": "y"})) == {
            "a": 1,
            "mcp_servers": {"byheart": {"command": "y"}},
        }
        assert remove_value(text, PATH) == "a = 1\n"


@pytest.mark.parametrize(
    "before",
    [
        "a = 1\r\nmcp_servers = { o = { command = 'x' } } # mine\r\nb = 2\r\n",
        "[mcp_servers] # mine\r\no = { command = 'x' }\r\nbyheart = { command = 'old' } # b\r\n",
        "mcp_servers.o.command = 'x' # mine\r\nmcp_servers.byheart.command = 'old'\r\n",
        "[mcp_servers.byheart]\r\ncommand = 'old' # mine\r\n[z]\r\n[mcp_servers.o]\r\n"
        "command = 'x'\r\n",
    ],
    ids=["all servers inline", "one server inline", "dotted keys", "parts in two places"],
)
def test_a_table_is_set_and_removed_in_the_form_in_which_it_is_written(before: str) -> None:
    after = put_values(before, PATH, ENTRY)
    held = parsed(before)
    servers = {"o": {"command": "x"}, "byheart": ENTRY}
    assert parsed(after) == {**held, "mcp_servers": servers}
    assert "# mine\r\n" in after
    assert "\n" not in after.replace("\r\n", "")
    del servers["byheart"]
    assert parsed(remove_value(after, PATH)) == {**held, "mcp_servers": servers}


def test_a_text_that_is_not_toml_cannot_be_edited() -> None:
    for text in ("a = \n", "a = 1\na = 2\n", "[mcp_servers\n"):
        with pytest.raises(Uneditable):
            put_values(text, PATH, ENTRY)
        with pytest.raises(Uneditable):
            remove_value(text, PATH)
    for text in ("mcp_servers = 1\n", "mcp_servers.byheart = 1\n", "[[mcp_servers]]\na = 1\n"):
        with pytest.raises(Uneditable, match="is not a table"):
            put_values(text, PATH, ENTRY)
