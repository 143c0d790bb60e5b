"""Write a memory as a document for people."""

from __future__ import annotations

import json
from pathlib import Path

from byheart.model import Memory, WrittenFile, to_wire
from byheart.transfer.atomic_files import written_whole

_CHARS_PER_TOKEN = 4


def write_document(
    memory: Memory, path: Path, include_metadata: bool, overwrite: bool
) -> WrittenFile:
    """Write a memory's text, with YAML front matter if requested."""
    text = (_front_matter(memory) if include_metadata else "") + memory.content
    with written_whole(path, overwrite) as out:
        out.write(text.encode())
    return WrittenFile(
        memory.memory_id, str(path), path.stat().st_size, -(-len(text) // _CHARS_PER_TOKEN)
    )


def _front_matter(memory: Memory) -> str:
    # JSON values are valid YAML, so quoting is exact for any title.
    values = {
        "memory_id": memory.memory_id,
        "title": memory.title,
        "kind": memory.kind,
        "session_id": memory.session_id,
        "tags": memory.tags,
        "created_at": memory.created_at,
        "chunk_count": memory.chunks,
    }
    lines = [
        f"{key}: {json.dumps(to_wire(value), ensure_ascii=False)}"
        for key, value in values.items()
        if value not in (None, ())
    ]
    return "\n".join(["---", *lines, "---", "", ""])
