"""A program that embeds, forks, and ends in both processes, each in its own time."""

import os
import sys
from pathlib import Path

import numpy as np

from byheart.embedding.onnx_model import FIRST_TRIAL, OnnxModel

model = OnnxModel(Path(sys.argv[1]), may_pair=True)
ids = np.array([[1, 5, 7, 2]], np.int32)
vectors = [model.run(ids, alone=True) for _ in range(FIRST_TRIAL)]
assert model._pair is not None
child = os.fork()
vectors += [model.run(ids, alone=True) for _ in range(2 * FIRST_TRIAL)]
assert all(np.array_equal(each, vectors[0]) for each in vectors)
assert model._pair is not None
if child:
    del model  # its threads are waited for
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
