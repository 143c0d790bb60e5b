"""On a terminal: colour, ages, lines that fit, and nothing that takes the terminal over."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

import byheart
from byheart.interfaces.cli.progress import duration
from byheart.interfaces.cli.screen import Column, Part, PlainScreen, Screen, count, size
from byheart.interfaces.cli.terminal import TerminalScreen
from tests.interfaces.cli.conftest import Run

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain(text: str) -> str:
    return ESCAPE.sub("", text)


def test_matches_are_lit_instead_of_marked(terminal: Run, report: str) -> None:
    ran = terminal("search", "index", "--mode", "fts")
    assert ran.code == 0
    assert "\x1b[1;33mindex\x1b[0m" in ran.out
    assert "**" not in ran.out
    assert f"{report[:14]}#1  lines" in plain(ran.out), "short, as `expand` takes it"


def test_a_blank_line_stands_between_hits(terminal: Run, report: str) -> None:
    shown = plain(terminal("search", "index", "paint", "--mode", "fts").out)
    assert "\n\n2.  March  " in shown


def test_no_color_is_honoured(terminal: Run, report: str) -> None:
    for arguments in (("search", "index"), ("get", "mem_x")):
        ran = terminal(*arguments, NO_COLOR="1")
        assert not re.search(r"\x1b\[[\d;]*3\dm", ran.out), arguments


def test_errors_have_colour_on_a_terminal(terminal: Run) -> None:
    assert "\x1b[31m\x1b[1merror:\x1b[0m" in terminal("get", "mem_x").out


def test_save_says_what_became_of_it(terminal: Run) -> None:
    assert re.match(r"✓  saved  mem_\w+  \(1 chunk\)\n", plain(terminal("save", "text").out))
    assert plain(terminal("save", "text").out).startswith("✓  already there  mem_")


def test_commands_to_copy_have_short_ids(terminal: Run) -> None:
    terminal("save", "The API listens on port 8080.", "--kind", "fact")
    saved = plain(terminal("save", "The API listens on port 8081.", "--kind", "fact").out)
    found = plain(terminal("search", "which port does the API use?").out)
    for shown in (saved, found):
        assert re.search(r"byheart supersede mem_\w{10} mem_\w{10}\n", shown)
        assert all(len(line) <= 80 for line in shown.splitlines())


def test_tables_fit_the_width(terminal: Run, library: byheart.MemoryStore) -> None:
    library.save("a text that is much longer than the terminal is wide " * 5)
    lines = plain(terminal("list").out).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].split() == ["ID", "KIND", "SESSION", "IMPORTANCE", "SAVED", "TEXT"]
    [memory] = library.list().memories
    assert lines[1].split()[0] == memory.memory_id[:14], "short, and enough to name it"
    assert "a text that is" in lines[1]


def test_the_wide_column_of_a_table_takes_the_room_that_is_left() -> None:
    terminal_screen, out = screen()
    columns = (Column("A"), Column("B", right=True), Column("C", wide=True))
    terminal_screen.table(columns, [("東京", "1", "x" * 100), ("y", "22", "z")])
    assert out.getvalue().splitlines() == [
        "A      B  C",
        "東京   1  " + "x" * 69 + "…",
        "y     22  z",
    ]


def test_json_is_indented_for_people(terminal: Run, report: str) -> None:
    assert '\n  "memories": [' in terminal("list", "--json").out


def test_saved_text_cannot_take_the_terminal_over(
    terminal: Run, library: byheart.MemoryStore
) -> None:
    saved = library.save("a text \x1b]0;title\x07 that \x1b[2J clears", title="T\x1b[2J")
    for arguments in (
        ("get", saved.memory_id),
        ("search", "text"),
        ("list",),
        ("expand", f"{saved.memory_id}#0"),
    ):
        shown = terminal(*arguments).out
        assert "\x1b[2J" not in shown, arguments
        assert "\x1b]0;" not in shown, arguments
        assert "\\x1b" in shown, arguments


def test_get_ends_its_line(terminal: Run, library: byheart.MemoryStore) -> None:
    assert terminal("get", library.save("one line").memory_id).out == "one line\n"


def test_expand_shows_which_chunk_is_meant(terminal: Run, report: str) -> None:
    shown = plain(terminal("expand", f"{report}#1", "--around", "1").out)
    assert "#1  Performance Report > Database > Query Times  lines 5-" in shown
    assert "row locks" in shown


def test_settings_are_a_table_too(terminal: Run) -> None:
    assert "\x1b[1mchunk_tokens" in terminal("config", "list").out


def screen() -> tuple[TerminalScreen, io.StringIO]:
    out = io.StringIO()
    return TerminalScreen(Console(file=out, force_terminal=True, width=80, color_system=None)), out


def test_matches_are_lit_where_they_are_and_nothing_is_taken_for_markup() -> None:
    out = io.StringIO()
    lit = TerminalScreen(Console(file=out, force_terminal=True, width=80, color_system="standard"))
    lit.passage("\x07**bold** [bold]index[/bold] :smile:", [(16, 21)])
    shown = "\\x07**bold** [bold]\x1b[1;33mindex\x1b[0m[/bold] :smile:"
    assert out.getvalue() == f"   {shown}\n"


def test_lines_that_wrap_stay_in_their_column_and_have_no_spaces_at_their_end() -> None:
    terminal_screen, out = screen()
    terminal_screen.line(Part(f"{'size':10}", "dim"), "word " * 20)
    terminal_screen.line("a " * 60)
    terminal_screen.passage("short\n\n" + "long " * 30)
    lines = out.getvalue().splitlines()
    assert lines[:2] == ["size        " + "word " * 12 + "word", " " * 12 + "word " * 6 + "word"]
    assert lines[3].startswith("   a a")
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines), lines


def test_a_table_whose_last_column_has_no_room_gives_it_a_line_only_if_it_says_something() -> None:
    terminal_screen, out = screen()
    columns = (Column("A"), Column("B", right=True), Column("C", wide=True))
    terminal_screen.table(columns, [("x" * 70, "1", "more " * 6), ("y", "22", "")])
    assert out.getvalue().splitlines() == [
        f"{'A':70}   B",
        "x" * 70 + "   1",
        "   " + " ".join(["more"] * 6),
        f"{'y':70}  22",
    ]


def test_a_table_that_is_too_wide_loses_text_and_no_number() -> None:
    terminal_screen, out = screen()
    columns = (Column("NAME"), Column("N", right=True), Column("P50 MS", right=True))
    terminal_screen.table(columns, [("x" * 90, "123", "1,234.5")])
    heading, row, last = out.getvalue().splitlines()
    assert (len(heading), len(row), row[-5:]) == (80, 80, "  123")
    assert last.strip() == "1,234.5"


def test_ages_are_short() -> None:
    terminal_screen, _ = screen()
    now = datetime.now(UTC)

    def age(**ago: float) -> str:
        return terminal_screen.moment(now - timedelta(**ago))

    assert age(seconds=0.1) == "just now"
    assert age(seconds=30.5) == "30 s ago"
    assert age(minutes=5.1) == "5 min ago"
    assert age(hours=3.1) == "3 h ago"
    assert age(days=2.1) == "2 d ago"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", age(days=90))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", age(days=-1))
    assert terminal_screen.moment(None) == ""


def test_plain_lines_leave_out_what_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    plain_screen: Screen = PlainScreen()
    plain_screen.line(Part("a", "bad"), "", "b", indent=1)
    plain_screen.passage("x\n\ny")
    assert capsys.readouterr().out == "   a  b\n   x\n\n   y\n"


def test_a_name_stays_on_one_line_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    name, shown = "two\nlines \x1b[31mred\x07.md", "two\\nlines \\x1b[31mred\\x07.md"
    terminal_screen, out = screen()
    for each in (PlainScreen(), terminal_screen):
        each.line("1.", Part(name, "name"))
        each.table([Column("NAME", wide=True)], [[name]])
    for written in (capsys.readouterr().out, out.getvalue()):
        heading, _, row = plain(written).splitlines()
        assert (heading.split("  ")[-1], row) == (shown, shown)


def test_what_is_piped_names_a_title_as_it_is(run: Run, library: byheart.MemoryStore) -> None:
    library.save("The tapir sleeps.", title="a\nb\x1b[31m.md")
    assert "1.  a\\nb\\x1b[31m.md  " in run("search", "tapir").out


def test_numbers_are_said_as_people_say_them() -> None:
    assert (count(1, "memory"), count(2000, "memory")) == ("1 memory", "2,000 memories")
    assert (size(999), size(12_300), size(5_000_000_000)) == ("999 bytes", "12.3 kB", "5.0 GB")
    assert (duration(8), duration(125), duration(3720)) == ("8 s", "2:05 min", "1:02 h")
