"""Make memories that are ready to be written, and search for them."""

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np

from byheart import contracts
from byheart.chunking import split
from byheart.contracts import (
    Candidates,
    DedupKey,
    Draft,
    Model,
    Question,
    Storage,
    Vectors,
    Window,
)
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.language.terms import query_terms
from byheart.model import Filter
from byheart.model.ids import new_memory_id
from tests.memory.made_memories import memory

MODEL = Model("by-hand", 3)
NEXT = Model("next-by-hand", 2)
EAST, NORTH, WEST = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)


def draft(content: str, *vectors: tuple[float, ...], **fields: Any) -> Draft:
    """Make a memory that is ready to be written; one vector per chunk, or none."""
    chunks = tuple(split(content, format="markdown", tokens=EstimatedTokens(), target_tokens=32))
    now = datetime.now(UTC)
    given: dict[str, Any] = {
        "content": content,
        "content_hash": sha256(content.encode()).hexdigest(),
        "summary": content[:20],
        "source": "test",
        "format": "markdown",
        "chunks": len(chunks),
        "created_at": now,
        "updated_at": now,
    }
    made = memory(**{"memory_id": new_memory_id(), **given, **fields})
    assert len(vectors) in (0, len(chunks))
    windows = tuple(
        (Window(sha256(chunk.content.encode()).digest()[:16], np.array(vector, np.float32)),)
        for chunk, vector in zip(chunks, vectors, strict=False)
    ) or tuple(() for _ in chunks)
    return Draft(made, chunks, windows, (), "tester")


def key_of(made: Draft) -> DedupKey:
    return contracts.key_of(made.memory)


def found(storage: Storage, query: str, **where: Any) -> list[str]:
    chosen = Filter(**{"space": "space", **where})
    with storage.searching(chosen.space) as reader:
        found = reader.index.candidates(Question(chosen, query_terms(query), None), 100)
        return [each.chunk.content for each in reader.chunks(in_order(found, "keyword_ranks"))]


def in_order(found: Candidates, ranks: str) -> list[int]:
    """List the chunks that a retriever found, best first."""
    numbers: list[int] = found.chunk_nos[np.argsort(getattr(found, ranks))].tolist()
    return numbers


def near(storage: Storage, vector: tuple[float, ...], limit: int = 100) -> list[tuple[str, float]]:
    with storage.searching("space") as reader:
        question = Question(Filter(space="space"), None, np.array(vector, np.float32))
        found = reader.index.candidates(question, limit)
        chunks = reader.chunks(in_order(found, "vector_ranks"))
        cosines = dict(zip(found.chunk_nos.tolist(), found.cosines.tolist(), strict=True))
        return [(each.chunk.content, round(cosines[each.chunk_no], 2)) for each in chunks]


def vectors_of(storage: Storage, model: Model, hashes: list[bytes]) -> dict[bytes, Vectors]:
    with storage.reading() as reader:
        return reader.models.vectors_of(model, hashes)
