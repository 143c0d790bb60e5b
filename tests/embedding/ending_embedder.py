"""A program that ends while its daemon threads embed; its main thread still may, until the last."""

import atexit
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path


def main() -> None:
    # Registered before the model's own, and so called after it.
    atexit.register(lambda: sys.stdout.write(f"{embedder.embed(['a', 'b', 'c']).shape}\n"))
    from byheart.embedding.model_sources import ModelSources
    from byheart.embedding.onnx_embedder import OnnxEmbedder
    from byheart.errors import EmbeddingError

    model, cache = sys.argv[1:]
    sources = ModelSources(())
    embedder = OnnxEmbedder(model, cache_dir=Path(cache), sources=sources, threads=3)
    embedder.embed_query("loaded before")

    def embed() -> None:
        with suppress(EmbeddingError):
            while True:
                embedder.embed_query("word " * 5)

    for _ in range(3):
        threading.Thread(target=embed, daemon=True).start()
    time.sleep(0.2)


main()
