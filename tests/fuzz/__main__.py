"""Run one fuzzer: `python -m tests.fuzz TARGET --seconds N --seed S`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from tests.fuzz.report import Report

_NOT_TARGETS = ("__init__", "__main__", "report")
_MOST_SHOWN = 20


def main() -> int:
    """Run the target that the command line names; 1 means that it found failures."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=find_targets())
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same inputs")
    asked = parser.parse_args()
    report: Report = importlib.import_module(f"tests.fuzz.{asked.target}").run(
        asked.seconds, asked.seed
    )
    for failure in report.failures[:_MOST_SHOWN]:
        sys.stderr.write(f"{failure}\n")
    tried, failed = f"{report.tried:,} tried", f"{len(report.failures):,} failed"
    sys.stdout.write(f"{asked.target}: {tried}, {failed}, seed {asked.seed}\n")
    return 1 if report.failures else 0


def find_targets() -> list[str]:
    """List the modules of this package that have a `run` function, by their file names."""
    return sorted(
        each.stem
        for each in Path(__file__).parent.glob("*.py")
        if each.stem not in _NOT_TARGETS and "def run(" in each.read_text(encoding="utf-8")
    )


if __name__ == "__main__":
    sys.exit(main())
