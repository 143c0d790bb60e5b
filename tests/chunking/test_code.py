"""Source code is split by its definitions."""

from __future__ import annotations

import pytest

from byheart.chunking import grammars

PYTHON = '''\
"""Module."""

import re


# About the parser.
@frozen
class Parser:
    """Parse."""

    def parse(self, text):
        """Read."""
        one = text.split()
        two = one[0]
        return two

    @cached
    def count(self):
        return len(self.parse(""))


def main():
    Parser().parse("a b")
'''


def needs(language):
    if grammars.parse(b"", language) is None:
        pytest.skip(f"no grammar for {language}")


def test_small_neighbouring_definitions_share_a_chunk(chunk):
    needs("python")
    (only,) = chunk(PYTHON, format="code:python")
    assert (only.chunk_type, only.header_path) == ("definition", "")


def test_a_definition_too_long_is_split_at_its_inner_definitions(chunk):
    needs("python")
    chunks = chunk(PYTHON, format="code:python", target_tokens=45)
    assert [(each.header_path, each.content.split("\n")[0]) for each in chunks] == [
        ("", '"""Module."""'),
        ("class Parser", "# About the parser."),
        ("class Parser > def parse", "    def parse(self, text):"),
        ("class Parser > def count", "    @cached"),
        ("def main", "def main():"),
    ]


def test_a_function_too_long_is_split_between_statements(chunk):
    needs("python")
    body = "".join(f"    value_{n} = call(\n        {n},\n    )\n" for n in range(100))
    chunks = chunk("@wraps\ndef long(a):\n" + body, format="code:python")
    assert len(chunks) > 1
    assert {each.header_path for each in chunks} == {"def long"}
    assert all(each.content.startswith(("@wraps", "    value")) for each in chunks)


def test_a_long_string_is_split_by_lines(chunk):
    needs("python")
    text = "".join(f"line {n} of it\n" for n in range(300))
    chunks = chunk(f'TEXT = """\n{text}"""\n', format="code:python")
    assert all(each.content.endswith("\n") for each in chunks)
    assert max(each.token_count for each in chunks) <= 400


DEFINITIONS = {
    "bash": ("go() {\n  echo a\n}\nfunction stop {\n  echo b\n}\n", ["go", "function stop"]),
    "c": (
        "static int\nmain(int a)\n{\n  return 1;\n}\n\nstruct s {\n  int a;\n  int b;\n};\n",
        ["main", "struct s"],
    ),
    "cpp": (
        "namespace n {\nint P::go(int a) {\n  return a + 1;\n}\n}\n",
        ["namespace n > int P::go"],
    ),
    "csharp": (
        "class A\n{\n  public void Go(int a)\n  {\n    b();\n  }\n}\n",
        ["class A > public void Go"],
    ),
    "go": (
        "// Doc\ntype P struct {\n\ta int\n}\n\nfunc (p *P) Go(s string) int {\n\treturn 1\n}\n",
        ["type P", "func (p *P) Go"],
    ),
    "java": (
        "class A {\n  @Override\n  public void go(int a) {\n    b();\n  }\n}\n",
        ["class A > public void go"],
    ),
    "javascript": (
        "/** Doc */\nexport class A {\n  go(x) {\n    x();\n  }\n}\n"
        "const f = () => {\n  return 1;\n};\n",
        ["class A > go", "const f"],
    ),
    "kotlin": (
        "class A {\n  fun go(x: Int): Int {\n    return x + 1\n  }\n}\nfun stop() {\n  b(1)\n}\n",
        ["class A > fun go", "fun stop"],
    ),
    "lua": (
        "function M.go(a)\n  return a + 1\nend\nlocal function stop(b)\n  return b + 2\nend\n",
        ["function M.go", "local function stop"],
    ),
    "php": (
        "<?php\nclass A {\n  public function go($a) {\n    return $a;\n  }\n}\n",
        ["class A > public function go"],
    ),
    "ruby": ("class A\n  def go(a)\n    a + 1 + 2\n  end\nend\n", ["class A > def go"]),
    "rust": (
        "/// Doc\n#[derive(Debug)]\nstruct P {\n  a: u8,\n}\n"
        "impl Show for P {\n  fn go(&self) {\n    a()\n  }\n}\n",
        ["struct P", "impl Show for P > fn go"],
    ),
    "scala": (
        "object A {\n  def go(x: Int): Int = {\n    x + 1\n  }\n}\ntrait T {\n  def b: Int\n}\n",
        ["object A > def go", "trait T"],
    ),
    "swift": (
        "struct P {\n  func go(a: Int) -> Int {\n    return a + 1\n  }\n}\n"
        "protocol Q {\n  func b(c: Int)\n}\n",
        ["struct P > func go", "protocol Q"],
    ),
    "tsx": (
        "export function App(p: P) {\n  return <b>{p.a}</b>;\n}\n"
        "const Row = () => {\n  return <i />;\n};\n",
        ["function App", "const Row"],
    ),
    "typescript": (
        "export interface I {\n  a: string;\n}\n"
        "class B {\n  @Out()\n  go(): void {\n    x();\n  }\n}\n",
        ["interface I", "class B > go"],
    ),
}


@pytest.mark.parametrize("language", DEFINITIONS)
def test_chunks_stand_under_their_definitions(chunk, check, language):
    needs(language)
    source, paths = DEFINITIONS[language]
    chunks = chunk(source, format=f"code:{language}", target_tokens=9)
    check(source, chunks, 9)
    assert set(paths) <= {each.header_path for each in chunks}


def test_code_in_which_the_grammar_gets_lost_is_split_at_its_lines(chunk, check):
    needs("cpp")
    source = "int go(int a) {\n  return a + 1;\n}\n\n" * 100 + "<!--" * 2_000
    chunks = chunk(source, format="code:cpp")
    check(source, chunks, 400)
    assert {each.chunk_type for each in chunks} == {"code_block"}


def test_long_code_with_a_mistake_is_split_by_its_definitions(chunk, check):
    needs("cpp")
    functions = "".join(f"int go_{n}(int a) {{\n  return a + {n};\n}}\n\n" for n in range(2_000))
    source = functions.replace("a + 7;", "a + ;")
    chunks = chunk(source, format="code:cpp")
    check(source, chunks, 400)
    assert sum(each.chunk_type == "definition" for each in chunks) > 0.9 * len(chunks)


def test_code_of_an_unknown_language_is_split_at_unindented_lines(chunk):
    source = "proc one\n  a b c\n\n  d e f\nend\n\nproc two\n  g h i\n\n  j k l\nend\n"
    first, second = chunk(source, format="code:nonesuch", target_tokens=10)
    assert second.content.startswith("proc two")
    assert (first.chunk_type, first.headings) == ("code_block", ())


def test_without_its_grammar_a_language_is_still_split(chunk, check, monkeypatch):
    monkeypatch.setattr(grammars, "parse", lambda *_: None)
    chunks = chunk(PYTHON, format="code:python", target_tokens=45)
    check(PYTHON, chunks, 45)
    assert len(chunks) > 1
    assert all(each.content.endswith("\n\n") for each in chunks[:-1])
