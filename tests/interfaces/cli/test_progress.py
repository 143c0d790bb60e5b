"""Progress of long work, as lines where there is no terminal."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from byheart.interfaces.cli import progress
from byheart.interfaces.cli.progress import Bar


def test_the_time_left_is_estimated_from_the_phase_of_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(progress, "time", clock)
    with Bar("copying") as bar:
        for seconds, done, total, note in (
            (100.0, 500, 1000, "500 rows"),
            (200.0, 1000, 1000, "1,000 rows"),
            (212.0, 10, 50, "10 searches"),
            (224.0, 20, 50, "20 searches"),
        ):
            clock.now = seconds
            bar.show(done, total, note)
    assert capsys.readouterr().err.splitlines() == [
        "copying: 500 rows, 1:40 min left",
        "copying: 1,000 rows",
        "copying: 10 searches, 48 s left",
        "copying: 20 searches, 36 s left",
    ]
