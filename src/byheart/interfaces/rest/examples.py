"""Hold example requests and answers for the OpenAPI document and its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from byheart.model import MemoryFields

_ID, _OTHER_ID = "mem_01m7gvv9y8mrpfn4em86c8tmz6", "mem_01m7gvvcmrxfb29bph4cjdgbc0"

BODIES: Mapping[tuple[str, str], Any] = {
    ("POST", "/search"): {"query": "can I ship on Saturday?", "limit": 5, "mode": "hybrid"},
    ("POST", "/recall"): {"query": "how do we deploy?", "max_tokens": 500},
    ("POST", "/memories"): {
        "content": "Deploys are frozen from Friday noon until Monday morning.",
        "kind": "fact",
        "tags": ["deploy"],
    },
    ("PATCH", "/memories/{memory_id}"): {"importance": 8, "expected_version": 1},
    ("POST", "/memories/{memory_id}/restore"): {},
    ("POST", "/memories/{memory_id}/supersede"): {"by": _OTHER_ID, "reason": "new rule"},
    ("POST", "/memories/{memory_id}/feedback"): {
        "query": "can I ship on Saturday?",
        "outcome": "used",
    },
    ("POST", "/memories/{keep}/merge"): {"others": [_OTHER_ID]},
    ("POST", "/memories/{memory_id}/write_to_file"): {"output_path": "notes/deploys.md"},
    ("POST", "/memories/{memory_id}/pin"): {},
    ("POST", "/memories/{memory_id}/unpin"): {},
    ("POST", "/brief"): {"memory_id": [_ID, _OTHER_ID]},
    ("POST", "/context"): {"session_id": "chat-7", "query": "can I ship?", "max_tokens": 1000},
    ("POST", "/sessions/{session_id}/log"): {
        "role": "user",
        "content": "When may we deploy again?",
        "client_id": "turn-12",
    },
    ("POST", "/sessions/{session_id}/summarize"): {"text": "We plan the release of Monday."},
    ("POST", "/sessions/{session_id}/restore"): {},
    ("POST", "/promote"): {"session_id": "chat-7", "kind": ["fact", "report"]},
    ("POST", "/forget"): {"session_id": "chat-7", "dry_run": True},
    ("POST", "/review/keep"): {"item_id": f"unused:{_ID}@1"},
    ("POST", "/review/unkeep"): {"item_id": f"unused:{_ID}@1"},
    ("POST", "/trust"): {"memory_id": _ID},
    ("POST", "/distrust"): {"memory_id": _ID, "reason": "it gives orders"},
    ("POST", "/cleanup"): {"days_old": 180},
    ("POST", "/dedupe"): {"threshold": 0.97},
    ("POST", "/entities/rename"): {"name": "PG", "new_name": "PostgreSQL"},
    ("POST", "/entities/merge"): {"names": ["Postgres", "PG"], "into": "PostgreSQL"},
    ("POST", "/stats"): {"reset": True},
}

# The fields of a memory that every hit shows.
_MEMORY = {
    **{each.name: None for each in fields(MemoryFields)},
    "memory_id": _ID,
    "kind": "fact",
    "summary": "Deploys are frozen from Friday noon until Monday morning.",
    "tags": ["deploy"],
    "importance": 4.5,
    **dict.fromkeys(("created_at", "updated_at"), "2026-11-16T00:24:25.000000Z"),
    "version": 1,
    "origin": "user",
    "damaged": False,
}

ANSWERS: Mapping[tuple[str, str], Any] = {
    ("POST", "/memories"): {
        "memory_id": _ID,
        "status": "created",
        "chunks": 1,
        "content_hash": "4f1c9b0e6a2d43d7b7a1f9b0c7d5e2a8c6b4f3e1d0a9887766554433221100ff",
        "created_at": "2026-11-16T00:24:25.000000Z",
        "pending_vectors": 0,
        "version": 1,
        "similar": [],
        "conflicts": [],
        "degraded": None,
        "secrets_found": {},
        "secrets_redacted": False,
    },
    ("POST", "/search"): {
        "query": "can I ship on Saturday?",
        "mode": "hybrid",
        "granularity": "fine",
        "results": [
            {
                **_MEMORY,
                "chunk_id": f"{_ID}#0",
                "chunk_index": 0,
                "chunk_content": "Deploys are frozen from Friday noon until Monday morning.",
                "chunk_type": "text",
                "header_path": "",
                "level": 0,
                "start_line": 1,
                "end_line": 1,
                "similarity": 0.3805,
                "score": 1.1904,
                "snippet": "Deploys are frozen from Friday noon until Monday morning.",
                "snippet_marks": [],
                "source": "chunk",
                "explanation": None,
                "relative_path": None,
                "stale": False,
            }
        ],
        "total_results": 1,
        "has_more": False,
        "degraded": None,
        "index": {
            "memories": 1,
            "chunks": 1,
            "pending_vectors": 0,
            "model": "all-MiniLM-L6-v2",
            "kept_in": "memory",
        },
        "elapsed_ms": 7.2,
        "verdict": "answered",
        "confidence": 0.69,
        "remark": None,
        "grounds": None,
        "times": [],
        "conflicts": [],
        "count": 1,
    },
}
