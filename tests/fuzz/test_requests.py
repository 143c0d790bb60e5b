"""The fuzzers of the interfaces, each for a fixed number of inputs."""

from __future__ import annotations

import pytest

from tests.fuzz import http, mcp, rest

SEED = 20261117
# Only so that a server that hangs does not stop the tests for ever.
LONGEST_SECONDS = 300.0


@pytest.mark.slow
@pytest.mark.parametrize(("target", "inputs"), [(rest, 150), (mcp, 300), (http, 50)])
def test_no_generated_input_is_answered_with_a_defect(target: object, inputs: int) -> None:
    report = target.run(LONGEST_SECONDS, SEED, most=inputs)  # type: ignore[attr-defined]
    assert report.failures == []
    assert report.tried == inputs
