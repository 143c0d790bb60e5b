"""A program that ends while its daemon threads embed; its main thread still may, until the last."""

import atexit
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

IDS = np.ones((1, 40), np.int32)


def main() -> None:
    # Registered before the model's own, and so called after it.
    atexit.register(lambda: sys.stdout.write(f"{len(model.run(IDS, alone=True))} dimensions\n"))
    from byheart.embedding.onnx_model import OnnxModel
    from byheart.errors import EmbeddingError

    model = OnnxModel(Path(sys.argv[1]), may_pair=True)

    def embed() -> None:
        with suppress(EmbeddingError):
            while True:
                model.run(IDS, alone=False)

    for _ in range(3):
        threading.Thread(target=embed, daemon=True).start()
    time.sleep(0.2)


main()
