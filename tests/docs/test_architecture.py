"""Check the paths and the numbers that ARCHITECTURE.md names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.contracts.covering import all_members, interfaces

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "byheart"

_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"`([^`\n]+)`")
_FOLDERS_AND_FILE = re.compile(r"(?:[\w.-]+/)+(?:[\w.-]+)?")
_FILE = re.compile(r"[\w.-]+\.(?:py|md|sql|json|css|html|js)")
_COUNTED = re.compile(r"^\| `(\w+)` \([^)]+\) \| (\d+) \|", re.MULTILINE)
_LINKED = re.compile(r"\bdocs/[\w/-]+\.md\b")


def find_missing(text: str) -> list[str]:
    """List the paths in a text that are neither below the root nor below `src/byheart`.

    A file name without a folder may also be a neighbour of a path that is named earlier on its
    line: "`search/evidence_fusion.py`, `rank_fusion.py`".
    """
    missing: list[str] = []
    for line in _FENCE.sub("", text).splitlines():
        folders = [ROOT, SOURCE]
        for path in _paths_on(line):
            found = next((each / path for each in folders if (each / path).exists()), None)
            if found is None:
                missing.append(path)
            elif "/" in path:
                folders.append(found if found.is_dir() else found.parent)
    return missing


def _paths_on(line: str) -> Iterator[str]:
    for quoted in _QUOTED.findall(line):
        if _FOLDERS_AND_FILE.fullmatch(quoted) or _FILE.fullmatch(quoted):
            yield quoted
    yield from _LINKED.findall(_QUOTED.sub("", line))


def test_every_path_in_the_architecture_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len([path for line in text.splitlines() for path in _paths_on(line)]) > 20
    assert find_missing(text) == []


def test_every_folder_in_the_map_of_the_architecture_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    maps = [each for each in _FENCE.findall(text) if "src/byheart/\n" in each]
    assert len(maps) == 1, "the map is the only fenced block with the line src/byheart/"
    named = set(re.findall(r"(?<=[ (])\w+(?=/(?:[ ,;:.)]|$))", maps[0], re.MULTILINE))
    assert len(named) > 10
    assert named - {each.parent.name for each in SOURCE.rglob("__init__.py")} == set()


def test_a_path_that_does_not_exist_is_found() -> None:
    text = (
        "`search/evidence_fusion.py`, `rank_fusion.py`; `storage/sqlite/`, `nowhere/ranking.py`\n"
        "`rank_fusion.py` is not at the top; `mem_1@2`, `GET /health`, `store.save` are no paths\n"
        "```\n`drawn/only.py`\n```\n"
        "| docs/quality.md, docs/missing.md |\n"
    )
    assert find_missing(text) == ["nowhere/ranking.py", "rank_fusion.py", "docs/missing.md"]


def count_members(interface: type) -> int:
    """Count what an implementation of a storage interface has to have."""
    own = {each.__name__ for each in interface.__mro__}
    return sum(name.partition(".")[0] in own for name in all_members())


def test_the_interfaces_of_a_database_have_as_many_methods_as_the_architecture_says() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    said = {name: int(count) for name, count in _COUNTED.findall(text)}
    assert said.keys() == {"Backend", "Connection", "IndexLookup", "Ledger"}
    assert said == {name: count_members(interfaces()[name]) for name in said}
