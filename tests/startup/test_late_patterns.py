"""Test that late patterns find what compiled patterns find."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys

import pytest

from byheart.startup.late_patterns import late_pattern


def test_a_late_pattern_has_the_methods_of_a_pattern() -> None:
    late, usual = (
        late_pattern(r"(?P<word>b\w+)", re.IGNORECASE),
        re.compile(r"(?P<word>b\w+)", re.I),
    )
    text = "a Bee and a bear"

    assert [each.span() for each in late.finditer(text)] == [
        each.span() for each in usual.finditer(text)
    ]
    assert late.findall(text) == usual.findall(text) == ["Bee", "bear"]
    assert late.sub("x", text) == usual.sub("x", text)
    assert late.split(text) == usual.split(text)
    assert late.match(text) is None
    assert late.fullmatch("bear")
    assert late.search(text, 3).start() == 12  # type: ignore[union-attr]
    assert late.subn("x", text) == ("a x and a x", 2)
    assert (late.pattern, late.flags) == (usual.pattern, usual.flags)
    assert (late.groups, dict(late.groupindex)) == (1, {"word": 1})


def test_a_late_pattern_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    usual = re.compile

    def count(pattern: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(pattern)
        return usual(pattern, flags)

    monkeypatch.setattr(re, "compile", count)
    late = late_pattern("a+")
    assert compiled == []
    assert late.search("baa")
    assert late.sub("", "baa") == "b"
    assert compiled == ["a+"]


def test_a_wrong_pattern_fails_when_it_is_used() -> None:
    late = late_pattern("(")

    with pytest.raises(re.error, match="unterminated"):
        late.search("")


def test_a_late_pattern_is_copied_and_pickled_before_and_after_its_first_use() -> None:
    late = late_pattern("B+", re.IGNORECASE)

    for _ in range(2):
        for again in (copy.copy(late), copy.deepcopy(late), pickle.loads(pickle.dumps(late))):
            assert (again.pattern, again.flags) == (late.pattern, late.flags)
            assert again.findall("abBa") == ["bB"]


_COMPILE_ALL = """
import gc, pkgutil, re
from importlib import import_module
import byheart
from byheart.startup.late_patterns import _LatePattern
for module in pkgutil.walk_packages(byheart.__path__, "byheart."):
    if module.name.split(".")[1] not in {"integrations", "__main__"}:
        import_module(module.name)
patterns = [each for each in gc.get_objects() if isinstance(each, _LatePattern)]
for each in patterns:
    re.compile(each.pattern, each.__dict__["_flags"])
print(len(patterns))
"""


def test_every_late_pattern_of_the_project_compiles() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _COMPILE_ALL], capture_output=True, text=True, check=False
    )

    assert ran.stderr == ""
    assert int(ran.stdout) > 100
