"""Fine, medium and coarse: what a hit is, and which text it carries."""

import pytest

from byheart.model import to_wire
from byheart.store import MemoryStore

FILL = "Plain words fill this passage up to the brim. " * 30  # about 300 tokens


def section(heading: str, text: str = "") -> str:
    return f"{heading}\n\n{text} {FILL}\n\n"


def medium(store: MemoryStore, query: str, **ask: object) -> list[dict[str, object]]:
    answer = store.search(query, granularity="medium", mode="fts", **ask)  # type: ignore[arg-type]
    return [to_wire(hit) for hit in answer.results]


def test_a_medium_hit_is_the_whole_section_with_its_subsections(store: MemoryStore) -> None:
    database = section("## Database", "postgres") + section("### Query Times", "slow")
    text = section("# Report", "intro") + database + section("## Network", "packets")
    saved = store.save(text, title="R")
    [hit] = medium(store, "slow")
    assert hit["section_content"] == database
    assert hit["section_header"] == hit["header_path"] == "Report > Database"
    assert (hit["memory_id"], hit["source"]) == (saved.memory_id, "expanded_section")
    assert (hit["chunks_in_section"], hit["matched_chunks"], hit["match_ratio"]) == (2, 1, 0.5)
    assert hit["auto_merged"] is False
    lines = text.splitlines(keepends=True)
    assert "".join(lines[hit["start_line"] - 1 : hit["end_line"]]).strip() == database.strip()


def test_a_medium_hit_has_the_promised_fields(store: MemoryStore) -> None:
    store.save(section("# A", "needle"))
    [hit] = medium(store, "needle")
    assert {
        *("memory_id", "section_header", "section_content", "header_path", "chunks_in_section"),
        *("matched_chunks", "match_ratio", "auto_merged", "similarity", "source", "score"),
        *("snippet", "title", "kind"),
    } <= set(hit)


def test_hits_in_one_section_are_one_result(store: MemoryStore) -> None:
    store.save(section("# R") + section("## D", "apple") + section("### Q", "apple"))
    [hit] = medium(store, "apple")
    assert (hit["matched_chunks"], hit["chunks_in_section"], hit["match_ratio"]) == (2, 2, 1.0)
    assert hit["auto_merged"] is True


@pytest.mark.parametrize(("limit", "matched"), [(1, 5), (2, 10), (3, 12)])
def test_matches_are_counted_among_five_passages_for_each_section_asked_for(
    store: MemoryStore, limit: int, matched: int
) -> None:
    store.save(section("## Fruit", "apple") + section("### Kind", "apple") * 11)
    [hit] = medium(store, "apple", limit=limit)
    assert (hit["matched_chunks"], hit["chunks_in_section"]) == (matched, 12)


@pytest.mark.parametrize(("matched", "merged"), [(2, False), (3, True), (5, True)])
def test_a_section_is_auto_merged_from_exactly_0_6(
    store: MemoryStore, matched: int, merged: bool
) -> None:
    parts = [section(f"### Part {n}", "apple" if n < matched - 1 else "pear") for n in range(4)]
    text = section("## Fruit", "apple") + "".join(parts)
    store.save(text)
    [hit] = medium(store, "apple")
    assert (hit["matched_chunks"], hit["chunks_in_section"]) == (matched, 5)
    assert hit["match_ratio"] == matched / 5
    assert hit["auto_merged"] is merged
    assert hit["section_content"] == text  # the whole section in both cases


def test_a_hit_directly_under_an_h1_gives_its_own_text_not_the_whole_document(
    store: MemoryStore,
) -> None:
    intro = section("# Report", "overview")
    store.save(intro + section("## One", "x") + section("## Two", "y"))
    [hit] = medium(store, "overview")
    assert hit["section_content"] == intro
    assert hit["section_header"] == "Report"
    assert hit["chunks_in_section"] == 1


def test_a_document_of_one_h1_is_one_section(store: MemoryStore) -> None:
    text = "# Only\n\n" + "\n\n".join(f"apple {n}. {FILL}" for n in range(3))
    store.save(text)
    [hit] = medium(store, "apple")
    assert hit["section_content"] == text


def test_a_document_that_starts_at_h2_groups_by_that_heading(store: MemoryStore) -> None:
    first = section("## First", "apple") + section("### Deep", "pear")
    store.save(first + section("## Second", "plum"))
    [hit] = medium(store, "pear")
    assert hit["section_content"] == first
    assert hit["section_header"] == "First"


def test_a_text_without_headings_is_one_section(store: MemoryStore) -> None:
    text = "\n\n".join(f"apple {n}. {FILL}" for n in range(3))
    store.save(text)
    [hit] = medium(store, "apple")
    assert (hit["section_content"], hit["section_header"]) == (text, "")


def test_text_before_the_first_heading_is_a_section_of_its_own(store: MemoryStore) -> None:
    before = f"apple before everything. {FILL}\n\n"
    store.save(before + section("# Title", "pear"))
    [hit] = medium(store, "apple")
    assert hit["section_content"] == before


