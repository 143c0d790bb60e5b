"""Sets of documents with sections ask for the chunks that answer, and headings can be left out."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.embedding.vectorizer import Passage
from byheart.model import Chunk, Heading

_FOLDER = Path(__file__).parents[2] / "benchmarks" / "quality"
_WIKI = (
    " = Plain maskray = \n A ray of the sea . \n = = Biology = = \n It eats shrimp . \n"
    " = Gregorian Tower = \n A round tower . \n"
)
_PAPERS = (
    "PMID: 1\n==== Body\nIntroduction\nMalaria is old.\n\nResults\nProfiles of Genes\n"
    "They rise and fall.\n\nFigure 1 Genes\nThe rise of each.\n\nPMID: 2\nElephants are large.\n"
)
_GUIDE = (
    "Ask here.\n\n## Sync\n\nNotes travel between devices. To save room, choose what "
    "to leave out in [[Settings#Excluded files|the list of exclusions]]. Then wait.\n"
)
_SETTINGS = (
    "Many switches.\n\n## Excluded files\n\nNames and patterns.\n\n## Hotkeys\n\nKeys to press.\n"
)

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Import files of the benchmark, whose names are not to stay in the way of others."""
    monkeypatch.syspath_prepend(_FOLDER)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(_FOLDER)):
            del sys.modules[name]


def test_a_wiki_span_is_found_where_it_was_though_headings_are_markdown_now(load: Load) -> None:
    headed = load("spans").head_wiki(_WIKI)
    texts = {each.name: each.text for each in headed.documents}
    assert list(texts) == ["Plain maskray", "Gregorian Tower"]
    assert "\n## Biology " in texts["Plain maskray"]
    for wanted in ("It eats shrimp", "A round tower"):
        start = _WIKI.index(wanted)
        name, (begin, end) = headed.place(start, start + len(wanted))
        assert texts[name][begin:end] == wanted


def test_headings_of_papers_are_marked_and_spans_moved_along(load: Load) -> None:
    headed = load("spans").head_papers(_PAPERS)
    texts = {each.name: each.text for each in headed.documents}
    assert "\n# Introduction\nMalaria" in texts["paper 0"]
    assert "\n# Results\n## Profiles of Genes\nThey" in texts["paper 0"]
    assert "\nFigure 1 Genes\n" in texts["paper 0"]
    for wanted in ("Malaria is old", "They rise and fall", "Elephants are large"):
        start = _PAPERS.index(wanted)
        name, (begin, end) = headed.place(start, start + len(wanted))
        assert texts[name][begin:end] == wanted


def test_a_question_asks_for_every_chunk_that_its_answer_touches(load: Load) -> None:
    sections, sets = load("sections"), load("sets")
    text = "# One\n\nFirst.\n\n# Two\n\nSecond.\n"
    across = sections.Asked("what?", [("page", (text.index("First"), text.index("Second") + 3))])
    within = sections.Asked("which?", [("page", (text.index("First"), text.index("First") + 5))])
    made = sections.make_set(
        "pages", [sets.Document("page", None, text, None)], [across, within], HashEmbedder(64)
    )
    both, one = (set(each.gains) for each in made.questions)
    assert one < both
    assert both == {
        sets.name_chunk("page", 0),
        sets.name_chunk("page", text.index("# Two")),
    }


def test_a_sentence_with_a_link_asks_for_the_section_and_is_cut_from_its_page(
    load: Load, tmp_path: Path
) -> None:
    book = tmp_path / "markdown" / "obsidian-help"
    book.mkdir(parents=True)
    (book / "Guide.md").write_text(_GUIDE)
    (book / "Settings.md").write_text(_SETTINGS)
    named, unnamed = load("links").read_link_sets(tmp_path, None, HashEmbedder(64))
    assert [each.text for each in named.questions] == [
        "To save room, choose what to leave out in the list of exclusions."
    ]
    assert [each.text for each in unnamed.questions] == [
        "To save room, choose what to leave out in ."
    ]
    assert set(named.questions[0].gains) == {f"Settings @ {_SETTINGS.index('## Excluded')}"}
    guide = next(each.text for each in named.documents if each.name == "Guide")
    assert "Notes travel between devices." in guide
    assert "Then wait." in guide
    assert "To save room" not in guide


def test_links_of_a_book_lead_to_headings_by_their_anchors(load: Load) -> None:
    text = (
        "As told in [“Using `+` or `format!`”][strings], and at [home](https://example.com/#x).\n\n"
        "[strings]: ch08-02-strings.html#using--or-format\n"
    )
    links = load("links")
    first, second = links.find_links(text)
    assert (first.page, first.section) == ("ch08-02-strings", "using--or-format")
    assert second.section == ""
    page = "## Strings\n\nText.\n\n### Using `+` or `format!`\n\nJoin them.\n\n### Slices\n\nCut.\n"
    [(start, end)] = links.find_sections(page, first.section)
    assert page[start:end] == "### Using `+` or `format!`\n\nJoin them.\n\n"


def test_a_variation_can_leave_titles_and_headings_out(load: Load) -> None:
    variations = load("variations")
    headings = (Heading(1, "Book", 0), Heading(2, "Chapter", 8))
    chunk = Chunk(1, "## Chapter\n\nText.", 8, 25, 2, 4, "section", headings, 5)
    passage = Passage(chunk, "", "Title")

    def header(**changes: object) -> str:
        how = variations.Variation("tried", **changes)
        [text] = variations.texts_of(passage, how, HashEmbedder(64))
        return str(text).removesuffix(chunk.content).strip()

    assert header() == "Title > Book > Chapter"
    assert header(titles=False) == "Book > Chapter"
    assert header(headings="innermost") == "Title > Chapter"
    assert header(headings="above") == "Title > Book"
    assert header(headings="none") == "Title"
    assert header(titles=False, headings="none") == ""
