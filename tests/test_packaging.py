"""What the package needs is what it says it needs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

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


# The frameworks that `byheart.integrations` imports, and the packages that have them.
FRAMEWORKS = {
    "agents": "openai-agents",
    "langchain_core": "langchain-core",
    "langgraph": "langgraph",
    "llama_index": "llama-index-core",
    "pydantic": "langchain-core",
    "pydantic_ai": "pydantic-ai-slim",
}


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
        if "integrations" in str(path):
            name = FRAMEWORKS[module]
            assert any(each.startswith(f"{name}>=") for each in chain(*extras.values())), name
            continue
        names = {name.lower().replace("_", "-") for name in distributions[module]}
        names = {COMES_WITH.get(name, name) for name in names}
        assert names & asked_for, f"{path.name} imports {module}: add one of {names}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from it, as a release does."""
    folder = tmp_path_factory.mktemp("built")
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_an_installed_package_saves_and_finds(built: Path, tmp_path: Path, pattern: str) -> None:
    [package] = built.glob(pattern)
    place = tmp_path / "place"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
    subprocess.run((*pip, "--target", str(place), str(package)), check=True, capture_output=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(place),
        "BYHEART_DB_PATH": str(tmp_path / "memory.db"),
        "BYHEART_EMBEDDING_PROVIDER": "hash",
    }

    def run(*arguments: str) -> str:
        command = (sys.executable, *arguments)
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment, cwd=tmp_path
        ).stdout

    assert run("-c", "import byheart; print(byheart.__file__)").startswith(str(place))
    run("-m", "byheart", "save", "The build server is called Gondor.")
    assert "Gondor" in run("-m", "byheart", "search", "build server")


@pytest.mark.slow
def test_packages_have_what_a_user_needs_and_no_tests(built: Path) -> None:
    [wheel], [sdist] = built.glob("*.whl"), built.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("py.typed", "interfaces/web/static/index.html", "interfaces/mcp/tools.json"):
        assert f"byheart/{needed}" in names
    assert all(name.startswith(("byheart/", "byheart-")) for name in names)
    assert wheel.stat().st_size < 2_000_000
    with tarfile.open(sdist) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml"} <= inside
