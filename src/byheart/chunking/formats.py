"""Formats: whether a text is Markdown, source code or plain text."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from byheart.chunking.markdown import has_markdown_structure

_SUFFIXES = {
    "markdown": "md markdown mdown mkd mdx qmd rmd",
    "text": "txt text log rst adoc asciidoc org tex csv tsv srt vtt eml",
    "code:bash": "sh bash zsh ksh",
    "code:c": "c h",
    "code:clojure": "clj cljs cljc edn",
    "code:cpp": "cc cpp cxx hpp hh hxx ipp cu",
    "code:csharp": "cs",
    "code:css": "css scss sass less",
    "code:dart": "dart",
    "code:elixir": "ex exs",
    "code:erlang": "erl hrl",
    "code:go": "go",
    "code:graphql": "graphql gql",
    "code:haskell": "hs",
    "code:html": "html htm xhtml vue svelte",
    "code:ini": "ini cfg conf properties",
    "code:java": "java",
    "code:javascript": "js jsx mjs cjs",
    "code:json": "json jsonl json5 ndjson ipynb",
    "code:julia": "jl",
    "code:kotlin": "kt kts",
    "code:lua": "lua",
    "code:nix": "nix",
    "code:ocaml": "ml mli",
    "code:perl": "pl pm",
    "code:php": "php",
    "code:powershell": "ps1 psm1",
    "code:proto": "proto",
    "code:python": "py pyi pyw",
    "code:r": "r",
    "code:ruby": "rb rake gemspec",
    "code:rust": "rs",
    "code:scala": "scala sc",
    "code:sql": "sql",
    "code:swift": "swift",
    "code:terraform": "tf hcl",
    "code:toml": "toml",
    "code:tsx": "tsx",
    "code:typescript": "ts mts cts",
    "code:xml": "xml xsl xsd svg",
    "code:yaml": "yaml yml",
    "code:zig": "zig",
}
_FORMAT_BY_SUFFIX = {
    suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
_FORMAT_BY_NAME = {
    "dockerfile": "code:dockerfile",
    "gemfile": "code:ruby",
    "justfile": "code:make",
    "makefile": "code:make",
    "rakefile": "code:ruby",
}
_SHEBANG = re.compile(r"#![^\r\n]*?\b(python|bash|zsh|sh|node|deno|ruby|perl|php|lua)[\d.]*\b")
_SHELLS = {"zsh": "bash", "sh": "bash", "node": "javascript", "deno": "typescript"}

# Only what prose never is: an opening line of one language and, further on, a definition of it.
# Anything less sure stays text, where a wrong guess costs nothing.
_CODE_SIGNS = (
    ("php", re.compile(r"\s*<\?php\b")),
    ("cpp", re.compile(r"\s*(?://[^\n]*\n\s*)*#(?:include\s*[<\"]|pragma once|ifndef \w+_H)")),
    (
        "go",
        re.compile(r"\s*(?://[^\n]*\n\s*)*package \w+\r?\n(?s:.*)^(?:func|type|import)\b", re.M),
    ),
    (
        "python",
        re.compile(
            r"\s*(?=#|\"\"\"|@\w|import |from [\w.]+ import |(?:async )?def |class )(?s:.*?)"
            r"^[ \t]*(?:(?:async )?def \w+\([^\n]*|class \w+[^\n]*:)[^\S\n]*\n[ \t]+\S",
            re.M,
        ),
    ),
)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_SAMPLE_CHARS = 20_000


def guess_format(content: str, path: str | None = None) -> str:
    """Name the format, "markdown", "text" or "code:<language>", by the path or else the content."""
    if path is not None:
        file = PurePosixPath(path.replace("\\", "/").lower())
        known = _FORMAT_BY_NAME.get(file.name) or _FORMAT_BY_SUFFIX.get(file.suffix[1:])
        if known:
            return known
    sample = content[:_SAMPLE_CHARS]
    language = _guess_language(sample)
    if language:
        return f"code:{language}"
    return "markdown" if has_markdown_structure(sample) else "text"


def _guess_language(sample: str) -> str | None:
    """Recognise source code that shows it beyond doubt."""
    shebang = _SHEBANG.match(sample)
    if shebang:
        return _SHELLS.get(shebang[1], shebang[1])
    if _FENCE.search(sample):
        return None
    return next((language for language, sign in _CODE_SIGNS if sign.match(sample)), None)
