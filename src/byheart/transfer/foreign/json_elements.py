"""Read a JSON document element by element, so that a gigabyte fits into little memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from byheart.errors import InvalidInput
from byheart.startup.late_patterns import late_pattern
from byheart.transfer.foreign.partial_json import sketch_objects
from byheart.transfer.foreign.sources import Source
from byheart.transfer.json_lines import number_lines, parse_object

_BLOCK_CHARS = 1 << 20
# One conversation, or one document that is not a list, must fit into memory several times.
LARGEST_ELEMENT_CHARS = 1 << 28
_LONGEST_WORD = 16  # the longest token that can be cut off at the end: `false`, an escape, a number
_BLANKS = late_pattern(r"\s*")


class Element(NamedTuple):
    """Hold a value or an error, its place, and the name of the list that contains it."""

    place: str
    value: Any
    within: str = ""


def read_elements(
    source: Source, stream: BinaryIO, what: str, lists: tuple[str, ...] = ()
) -> Iterator[Element]:
    """Yield the elements of a list, of a document's named lists, or of lines.

    Reading continues after an invalid line, but ends at an error within a document.
    """
    if _is_of_lines(source.head(), lists):
        return _read_lines(source.name, stream)
    return _read_document(source.name, stream, what, lists)


def _is_of_lines(head: bytes, lists: tuple[str, ...]) -> bool:
    """Check whether a file has one object per line, rather than one object with lists."""
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0].strip()
    if not (first.startswith(b"{") and first.endswith(b"}")):
        return False
    names = {name for each in sketch_objects(first.decode(errors="replace"), 1) for name in each}
    return not names.intersection(lists)


def _read_lines(name: str, stream: BinaryIO) -> Iterator[Element]:
    for number, line in number_lines(stream):
        place = f"{name} line {number}"
        try:
            yield Element(place, parse_object(line, "it"))
        except InvalidInput as error:
            yield Element(place, error)


def _read_document(
    name: str, stream: BinaryIO, what: str, lists: tuple[str, ...]
) -> Iterator[Element]:
    text = _Text(stream)
    try:
        if text.peek() == "[":
            for number, (line, value) in enumerate(text.elements(), start=1):
                yield Element(f"{name} {what} {number:,}{_at(line)}", value)
            text.end()
            return
        while text.peek():
            if lists and text.peek() == "{":
                yield from _read_members(name, text, lists)
            else:
                yield Element(f"{name} line {text.line:,}", text.value())
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"it is not UTF-8 text: byte 0x{error.object[error.start]:02x} after line "
            f"{text.line:,}",
            "export it again",
        ) from error
    finally:
        text.detach()  # the caller closes the stream


def _read_members(name: str, text: _Text, lists: tuple[str, ...]) -> Iterator[Element]:
    """Yield the elements of an object's lists; the object itself if it has none of them."""
    line = text.line
    others: dict[str, Any] = {}
    has_lists = False
    for member in text.members():
        if member in lists and text.peek() == "[":
            has_lists = True
            for number, (at, value) in enumerate(text.elements()):
                yield Element(f"{name} {member}[{number}]{_at(at)}", value, member)
        else:
            others[member] = text.value()
    if not has_lists:
        yield Element(f"{name} line {line:,}", others)


def _at(line: int) -> str:
    # Most exports are one line, so the number 1 adds nothing.
    return f" (line {line:,})" if line > 1 else ""


class _Text:
    """Buffer the text read so far, and track the position in it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = io.TextIOWrapper(stream, encoding="utf-8-sig")
        self._decoder = json.JSONDecoder()
        self._buffer, self._at = "", 0
        self._passed_chars = 0
        self._passed_elements = 0
        self.line = 1

    def detach(self) -> None:
        """Leave the stream to the caller."""
        self._stream.detach()

    def peek(self) -> str:
        """Return the next non-blank character; "" at the end."""
        while True:
            blanks = _BLANKS.match(self._buffer, self._at)
            assert blanks is not None, "none at all are blanks too"
            self._go_to(blanks.end())
            if self._at < len(self._buffer) or not self._read_on():
                return self._buffer[self._at : self._at + 1]

    def elements(self) -> Iterator[tuple[int, Any]]:
        """Yield the elements of the list that begins here, with the line of each."""
        self._take("[")
        while self.peek() != "]":
            yield self.line, self.value()
            self._passed_elements += 1
            if self.peek() != "]":
                self._take(",")
        self._take("]")

    def members(self) -> Iterator[str]:
        """Yield the names in the object that begins here; the caller takes each value."""
        self._take("{")
        while self.peek() != "}":
            if self.peek() != '"':
                raise self._broken("Expecting property name enclosed in double quotes", self._at)
            name = self.value()
            self._take(":")
            self.peek()
            yield name
            if self.peek() != "}":
                self._take(",")
        self._take("}")

    def value(self) -> Any:
        """Parse the value that begins here."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except RecursionError as error:
                raise InvalidInput(f"it is nested too deeply in line {self.line:,}") from error
            except json.JSONDecodeError as error:
                if self._may_go_on(error) and self._read_on():
                    continue
                raise self._broken(error.msg, error.pos) from error
            except ValueError as error:  # a number with thousands of digits
                raise self._broken(str(error), self._at) from error
            is_number = isinstance(value, int | float)
            if is_number and end == len(self._buffer) and self._read_on():
                continue  # its last digits may not have been read yet
            self._go_to(end)
            return value

    def end(self) -> None:
        """Raise if anything follows."""
        if self.peek():
            raise InvalidInput(f"something follows its end in line {self.line:,}")

    def _take(self, sign: str) -> None:
        if self.peek() != sign:
            raise self._broken(f"Expecting '{sign}'", self._at)
        self._at += 1

    def _go_to(self, at: int) -> None:
        self.line += self._buffer.count("\n", self._at, at)
        self._at = at

    def _read_on(self) -> bool:
        waiting = self._buffer[self._at :]
        if len(waiting) > LARGEST_ELEMENT_CHARS:
            raise InvalidInput(
                f"what begins in line {self.line:,} is too large: more than "
                f"{LARGEST_ELEMENT_CHARS:,} characters in one piece"
            )
        # Double the buffer: a long element is then parsed twice, not many times.
        more = self._stream.read(max(_BLOCK_CHARS, len(waiting)))
        if more:
            self._passed_chars += self._at
            self._buffer, self._at = waiting + more, 0
        return bool(more)

    @staticmethod
    def _may_go_on(error: json.JSONDecodeError) -> bool:
        """Check whether the error may disappear when more text is read."""
        unread = len(error.doc) - error.pos
        return error.msg.startswith("Unterminated string") or unread < _LONGEST_WORD

    def _broken(self, reason: str, at: int) -> InvalidInput:
        """Build the error that shows where the JSON is invalid or ends too early."""
        ahead = at - self._at
        if len(self._buffer) - at < _LONGEST_WORD and self._read_on():
            at = self._at + ahead
        behind = self._buffer[at : at + _LONGEST_WORD]
        after = f" after element {self._passed_elements:,}" if self._passed_elements else ""
        line = self.line + self._buffer.count("\n", self._at, at)
        where = f"line {line:,}, character {self._passed_chars + at + 1:,} of the file"
        is_last = len(behind) < _LONGEST_WORD and not any(sign in behind for sign in "]}")
        if is_last or reason.startswith("Unterminated string"):
            return InvalidInput(
                f"it ends{after} in the middle of JSON ({where}): the file was cut off",
                "export or download it again",
            )
        return InvalidInput(f"it is not JSON{after} ({where}): {reason}")
