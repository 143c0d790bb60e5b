"""Freed memory is given back to the operating system."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """
import numpy as np
from pathlib import Path
from byheart.system.freed_memory import return_freed_memory

def own():
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024

arrays = [np.ones(100_000, np.uint8) for _ in range(1000)]
last = arrays.pop()
before = own()
del arrays
kept = own()
return_freed_memory()
print(before, kept, own())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the memory of a process")
def test_pages_of_freed_arrays_leave_the_process() -> None:
    out = subprocess.run(
        [sys.executable, "-c", _SCRIPT], check=True, capture_output=True, text=True
    ).stdout
    before, kept, after = map(float, out.split())
    # A C library other than glibc may have given them back already.
    assert before - min(kept, after) > 80
    assert after <= kept
