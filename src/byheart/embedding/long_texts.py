"""Embed texts of any length with an embedder whose window is limited."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from byheart.contracts import TokenCounter, Vectors
from byheart.embedding.windows import window_texts
from byheart.startup.late_numpy import np


def embed_whole(
    texts: Sequence[str],
    embed_fitting: Callable[[Sequence[str]], Vectors],
    *,
    tokens: TokenCounter,
    window_tokens: int,
) -> Vectors:
    """Embed each text; a text that exceeds the window gets the mean direction of its windows.

    Chunks are already cut into windows. This function is for other texts, mainly long questions,
    which must not be cut off silently. `embed_fitting` gets the longest texts first. So the texts
    of a batch are similar in length, a server pads little, and threads finish at about the same
    time.
    """
    windows = [
        # A token has at least one ASCII character, so most questions need no token count.
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
