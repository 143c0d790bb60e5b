"""Name the hits of a page that contradict each other: the same subject, another value.

Only short texts are compared, and only pairs that share most words of a sentence, so that a search
hardly takes longer. Hits that are far behind the best one are left out: they answer another
question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from itertools import combinations
from typing import NamedTuple

from byheart.language.conflicts import find_difference, read_claims
from byheart.model import ChunkHit, Hit, HitConflict, MemoryHit
from byheart.model.workspaces import FILE_KIND
from byheart.startup.late_patterns import late_pattern

# The number of first hits that are compared, their length, and their least share of the best score.
_COMPARED, _LONGEST, _LEAST_SHARE = 10, 600, 0.3
# Two texts may be about one subject if so much of the shorter one's words is in the other.
_LEAST_SHARED = 0.6
_MOST_CONFLICTS = 3
_WORD = late_pattern(r"\w+")


class _Text(NamedTuple):
    hit: Hit
    content: str
    words: frozenset[str]


def find_conflicts(hits: Sequence[Hit]) -> tuple[HitConflict, ...]:
    """Find pairs of hits that contradict each other, the newer text of each pair first."""
    texts = list(_comparable(hits[:_COMPARED]))
    claims_of = cache(read_claims)  # a text is compared with several others
    found: list[HitConflict] = []
    for some, other in combinations(texts, 2):
        if not _may_conflict(some, other):
            continue
        newer, older = sorted((some, other), key=lambda text: _beginning(text.hit), reverse=True)
        difference = find_difference(claims_of(newer.content), claims_of(older.content))
        if difference is not None:
            pair = newer.hit.memory_id, older.hit.memory_id
            found.append(HitConflict(*pair, difference.kind, difference.some, difference.other))
            if len(found) == _MOST_CONFLICTS:
                break
    return tuple(found)


def _comparable(hits: Sequence[Hit]) -> Iterator[_Text]:
    """Give the texts of hits that are short, current and near the best; each memory once."""
    seen: set[str] = set()
    for hit in hits:
        content = _content(hit)
        is_current = hit.superseded_by is None and hit.replaced_at is None
        near = hit.score >= _LEAST_SHARE * hits[0].score
        if content is None or not (is_current and near) or hit.memory_id in seen:
            continue
        seen.add(hit.memory_id)
        yield _Text(hit, content, frozenset(_WORD.findall(content.lower())))


def _content(hit: Hit) -> str | None:
    """Give the text of a hit if it can be compared: a file stays as it is on disk."""
    if isinstance(hit, ChunkHit):
        content = hit.chunk_content
    else:
        content = hit.content if isinstance(hit, MemoryHit) else hit.section_content
    return None if hit.kind == FILE_KIND or len(content) > _LONGEST else content


def _may_conflict(some: _Text, other: _Text) -> bool:
    """Check cheaply whether two texts can be about one subject; two speakers say "I" of two.

    Statements that are valid at different times can both be true.
    """
    if _ends_before(some.hit, other.hit) or _ends_before(other.hit, some.hit):
        return False
    shared = len(some.words & other.words)
    is_near = shared >= _LEAST_SHARED * min(len(some.words), len(other.words))
    return is_near and some.hit.role == other.hit.role


def _ends_before(some: Hit, other: Hit) -> bool:
    """Say whether a statement was no longer valid when the other one began to be."""
    return some.valid_until is not None and some.valid_until <= _beginning(other)


def _beginning(hit: Hit) -> datetime:
    return hit.valid_from or hit.created_at
