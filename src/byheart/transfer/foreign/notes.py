"""Read the Markdown notes of a vault, with their links and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from byheart.errors import InvalidInput
from byheart.model.checks import LONGEST_LABEL, check_moment
from byheart.startup.late_patterns import late_pattern
from byheart.transfer import vault
from byheart.transfer.foreign.import_items import Item, Omission, OwnFile, Piece, labels
from byheart.transfer.foreign.sources import Source

Refine = Callable[[Source, dict[str, Any], str], dict[str, Any]]
_FENCE = late_pattern(r"[ \t]{0,3}(`{3,}|~{3,})")
_LINK = late_pattern(
    r"(!?)\[\[([^\[\]|#^\n]{1,300})(?:[#^][^\[\]|\n]{0,300})?(?:\|[^\[\]\n]{0,300})?\]\]"
)
_TAG = late_pattern(r"(?<![\w&/#])#([^\W\d][\w/-]{0,100})")
_CREATED = ("created", "created_at", "date", "creation_date")
_HASH_DIGITS = 12
_DAY = late_pattern(r"(\d{4})-(\d\d)-(\d\d)$")


def read_note(source: Source, vault_name: str, refine: Refine) -> Iterator[Item]:
    """Yield a note as a memory whose id derives from its place in the vault."""
    file_path, folder = source.file, source.folder
    assert file_path is not None, "notes are real files"
    try:
        file = vault.read(file_path, folder or file_path)
    except InvalidInput as error:
        yield Item(source.name, error)
        return
    if file.memory_id is not None:
        yield Item(source.name, OwnFile(file_path))
        return
    fields = dict(file.fields)
    body = fields["content"]
    if not body.strip():
        yield Item(source.name, Omission("empty note"))
        return
    fields["metadata"] = dict(fields.get("metadata") or {})
    if fields["source"] != "markdown":  # a clipping's source; the vault's name replaces it
        fields["metadata"].setdefault("source", fields["source"])
    # The field `created` of our own notes has the name that others use too.
    created = _created(source, {"created": fields.pop("created_at", None), **fields["metadata"]})
    fields = refine(source, fields, _without_code(body))
    name = _name(vault_name, source)
    yield Item(source.name, Piece(fields, name, created, flaws=file.flaws))


def _without_code(text: str) -> str:
    """Remove fenced code: text in it that looks like a tag is not a tag."""
    kept, fence = [], ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if fence:
            closes = found is not None and found[1].startswith(fence)
            fence = "" if closes else fence
        elif found is not None:
            fence = found[1]
        else:
            kept.append(line)
    return "\n".join(kept)


def links(text: str) -> list[str]:
    """Name the notes that a text links to, without embedded ones."""
    return list(dict.fromkeys(name.strip() for shown, name in _LINK.findall(text) if not shown))


def tags(text: str) -> list[str]:
    """Name the tags in a text."""
    return list(dict.fromkeys(_TAG.findall(text)))


def with_labels(fields: dict[str, Any], **more: list[str]) -> dict[str, Any]:
    """Add labels to those of the front matter."""
    for name, added in more.items():
        held = labels([*(fields.get(name) or ()), *added])
        if held:
            fields[name] = held
    return fields


def _created(source: Source, metadata: Mapping[str, Any]) -> datetime | None:
    """Find when a note was written: from its metadata, its name, or the file's time."""
    said = [metadata.get(name) for name in _CREATED]
    day = _DAY.search(source.path.stem)
    for each in (*said, day and day[0]):
        try:
            if (
                isinstance(each, str | datetime)
                and (at := check_moment("created", each)) is not None
            ):
                return at
        except InvalidInput:
            continue  # people write dates in many ways
    assert source.file is not None, "notes are real files"
    return datetime.fromtimestamp(source.file.stat().st_mtime, UTC)


def _name(vault_name: str, source: Source) -> str:
    # Many vaults share a name, and many folders in a vault have the same structure.
    folder = str(source.folder.resolve()) if source.folder else ""
    first = f"{vault_name}:{_digest(folder)}:"
    place = str(source.path).encode(errors="backslashreplace")
    if len(first) + len(place) > LONGEST_LABEL:
        first += f"{_digest(str(source.path))}:"
        place = place[len(first) - LONGEST_LABEL :]
    return first + place.decode(errors="ignore")


def _digest(text: str) -> str:
    return sha256(text.encode(errors="backslashreplace")).hexdigest()[:_HASH_DIGITS]
