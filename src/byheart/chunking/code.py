"""Divide source code at its definitions, by grammar or, without one, by indentation."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from byheart.chunking import grammars
from byheart.chunking.block import Block, no_parts
from byheart.chunking.ruler import Ruler
from byheart.model import Heading
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

if TYPE_CHECKING:
    from tree_sitter import Node

# One pattern serves all grammars, because they use similar names for similar nodes.
_DEFINITION = late_pattern(
    r"(?:\w+_)?(?:function|method|class|interface|struct|enum|trait|impl|mod|module|namespace"
    r"|object|protocol|record|union|constructor|init|macro|type|alias)"
    r"_(?:definition|declaration|item|specifier)|class|module|internal_module|method|singleton_method"
)
_WRAPPER = late_pattern(
    r"decorated_definition|export_statement|expression_statement|template_declaration"
)
_BINDING = late_pattern(r"(?:lexical|variable)_declaration")
_FUNCTION_VALUE = late_pattern(r"arrow_function|function_expression|function|class")
_LEADING = late_pattern(r"\w*comment|attribute_item|decorator|annotation")
_CONTAINER = late_pattern(r"\w*(?:block|body|list|statements|suite|body_statement)")

# tree-sitter ends lines at `\n` only; the ruler also at a lone `\r`.
_LONE_CR = late_pattern(r"\r(?!\n)")
_NEWLINE = re.compile(rb"\n")
_UNINDENTED = late_pattern(r"(?:(?<=\n)|(?<=\r))[^\S\r\n]*(?:\r\n?|\n)(?=[^\s)\]}])")
_BLANK_LINE = late_pattern(r"(?:(?<=\n)|(?<=\r))[^\S\r\n]*(?:\r\n?|\n)(?=[^\S\r\n]*\S)")
_MAX_TITLE_CHARS = 200
_MAX_DEPTH = 6
_MAX_DIVISIONS = 64
# A definition is searched inside at most this many wrappers, such as `template <class T>`.
_MAX_WRAPPERS = 16
_PIECE_CHARS = 500_000


def find_code_blocks(ruler: Ruler, language: str) -> Iterator[Block]:
    """Divide source code into definitions and the statements between them."""
    budget = grammars.Budget(len(ruler.content))
    for start, end in _pieces(ruler.content):
        source = _LONE_CR.sub("\n", ruler.content[start:end]).encode("utf-8", "replace")
        tree = grammars.parse(source, language, budget) if end - start <= _PIECE_CHARS else None
        if tree is None:
            yield from _divide_at(ruler, _UNINDENTED, start, end)
            continue
        rows = _Rows(source, [0, *(match.end() for match in _NEWLINE.finditer(source))])
        # Row 0 of a piece is the line of the text on which the piece begins.
        first_line = ruler.line_at(start) - 1
        blocks = _Stretch(ruler, rows, (tree.root_node,), -1, first_line).divide()
        # The first block of a piece starts where the piece starts, not in the piece before.
        yield from (
            block._replace(start=start) if at == 0 else block for at, block in enumerate(blocks)
        )
        if not blocks:
            yield Block(start, "code_block", grain="lines")


def _pieces(content: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the pieces to parse; a long text is cut at unindented lines.

    A syntax tree takes up to 600 times the memory of its source.
    """
    start = 0
    while len(content) - start > _PIECE_CHARS:
        cut = 0
        for match in _UNINDENTED.finditer(content, start + 1):
            if cut and match.end() - start > _PIECE_CHARS:
                break
            cut = match.end()
            if cut - start > _PIECE_CHARS:
                break
        if not cut:
            break
        yield start, cut
        start = cut
    yield start, len(content)


