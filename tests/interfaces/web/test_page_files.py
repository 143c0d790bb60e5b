"""The files of the web page: small, typed, self-contained, and in step with the server."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from byheart.interfaces.cli.commands import VERBS
from byheart.model.fields import FILTERS, KINDS
from byheart.model.memories import ORIGINS
from byheart.model.prompts import LeftOutReason
from scripts import update_web_libraries

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "src/byheart/interfaces/web/static"
MOST_BYTES = 150_000
MOST_PACKED_BYTES = 100_000
MOST_LINES = 400


def own_scripts() -> list[Path]:
    return [each for each in sorted(STATIC.rglob("*.js")) if each.parent.name != "vendor"]


def test_the_files_stay_short() -> None:
    for each in [*own_scripts(), *STATIC.rglob("*.css")]:
        lines = each.read_text(encoding="utf-8").count("\n")
        assert lines <= MOST_LINES, f"{each.name} has {lines} lines"


def test_no_screen_loads_more_than_150_kilobytes_of_scripts() -> None:
    table = (STATIC / "core/screens.js").read_text(encoding="utf-8")
    screens = re.findall(r"import\(\"([^\"]+)\"\)", table)
    assert screens
    for screen in screens:
        loaded = scripts_behind(STATIC / "app.js", (STATIC / "core" / screen).resolve())
        sizes = {each.name: each.stat().st_size for each in loaded}
        assert sum(sizes.values()) < MOST_BYTES, f"{screen}: {sizes}"


def scripts_behind(*first: Path) -> set[Path]:
    """Follow the imports of modules that are loaded at once; the libraries are not counted."""
    found, waiting = set[Path](), list(first)
    while waiting:
        script = waiting.pop()
        if script in found or script.parent.name == "vendor":
            continue
        found.add(script)
        names = re.findall(r"from \"([^\"]+)\"", script.read_text(encoding="utf-8"))
        waiting += [(script.parent / name).resolve() for name in names]
    return found


def test_the_page_preloads_every_script_of_its_first_screen() -> None:
    """Otherwise the browser learns of each script only after it has read the one before."""
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    preloaded = set(re.findall(r'rel="modulepreload" href="{{static}}([^"]+)"', page))
    libraries = {each.relative_to(STATIC) for each in (STATIC / "vendor").glob("*.js")}
    needed = {each.relative_to(STATIC) for each in scripts_behind(STATIC / "app.js")} | libraries
    assert preloaded == {str(each) for each in needed} - {"app.js"}


def test_all_scripts_together_stay_small_when_packed() -> None:
    packed = sum(len(gzip.compress(each.read_bytes())) for each in own_scripts())
    assert packed < MOST_PACKED_BYTES


def test_the_libraries_are_the_recorded_files() -> None:
    assert update_web_libraries.find_changed() == []


def test_every_import_names_a_file_that_is_there() -> None:
    imported = re.compile(
        r"""(?:^(?:import|export|\}).*?\bfrom|^import|import\()\s*["']([^"']+)["']""", re.M
    )
    for script in STATIC.rglob("*.js"):
        for name in imported.findall(script.read_text(encoding="utf-8")):
            assert name.startswith("."), f"{script.name} imports {name}, which is no address"
            assert (script.parent / name).is_file(), f"{script.name} imports {name}"


def test_the_page_loads_nothing_from_elsewhere() -> None:
    for each in [*own_scripts(), *STATIC.rglob("*.css"), *STATIC.rglob("*.html")]:
        found = re.findall(r"https?://(?!www\.w3\.org/)[^\s\"'`)]+", each.read_text("utf-8"))
        assert found == [], f"{each.name} names {found}"


def test_only_one_place_sets_html() -> None:
    pattern = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|srcdoc"
    )
    places = [each.name for each in own_scripts() if pattern.search(each.read_text("utf-8"))]
    assert set(places) <= {"rendered.js"}


def test_html_has_no_inline_script_or_style() -> None:
    for page in STATIC.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<style" not in text
        assert not re.search(r"<script(?![^>]*\bsrc=)", text)
        assert not re.search(r"\s(?:on\w+|style)=", text)


def test_every_command_that_the_page_names_is_there() -> None:
    for each in [*own_scripts(), *STATIC.rglob("*.html")]:
        named = re.findall(r"byheart ([a-z-]+)", each.read_text(encoding="utf-8"))
        assert set(named) <= set(VERBS), each.name


def filters_of_the_page() -> dict[str, list[str]]:
    text = (STATIC / "core/filters.js").read_text(encoding="utf-8")
    rows = re.findall(r'^  \{ name: "(\w+)".*?(?:choices: (\[[^\]]*\]))? \},$', text, re.M)
    return {name: json.loads(choices or "[]") for name, choices in rows}


def test_the_filters_of_the_page_are_those_of_the_server() -> None:
    shown = filters_of_the_page()
    assert set(shown) == set(FILTERS) - {"space"}
    assert shown["kind"] == list(KINDS)
    assert shown["origin"] == list(ORIGINS)


def test_the_page_has_words_for_every_reason_to_leave_something_out() -> None:
    text = (STATIC / "parts/receipt.js").read_text(encoding="utf-8")
    table = text.partition("const REASONS = {")[2].partition("};")[0]
    named = re.findall(r'^  (?:(\w+)|"([^"]+)"): "', table, re.M)
    assert {word or words for word, words in named} == set(get_args(LeftOutReason))


def test_the_scripts_pass_the_type_checker() -> None:
    tsc = shutil.which("tsc")
    command = [tsc] if tsc else ["npx", "--no-install", "tsc"]
    if not tsc and (shutil.which("npx") is None or not _has_tsc()):
        pytest.skip("TypeScript is not installed: npm install --global typescript")
    done = subprocess.run([*command, "-p", str(ROOT)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def _has_tsc() -> bool:
    asked = ["npx", "--no-install", "tsc", "--version"]
    return subprocess.run(asked, capture_output=True, cwd=ROOT, timeout=60).returncode == 0