def test_an_arrow_in_a_heading_does_not_break_grouping(store: MemoryStore) -> None:
    one = section("## A > B", "apple") + section("### C", "pear")
    store.save(section("# Top > Level") + one + section("## A", "plum"))
    [hit] = medium(store, "pear")
    assert hit["section_content"] == one
    assert hit["section_header"] == "Top > Level > A > B"


def test_two_sections_of_the_same_title_stay_two(store: MemoryStore) -> None:
    first, second = section("## Notes", "apple"), section("## Notes", "pear")
    store.save(section("# R") + first + second)
    assert [hit["section_content"] for hit in medium(store, "apple")] == [first]
    assert [hit["section_content"] for hit in medium(store, "pear")] == [second]


def test_percent_and_underscore_in_a_heading_are_plain_characters(store: MemoryStore) -> None:
    one = section("## 100%_done", "apple")
    store.save(section("# R") + one + section("## 100 are xdone", "apple"))
    found = medium(store, "apple")
    assert sorted(hit["section_header"] for hit in found) == ["R > 100 are xdone", "R > 100%_done"]
    assert one in [hit["section_content"] for hit in found]


def test_equal_sections_of_two_memories_are_two_results(store: MemoryStore) -> None:
    store.save(section("# R") + section("## D", "apple"), session_id="a")
    store.save(section("# R") + section("## D", "apple"), session_id="b")
    assert len({hit["memory_id"] for hit in medium(store, "apple")}) == 2


def test_the_similarity_of_a_section_is_the_mean_of_its_matched_chunks(
    arrows: MemoryStore,
) -> None:
    arrows.save(f"## S\n\nat 0 x {FILL}\n\n### T\n\nat 60 x {FILL}\n\n")
    [hit] = arrows.search("east", granularity="medium", mode="vector").results
    assert hit.matched_chunks == 2
    assert hit.similarity == pytest.approx((1 + 0.5) / 2, abs=1e-3)


# --- Coarse -----------------------------------------------------------------------------------


def test_a_coarse_hit_is_the_whole_memory_ranked_by_its_best_chunk(arrows: MemoryStore) -> None:
    far = arrows.save(f"# F\n\nat 80 {FILL}\n\n## G\n\nat 40 {FILL}\n")
    near = arrows.save(f"# N\n\nat 10 {FILL}\n\n## M\n\nat 170 {FILL}\n")
    found = arrows.search("east", granularity="coarse", mode="vector").results
    assert [hit.memory_id for hit in found] == [near.memory_id, far.memory_id]
    assert [hit.similarity for hit in found] == pytest.approx([0.984808, 0.766044], abs=1e-3)
    assert found[0].content == arrows.get(near.memory_id).content
    assert (found[0].source, found[0].source_type) == ("full_document", "ranked")
    assert (found[0].matching_chunks, found[0].total_chunks) == (2, 2)


def test_matching_chunks_are_those_that_matched(store: MemoryStore) -> None:
    store.save(section("# A", "apple") + section("## B", "pear") + section("## C", "apple"))
    [hit] = store.search("apple", granularity="coarse", mode="fts").results
    assert (hit.matching_chunks, hit.total_chunks) == (2, 3)


def test_without_a_query_coarse_lists_by_iteration_then_time_latest_first(
    store: MemoryStore,
) -> None:
    for title, number in (("a", 2), ("b", 10), ("c", None), ("d", 2), ("e", None)):
        store.save(f"text {title}", title=title, session_iter=number)
    for query in (None, "", "  "):
        answer = store.search(query, granularity="coarse")
        assert [hit.title for hit in answer.results] == ["b", "d", "a", "e", "c"]
        assert all(hit.similarity == 2.0 for hit in answer.results)
        assert all(hit.source_type == "scoped" for hit in answer.results)
        assert all(hit.source == "full_document" for hit in answer.results)
        assert not answer.has_more
        assert answer.degraded is None


def test_a_listing_obeys_limit_and_offset(store: MemoryStore) -> None:
    for number in range(5):
        store.save(f"text {number}")
    answer = store.search(granularity="coarse", limit=2, offset=2)
    assert [hit.content for hit in answer.results] == ["text 2", "text 1"]
    assert answer.has_more


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_as_many_sections_and_memories_come_back_as_were_asked_for(
    store: MemoryStore, limit: int
) -> None:
    # One memory with many matching chunks stands before all others.
    store.save("".join(section(f"## S{n}", "apple apple apple") for n in range(30)), title="big")
    for number in range(6):
        store.save(f"apple {number} {FILL}", title=f"small {number}")
    found = store.search("apple", granularity="coarse", limit=limit, mode="fts").results
    assert len({hit.memory_id for hit in found}) == limit
    assert len(medium(store, "apple", limit=limit)) == limit
