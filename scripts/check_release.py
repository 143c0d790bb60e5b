"""Compare the versions that pyproject.toml, CHANGELOG.md and `byheart.__version__` state.

python scripts/check_release.py                 while a version is being developed
python scripts/check_release.py --tag v0.2.0    before it is released, and in the workflow
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

_HEADING = re.compile(r"^## (\S+) \((\d{4}-\d\d-\d\d|unreleased)\)$")
_DUNDER_VERSION = re.compile(r"^__version__(?::[^=]+)? = [\"'](.+)[\"']$", re.MULTILINE)


def find_problems(root: Path, tag: str | None = None) -> list[str]:
    """List what disagrees; with a tag, also what must not be released."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    problems = []

    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    newest = next((line for line in lines if line.startswith("## ")), "no heading")
    heading = _HEADING.match(newest)
    if heading is None:
        problems.append(
            f"CHANGELOG.md begins with {newest!r}: write '## {version} (unreleased)' or a date"
        )
    elif heading[1] != version:
        problems.append(f"CHANGELOG.md describes {heading[1]}, pyproject.toml says {version}")

    source = (root / "src" / "byheart" / "__init__.py").read_text(encoding="utf-8")
    stated = _DUNDER_VERSION.search(source)
    if stated and stated[1] != version:
        problems.append(f"byheart.__version__ is {stated[1]}, pyproject.toml says {version}")

    if tag is not None and tag != f"v{version}":
        problems.append(f"the tag is {tag}, pyproject.toml says {version}: tag it v{version}")
    if tag is not None and heading and heading[2] == "unreleased":
        problems.append(f"CHANGELOG.md calls {heading[1]} unreleased: write the date instead")
    return problems


def main() -> None:
    """Exit with 1 and say what disagrees, or say nothing."""
    parser = argparse.ArgumentParser(description="Compare the versions that the project states.")
    parser.add_argument("--tag", help="the tag of the release, such as v0.2.0")
    problems = find_problems(Path(__file__).parents[1], parser.parse_args().tag)
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
