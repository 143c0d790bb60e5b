"""Write benchmark runs as text for a ledger, and read them back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from byheart.model import BenchFigures, BenchRun, to_wire

RUNS_KEPT = 50


def dump_run(run: BenchRun) -> str:
    """Write a run as JSON."""
    return json.dumps(to_wire(run))


def load_runs(texts: Iterable[str]) -> tuple[BenchRun, ...]:
    """Read the runs that `dump_run` wrote."""
    # A run of another release may have other figures, and cannot be compared.
    with suppress(KeyError, TypeError, ValueError):
        return tuple(map(_load, texts))
    return ()


def _load(text: str) -> BenchRun:
    wire = json.loads(text)
    figures = tuple(BenchFigures(**each) for each in wire["figures"])
    return BenchRun(**wire | {"at": datetime.fromisoformat(wire["at"]), "figures": figures})
