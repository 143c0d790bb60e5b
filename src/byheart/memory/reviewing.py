"""Make the review queue: one page of memories that somebody should look at.

Comparing all texts and reading all for secrets takes seconds in a large store. A process does this
once for a filter; afterwards it looks only at texts that are new or changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

from byheart.contracts import Reader, Storage, one_transaction
from byheart.errors import Do, Hint, join_hints
from byheart.language.claims import Claim
from byheart.language.conflicts import read_claims
from byheart.memory import review_items as rules
from byheart.memory.review_items import FoundItem, ListedReason, PairVerdict, TextName
from byheart.model import (
    REVIEW_REASONS,
    Filter,
    ReviewItem,
    ReviewQueue,
    ReviewReason,
)
from byheart.startup.dataclass_types import dataclass
from byheart.system import clock

# The filters whose findings are kept.
_MOST_FILTERS = 4
# Comparing a text with all others takes about a millisecond, comparing all with all seconds.
_FEW_NEW = 200
_MOST_NEAR = 32
# The nearest pairs whose sentences are read; the answer says if there are more.
_MOST_PAIRS = 10_000
_TEXTS_PER_BATCH = 2_000

Pair = tuple[int, int]


@dataclass(slots=True)
class Findings:
    """Hold what is known about the texts of a filter, by the numbers of their rows."""

    versions: dict[int, int] = field(default_factory=dict)
    secrets: dict[int, Mapping[str, int]] = field(default_factory=dict)
    compared: set[int] = field(default_factory=set)
    pending_vectors: int = 0
    left_out: int = 0
    pairs: dict[Pair, PairVerdict] = field(default_factory=dict)
    importances: dict[int, float] = field(default_factory=dict)
    # The ids of the memories that were found.
    names: dict[int, str] = field(default_factory=dict)

    def item_id_of(self, item: FoundItem) -> str:
        """Name an item by the present versions of its memories."""
        texts = [TextName(self.names[no], self.versions[no]) for no in item.memory_nos]
        return rules.item_id_of(item.reason, texts)


class Reviewer:
    """Look for memories to review, and remember what was found."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: OrderedDict[Filter, Findings] = OrderedDict()
        self._lock = threading.Lock()

    def queue(
        self, where: Filter, reason: ReviewReason | None, limit: int, offset: int
    ) -> ReviewQueue:
        """Give a page of the queue, the most urgent reasons first, and count all items."""
        now = clock.now()
        with self._storage.searching(where.space) as reader:
            with self._lock:
                findings = self._look(reader, where)
                found = _arrange(findings, reader.reviews.kept(where.space))
            listings = {each: rules.listing_of(each, where, now) for each in rules.LISTED}
            counts = {
                each: reader.count(listings[each]) if each in listings else len(found[each])
                for each in REVIEW_REASONS
            }
            chosen = REVIEW_REASONS if reason is None else (reason,)
            page = _Page(reader, where.space, now, findings.names)
            items: list[ReviewItem] = []
            skip = offset
            for each in chosen:
                wanted = limit - len(items)
                if wanted and skip < counts[each]:
                    if each in listings:
                        listing = replace(listings[each], limit=wanted, offset=skip)
                        items += page.listed(each, reader.ids(listing))
                    else:
                        items += page.found(found[each][skip : skip + wanted])
                skip = max(0, skip - counts[each])
        total = sum(counts[each] for each in chosen)
        return ReviewQueue(
            items=tuple(items),
            counts={str(each): number for each, number in counts.items()},
            total=total,
            has_more=offset + len(items) < total,
            degraded=_degraded(findings),
        )

    @one_transaction
    def keep(self, item_id: str, space: str, who: str) -> bool:
        """Leave an item out of the queue until one of its memories changes."""
        _, texts = rules.parse_item_id(item_id)
        ids = [each.memory_id for each in texts]
        with self._storage.writing(space) as writer:
            held = writer.memories.held(ids, space)
            visible = {each.memory_id: each.version for each in held if each.forgotten_at is None}
            rules.refuse_changed(item_id, texts, visible)
            return writer.reviews.keep(space, item_id, ids, clock.now(), who)

    @one_transaction
    def unkeep(self, item_id: str, space: str) -> bool:
        """Undo `keep`."""
        with self._storage.writing(space) as writer:
            return writer.reviews.unkeep(space, item_id)

    def _look(self, reader: Reader, where: Filter) -> Findings:
        """Bring the findings of a filter up to date."""
        known = self._known.setdefault(where, Findings())
        self._known.move_to_end(where)
        if len(self._known) > _MOST_FILTERS:
            self._known.popitem(last=False)
        stamps = reader.reviews.stamps(where)
        versions = {each.memory_no: each.version for each in stamps}
        changed = [number for number, it in versions.items() if known.versions.get(number) != it]
        _find_secrets(reader, changed, known)
        known.versions = versions
        known.secrets = {no: kinds for no, kinds in known.secrets.items() if no in versions}
        comparable = {each.memory_no: each.kind for each in stamps if rules.is_comparable(each)}
        # Turns are many, and are never compared.
        where = replace(where, kind=tuple(sorted(set(comparable.values()))))
        _find_pairs(reader, where, set(comparable), set(changed), known)
        return known


