"""Write and read a store as JSON lines, without loss, one record per line.

A header is followed by entities, memories and tombstones, and by a last line with the number of
memories. The content does not depend on the time or place of writing: the same store gives the
same bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, BinaryIO, cast, get_args

from byheart.contracts import (
    Dump,
    EntityRecord,
    MemoryRecord,
    Model,
    Record,
    StoredText,
    TombstoneRecord,
    Vectors,
    Window,
)
from byheart.errors import InvalidInput
from byheart.model import (
    Chunk,
    Heading,
    HistoryEntry,
    Memory,
    Operation,
    to_wire,
    usual_origin,
)
from byheart.model import checks as check
from byheart.model.field_types import Codec, Field, arrange
from byheart.model.fields import BY_NAME, FIELDS
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import np

FORMAT, VERSION = "byheart-export", 1
# A memory's line has these besides its text, chunks and vectors, in this order. `memory_id` and
# `space` are in it once, also for earlier texts.
_COLUMNS = arrange(
    [field.name for field in FIELDS if field.exported == "always"],
    {"origin": "source", "path": "task_code"},
)
# Only turns, the running summary, pinned memories and memories of a session have these.
_SELDOM = tuple(field.name for field in FIELDS if field.exported == "if given")
_EXPORTED = tuple(BY_NAME[name] for name in (*_COLUMNS, *_SELDOM))
# Only times need to be made into what JSON can carry.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=to_wire)
_MOST = 2**53  # not every JSON reader represents larger integers exactly
_LONGEST_VECTOR = 1.01  # unit length within float32 precision


@dataclass(frozen=True, slots=True)
class Header:
    """Hold the content of the first line."""

    models: tuple[Model, ...]
    model: str | None


@dataclass(frozen=True, slots=True)
class End:
    """Hold the content of the last line: how many memories came before it."""

    memories: int


# --- Writing ------------------------------------------------------------------------------------


def write(dump: Dump, out: BinaryIO, *, vectors: bool) -> Iterator[Record]:
    """Write everything, and yield each record after its line is written."""
    # Models are useless without vectors: an import then computes its own vectors.
    models = [model._asdict() for model in dump.models] if vectors else []
    out.write(
        _line(
            format=FORMAT,
            version=VERSION,
            model=dump.model if vectors else None,
            models=models,
        )
    )
    memories = 0
    for record in dump.records():
        out.write(_line(**_WRITERS[type(record)](record)))
        memories += isinstance(record, MemoryRecord)
        yield record
    out.write(_line(type="end", memories=memories))


def _line(**fields: Any) -> bytes:
    return _ENCODER.encode(fields).encode() + b"\n"


def _write_memory(record: MemoryRecord) -> dict[str, Any]:
    memory = record.text.memory
    return {
        "type": "memory",
        "memory_id": memory.memory_id,
        "space": memory.space,
        **_write_text(record.text),
        "earlier": [_write_text(each) for each in record.earlier],
        "history": [_write_entry(entry) for entry in record.history],
    }


def _write_entry(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "operation": entry.operation,
        "at": entry.at,
        "who": entry.who,
        "version": entry.version,
        "reason": entry.reason,
        "changes": entry.changes,
    }


def _write_text(text: StoredText) -> dict[str, Any]:
    memory = text.memory
    return {
        **{
            field.name: value
            for field in _EXPORTED
            if (value := _value(text, field)) is not None or field.exported == "always"
        },
        "content_hash": memory.content_hash,
        "content": memory.content,
        "chunks": [
            _write_chunk(chunk, vectors)
            for chunk, vectors in zip(text.chunks, text.vectors, strict=True)
        ],
    }


def _value(text: StoredText, field: Field) -> Any:
    return getattr(text if field.owner == "text" else text.memory, field.name)


def _write_chunk(chunk: Chunk, vectors: Mapping[str, Sequence[Window]]) -> dict[str, Any]:
    written: dict[str, Any] = {
        "start_char": chunk.start_char,
        "end_char": chunk.end_char,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "chunk_type": chunk.chunk_type,
        "headings": [[each.level, each.title, each.start_char] for each in chunk.headings],
        "token_count": chunk.token_count,
    }
    if vectors:
        written["vectors"] = {
            model: [[each.text_hash.hex(), _base64(each.vector)] for each in windows]
            for model, windows in vectors.items()
        }
    return written


def _base64(vector: Vectors | None) -> str:
    assert vector is not None, "what is stored was made"
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def _write_entity(record: EntityRecord) -> dict[str, Any]:
    return {"type": "entity", "space": record.space, "name": record.name, "aliases": record.aliases}


def _write_tombstone(record: TombstoneRecord) -> dict[str, Any]:
    return {
        "type": "tombstone",
        "space": record.space,
        "content_hash": record.content_hash,
        "at": record.at,
    }


_WRITERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    MemoryRecord: _write_memory,
    EntityRecord: _write_entity,
    TombstoneRecord: _write_tombstone,
}


# --- Reading ------------------------------------------------------------------------------------


def is_header(item: Mapping[str, Any]) -> bool:
    """Check whether a line is an export's header rather than a text to save."""
    return "format" in item and "content" not in item


