"""Write and read a folder of Markdown files, for people and programs such as Obsidian.

Each memory is one file, in a folder named after its kind: front matter with its fields, then its
exact text.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from byheart.contracts import Dump, MemoryRecord, Record
from byheart.errors import Hint, InvalidInput, Option
from byheart.model import ORIGINS, Memory, to_wire
from byheart.model import checks as check
from byheart.model.field_types import arrange
from byheart.model.fields import BY_NAME, FIELDS
from byheart.model.memories import RUNNING_SUMMARY_ID
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern
from byheart.system import clock
from byheart.system.file_opening import read_to_end
from byheart.system.private_files import make_private_folder, open_private
from byheart.transfer.decoding import decode, find_encoding

_LONGEST_SLUG_BYTES, _ID_CHARS = 80, 8
_LONGEST_FRONT_MATTER = 100_000
_DEEPEST_BRACKETS = 100
_FRONT_MATTER = late_pattern(
    r"\ufeff?---[ \t]*\r?\n(?P<yaml>(?:.*?\r?\n)??)---[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
# Only files that we write contain this; note-taking programs may remove the quotes.
_OURS = late_pattern(
    r"\ufeff?---[ \t]*\r?\nid:(?:[ \t]*[\"']?mem_|.*?\ncontent_hash:[ \t]*[\"']?[0-9a-f]{64})",
    re.DOTALL,
)
_OUR_LINE = late_pattern(r"^(?:id:[ \t]*[\"']?mem_|content_hash:)", re.MULTILINE)
_HEADING = late_pattern(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*\r?$", re.MULTILINE)
_TOO_STRANGE_FOR_YAML = late_pattern("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# The name in front matter → the field of `save`. In other files, any other name is metadata.
_FIELDS = {
    field.front_matter: field.name
    for field in FIELDS
    if field.front_matter and "save" in field.verbs
}
# Texts in which any word may be: `title: 2026` is a title.
_FREE_TEXTS = tuple(
    name
    for name in _FIELDS.values()
    if BY_NAME[name].codec == "text" and name not in ("kind", "origin", "space")
)
# The front matter begins with what people look for.
_SHOWN = tuple(
    BY_NAME[name]
    for name in arrange(
        [field.name for field in FIELDS if field.front_matter],
        {
            "tags": "summary",
            "entities": "tags",
            "importance": "entities",
            "source": "task_code",
            "origin": "source",
            "role": "origin",
            "client_id": "role",
            "path": "client_id",
            "space": "path",
            "metadata": "expires_at",
            "version": "metadata",
            "content_hash": "version",
        },
    )
)
AS_TEXT, AS_METADATA = "front matter kept as text", "field kept as metadata"


@dataclass(frozen=True, slots=True)
class Flaw:
    """Describe a part of a file that could not be used as intended, and the reason."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class VaultFile:
    """Hold a parsed file: the fields to save, and the memory it was exported from, if any."""

    fields: Mapping[str, Any]
    memory_id: str | None
    version: int | None
    content_hash: str | None
    created_at: datetime | None
    updated_at: datetime | None
    role: str | None = None
    client_id: str | None = None
    flaws: tuple[Flaw, ...] = ()


@dataclass(frozen=True, slots=True)
class _Parts:
    """Hold the parts of a file; `start` is where its text begins, after the front matter."""

    text: str
    start: int = 0
    matter: Mapping[str, Any] | None = None
    flaw: str | None = None

    @property
    def content(self) -> str:
        """Return the text to keep: the whole file if there is no front matter."""
        return self.text if self.matter is None else self.text[self.start :]


# --- Writing ------------------------------------------------------------------------------------


def write(dump: Dump, folder: Path, *, by_space: bool, overwrite: bool) -> Iterator[Record]:
    """Write every memory that is currently searchable, and yield each after writing its file."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file", "name a folder")
    used = folder.exists() and any(not each.name.startswith(".") for each in folder.iterdir())
    if used and not overwrite:
        raise InvalidInput(
            f"{folder} is not empty",
            Hint(
                "choose another folder; or, after importing what was changed in it, allow it with ",
                Option("overwrite", True),
            ),
        )
    there, taken = _files_by_id(folder) if used else {}, set[str]()
    now = clock.now()
    for record in dump.records():
        if not isinstance(record, MemoryRecord):
            continue
        memory = record.text.memory
        if memory.forgotten_at is not None or (memory.expires_at and memory.expires_at <= now):
            continue
        if not memory.content.strip():
            continue  # an empty turn has no text to read or to save again
        path = folder / _place(memory, by_space, taken)
        make_private_folder(path.parent)
        with open(path, "wb", opener=open_private) as out:
            out.write((_front_matter(memory, by_space) + memory.content).encode())
        for old in there.get(memory.memory_id, ()):
            # The memory had another title: two files of one memory would contradict each other.
            if old != path:
                old.unlink(missing_ok=True)
        yield record


def _files_by_id(folder: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in _files(folder):
        try:
            memory_id = read(path, folder).memory_id
        except InvalidInput:
            continue  # not one of our files
        if memory_id is not None:
            found.setdefault(memory_id, []).append(path)
    return found


def _place(memory: Memory, by_space: bool, taken: set[str]) -> Path:
    short_id = re.sub(r"[^0-9A-Za-z]", "", memory.memory_id)[-_ID_CHARS:]
    name = f"{_slug(memory.title or memory.summary)}-{short_id}"
    folder = Path(_slug(memory.space)) / memory.kind if by_space else Path(memory.kind)
    number, place = 1, folder / f"{name}.md"
    while str(place).casefold() in taken:  # many file systems ignore case
        number += 1
        place = folder / f"{name}-{number}.md"
    taken.add(str(place).casefold())
    return place


def _slug(text: str) -> str:
    """Build a readable file name from letters and digits of any script, and hyphens."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    slug = re.sub(r"[\W_]+", "-", plain).encode()[:_LONGEST_SLUG_BYTES]
    return slug.decode(errors="ignore").strip("-") or "untitled"


