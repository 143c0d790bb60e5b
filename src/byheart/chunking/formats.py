"""Detect whether a text is Markdown, reStructuredText, source code or plain text."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from byheart.chunking.code_lines import looks_like_code, name_language
from byheart.chunking.markdown import has_markdown_structure
from byheart.startup.late_patterns import late_pattern

_SUFFIXES = {
    "markdown": "md markdown mdown mkd mdx qmd rmd",
    "rst": "rst rest",
    "text": "txt text log adoc asciidoc org tex csv tsv srt vtt eml bib po pot",
    "code:asm": "asm s",
    "code:bash": "sh bash zsh ksh fish",
    "code:batch": "bat cmd",
    "code:c": "c h",
    "code:clojure": "clj cljs cljc edn",
    "code:cmake": "cmake",
    "code:cpp": "cc cpp cxx hpp hh hxx ipp cu",
    "code:crystal": "cr",
    "code:csharp": "cs",
    "code:css": "css scss sass less",
    "code:dart": "dart",
    "code:dlang": "d",
    "code:dockerfile": "dockerfile",
    "code:elixir": "ex exs",
    "code:erlang": "erl hrl",
    "code:fortran": "f f90 f95 f03 f08",
    "code:fsharp": "fs fsx fsi",
    "code:go": "go",
    "code:graphql": "graphql gql",
    "code:groovy": "groovy gradle",
    "code:haskell": "hs",
    "code:html": "html htm xhtml vue svelte astro hbs ejs jinja j2",
    "code:ini": "ini cfg conf properties service desktop",
    "code:java": "java",
    "code:javascript": "js jsx mjs cjs",
    "code:json": "json jsonl json5 jsonc ndjson geojson ipynb webmanifest",
    "code:julia": "jl",
    "code:kotlin": "kt kts",
    "code:lisp": "el lisp cl scm rkt",
    "code:lua": "lua",
    "code:make": "mk mak",
    "code:nim": "nim",
    "code:nix": "nix",
    "code:objc": "m mm",
    "code:ocaml": "ml mli",
    "code:pascal": "pas pp",
    "code:perl": "pl pm",
    "code:php": "php",
    "code:powershell": "ps1 psm1",
    "code:prisma": "prisma",
    "code:proto": "proto",
    "code:python": "py pyi pyw pyx pxd bzl",
    "code:r": "r",
    "code:ruby": "rb rake gemspec erb podspec",
    "code:rust": "rs",
    "code:scala": "scala sc",
    "code:solidity": "sol",
    "code:sql": "sql",
    "code:swift": "swift",
    "code:tcl": "tcl",
    "code:terraform": "tf hcl",
    "code:thrift": "thrift",
    "code:toml": "toml",
    "code:tsx": "tsx",
    "code:typescript": "ts mts cts",
    "code:verilog": "v sv vh",
    "code:vhdl": "vhdl vhd",
    "code:vim": "vim",
    "code:visualbasic": "vb bas",
    "code:xml": "xml xsl xsd svg plist csproj fsproj vbproj props targets xaml wsdl rss atom",
    "code:yaml": "yaml yml",
    "code:zig": "zig",
}
_FORMAT_BY_SUFFIX = {
    suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
_FORMAT_BY_NAME = {
    "brewfile": "code:ruby",
    "cmakelists.txt": "code:cmake",
    "containerfile": "code:dockerfile",
    "dockerfile": "code:dockerfile",
    "gnumakefile": "code:make",
    "jenkinsfile": "code:groovy",
    "podfile": "code:ruby",
    "vagrantfile": "code:ruby",
    "gemfile": "code:ruby",
    "justfile": "code:make",
    "makefile": "code:make",
    "rakefile": "code:ruby",
}
_SHEBANG = late_pattern(r"#![^\r\n]*?\b(python|bash|zsh|sh|node|deno|ruby|perl|php|lua)[\d.]*\b")
_SHELLS = {"zsh": "bash", "sh": "bash", "node": "javascript", "deno": "typescript"}

# These signs never occur in prose: an opening line of one language and, later, a definition in it.
# Less certain text stays plain text, where a wrong guess costs nothing.
_CODE_SIGNS = (
    ("php", late_pattern(r"\s*<\?php\b")),
    ("cpp", late_pattern(r"\s*(?://[^\n]*\n\s*)*#(?:include\s*[<\"]|pragma once|ifndef \w+_H)")),
    (
        "go",
        late_pattern(r"\s*(?://[^\n]*\n\s*)*package \w+\r?\n(?s:.*)^(?:func|type|import)\b", re.M),
    ),
    (
        "python",
        late_pattern(
            r"\s*(?=#|\"\"\"|@\w|import |from [\w.]+ import |(?:async )?def |class )(?s:.*?)"
            r"^[ \t]*(?:(?:async )?def \w+\([^\n]*|class \w+[^\n]*:)[^\S\n]*\n[ \t]+\S",
            re.M,
        ),
    ),
)
_FENCE = late_pattern(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_SAMPLE_CHARS = 20_000


def guess_format(content: str, path: str | None = None) -> str:
    """Name the format, such as "markdown" or "code:python", by the path or else the content."""
    if path is not None:
        file = PurePosixPath(path.replace("\\", "/").lower())
        known = _FORMAT_BY_NAME.get(file.name) or _FORMAT_BY_SUFFIX.get(file.suffix[1:])
        if known:
            return known
    language = _guess_language(content[:_SAMPLE_CHARS])
    if language:
        return f"code:{language}"
    if not has_markdown_structure(content):
        return "text"
    # A comment of a script or a configuration looks like a heading of Markdown.
    if looks_like_code(content[:_SAMPLE_CHARS]):
        return f"code:{name_language(content[:_SAMPLE_CHARS])}"
    return "markdown"


def _guess_language(sample: str) -> str | None:
    """Recognize source code that is certain to be code."""
    shebang = _SHEBANG.match(sample)
    if shebang:
        return _SHELLS.get(shebang[1], shebang[1])
    if _FENCE.search(sample):
        return None
    return next((language for language, sign in _CODE_SIGNS if sign.match(sample)), None)