def begins_export(item: Mapping[str, Any]) -> bool:
    """Check whether a line is a header of our own export format, in any version."""
    return item.get("format") == FORMAT


def is_record(item: Mapping[str, Any]) -> bool:
    """Check whether a line is a record of an export, after its header."""
    return item.get("type") in ("memory", "entity", "tombstone", "end")


def read_header(item: Mapping[str, Any]) -> Header:
    """Parse the first line of a file of this format and version."""
    if item.get("format") != FORMAT:
        raise InvalidInput(
            f"the format {item.get('format')!r} is not known", f"give a file of format {FORMAT}"
        )
    if item.get("version") != VERSION:
        raise InvalidInput(
            f"the file has version {item.get('version')!r}; this program reads {VERSION}",
            "upgrade with: pip install -U byheart",
        )
    fields = _Fields(item)
    fields.take("format", str)
    fields.take("version", int)
    model = fields.optional("model", str)
    models = []
    for each in fields.take("models", list):
        entry = _Fields(each, "models")
        models.append(Model(entry.take("name", str), entry.whole("dimensions", low=1)))
        entry.finish()
    fields.finish()
    if model is not None and model not in dict(models):
        raise InvalidInput(f"the model {model!r} is not among the models that the file names")
    return Header(tuple(models), model)


