"""Embeds texts of any length with an embedder that reads so many tokens at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byheart.contracts import TokenCounter, Vectors
from byheart.embedding.windows import window_texts


def embed_whole(
    texts: Sequence[str],
    embed_fitting: Callable[[Sequence[str]], Vectors],
    *,
    tokens: TokenCounter,
    window_tokens: int,
) -> Vectors:
    """Embed each text; one that exceeds the window becomes the mean direction of its windows.

    Chunks come in windows already. This is for the rest, long questions above all: they must not
    be cut off unseen. `embed_fitting` gets the longest texts first: those of a batch are then alike
    in length, so that a server pads little, and threads that share them end at about the same time.
    """
    windows = [
        # No token is shorter than a character of ASCII, so that few questions need be counted.
        [text]
        if text.isascii() and len(text) <= window_tokens
        else window_texts(text, before="", header="", tokens=tokens, window_tokens=window_tokens)
        for text in texts
    ]
    fitting = [window for each in windows for window in each]
    order = sorted(range(len(fitting)), key=lambda place: len(fitting[place]), reverse=True)
    longest_first = embed_fitting([fitting[place] for place in order])
    vectors = np.empty_like(longest_first)
    vectors[order] = longest_first
    if len(vectors) == len(texts):
        return vectors
    firsts = np.cumsum([0, *(len(each) for each in windows[:-1])])
    sums = np.add.reduceat(vectors, firsts, axis=0)
    unit: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return unit
