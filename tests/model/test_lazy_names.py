"""The names of `byheart.model` are imported when they are used."""

from __future__ import annotations

import subprocess
import sys

import byheart.model


def test_every_name_is_there_and_no_other() -> None:
    assert sorted(byheart.model._HOMES) == sorted(byheart.model.__all__)
    assert all(getattr(byheart.model, name) is not None for name in byheart.model.__all__)
    assert not hasattr(byheart.model, "Unknown")


def test_settings_are_read_without_the_value_types_of_answers() -> None:
    code = "import sys, byheart.settings; print('byheart.model.answers' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
