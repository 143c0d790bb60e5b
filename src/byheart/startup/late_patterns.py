"""Define patterns that are compiled when they are first used.

Python compiles a pattern each time a process starts. The engine has more than 200 patterns, and a
short command uses few of them.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


class _LatePattern:
    """Compile a pattern for the first attribute that is read, then keep its methods here."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled: re.Pattern[Any] = re.compile(self.pattern, self._flags)
        # Found without this method from now on, so a later use costs nothing more.
        self.__dict__.update((each, getattr(compiled, each)) for each in _METHODS)
        return getattr(compiled, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return late_pattern, (self.pattern, self._flags)


def late_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a stand-in for `re.compile(pattern, flags)`; a wrong pattern fails when it is used.

    Call its methods: `re.sub(pattern, …)` and `isinstance(pattern, re.Pattern)` do not take it.
    """
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))
