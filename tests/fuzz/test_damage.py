"""A short run of the fuzz targets that damage files and make disks fail; longer ones by hand."""

from __future__ import annotations

import pytest

from tests.fuzz import damage, faults

SECONDS = 4.0


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_files_give_right_answers_or_errors_of_our_own(seed: int) -> None:
    report = damage.run(SECONDS, seed)
    assert report.failures == []
    assert report.tried


def test_what_was_acknowledged_on_a_failing_disk_is_kept() -> None:
    report = faults.run(SECONDS, 1)
    assert report.failures == []
    assert report.tried
