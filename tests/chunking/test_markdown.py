"""Sections, fences, tables and lists of Markdown become chunks."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest


def outline(chunks):
    return [(each.chunk_type, each.header_path, each.level) for each in chunks]


def test_each_heading_starts_a_chunk_under_its_path(chunk):
    content = (
        "intro\n\n# A\n\none\n\n## B\n\ntwo\n\n### C\n\nthree\n\n## D\n\nfour\n\n# E\n\nfive\n"
    )
    assert outline(chunk(content, format="markdown")) == [
        ("text", "", 0),
        ("section", "A", 1),
        ("section", "A > B", 2),
        ("section", "A > B > C", 3),
        ("section", "A > D", 2),
        ("section", "E", 1),
    ]


def test_setext_headings_are_headings(chunk):
    chunks = chunk("A\n=\n\none\n\nB\nb\n---\ntwo\n", format="markdown")
    assert outline(chunks) == [("section", "A", 1), ("section", "A > B b", 2)]


def test_a_heading_without_a_body_joins_the_deeper_heading_that_follows(chunk):
    first, second = chunk("# A\n\n## B\n\n### C\n\ntext\n\n## D\n\nmore\n", format="markdown")
    assert first.content == "# A\n\n## B\n\n### C\n\ntext\n\n"
    assert [h.title for h in first.headings] == ["A", "B", "C"]
    assert [h.start_char for h in first.headings] == [0, 5, 11]
    assert second.header_path == "A > D"


def test_an_empty_section_before_a_sibling_is_a_chunk_of_its_own(chunk):
    assert [c.header_path for c in chunk("# A\n# B\n## C\n", format="markdown")] == ["A", "B > C"]


def test_headings_of_the_same_title_are_told_apart_by_their_place(chunk):
    first, second = chunk("# A\n\none\n\n# A\n\ntwo\n", format="markdown")
    assert first.header_path == second.header_path == "A"
    assert first.headings != second.headings


def test_a_skipped_level_keeps_its_depth(chunk):
    (only,) = chunk("# A\n\n#### B\n\ntext\n", format="markdown")
    assert (only.header_path, only.level) == ("A > B", 4)


@pytest.mark.parametrize(
    "container",
    [
        "```\n# no\n```\n",
        "~~~~ md\n# no\n~~~\n~~~~\n",
        "    # no\n",
        "> # no\n",
        "- # no\n",
        "<div>\n# no\n</div>\n",
        "<!--\n\n# no\n\n-->\n",
        "\\# no\n",
        "#no\n",
    ],
)
def test_what_only_looks_like_a_section_heading_is_none(chunk, container):
    chunks = chunk(f"# A\n\ntext\n\n{container}\nend\n", format="markdown")
    assert outline(chunks) == [("section", "A", 1)]


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("*Fast* __and__ ~~slow~~", "Fast and slow"),
        ("[text](url) and [ref][r] ![alt](i.png)", "text and ref alt"),
        ("`code > span`", "code > span"),
        ("A > B", "A > B"),
        ("a \\* b &amp; c &copy;", "a * b & c ©"),
        ("x <b>y</b> <https://a.b> ##", "x y https://a.b"),
        ("", ""),
    ],
)
def test_a_title_is_the_plain_text_of_the_heading(chunk, source, title):
    (only,) = chunk(f"# {source}\n\ntext\n\n[r]: /url\n", format="markdown")
    assert only.headings[0].title == title


def test_an_endless_title_is_cut_short(chunk):
    chunks = chunk("# " + "[" * 100_000 + "\n\ntext\n", format="markdown")
    assert len(chunks[-1].header_path) <= 500


def test_a_long_fence_is_never_split(chunk):
    fence = "```python\n" + "x = 1\n\n" * 1000 + "```\n"
    content = f"# A\n\nBefore.\n\n{fence}\nAfter.\n"
    chunks = chunk(content, format="markdown")
    (holder,) = [each for each in chunks if "```" in each.content]
    assert fence in holder.content
    assert holder.chunk_type == "code_block"


def test_a_fence_that_is_not_closed_runs_to_the_end(chunk):
    chunks = chunk("text\n\n```\n" + "# a\n\n" * 1000, format="markdown")
    assert [each.chunk_type for each in chunks] == ["text", "code_block"]


@pytest.mark.parametrize("prefix", ["> ", "  "])
def test_a_fence_inside_a_long_container_stays_whole(chunk, prefix):
    fence = "".join(f"{prefix}{line}\n" for line in ["```", *["x = 1"] * 300, "```"])
    marker = "" if prefix == "> " else "- item\n"
    chunks = chunk(marker + fence + f"\n{prefix}end\n", format="markdown")
    assert any(fence in each.content for each in chunks)


def test_a_heading_stays_with_the_fence_that_follows(chunk):
    chunks = chunk("# A\n\n```\n" + "x\n" * 900 + "```\n", format="markdown")
    assert outline(chunks) == [("section", "A", 1)]


def test_a_heading_stays_with_a_paragraph_that_just_fits_alone(chunk):
    content = "# A heading\n\n" + "One two three. " * 100 + "\n"
    first, second = chunk(content, format="markdown")
    assert first.token_count > 100
    assert second.token_count > 100


def test_a_table_that_fits_stays_whole(chunk):
    table = "| a | b |\n|---|---|\n" + "| c | d |\n" * 30
    chunks = chunk("word " * 300 + "\n\n" + table, format="markdown")
    assert [each.chunk_type for each in chunks] == ["text", "table"]
    assert chunks[1].content == table


def test_a_long_table_is_split_between_rows(chunk):
    chunks = chunk("| a | b |\n|---|---|\n" + "| c | d. e |\n" * 200, format="markdown")
    assert len(chunks) > 1
    assert all(each.content.startswith("| ") for each in chunks)
    assert all(each.content.endswith(" |\n") for each in chunks)


def test_a_long_list_is_split_between_items(chunk):
    chunks = chunk("- One. Two\n  three.\n\n" * 200, format="markdown")
    assert {each.chunk_type for each in chunks} == {"list"}
    assert all(each.content.startswith("- One") for each in chunks)


def test_front_matter_is_a_chunk_of_its_own(chunk):
    front, body = chunk("---\ntitle: A # b\n---\n\n# H\n\ntext\n", format="markdown")
    assert (front.chunk_type, front.content) == ("front_matter", "---\ntitle: A # b\n---\n\n")
    assert (body.chunk_type, body.header_path) == ("section", "H")


def test_two_thematic_breaks_are_not_front_matter(chunk):
    chunks = chunk("---\n\nnote: a\n\n---\n\ntext\n", format="markdown")
    assert "front_matter" not in {each.chunk_type for each in chunks}


def test_many_link_definitions_do_not_swell_the_fence_before_them(chunk):
    content = "```\nx\n```\n\n" + "".join(f"[r{n}]: http://a.b/{n}\n" for n in range(200))
    chunks = chunk(content, format="markdown")
    assert max(each.token_count for each in chunks) <= 400


def test_no_scrap_is_left_at_the_end_of_a_section(chunk):
    content = "# A\n\n" + "Six words stand in this sentence. " * 58
    sizes = [each.token_count for each in chunk(content, format="markdown")]
    assert len(sizes) == 2
    assert max(sizes) - min(sizes) <= 7


def test_headings_of_the_commonmark_examples_are_those_of_the_reference(data: Path, chunk):
    for example in json.loads((data / "commonmark" / "spec.json").read_text("utf-8")):
        if example["section"] not in ("ATX headings", "Setext headings"):
            continue
        outer = re.sub(r"<(blockquote|li)>.*?</\1>", "", example["html"], flags=re.DOTALL)
        expected = [
            (int(level), " ".join(html.unescape(re.sub(r"<[^>]+>", "", title)).split()))
            for level, title in re.findall(r"<h(\d)>(.*?)</h\1>", outer, flags=re.DOTALL)
        ]
        chunks = chunk(example["markdown"], format="markdown")
        found = {h.start_char: (h.level, h.title) for c in chunks for h in c.headings}
        assert [found[start] for start in sorted(found)] == expected, example["example"]
