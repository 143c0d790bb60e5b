"""Propose merges of memories that say almost the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from byheart.contracts import Reader, Storage
from byheart.errors import Do, Hint
from byheart.language import distinct_words as particulars
from byheart.language.claims import Claim
from byheart.language.conflicts import find_difference, read_claims
from byheart.memory import transactions
from byheart.model import Contradiction, Dedupe, Filter, Memory, MergeProposal, Similar

Name = TypeVar("Name", bound="str | int")


class Double(NamedTuple):
    """Two memories that say almost the same, by their ids, the older one first."""

    first: str
    second: str
    similarity: float


def dedupe(
    storage: Storage, where: Filter, threshold: float, limit: int, *, apply: bool, who: str
) -> Dedupe:
    """Propose merges of near duplicates, best first; with `apply`, make them."""
    with storage.searching(where.space) as reader:
        doubles = find_doubles(reader, where, threshold)
        names = dict.fromkeys(name for each in doubles for name in (each.first, each.second))
        memories = {name: reader.memory(name, where.space) for name in names}
        pending = reader.index.state(
            where.space, where.session_id, include_global=where.include_global
        ).pending_vectors
    known = {name: memory for name, memory in memories.items() if memory is not None}
    proposals, left_out = propose_merges(doubles, known)
    page = proposals[:limit]
    if apply:
        for each in page:
            others = [other.memory_id for other in each.others]
            transactions.merge(storage, each.keep, others, where.space, who, None)
    return Dedupe(
        proposals=tuple(page),
        total=len(proposals),
        has_more=len(page) < len(proposals),
        left_out=left_out,
        threshold=threshold,
        applied=apply,
        degraded=Hint(
            f"{pending:,} chunks have no vectors yet and were not compared: make them with: ",
            Do("admin.doctor", fix=True),
        )
        if pending
        else None,
    )


def find_doubles(reader: Reader, where: Filter, least: float) -> list[Double]:
    """Pair memories of one kind and session that say almost the same, best first.

    Turns are left out: a turn stays as it was said, and is never merged or replaced.
    """
    found = reader.index.doubles(where, least)
    numbers = sorted({number for first, second, _ in found for number in (first, second)})
    memories = dict(zip(numbers, reader.summaries(numbers), strict=True))
    return [
        Double(memories[first].text_id, memories[second].text_id, similarity)
        for first, second, similarity in found
        if not (memories[first].is_turn or memories[second].is_turn)
    ]


def find_similar(
    reader: Reader, memory_id: str, space: str, least: float, limit: int
) -> list[Similar]:
    """Find memories that say almost the same and are visible where this one is, best first."""
    state = reader.states([memory_id], space).get(memory_id)
    if state is None:
        return []
    found = reader.index.resembling(state.memory_no, least, limit)
    listed = reader.summaries([number for number, _ in found])
    return [
        Similar(memory.text_id, similarity, memory.summary)
        for memory, (_, similarity) in zip(listed, found, strict=True)
        if not memory.is_turn
    ]


def find_contradictions(content: str, near: Iterable[Similar]) -> Iterator[Contradiction]:
    """Find memories among near ones that have another value for the same subject.

    The near ones are compared by their summaries, which for a fact is the fact: reading their texts
    would make every save wait for the database once more.
    """
    claims: list[Claim] | None = None
    for each in near:
        claims = read_claims(content) if claims is None else claims
        found = find_difference(claims, read_claims(each.summary))
        if found:
            yield Contradiction(each.memory_id, each.similarity, *found)


def propose_merges(
    doubles: Iterable[Double], memories: Mapping[str, Memory]
) -> tuple[list[MergeProposal], int]:
    """Group memories around those worth keeping; count the pairs excluded because they differ.

    Every other memory of a group is similar to the kept one, not only to a third one. Memories
    that differ in a name, a number or a "not" are close for a model and yet say different
    things.
    """
    alike: dict[str, dict[str, float]] = {}
    left_out = 0
    for first, second, similarity in doubles:
        if say_different_things(memories[first], memories[second]):
            left_out += 1
            continue
        alike.setdefault(first, {})[second] = similarity
        alike.setdefault(second, {})[first] = similarity
    proposals = [
        MergeProposal(
            keep=keep,
            summary=memories[keep].summary,
            why=_why(memories[keep], [memories[name] for name in others]),
            others=tuple(
                Similar(name, alike[keep][name], memories[name].summary) for name in others
            ),
        )
        for keep, others in group_around(alike, lambda name: _rank(memories[name]))
    ]
    proposals.sort(key=lambda each: (-each.others[0].similarity, each.keep))
    return proposals, left_out


def group_around(
    alike: Mapping[Name, Mapping[Name, float]], rank: Callable[[Name], tuple[Any, ...]]
) -> Iterator[tuple[Name, list[Name]]]:
    """Group names around those of the lowest rank: each group has the nearest others first.

    Every other name of a group is similar to the first, not only to a third one.
    """
    taken = set[Name]()
    for keep in sorted(alike, key=rank):
        near = alike[keep]
        others = [name for name in near if name not in taken]
        if keep in taken or not others:
            continue
        taken.update((keep, *others))
        others.sort(key=lambda name: (-near[name], name))
        yield keep, others


def _rank(memory: Memory) -> tuple[object, ...]:
    return -memory.importance, -memory.access_count, memory.created_at, memory.memory_id


def _why(keep: Memory, others: Sequence[Memory]) -> str:
    """Name the deciding criterion: the first in which the next best memory is worse."""
    next_best = min(others, key=_rank)
    if keep.importance > next_best.importance:
        return "the most important"
    if keep.access_count > next_best.access_count:
        return "the most used"
    return "the oldest"


def say_different_things(some: Memory, other: Memory) -> bool:
    """Check whether one memory has a name, a number or a "not" that the other lacks."""
    return particulars.differ(some.content, other.content, some.entities, other.entities)
