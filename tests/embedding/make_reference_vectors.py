"""Makes `reference_vectors.npz` with sentence-transformers, the model's own authors' library.

    pip install sentence-transformers        in an environment apart: it brings torch
    python make_reference_vectors.py FOLDER  where FOLDER holds the genuine all-MiniLM-L6-v2

The vectors in the repository are those of sentence-transformers 3.4.1 with torch 2.4.1, in fp32.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

# One of each kind that could go wrong in its own way; the long one all but fills the window.
TEXTS = [
    "lighthouse",
    ".",
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "Straßenbahnhaltestelle: Die Fähre fährt täglich außer sonntags, größtenteils pünktlich.",
    "机器学习让计算机从数据中学习。",
    "def mean(xs: list[float]) -> float:\n    return sum(xs) / len(xs)  # O(n)",
    "Ünïcödé, emoji 😀🚀 and symbols ½ € → ∞",
    "The harbour of Esbjerg was built by the state between 1868 and 1874, because Denmark had lost "
    "its southern ports. At first there were twenty people living there; by 1901 there were more "
    "than thirteen thousand, and the new town had a water tower, a gasworks, two newspapers and a "
    "railway to Copenhagen.\n\nFishing came later. Boats from the north followed the plaice, found "
    "that trains could carry their catch to Hamburg overnight, and stayed; around 1970 some six "
    "hundred cutters called it home. Quotas ended that within one generation. Today most of the "
    "quays belong to the wind: nacelles, towers and blades of up to 115 metres lie in rows behind "
    "the fence, waiting for jack-up vessels, weather windows and crews who work twelve hours a "
    "day, fourteen days in a row.\n\nWho walks along the beach sees four white figures, nine "
    "metres tall, that look out to sea. 'Man meets the Sea' was made by Svend Wiig Hansen in "
    "1995. Children climb on the feet, and on clear days the ferry to Fanø, which takes twelve "
    "minutes and leaves every twenty, passes right through their line of sight. On other days "
    "there is nothing but the horn.",
]


def main(folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    # One at a time, so that no vector depends on how another was padded.
    vectors = np.stack([model.encode(text, normalize_embeddings=True) for text in TEXTS])
    path = Path(__file__).with_name("reference_vectors.npz")
    np.savez_compressed(path, texts=np.array(TEXTS), vectors=vectors.astype(np.float32))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
