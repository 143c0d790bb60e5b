"""Write the postings of a run as blocks of bytes, and read them.

A term that many chunks of the run have gets a block of its own: the gaps between places in one
byte each (255 stands for a longer gap, which goes on in the next byte), one bit for each posting
that says whether the term occurs more than once, and the counts of those. The other terms share
4,096 blocks, by the first 12 bits of their hashes: a row of the database for each would take
several times as much as its postings.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from byheart.startup.late_numpy import NDArray, np

# A place within a run fits into 16 bits.
MOST_CHUNKS = 1 << 16
# From this many postings on, a term has a block of its own. The other sizes fit into a byte.
_LONG = 256
_GROUP_BITS = 12
_LONGEST_GAP = 255
_LIST = struct.Struct("<QII")
_GROUP = struct.Struct("<II")


class Postings(NamedTuple):
    """Postings in the order of their terms, and then of their places in the run."""

    terms: NDArray[np.uint64]
    places: NDArray[np.uint16]
    counts: NDArray[np.uint8]


class TermPostings(NamedTuple):
    """The places of the chunks that have one term, in order, and how often they have it."""

    places: NDArray[np.uint16]
    counts: NDArray[np.uint8]


def list_key(term: int) -> int:
    """Give the key of a block that a term has alone."""
    return term >> 1


def group_key(term: int) -> int:
    """Give the key of the block that a term shares."""
    return -1 - (term >> (64 - _GROUP_BITS))


def key_ranges(part: int, parts: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Give the keys of the blocks with one part of all hashes: of groups, and of lists."""
    groups, lists = (1 << _GROUP_BITS) // parts, (1 << 63) // parts
    return (
        (-(part + 1) * groups, -1 - part * groups),
        (part * lists, (part + 1) * lists - 1),
    )


def write_blocks(postings: Postings) -> Iterator[tuple[int, bytes]]:
    """Write postings as blocks, each with its key."""
    terms, starts, sizes = np.unique(postings.terms, return_index=True, return_counts=True)
    for at in np.flatnonzero(sizes >= _LONG).tolist():
        here = slice(int(starts[at]), int(starts[at] + sizes[at]))
        term = int(terms[at])
        yield list_key(term), _write_list(term, postings.places[here], postings.counts[here])
    is_short = np.repeat(sizes < _LONG, sizes)
    places, counts = postings.places[is_short], postings.counts[is_short]
    terms, sizes = terms[sizes < _LONG], sizes[sizes < _LONG]
    behind = np.cumsum(sizes)
    groups = terms >> np.uint64(64 - _GROUP_BITS)
    firsts = np.unique(groups, return_index=True)[1]
    for first, last in zip(firsts, np.append(firsts[1:], len(terms)), strict=False):
        here = slice(int(behind[first] - sizes[first]), int(behind[last - 1]))
        data = (
            _GROUP.pack(last - first, here.stop - here.start),
            terms[first:last].astype("<u8").tobytes(),
            sizes[first:last].astype(np.uint8).tobytes(),
            places[here].astype("<u2").tobytes(),
            counts[here].tobytes(),
        )
        yield group_key(int(terms[first])), b"".join(data)


def _write_list(term: int, places: NDArray[np.uint16], counts: NDArray[np.uint8]) -> bytes:
    gaps = np.diff(places.astype(np.int32), prepend=-1) - 1
    whole, rest = np.divmod(gaps, _LONGEST_GAP)
    coded = np.full(len(gaps) + int(whole.sum()), _LONGEST_GAP, np.uint8)
    coded[np.cumsum(whole + 1) - 1] = rest
    often = counts > 1
    head = _LIST.pack(term, len(places), len(coded))
    return b"".join((head, coded.tobytes(), np.packbits(often).tobytes(), counts[often].tobytes()))


def read_list(data: bytes) -> tuple[int, TermPostings]:
    """Read a block that one term has alone."""
    term, size, length = _LIST.unpack_from(data)
    coded = np.frombuffer(data, np.uint8, length, _LIST.size)
    ends = np.flatnonzero(coded != _LONGEST_GAP)
    # At most 65,536 places: the sum of all gaps fits into 32 bits.
    places = np.cumsum(coded, dtype=np.int32).take(ends) + np.arange(size, dtype=np.int32)
    flags = np.frombuffer(data, np.uint8, -(-size // 8), _LIST.size + length)
    often = np.flatnonzero(np.unpackbits(flags, count=size))
    counts = np.ones(size, np.uint8)
    counts[often] = np.frombuffer(data, np.uint8, len(often), len(data) - len(often))
    return term, TermPostings(places.astype(np.uint16), counts)


class Group:
    """A block that many terms share."""

    def __init__(self, data: bytes) -> None:
        size, total = _GROUP.unpack_from(data)
        at = _GROUP.size
        self.terms = np.frombuffer(data, "<u8", size, at)
        self.sizes = np.frombuffer(data, np.uint8, size, at := at + 8 * size)
        self._places = np.frombuffer(data, "<u2", total, at := at + size)
        self._counts = np.frombuffer(data, np.uint8, total, at + 2 * total)

    def find(self, term: int) -> TermPostings | None:
        """Give the postings of a term, if any chunk has it."""
        at = int(self.terms.searchsorted(np.uint64(term)))
        if at == len(self.terms) or int(self.terms[at]) != term:
            return None
        start = int(self.sizes[:at].sum(dtype=np.int64))
        here = slice(start, start + int(self.sizes[at]))
        return TermPostings(self._places[here], self._counts[here])

    @property
    def postings(self) -> Postings:
        """Give the postings of all terms."""
        return Postings(np.repeat(self.terms, self.sizes), self._places, self._counts)


def read_block(key: int, data: bytes) -> Postings:
    """Read all postings of a block."""
    if key < 0:
        return Group(data).postings
    term, (places, counts) = read_list(data)
    return Postings(np.full(len(places), term, np.uint64), places, counts)