def _divide_at(ruler: Ruler, seam: re.Pattern[str], start: int, end: int) -> Iterator[Block]:
    """Divide at unindented lines after a blank one; those blocks, in turn, at any blank line."""
    seams = (match.end() for match in seam.finditer(ruler.content, start, end))
    for begin, after in pairwise(chain((start,), seams, (end,))):
        parts = no_parts
        if seam is _UNINDENTED:
            parts = partial(_divide_at, ruler, _BLANK_LINE, begin, after)
        yield Block(begin, "code_block", grain="lines", parts=parts)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Map byte offsets to rows; rows are the ruler's lines.

    tree-sitter's own points are not used: in 0.26.0 reading them corrupts memory.
    """

    source: bytes
    starts: Sequence[int]

    def first_of(self, node: Node) -> int:
        """Return the row a node begins on."""
        return bisect_right(self.starts, node.start_byte) - 1

    def last_of(self, node: Node) -> int:
        """Return the row of a node's last byte, not counting a line ending."""
        return bisect_left(self.starts, node.end_byte, 1) - 1

    def line_before(self, byte: int) -> int:
        """Return the start of the line that contains a byte."""
        return self.source.rfind(b"\n", 0, byte) + 1


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Hold syntax nodes from one row on, with the definitions that enclose them."""

    ruler: Ruler
    rows: _Rows
    nodes: tuple[Node, ...]
    row: int
    first_line: int
    path: tuple[Heading, ...] = ()
    depth: int = 0

    def divide(self) -> list[Block]:
        """Cut before each node that begins on a later row; the text before it is the header."""
        if self.depth >= _MAX_DIVISIONS:
            return []
        blocks = [self._block(group) for group in self._group(self._later_nodes())]
        if blocks and self.row >= 0:
            kind = "definition" if self.path else "code_block"
            start = self.ruler.line_start(self.first_line + self.row)
            blocks.insert(0, Block(start, kind, self.path, grain="lines", clings=True))
        return blocks

    def _later_nodes(self) -> Iterator[Node]:
        """Yield, in order, the outermost inner nodes that begin after the row."""
        stack = [child for node in self.nodes for child in node.named_children][::-1]
        while stack:
            node = stack.pop()
            later = self.rows.first_of(node) > self.row
            if later and not _is_bare_container(node):
                yield node
            elif later or self.rows.last_of(node) > self.row:
                stack.extend(reversed(node.named_children))

    def _group(self, nodes: Iterable[Node]) -> Iterator[tuple[Node, ...]]:
        """Join nodes that begin on one row, and comments and attributes with the next node."""
        group: list[Node] = []
        for node in nodes:
            if group and not self._belongs(node, group[-1]):
                yield tuple(group)
                group = []
            group.append(node)
        if group:
            yield tuple(group)

    def _belongs(self, node: Node, last: Node) -> bool:
        row, last_row = self.rows.first_of(node), self.rows.last_of(last)
        if _LEADING.fullmatch(last.type):
            return row <= last_row + 1
        trails = row <= last_row and _LEADING.fullmatch(node.type) is not None
        return trails or row == self.rows.first_of(last)

    def _block(self, nodes: tuple[Node, ...]) -> Block:
        start = self.ruler.line_start(self.first_line + self.rows.first_of(nodes[0]))
        definition = next(filter(None, map(_definition_of, nodes)), None)
        path = self.path
        if definition is not None and len(path) < _MAX_DEPTH:
            path = (*path, Heading(len(path) + 1, self._title(definition), start))
        body = definition or next((n for n in nodes if not _LEADING.fullmatch(n.type)), nodes[0])
        return Block(
            start,
            "definition" if path else "code_block",
            path,
            grain="lines",
            parts=replace(
                self, nodes=nodes, row=self.rows.first_of(body), path=path, depth=self.depth + 1
            ).divide,
            encloses=definition is not None,
        )

    def _title(self, definition: Node) -> str:
        """Return the signature up to the name, from the line that contains the name."""
        name = _name_of(definition) or definition
        start = max(self.rows.line_before(name.start_byte), definition.start_byte)
        text = self.rows.source[start : min(name.end_byte, start + 4 * _MAX_TITLE_CHARS)]
        signature = text.decode("utf-8", "replace").partition("\n")[0][:_MAX_TITLE_CHARS]
        return " ".join(signature.strip(" \t\r{}:(").split())


def _is_bare_container(node: Node) -> bool:
    """Check whether a node is only the sequence of its children, such as Python's `block`."""
    if not _CONTAINER.fullmatch(node.type) or not node.named_children:
        return False
    return node.named_children[0].start_byte == node.start_byte


def _definition_of(node: Node, wrappers: int = 0) -> Node | None:
    """Return the definition that a node is or wraps."""
    if _DEFINITION.fullmatch(node.type):
        return node
    if _WRAPPER.fullmatch(node.type) and wrappers < _MAX_WRAPPERS:
        inside = (_definition_of(child, wrappers + 1) for child in node.named_children)
        return next(filter(None, inside), None)
    if _BINDING.fullmatch(node.type):
        for declarator in node.named_children:
            value = declarator.child_by_field_name("value")
            if value is not None and _FUNCTION_VALUE.fullmatch(value.type):
                return node
    return None


def _name_of(definition: Node) -> Node | None:
    """Find the node that names a definition; C nests it inside declarators."""
    node = definition
    if _BINDING.fullmatch(node.type) or node.type == "type_declaration":
        node = node.named_children[0] if node.named_children else node
    name = node.child_by_field_name("name")
    while name is None and (inner := node.child_by_field_name("declarator")) is not None:
        node = inner
        name = inner.child_by_field_name("name")
        if name is None and inner.child_by_field_name("declarator") is None:
            return inner
    return name or node.child_by_field_name("type")