def read_record(item: Mapping[str, Any], header: Header) -> Record | End:
    """Parse one line after the header, or raise with the reason."""
    try:
        # JSON can escape lone surrogates, which no text can store.
        json.dumps(item, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise InvalidInput(f"it cannot be stored: {error}") from error
    fields = _Fields(item)
    kind = fields.take("type", str)
    readers: dict[str, Callable[[_Fields], Record | End]] = {
        "memory": lambda fields: _read_memory(fields, header),
        "entity": _read_entity,
        "tombstone": _read_tombstone,
        "end": lambda fields: End(fields.whole("memories")),
    }
    if kind not in readers:
        raise InvalidInput(f"the type {kind!r} is not known", f"known: {', '.join(readers)}")
    record = readers[kind](fields)
    fields.finish()
    return record


def _read_memory(fields: _Fields, header: Header) -> MemoryRecord:
    memory_id = check.check_memory_id("memory_id", fields.take("memory_id", str))
    space = check.check_label("space", fields.take("space", str))
    text = _read_text(fields, memory_id, space, header)
    earlier = []
    for number, each in enumerate(fields.take("earlier", list)):
        part = _Fields(each, f"earlier[{number}]")
        earlier.append(_read_text(part, memory_id, space, header))
        part.finish()
    if text.memory.replaced_at is not None or any(e.memory.replaced_at is None for e in earlier):
        raise InvalidInput("replaced_at must be given for earlier texts, and for those only")
    versions = [each.memory.version for each in (*earlier, text)]
    if versions != sorted(set(versions)):
        raise InvalidInput(f"the versions of its texts do not ascend: {versions}")
    history = tuple(_read_entry(each, at) for at, each in enumerate(fields.take("history", list)))
    return MemoryRecord(text, tuple(earlier), history)


def _read_text(fields: _Fields, memory_id: str, space: str, header: Header) -> StoredText:
    content = fields.take("content", str)
    content_hash = fields.take("content_hash", str)
    if sha256(content.encode()).hexdigest() != content_hash:
        raise fields.wrong("content", "is not the text that content_hash was made of")
    chunks, vectors = [], []
    for number, each in enumerate(fields.take("chunks", list)):
        part = _Fields(each, fields.name(f"chunks[{number}]"))
        chunks.append(_read_chunk(part, number, content))
        vectors.append(_read_vectors(part, header))
        part.finish()
    _check_boundaries(chunks, content, fields)
    values = {field.name: _take(fields, field) for field in _EXPORTED}
    own = {field.name: values.pop(field.name) for field in _OF_TEXT}
    # An export of an earlier version lacks later fields: they get the default of `Memory`.
    lacking = [field for field in _LATER if values[field.name] is None]
    for field in lacking:
        del values[field.name]
    values.setdefault("origin", usual_origin(**{name: values[name] for name in _TELLING}))
    values["derived"] = tuple(
        dict.fromkeys((*values["derived"], *(field.name for field in lacking if field.noticed)))
    )
    memory = Memory(
        memory_id=memory_id,
        space=space,
        content=content,
        content_hash=content_hash,
        chunks=len(chunks),
        **values,
    )
    return StoredText(memory=memory, chunks=tuple(chunks), vectors=tuple(vectors), **own)


# An origin that is not given follows from these.
_TELLING = ("kind", "role", "path", "agent_id", "client_id")
_OF_TEXT = tuple(field for field in _EXPORTED if field.owner == "text")
_LATER = tuple(field for field in _EXPORTED if field.new_in_imports)


def _take(fields: _Fields, field: Field) -> Any:
    """Take a field of a memory in the form that its codec has in JSON."""
    name, may_lack = field.name, field.nullable or field.new_in_imports
    if field.codec == "moment":
        return fields.optional_moment(name) if may_lack else fields.moment(name)
    if field.codec in ("labels", "words"):
        return fields.texts(name)
    if field.codec == "whole" and not field.checked_in_imports:
        low = -_MOST if field.least is None else field.least
        return fields.optional_whole(name, low) if may_lack else fields.whole(name, low)
    kinds = _JSON_KINDS[field.codec]
    value = fields.optional(name, *kinds) if may_lack else fields.take(name, *kinds)
    if field.checked_in_imports and field.check is not None and value is not None:
        return field.check(name, value)
    return value


_JSON_KINDS: Mapping[Codec, tuple[type, ...]] = {
    "text": (str,),
    "whole": (int,),
    "number": (int, float),
    "json": (dict,),
}


def _read_chunk(fields: _Fields, index: int, content: str) -> Chunk:
    start, end = fields.whole("start_char"), fields.whole("end_char")
    return Chunk(
        index=index,
        content=content[start:end],
        start_char=start,
        end_char=end,
        start_line=fields.whole("start_line", low=1),
        end_line=fields.whole("end_line", low=1),
        chunk_type=fields.take("chunk_type", str),
        headings=tuple(_read_heading(each, fields) for each in fields.take("headings", list)),
        token_count=fields.whole("token_count"),
    )


def _read_heading(given: Any, fields: _Fields) -> Heading:
    match given:
        case [int(level), str(title), int(start)] if level > 0 <= start:
            return Heading(level, title, start)
    raise fields.wrong("headings", "must be a list of [level, title, start_char]")


def _check_boundaries(chunks: Sequence[Chunk], content: str, fields: _Fields) -> None:
    """Raise unless the chunks joined are exactly the text: no part of it may get lost."""
    at = 0
    for chunk in chunks:
        if chunk.start_char != at or chunk.end_char <= at:
            raise fields.wrong(
                f"chunks[{chunk.index}]",
                f"goes from character {chunk.start_char:,} to {chunk.end_char:,}, "
                f"but the one before it ends at {at:,}",
            )
        at = chunk.end_char
    if at != len(content):
        raise fields.wrong(
            "chunks", f"end at character {at:,}, but the text has {len(content):,} characters"
        )


def _read_vectors(fields: _Fields, header: Header) -> Mapping[str, tuple[Window, ...]]:
    found = {}
    dimensions = dict(header.models)
    for name, windows in (fields.optional("vectors", dict) or {}).items():
        if name not in dimensions:
            raise fields.wrong("vectors", f"are of model {name!r}, which the header does not name")
        if not isinstance(windows, list) or not windows:
            raise fields.wrong("vectors", f"of {name} must be a list of windows")
        found[name] = tuple(_read_window(each, dimensions[name], fields) for each in windows)
    return found


def _read_window(given: Any, dimensions: int, fields: _Fields) -> Window:
    match given:
        case [str(text_hash), str(encoded)]:
            try:
                data = base64.b64decode(encoded, validate=True)
                hash_bytes = bytes.fromhex(text_hash)
            except (binascii.Error, ValueError) as error:
                raise fields.wrong("vectors", f"cannot be decoded: {error}") from error
        case _:
            raise fields.wrong("vectors", "must be lists of [text_hash, embedding]")
    if len(data) != 4 * dimensions:
        raise fields.wrong("vectors", f"have {len(data):,} bytes instead of {4 * dimensions:,}")
    vector = np.frombuffer(data, "<f4")
    length = math.sqrt(float(np.dot(vector, vector)))
    if not length <= _LONGEST_VECTOR:  # also false for NaN
        raise fields.wrong("vectors", f"must have length 1, not {length:.3g}")
    return Window(hash_bytes, vector)


def _read_entry(given: Any, number: int) -> HistoryEntry:
    fields = _Fields(given, f"history[{number}]")
    operation = check.check_choice(
        "operation",
        fields.take("operation", str),
        cast("tuple[Operation, ...]", get_args(Operation)),
    )
    entry = HistoryEntry(
        operation=operation,
        at=fields.moment("at"),
        who=fields.take("who", str),
        version=fields.whole("version", low=1),
        reason=fields.optional("reason", str),
        changes=fields.take("changes", dict),
    )
    fields.finish()
    return entry


def _read_entity(fields: _Fields) -> EntityRecord:
    return EntityRecord(
        space=check.check_label("space", fields.take("space", str)),
        name=fields.take("name", str),
        aliases=fields.texts("aliases"),
    )


def _read_tombstone(fields: _Fields) -> TombstoneRecord:
    content_hash = fields.take("content_hash", str)
    if len(content_hash) != 64 or set(content_hash) - set("0123456789abcdef"):
        raise fields.wrong("content_hash", "must be a SHA-256 in hexadecimal")
    space = check.check_label("space", fields.take("space", str))
    return TombstoneRecord(space, content_hash, fields.moment("at"))


class _Fields:
    """Take the fields of one object, check each, and reject unknown ones."""

    def __init__(self, given: Any, place: str = "") -> None:
        self._place = place
        if not isinstance(given, dict):
            raise InvalidInput(f"{place} must be an object, not {_kind(given)}")
        self._left = dict(given)

    def name(self, field: str) -> str:
        """Return the full name of a field within the line."""
        return f"{self._place}.{field}" if self._place else field

    def wrong(self, field: str, what: str) -> InvalidInput:
        """Build an error about a field."""
        return InvalidInput(f"{self.name(field)} {what}")

    def take(self, field: str, *kinds: type) -> Any:
        """Take a required field."""
        if field not in self._left:
            raise self.wrong(field, "is missing")
        value = self._left.pop(field)
        if not isinstance(value, kinds) or isinstance(value, bool):
            wanted = " or ".join(dict.fromkeys(_KINDS[kind] for kind in kinds))
            raise self.wrong(field, f"must be {wanted}, not {_kind(value)}")
        return value

    def optional(self, field: str, *kinds: type) -> Any:
        """Take a field that may be `null` or left out."""
        if self._left.get(field) is None:
            self._left.pop(field, None)
            return None
        return self.take(field, *kinds)

    def whole(self, field: str, low: int = 0) -> int:
        """Take an integer."""
        return check.check_int(self.name(field), self.take(field, int), low, _MOST)

    def optional_whole(self, field: str, low: int = 0) -> int | None:
        """Take an integer or None."""
        value = self.optional(field, int)
        return None if value is None else check.check_int(self.name(field), value, low, _MOST)

    def texts(self, field: str) -> tuple[str, ...]:
        """Take a list of texts."""
        values = self.take(field, list)
        if not all(isinstance(each, str) for each in values):
            raise self.wrong(field, "must be a list of texts")
        return tuple(values)

    def moment(self, field: str) -> datetime:
        """Take a time."""
        moment = check.check_moment(self.name(field), self.take(field, str))
        assert moment is not None, "a text is a time or refused"
        return moment

    def optional_moment(self, field: str) -> datetime | None:
        """Take a time or None."""
        return check.check_moment(self.name(field), self.optional(field, str))

    def finish(self) -> None:
        """Raise if unknown fields are left over: they would be lost."""
        for field in self._left:
            raise self.wrong(field, "is not known")


_KINDS = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _KINDS.get(type(value), type(value).__name__)