def _find_secrets(reader: Reader, numbers: Sequence[int], known: Findings) -> None:
    # Imported here: only a review and what saves need the patterns.
    from byheart.extraction.secrets import redact

    for at in range(0, len(numbers), _TEXTS_PER_BATCH):
        for text in reader.reviews.texts(numbers[at : at + _TEXTS_PER_BATCH]):
            whole = "\n".join(filter(None, (text.title, text.content)))
            kinds = redact(whole).found
            if kinds:
                known.secrets[text.memory_no] = kinds
                known.names[text.memory_no] = text.memory_id
            else:
                known.secrets.pop(text.memory_no, None)


def _find_pairs(
    reader: Reader, where: Filter, comparable: set[int], changed: set[int], known: Findings
) -> None:
    """Compare new texts with all others; compare all if there are many."""
    pending = reader.index.state(
        where.space, where.session_id, include_global=where.include_global
    ).pending_vectors
    if pending != known.pending_vectors:
        known.compared = set()  # some of the texts could not be compared then
        known.pending_vectors = pending
    gone = changed | (known.compared - comparable)
    known.pairs = {pair: verdict for pair, verdict in known.pairs.items() if gone.isdisjoint(pair)}
    fresh = (comparable - known.compared) | (comparable & changed)
    known.compared = comparable
    if not fresh:
        return
    near: dict[Pair, float] = {}
    least = rules.least_similarity(len(comparable))
    if len(fresh) > _FEW_NEW:
        for first, second, similarity in reader.index.doubles(where, least):
            near[first, second] = similarity
    else:
        for number in fresh:
            for other, similarity in reader.index.resembling(number, least, _MOST_NEAR):
                near[min(number, other), max(number, other)] = similarity
    pairs = [pair for pair in near if pair[0] in comparable and pair[1] in comparable]
    pairs.sort(key=lambda pair: (-near[pair], pair))
    if len(fresh) > _FEW_NEW:
        known.left_out = max(0, len(pairs) - _MOST_PAIRS)
    _judge(reader, pairs[:_MOST_PAIRS], near, known)


def _judge(
    reader: Reader, pairs: Sequence[Pair], near: Mapping[Pair, float], known: Findings
) -> None:
    numbers = sorted({number for pair in pairs for number in pair})
    texts = {each.memory_no: each for each in reader.reviews.texts(numbers)}
    claims: dict[int, list[Claim]] = {no: read_claims(each.content) for no, each in texts.items()}
    for pair in pairs:
        first, second = pair
        if first not in texts or second not in texts:
            continue
        some, other = texts[first], texts[second]
        if (some.kind, some.session_id) != (other.kind, other.session_id):
            continue
        verdict = rules.judge_pair((some, other), (claims[first], claims[second]), near[pair])
        if verdict is not None:
            known.pairs[pair] = verdict
            for each in (some, other):
                known.importances[each.memory_no] = each.importance
                known.names[each.memory_no] = each.memory_id


def _arrange(known: Findings, kept: Collection[str]) -> dict[ReviewReason, list[FoundItem]]:
    """Sort the findings by reason, without the items that somebody decided to keep."""
    found: dict[ReviewReason, list[FoundItem]] = {each: [] for each in REVIEW_REASONS}
    secrets = [
        FoundItem("secret", (number,), rules.tell_secrets(known.secrets[number]))
        for number in sorted(known.secrets, reverse=True)
    ]
    for item in (*secrets, *rules.arrange_pairs(known.pairs, known.importances)):
        if known.item_id_of(item) not in kept:
            found[item.reason].append(item)
    return found


@dataclass(frozen=True, slots=True)
class _Page:
    """Read the memories of the items of one page."""

    reader: Reader
    space: str
    now: datetime
    names: Mapping[int, str]

    def listed(self, reason: ListedReason, ids: Sequence[str]) -> Iterable[ReviewItem]:
        for memory in self.reader.views.briefs(ids, self.space):
            name = TextName(memory.memory_id, memory.version)
            yield ReviewItem(
                item_id=rules.item_id_of(reason, [name]),
                reason=reason,
                why=rules.tell_why(reason, memory, self.now),
                memories=(memory,),
                actions=rules.ACTIONS[reason],
            )

    def found(self, items: Sequence[FoundItem]) -> Iterable[ReviewItem]:
        wanted = dict.fromkeys(self.names[number] for item in items for number in item.memory_nos)
        briefs = {each.memory_id: each for each in self.reader.views.briefs([*wanted], self.space)}
        for item in items:
            memories = tuple(briefs[self.names[number]] for number in item.memory_nos)
            texts = [TextName(each.memory_id, each.version) for each in memories]
            yield ReviewItem(
                item_id=rules.item_id_of(item.reason, texts),
                reason=item.reason,
                why=item.why,
                memories=memories,
                actions=rules.ACTIONS[item.reason],
            )


def _degraded(known: Findings) -> str | None:
    pending = left_out = None
    if known.pending_vectors:
        pending = Hint(
            f"{known.pending_vectors:,} chunks have no vectors yet and were not compared: "
            "make them with: ",
            Do("admin.doctor", fix=True),
        )
    if known.left_out:
        left_out = (
            f"only the {_MOST_PAIRS:,} nearest pairs of memories were compared; "
            f"{known.left_out:,} more are left for later"
        )
    return join_hints("; ", (pending, left_out))
