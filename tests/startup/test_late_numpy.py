"""Test that `np` of the late module is numpy, imported when it is first used."""

from __future__ import annotations

import subprocess
import sys

_USE = """
import sys, types
from byheart.startup.late_numpy import NDArray, np
Alias = NDArray["np.float32"]
print("numpy" in sys.modules)
array = np.arange(3)
import numpy
print(np.float32 is numpy.float32, type(np) is types.ModuleType, np.random is numpy.random)
print(array.dtype == np.dtype("int64"), hasattr(np, "no_such_name"))
"""


def test_numpy_is_imported_for_its_first_name() -> None:
    ran = subprocess.run([sys.executable, "-c", _USE], capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines() == ["False", "True True True", "True False"]
