"""An embedder of the caller's own, given to `byheart.open`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byheart
from byheart.embedding import check_embedder
from byheart.embedding.hash_embedder import HashEmbedder


class Simple:
    """The least that is asked for: plain lists, not of unit length."""

    name = "colours"
    dimensions = 3
    _COLOURS = ("red", "green", "blue")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [5.0 if colour in text else 0.1 for colour in self._COLOURS]


def test_a_store_searches_with_the_embedder_that_it_was_given(tmp_path: Path) -> None:
    with byheart.open(tmp_path / "m.db", embedder=Simple()) as store:
        for colour in Simple._COLOURS:
            store.save(f"A {colour} thing.")
        hits = store.search("something blue", mode="vector").results
        assert hits[0].snippet == "A blue thing."
        assert hits[0].similarity == pytest.approx(1.0, abs=1e-3)
        assert store.status().index.model == "colours"


def test_an_embedder_that_counts_tokens_is_used_as_it_is() -> None:
    own = HashEmbedder(dimensions=16)
    assert check_embedder(own) is own


def test_the_window_that_an_embedder_names_is_kept() -> None:
    simple = Simple()
    simple.window_tokens = 100  # type: ignore[attr-defined]
    assert check_embedder(simple).window_tokens == 100
    vectors = check_embedder(simple).embed(["red"])
    assert vectors.dtype == np.float32


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({"name": ""}, "a `name`"),
        ({"name": 7}, "a `name`"),
        ({"dimensions": 0}, "`dimensions`"),
        ({"dimensions": True}, "`dimensions`"),
        ({"window_tokens": None}, "valid `window_tokens`"),
        ({"window_tokens": 0}, "valid `window_tokens`"),
        ({"embed": None}, "a method `embed`"),
        ({"embed_query": "no"}, "a method `embed_query`"),
    ],
)
def test_an_incomplete_embedder_is_refused_by_what_it_lacks(
    tmp_path: Path, changes: dict[str, Any], lacks: str
) -> None:
    incomplete = Simple()
    for name, value in changes.items():
        setattr(incomplete, name, value)
    with pytest.raises(byheart.InvalidInput, match=lacks):
        byheart.open(tmp_path / "m.db", embedder=incomplete)
    assert not (tmp_path / "m.db").exists()


def test_vectors_of_another_length_than_promised_do_not_spoil_the_store(tmp_path: Path) -> None:
    class Wrong(Simple):
        dimensions = 4

    with byheart.open(tmp_path / "m.db", embedder=Wrong()) as store:
        result = store.save("A red thing.")
        assert result.degraded is not None
        assert store.search("red thing").results[0].snippet.startswith("A red")


def test_a_search_is_answered_though_the_embedder_fails_for_passages(tmp_path: Path) -> None:
    class Failing(Simple):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            raise RuntimeError("kaboom")

    with byheart.open(tmp_path / "m.db", embedder=Failing()) as store:
        assert "kaboom" in (store.save("A red thing.").degraded or "")
        assert store.search("red thing").results[0].snippet.startswith("A red")
