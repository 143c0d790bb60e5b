"""Check that the project states one version, and that its workflows are what the project needs."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "check_release.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_release", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def made_project(tmp_path: Path) -> Path:
    (tmp_path / "src" / "byheart").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2030-01-02)\n\n## 1.1.0\n")
    (tmp_path / "src" / "byheart" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    return tmp_path


def test_the_project_the_changelog_and_the_package_state_one_version(script: ModuleType) -> None:
    assert script.find_problems(ROOT) == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert version("byheart") == project["version"], "install the project again: make setup"


def test_a_release_whose_versions_agree_has_no_problems(
    script: ModuleType, made_project: Path
) -> None:
    assert script.find_problems(made_project, "v1.2.0") == []


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("pyproject.toml", '[project]\nversion = "1.3.0"\n', "describes 1.2.0"),
        ("CHANGELOG.md", "## 1.2.0 (unreleased)\n", "write the date"),
        ("CHANGELOG.md", "## Version 1.2.0\n", "begins with '## Version 1.2.0'"),
        ("CHANGELOG.md", "", "begins with 'no heading'"),
        ("src/byheart/__init__.py", '__version__: str = "1.1.0"\n', "__version__ is 1.1.0"),
    ],
)
def test_a_release_is_refused_where_a_version_disagrees(
    script: ModuleType, made_project: Path, file: str, text: str, problem: str
) -> None:
    (made_project / file).write_text(text)
    assert problem in "\n".join(script.find_problems(made_project, "v1.2.0"))


def test_the_script_refuses_the_tag_of_another_version() -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--tag", "v0.0.0"], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "the tag is v0.0.0" in run.stderr


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_every_file_for_github_and_pre_commit_is_valid_yaml() -> None:
    files = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) >= 5
    for file in files:
        assert isinstance(read_yaml(file), dict), file.name


def test_workflows_pin_the_major_version_of_every_action() -> None:
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        for action in re.findall(r"uses: (\S+)", file.read_text(encoding="utf-8")):
            assert action.startswith("./") or re.search(r"@(?:release/)?v\d+$", action), action


def test_ci_runs_every_python_version_that_the_package_claims() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = set(re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"])))
    claimed.add(project["requires-python"].removeprefix(">="))
    jobs = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    for job in jobs.values():
        assert claimed <= set(job["strategy"]["matrix"]["python"])
