"""A program that embeds, forks, and ends in both processes, each in its own time."""

import os

os.environ.pop("OPENBLAS_NUM_THREADS", None)  # as in any program: more threads, another end

import sys
from pathlib import Path

import numpy as np

from byheart.embedding import onnx_model
from byheart.embedding.onnx_model import FIRST_TRIAL, TRIAL_TEXTS, OnnxModel

onnx_model.WORTH_WHILE = float("inf")  # whatever they take, two threads are used
model = OnnxModel(Path(sys.argv[1]), may_pair=True)
ids = np.array([[1, 5, 7, 2]], np.int32)
vectors = [model.run(ids, alone=True) for _ in range(FIRST_TRIAL + TRIAL_TEXTS)]
assert model._paired
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        assert model._pair is None
        children.clear()  # they are its siblings
        break
    children.append(child)
vectors += [model.run(ids, alone=True) for _ in range(FIRST_TRIAL + TRIAL_TEXTS)]
assert all(np.array_equal(each, vectors[0]) for each in vectors)
assert model._paired
ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
sys.exit(any(ends))
