import numpy as np
import pytest

from byheart.index.posting_blocks import (
    MOST_CHUNKS,
    Group,
    Postings,
    group_key,
    key_ranges,
    list_key,
    read_block,
    read_list,
    write_blocks,
)
from byheart.index.segment import hash_term


def made(sizes: dict[str, int], seed: int = 0) -> tuple[Postings, dict[int, Postings]]:
    """Make postings of terms at random places, with counts of mostly 1; give them by term too."""
    chance = np.random.default_rng(seed)
    by_term: dict[int, Postings] = {}
    for term, size in sizes.items():
        number = hash_term(term)
        places = np.sort(chance.choice(MOST_CHUNKS, size, replace=False)).astype(np.uint16)
        counts = np.maximum(chance.integers(-5, 256, size), 1).astype(np.uint8)
        by_term[number] = Postings(np.full(size, number, np.uint64), places, counts)
    ordered = [by_term[term] for term in sorted(by_term)]
    return Postings(*map(np.concatenate, zip(*ordered, strict=True))), by_term


def test_postings_are_read_as_they_were_written() -> None:
    sizes = {f"rare {number}": 1 + number % 9 for number in range(3000)}
    sizes |= {"edge": 255, "common": 256, "more common": 5000, "in every chunk": MOST_CHUNKS}
    postings, by_term = made(sizes)
    blocks = dict(write_blocks(postings))
    assert len(blocks) < 3 + 4096
    for term, wanted in by_term.items():
        if len(wanted.terms) >= 256:
            named, found = read_list(blocks[list_key(term)])
            assert named == term
        else:
            assert list_key(term) not in blocks
            among = Group(blocks[group_key(term)]).find(term)
            assert among is not None
            found = among
        assert np.array_equal(found.places, wanted.places)
        assert np.array_equal(found.counts, wanted.counts)
    parts = [read_block(key, data) for key, data in blocks.items()]
    assert sum(len(each.terms) for each in parts) == len(postings.terms)
    absent = hash_term("absent")
    blocks_of_absent = blocks.get(group_key(absent))
    assert blocks_of_absent is None or Group(blocks_of_absent).find(absent) is None


@pytest.mark.parametrize("places", [[0], [65535], [0, 65535], [254], [255], [256, 511, 766]])
def test_any_gap_is_kept(places: list[int]) -> None:
    # A block of its own needs many postings: these come behind a dense beginning.
    dense = [each for each in range(1000, 1400) if each not in places]
    every = np.array(sorted([*places, *dense]), np.uint16)
    term, counts = hash_term("term"), np.ones(len(every), np.uint8)
    [(key, data)] = write_blocks(Postings(np.full(len(every), term, np.uint64), every, counts))
    assert key == list_key(term)
    assert np.array_equal(read_list(data)[1].places, every)


def test_a_dense_list_takes_little_more_than_a_byte_for_each_posting() -> None:
    postings, _ = made({"common": 6000})
    [(_, data)] = write_blocks(postings._replace(counts=np.ones(6000, np.uint8)))
    assert len(data) < 6000 * 1.3


def test_the_parts_of_all_keys_are_whole_and_apart() -> None:
    sizes = {f"word {number}": 300 if number % 50 == 0 else 1 for number in range(2000)}
    postings, _ = made(sizes)
    keys = sorted(key for key, _ in write_blocks(postings))
    for parts in (1, 16):
        ranges = [each for part in range(parts) for each in key_ranges(part, parts)]
        held = [key for first, last in ranges for key in keys if first <= key <= last]
        assert sorted(held) == keys


def test_no_postings_make_no_blocks() -> None:
    nothing = Postings(np.empty(0, np.uint64), np.empty(0, np.uint16), np.empty(0, np.uint8))
    assert list(write_blocks(nothing)) == []
