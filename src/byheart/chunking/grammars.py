"""Load the installed tree-sitter parsers when they are first needed."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

# The wheels contain compiled parsers. tree-sitter-language-pack looks smaller but downloads the
# parsers at run time, which a local memory must not do.
_GRAMMARS = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "lua": ("tree_sitter_lua", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "scala": ("tree_sitter_scala", "language"),
    "swift": ("tree_sitter_swift", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}


# On some inputs a grammar takes quadratic time and memory: 10 kB of `<a` take 3 s and 1.7 GB as C#.
# Nothing can stop a running parse (decision 0004), so short stretches are tried before long ones.
# Stretches are cut in the middle of definitions, which sometimes makes them faster to parse than as
# part of a longer one: up to four times in real code, though never by 2 microseconds per byte.
_STRETCH_BYTES, _PARTS = 2_000, 4
_LEAST_SECONDS, _SECONDS_PER_BYTE = 0.05, 10e-6
# Memory is proportional to time, about 300 bytes per microsecond: 600 kB of `a<` take 6 s and 1.9
# GB as C++. Code takes 0.1 to 0.4 microseconds and 20 to 80 bytes per byte; long stretches may take
# five times that. Trying and parsing a whole text takes 1 to 2 microseconds per byte of code.
_LONG_STRETCH_BYTES, _SECONDS_PER_LONG_BYTE = 32_000, 2e-6
_BUDGET_SECONDS, _BUDGET_SECONDS_PER_BYTE = 0.5, 4e-6
_GROWTH, _NOISE_SECONDS, _SLACK_SECONDS_PER_BYTE = 1.5, 0.02, 2e-6


class Budget:
    """Limit the CPU time that grammars may take for one text, so that no text takes minutes."""

    def __init__(self, size: int) -> None:
        self._seconds = _BUDGET_SECONDS + _BUDGET_SECONDS_PER_BYTE * size

    @property
    def is_spent(self) -> bool:
        """Check whether the rest of the text must be divided without its grammar."""
        return self._seconds <= 0

    def spend(self, seconds: float) -> None:
        """Subtract the time that was used."""
        self._seconds -= seconds


def parse(source: bytes, language: str, budget: Budget | None = None) -> Tree | None:
    """Parse source code; None if its grammar is not installed or takes too long."""
    grammar = _load(language)
    budget = budget or Budget(len(source))
    if grammar is None or not _keeps_up(grammar, source, budget):
        return None
    started = time.thread_time()
    tree = _parse(grammar, source)
    budget.spend(time.thread_time() - started)
    return tree


def _parse(grammar: Language, source: bytes) -> Tree:
    from tree_sitter import Parser

    return Parser(grammar).parse(source)


def _keeps_up(grammar: Language, source: bytes, budget: Budget) -> bool:
    """Check that ever longer stretches of a text take about as long as their parts together."""
    size = _STRETCH_BYTES
    usual: Iterable[float] = repeat(inf)
    while size < len(source):
        per_byte = _SECONDS_PER_BYTE if size < _LONG_STRETCH_BYTES else _SECONDS_PER_LONG_BYTE
        spent: list[float] = []
        for at, seconds in zip(range(0, len(source), size), usual, strict=False):
            allowed = min(seconds, _LEAST_SECONDS + per_byte * size)
            spent.append(_seconds_to_parse(grammar, source[at : at + size], allowed))
            budget.spend(spent[-1])
            if spent[-1] > allowed or budget.is_spent:
                return False
        parts = (spent[at : at + _PARTS] for at in range(0, len(spent), _PARTS))
        size *= _PARTS
        slack = _NOISE_SECONDS + _SLACK_SECONDS_PER_BYTE * size
        usual = [slack + _GROWTH * sum(each) for each in parts]
    return not budget.is_spent


def _seconds_to_parse(grammar: Language, stretch: bytes, allowed: float) -> float:
    """Measure the time, twice if it is too long: the garbage collector may have run meanwhile."""
    seconds = allowed
    for _ in range(2):
        # Measure this thread's CPU time, so that waiting for other threads does not count.
        started = time.thread_time()
        _parse(grammar, stretch)
        seconds = time.thread_time() - started
        if seconds <= allowed:
            break
    return seconds


@cache
def _load(language: str) -> Language | None:
    if language not in _GRAMMARS:
        return None
    module, function = _GRAMMARS[language]
    try:
        from tree_sitter import Language

        return Language(getattr(import_module(module), function)())
    except ImportError:
        return None
