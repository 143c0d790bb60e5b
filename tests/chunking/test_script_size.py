"""Chunks of every script are about as long, though some scripts need three times the tokens."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from byheart.chunking import split
from byheart.chunking.script_size import scale_to_script

GREEK = "Η βιβλιοθήκη του πανεπιστημίου είναι κλειστή τις Κυριακές και τις αργίες. "
GERMAN = "Die Schlüssel für das Häuschen hängen über der Tür in der Küche. "
ENGLISH = "The keys of the cottage are above the door in the kitchen, next to the café. "


class Letters:
    """Count every letter as a token, as an English model nearly does with Greek."""

    def token_starts(self, text: str) -> Sequence[int]:
        return [at for at, char in enumerate(text) if not char.isspace()]


def test_a_script_that_needs_more_tokens_gets_more_of_them() -> None:
    assert scale_to_script(GREEK, len(GREEK), 400) == 1200
    assert 560 < scale_to_script(GERMAN, len(GERMAN) // 3, 400) < 640


@pytest.mark.parametrize("text", [ENGLISH * 10, "x = 1\n" * 9, "北京大学图书馆" * 9, "", "é"])
def test_english_and_unspaced_scripts_keep_their_target(text: str) -> None:
    assert scale_to_script(text, max(len(text) // 5, len(text) if "北" in text else 0), 400) == 400


def test_the_target_never_shrinks() -> None:
    assert scale_to_script(GREEK, 1, 400) == 400


def test_a_text_is_cut_by_the_size_of_its_script() -> None:
    text = GREEK * 20
    alike = {"format": "text", "tokens": Letters(), "target_tokens": 100}
    by_tokens = split(text, **alike)
    by_script = split(text, by_script=True, **alike)
    assert "".join(each.content for each in by_script) == text
    assert len(by_script) <= len(by_tokens) / 2
    assert max(each.token_count for each in by_script) <= 300


def test_code_keeps_its_target() -> None:
    source = "\n\n".join(f"def größe_{n}(länge):\n    return länge * {n}" for n in range(20))
    alike = {"format": "code:python", "tokens": Letters(), "target_tokens": 60}
    assert split(source, by_script=True, **alike) == split(source, **alike)