def _front_matter(memory: Memory, by_space: bool) -> str:
    values = {field.front_matter or "": getattr(memory, field.name) for field in _SHOWN}
    if "summary" in memory.derived:
        values["summary"] = None
    if memory.trusted:
        values["trusted"] = None
    if not by_space:
        values["space"] = None
    lines = [
        line
        for name, value in values.items()
        if value not in (None, (), {})
        for line in _yaml(name, value)
    ]
    return "\n".join(["---", *lines, "---", "", ""])


def _yaml(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        yield f"{name}:"
        yield from (f"  - {_scalar(each)}" for each in value)
    elif isinstance(value, datetime):
        yield f"{name}: {to_wire(value)}"  # unquoted, so that YAML readers recognize a date
    else:
        yield f"{name}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    """Write a value as JSON, which is also YAML, and escape characters that YAML forbids."""
    text = json.dumps(to_wire(value), ensure_ascii=False)
    return _TOO_STRANGE_FOR_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# --- Reading ------------------------------------------------------------------------------------


def list_files(path: Path) -> list[Path]:
    """List the Markdown files of a folder without hidden ones, or the one file that was named."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InvalidInput(f"{path} cannot be read: there is no such folder", "check the path")
    return _files(path)


def _files(folder: Path) -> list[Path]:
    found = (
        path
        for path in folder.rglob("*.md")
        if path.is_file()
        and not path.is_symlink()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    # A file comes before its duplicates: `tea.md`, then `tea 1.md`.
    return sorted(found, key=lambda path: (path.with_suffix(""), path))


def place_of(path: Path, folder: Path) -> str:
    """Name a file as seen in its folder, escaping bytes that are not UTF-8."""
    place = path.name if path == folder else path.relative_to(folder).as_posix()
    return os.fsencode(place).decode(errors="backslashreplace")


def read(path: Path, folder: Path) -> VaultFile:
    """Read one of our files, or any Markdown file with or without front matter."""
    place = place_of(path, folder)
    try:
        data = read_to_end(path)
        text = decode(data, "it", find_encoding(data)).removeprefix("\ufeff")
    except OSError as error:
        raise InvalidInput(f"it cannot be read: {error.strerror}") from error
    parts = _take_apart(text)
    matter = parts.matter or {}
    if "content_hash" in matter and "version" in matter:
        return _read_ours(matter, parts.content)
    return _read_others(parts, place)


def _read_others(parts: _Parts, place: str) -> VaultFile:
    """Read a note written by people: invalid front matter does not make it unreadable."""
    matter = parts.matter or {}
    fields, misfits = _fitting(matter)
    others = {
        name: value for name, value in matter.items() if name not in _FIELDS or name in misfits
    }
    own = matter.get("metadata")
    try:
        metadata = _plain({**others, **(own if isinstance(own, dict) else {})})
        check.check_metadata(metadata)
    except (InvalidInput, RecursionError) as error:
        reason = error.message if isinstance(error, InvalidInput) else "it is too deep"
        return _read_others(replace(parts, matter=None, flaw=reason), place)
    fields = {"kind": "note", "source": "markdown", "path": place, **fields, "metadata": metadata}
    if not fields.get("title"):
        heading = _HEADING.search(parts.text, parts.start)
        named = heading[1] if heading else PurePosixPath(place).stem
        fields["title"] = named[: check.LONGEST_TITLE // 4]
    flaws = [Flaw(AS_METADATA, reason) for reason in misfits.values() if reason]
    flaws += [Flaw(AS_TEXT, parts.flaw)] if parts.flaw else []
    return VaultFile(
        {**fields, "content": parts.content}, None, None, None, None, None, flaws=tuple(flaws)
    )


def _fitting(matter: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Separate values that fit a field of `save` from those with another meaning, and say why."""
    fields, misfits = _known(matter), dict[str, str]()
    for name, field in _FIELDS.items():
        value = fields.get(field)
        if field == "metadata":
            fields.pop(field, None)
            if not isinstance(value, dict | None):
                misfits[name] = "metadata must be an object with text keys"
        elif isinstance(value, str) and not value.strip():
            del fields[field]  # an empty form field
        elif field == "origin" and value is not None and value not in ORIGINS:
            del fields[field]
            misfits[name] = ""  # a word of everyday: nothing to speak of
        elif value is not None and (checked := BY_NAME[field].check) is not None:
            try:
                checked(name, value)
            except InvalidInput as error:
                del fields[field]
                misfits[name] = error.message
    return fields, misfits


def _read_ours(matter: Mapping[str, Any], body: str) -> VaultFile:
    # One empty line separates front matter and text.
    content = re.sub(r"\A\r?\n", "", body, count=1)
    version, content_hash = matter.get("version"), matter["content_hash"]
    if not isinstance(version, int) or not isinstance(content_hash, str):
        raise InvalidInput("version or content_hash in the front matter are not what was exported")
    if "id" in matter and not isinstance(matter["id"], str):
        raise InvalidInput(f"the id in its front matter is not one: {matter['id']!r}")
    return VaultFile(
        {**_known(matter), "content": content},
        # Without an id the file is a separate text: somebody made a copy.
        check.check_memory_id("id", matter["id"]) if "id" in matter else None,
        version,
        content_hash,
        check.check_moment("created", _plain(matter.get("created"))),
        check.check_moment("updated", _plain(matter.get("updated"))),
        None if "role" not in matter else check.check_role(matter["role"]),
        _client_id(matter.get("client_id")),
    )


def _client_id(value: object) -> str | None:
    """Check a turn's client id, or the one that running summaries have."""
    if value == RUNNING_SUMMARY_ID:
        return RUNNING_SUMMARY_ID
    return check.check_optional_label("client_id", value)


def _known(matter: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the fields that `save` accepts, in the notations that people use."""
    fields = {
        _FIELDS[name]: _plain(value)
        for name, value in matter.items()
        if name in _FIELDS and value is not None
    }
    for name in ("tags", "entities"):
        if name in fields:
            fields[name] = _labels(fields[name], hashes=name == "tags")
    for name in _FREE_TEXTS:
        if isinstance(fields.get(name), int | float):
            fields[name] = str(fields[name])
    return fields


def _labels(value: Any, *, hashes: bool) -> list[str]:
    values = value if isinstance(value, list) else re.split(r"[,\s]+", str(value))
    labels = [str(each).strip() for each in values if each is not None]
    return [name for each in labels if (name := each.removeprefix("#") if hashes else each)]


def _plain(value: Any) -> Any:
    """Convert YAML values to JSON values."""
    if isinstance(value, date):  # datetime is a subclass of date
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(value)


def _take_apart(text: str) -> _Parts:
    """Split front matter from text; text that only looks like front matter stays text.

    One of our own files must be read exactly, or a memory would silently become another one.
    """
    found = _FRONT_MATTER.match(text)
    if found is None or len(found["yaml"]) > _LONGEST_FRONT_MATTER:
        if _OURS.match(text):
            raise InvalidInput("its front matter has no end, or is too long")
        return _Parts(text)
    try:
        matter = _load_yaml(found["yaml"])
    except ValueError as error:
        if found["yaml"][:1].isspace():  # an empty line: a horizontal rule, then text
            return _Parts(text)
        if _OUR_LINE.search(found["yaml"]):
            raise InvalidInput(f"its front matter is not YAML: {error}") from error
        return _Parts(text, found.end(), flaw=f"it is not YAML: {error}")
    return _Parts(text, found.end(), matter) if isinstance(matter, dict) else _Parts(text)


def _load_yaml(text: str) -> Any:
    """Parse YAML; raise a `ValueError` with the line if it is invalid."""
    # Imported here, because only this function needs PyYAML and its import is slow.
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                # A few lines of nested references can expand to gigabytes.
                raise yaml.YAMLError("references are not followed")
            return super().compose_node(parent, index)

        def fetch_flow_collection_start(self, kind: Any) -> None:
            # The parser checks every open bracket again for each word: a second per page.
            if self.flow_level >= _DEEPEST_BRACKETS:
                raise yaml.YAMLError("it is nested too deeply")
            super().fetch_flow_collection_start(kind)

    try:
        loaded = yaml.load(text, Loader) or {}
    except yaml.MarkedYAMLError as error:
        # The line is counted from 0, and without the line of dashes above.
        line = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise ValueError(f"{error.problem}{line}") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (ArithmeticError, AttributeError, LookupError) as error:
        # PyYAML raises these for a value that does not match its declared type: `!!int ""`.
        raise ValueError(f"a value is not of its type ({error})") from error
    if not isinstance(loaded, dict):
        return None
    return {str(name): value for name, value in loaded.items()}
