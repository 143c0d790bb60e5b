"""TOML: one table put in and taken out, every other byte as it was."""

from __future__ import annotations

import tomllib

import pytest

from byheart.interfaces.setup.toml import put_table, remove_table

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
    after = put_table(before, PATH, ENTRY)
    servers = parsed(before).get("mcp_servers", {})
    assert isinstance(servers, dict)
    assert parsed(after) == {**parsed(before), "mcp_servers": {**servers, "byheart": ENTRY}}
    assert after.startswith(before)
    if "\r\n" in before:
        assert "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize("before", TEXTS.values(), ids=TEXTS)
def test_a_table_is_taken_out_again(before: str) -> None:
    back = remove_table(put_table(before, PATH, ENTRY), PATH)
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
    after = put_table(OWN, PATH, {"command": "new", "args": ["mcp"]})
    assert after == OWN.replace('"old" # a remark', '"new"')
    longer = put_table(OWN, PATH, {"command": "old", "args": ["mcp", "--space", "work"]})
    assert longer == OWN.replace('[\n  "mcp",\n]', '["mcp", "--space", "work"]')


def test_what_is_missing_in_a_table_is_added_to_it() -> None:
    before = "[mcp_servers.byheart]\n# nothing yet\n[z]\na = 1\n"
    assert put_table(before, PATH, {"command": "c", "args": []}) == (
        '[mcp_servers.byheart]\ncommand = "c"\nargs = []\n# nothing yet\n[z]\na = 1\n'
    )
    assert put_table("[mcp_servers.byheart]", PATH, {"command": "c"}) == (
        '[mcp_servers.byheart]\ncommand = "c"\n'
    )


def test_a_table_goes_with_those_below_it_and_leaves_the_comments_of_others() -> None:
    left = remove_table(OWN, PATH)
    assert left == '# of the next one\n[mcp_servers.other]\ncommand = "o"\n'


def test_a_header_is_known_however_it_is_written() -> None:
    for header in (
        '[mcp_servers."byheart"]',
        "[ mcp_servers . byheart ]",
        "[mcp_servers.'byheart']",
    ):
        text = f'a = 1\n\n{header}\ncommand = "x"\n'
        assert parsed(put_table(text, PATH, {"command": "y"})) == {
            "a": 1,
            "mcp_servers": {"byheart": {"command": "y"}},
        }
        assert remove_table(text, PATH) == "a = 1\n"
