"""What the package needs is what it says it needs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A distribution of its own that comes with another and has its version.
COMES_WITH = {"mcp-types": "mcp"}


def imported_modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            else:
                continue
            found |= {name.partition(".")[0]: path for name in names}
    return found


def test_every_package_that_is_imported_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # The packages of extras are imported where they are used, and missed with a hint.
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["documents"], *extras["postgres"]]
    asked_for = {re.split(r"[<>=!~\[ ]", each)[0].lower() for each in needed}
    distributions = packages_distributions()
    for module, path in imported_modules().items():
        if module == "byheart" or module in sys.stdlib_module_names:
            continue
        names = {name.lower().replace("_", "-") for name in distributions[module]}
        names = {COMES_WITH.get(name, name) for name in names}
        assert names & asked_for, f"{path.name} imports {module}: add one of {names}"
