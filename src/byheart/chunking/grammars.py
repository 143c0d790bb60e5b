"""Grammars: the tree-sitter parsers that happen to be installed, loaded when first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
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


def parse(source: bytes, language: str) -> Tree | None:
    """Parse source code, or give nothing when its grammar is not installed."""
    grammar = _load(language)
    if grammar is None:
        return None
    from tree_sitter import Parser

    return Parser(grammar).parse(source)


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
