"""Write graphs in ONNX's file format, which is a protobuf message.

The package `onnx` would do it too, but it takes 27 MB in every installation, and a graph is written
once on a machine. The field numbers are those of `onnx.proto`; the tests read the files by `onnx`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FLOAT, INT32 = 1, 6
_TENSOR_TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.int8): 3, np.dtype(np.int64): 7}
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE, _INTS_ATTRIBUTE = 1, 2, 7
_VARINT, _BYTES, _FOUR_BYTES = 0, 2, 5

Attribute = int | float | Sequence[int]
Dimension = int | str


class Node(NamedTuple):
    """An operator, the names of its inputs and outputs, and its attributes."""

    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Attribute]
    domain: str = ""


class Value(NamedTuple):
    """An input or output of a graph: a name, the type of its elements, and its shape."""

    name: str
    element_type: int
    shape: Sequence[Dimension]


class Graph(NamedTuple):
    """A graph: its nodes in order, its constant tensors, its inputs and its outputs."""

    name: str
    nodes: Sequence[Node]
    tensors: Mapping[str, NDArray[Any]]
    inputs: Sequence[Value]
    outputs: Sequence[Value]


def write_model(graph: Graph, ir_version: int, opsets: Mapping[str, int]) -> bytes:
    """Write a graph with the versions of the operator sets that it uses."""
    sets = (_text(1, domain) + _number(2, version) for domain, version in opsets.items())
    return b"".join(
        (_number(1, ir_version), _bytes(7, _graph(graph)), *(_bytes(8, each) for each in sets))
    )


def _graph(graph: Graph) -> bytes:
    return b"".join(
        (
            *(_bytes(1, _node(node)) for node in graph.nodes),
            _text(2, graph.name),
            *(_bytes(5, _tensor(name, values)) for name, values in graph.tensors.items()),
            *(_bytes(11, _value(value)) for value in graph.inputs),
            *(_bytes(12, _value(value)) for value in graph.outputs),
        )
    )


def _node(node: Node) -> bytes:
    attributes = sorted(node.attributes.items())
    return b"".join(
        (
            *(_text(1, name) for name in node.inputs),
            *(_text(2, name) for name in node.outputs),
            _text(4, node.operator),
            *(_bytes(5, _attribute(name, value)) for name, value in attributes),
            _text(7, node.domain),
        )
    )


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        told, kind = _number(3, value), _INT_ATTRIBUTE
    elif isinstance(value, float):
        told, kind = _key(2, _FOUR_BYTES) + struct.pack("<f", value), _FLOAT_ATTRIBUTE
    else:
        told, kind = b"".join(_number(8, each) for each in value), _INTS_ATTRIBUTE
    return _text(1, name) + told + _number(20, kind)


def _tensor(name: str, values: NDArray[Any]) -> bytes:
    dimensions = b"".join(_number(1, size) for size in values.shape)
    element_type = _number(2, _TENSOR_TYPES[values.dtype])
    little_endian = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return dimensions + element_type + _text(8, name) + _bytes(9, little_endian.tobytes())


def _value(value: Value) -> bytes:
    sizes = b"".join(
        _bytes(1, _number(1, size) if isinstance(size, int) else _text(2, size))
        for size in value.shape
    )
    tensor = _number(1, value.element_type) + _bytes(2, sizes)
    return _text(1, value.name) + _bytes(2, _bytes(1, tensor))


# --- Protobuf ---------------------------------------------------------------------------------


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _number(field: int, value: int) -> bytes:
    # A negative number is written as 64 bits in two's complement.
    return _key(field, _VARINT) + _varint(value % (1 << 64))


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, content: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Write a number in groups of seven bits, the lowest first."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
