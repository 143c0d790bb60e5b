"""Find sentences in `src` and in the documents that a machine can tell are not plain English.

    python -m tests.docs.plain_words    list every such sentence, with its file and line

Two rules are checked. The first line of the docstring of a module or of a public function begins
with a verb in the imperative. No sentence of a docstring, a comment or a document begins with
"What", "Whoever", "Those that", "One that", "Of" or "Nor"; a question may, and the heading of a
document.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "byheart"
# CHANGELOG.md is not among them: its entries are as they were released.
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md")

_ODD_BEGINNING = re.compile(r"(?:What|Whoever|Those that|One that|Of|Nor)\b")
# A sentence ends at a full stop, an exclamation mark or a question mark before a capital letter.
_SENTENCE = re.compile(r"""(?s).+?(?:[.!?]['")\]]*(?=\s+[A-Z`'"(])|\Z)""")
_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?=[-*] )")
_FENCED = re.compile(r"(?ms)^( *)```.*?^\1```$")
_MARKUP = re.compile(r"[*_>#|\s]*")
_HEADING = re.compile(r"#+ ")
_DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|pragma|fmt:|ruff:|!)")

_ENDS_LIKE_NO_VERB = re.compile(r".*(?:[^s]s|ing)")
_VERBS_ALL_THE_SAME = {"Bring", "Focus", "Ping", "Bias"}
_NO_VERBS = re.compile(
    "A|All|An|And|Another|Any|As|At|Because|Before|Behind|Both|But|By|Each|Either|Every|Everything"
    "|False|For|From|He|Her|How|I|If|In|It|Neither|No|Nobody|None|Nor|Not|Nothing|Of|On|One|Only"
    "|Or|She|Some|Such|That|The|Their|Them|There|These|They|This|Those|To|True|Until|We|What"
    "|Whatever|When|Where|Whether|Which|While|Who|Whoever|Whose|Why|With|Without|You"
)


class Odd(NamedTuple):
    """A sentence that has to be rewritten."""

    path: str
    line: int
    sentence: str


def find_odd(path: str, source: str) -> Iterator[Odd]:
    """Find the sentences of a file that break one of the two rules, each sentence once."""
    found: dict[tuple[int, str], Odd] = {}
    for line, text in (*_docstrings(source), *_attribute_docstrings(source), *_comments(source)):
        for sentence in _sentences(text):
            if _ODD_BEGINNING.match(sentence) and not sentence.endswith("?"):
                found[line, sentence] = Odd(path, line, sentence)
    for line, text in _docstrings(source, imperative=True):
        sentence = next(_sentences(text), "")
        if not is_imperative(text):
            found[line, sentence] = Odd(path, line, sentence)
    yield from found.values()


def find_odd_in_document(path: str, text: str) -> Iterator[Odd]:
    """Find the sentences of a Markdown document that begin oddly."""
    prose = _FENCED.sub(lambda fenced: "\n" * fenced[0].count("\n"), text)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?))", prose):
        cells = block.split(" |") if block.startswith("|") else [block]
        for sentence in (each for cell in cells for each in _sentences(cell)):
            plain = sentence[_MARKUP.match(sentence).end() :]  # type: ignore[union-attr]
            if (
                _ODD_BEGINNING.match(plain)
                and not plain.rstrip("*_ ").endswith("?")
                and not _HEADING.match(sentence)
            ):
                yield Odd(path, line, sentence)
        line += block.count("\n")


def is_imperative(docstring: str) -> bool:
    """Tell whether a docstring begins with a word that looks like a verb in the imperative."""
    word = re.split(r"[\s,:;.]", docstring, maxsplit=1)[0]
    return word in _VERBS_ALL_THE_SAME or bool(
        re.fullmatch(r"[A-Z][a-z]+(?:-[a-z]+)*", word)
        and not _NO_VERBS.fullmatch(word)
        and not _ENDS_LIKE_NO_VERB.fullmatch(word)
    )


def _docstrings(source: str, *, imperative: bool = False) -> Iterator[tuple[int, str]]:
    """Find docstrings; with `imperative`, those that have to begin with a verb."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (*functions, ast.ClassDef, ast.Module)):
            continue
        if imperative and (isinstance(node, ast.ClassDef) or _is_private(node)):
            continue
        text = ast.get_docstring(node)
        if text:
            yield node.body[0].lineno, text


def _is_private(node: ast.AST) -> bool:
    name: str = getattr(node, "name", "")
    return name.startswith("_")


def _attribute_docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Find the texts below attributes and constants that describe them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.Module):
            for each in node.body[1:]:
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    yield each.lineno, str(each.value.value)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Find the comments; lines without code below one another in one column are one comment."""
    begins, ends, column, text = 0, -1, -1, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        line, at = token.start
        beside_code = bool(token.line[:at].strip())
        if beside_code or (line, at) != (ends + 1, column):
            if text:
                yield begins, text
            begins, column, text = line, at, ""
        text += token.string.lstrip("#").removeprefix(" ") + "\n"
        ends = line
    if text:
        yield begins, text


def _sentences(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(text):
        words = " ".join(paragraph.split()).removeprefix("- ").removeprefix("* ")
        for sentence in _SENTENCE.findall(words):
            yield sentence.strip()


def find_all() -> list[Odd]:
    """Find every sentence of `src` that has to be rewritten."""
    found: list[Odd] = []
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).as_posix()
        found.extend(find_odd(path, file.read_text(encoding="utf-8")))
    return found


def find_all_in_documents() -> list[Odd]:
    """Find every sentence of the documents that has to be rewritten."""
    files = sorted(file for pattern in DOCUMENTS for file in ROOT.glob(pattern))
    return [
        odd
        for file in files
        for odd in find_odd_in_document(
            file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
        )
    ]


def main() -> None:
    """List the sentences."""
    for each in find_all():
        sys.stdout.write(f"src/byheart/{each.path}:{each.line}: {each.sentence}\n")
    for each in find_all_in_documents():
        sys.stdout.write(f"{each.path}:{each.line}: {each.sentence}\n")


if __name__ == "__main__":
    main()
