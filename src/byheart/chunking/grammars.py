"""Grammars: the tree-sitter parsers that happen to be installed, loaded when first needed."""

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

# The wheels carry their compiled parsers. tree-sitter-language-pack is smaller at first sight but
# fetches them from the network at run time, which a memory on one's own machine must not do.
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


# A grammar that gets lost takes time and memory by the square of the text: 10 kB of `<a` are 3 s
# and 1.7 GB as C#. Nothing stops it (decision 0004), so short stretches are tried before long ones.
# Stretches are cut in the middle of definitions, where some of them are parsed faster than within a
# longer one: up to four times in real code, though never by 2 microseconds a byte.
_STRETCH_BYTES, _PARTS = 2_000, 4
_LEAST_SECONDS, _SECONDS_PER_BYTE = 0.05, 10e-6
_GROWTH, _NOISE_SECONDS, _SLACK_SECONDS_PER_BYTE = 1.5, 0.02, 2e-6


def parse(source: bytes, language: str) -> Tree | None:
    """Parse source code, or give nothing when its grammar is not installed or gets lost in it."""
    grammar = _load(language)
    if grammar is None or not _keeps_up(grammar, source):
        return None
    return _parse(grammar, source)


def _parse(grammar: Language, source: bytes) -> Tree:
    from tree_sitter import Parser

    return Parser(grammar).parse(source)


def _keeps_up(grammar: Language, source: bytes) -> bool:
    """Say whether ever longer stretches of a text are parsed in about the time of their parts."""
    size = _STRETCH_BYTES
    usual: Iterable[float] = repeat(inf)
    while size < len(source):
        spent: list[float] = []
        for at, seconds in zip(range(0, len(source), size), usual, strict=False):
            allowed = min(seconds, _LEAST_SECONDS + _SECONDS_PER_BYTE * size)
            spent.append(_seconds_to_parse(grammar, source[at : at + size], allowed))
            if spent[-1] > allowed:
                return False
        parts = (spent[at : at + _PARTS] for at in range(0, len(spent), _PARTS))
        size *= _PARTS
        slack = _NOISE_SECONDS + _SLACK_SECONDS_PER_BYTE * size
        usual = [slack + _GROWTH * sum(each) for each in parts]
    return True


def _seconds_to_parse(grammar: Language, stretch: bytes, allowed: float) -> float:
    """Take the time, again if it is too long: garbage may have been collected meanwhile."""
    seconds = allowed
    for _ in range(2):
        # The processor's time for this thread: that others keep it waiting does not count.
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
