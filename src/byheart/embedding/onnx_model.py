"""A graph in ONNX Runtime: one thread for each text of many, two for one that is alone."""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Vectors
from byheart.errors import EmbedderUnavailable, EmbeddingError, ModelFilesError
from byheart.forking import renew_after_fork

# Two threads need a second session: 36 MB, and the time of some ten questions to open it. That is
# for whoever asks many. How they do is found out with so many lone texts, and again after so many
# more; whoever loses twice is let go of, and the next trial is a long way off.
FIRST_TRIAL, NEXT_TRIAL, TRIAL_AFTER_LOSSES = 24, 128, 2048
MOST_LOSSES = 2
# Other programs come and go: if so many in a row took no less than by one thread, it is time.
MOST_DISAPPOINTMENTS = 4
# A trial runs a text four times over, so not a long one.
LONGEST_TRIAL_TOKENS = 64
# What two threads must stay below, as a part of the time of one: they take two cores.
WORTH_WHILE = 0.85
LONGEST_END_SECONDS = 2.0


class OnnxModel:
    """Run one text at a time through a graph; any number of threads may do so at once.

    While a core is idle, two threads have the vector of a question in two thirds of the time; while
    it is busy they take longer than one, because each operator waits for both. Only time tells: now
    and then a lone text is run both ways. Its vector is the same, or else two threads are not used.
    """

    def __init__(self, graph: Path, *, may_pair: bool) -> None:
        self._graph = graph
        self._single = _open_session(graph, threads=1)
        self._may_pair = may_pair
        self._pair: Any = None
        self._renew()
        renew_after_fork(self._renew)
        _models.add(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._until_trial = FIRST_TRIAL
        # What one thread took for each token when both ways were tried.
        self._pace = math.inf
        self._disappointments = self._losses = 0
        if self._pair is not None:
            # Its second thread stayed with the parent. Letting go of it would wait for that one.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pair))
            self._pair = None

    def run(self, ids: NDArray[np.int32], *, alone: bool) -> Vectors:
        """Give the vector of a row of tokens; `alone` says that no others are given beside it."""
        with self._lock:
            if _ending.is_set() and threading.current_thread() is not threading.main_thread():
                raise EmbeddingError("the program is about to end")
            self._running += 1
            alone = alone and self._running == 1
        try:
            return self._run_alone(ids) if alone and self._may_pair else _run(self._single, ids)
        finally:
            with self._lock:
                self._running -= 1

    def _run_alone(self, ids: NDArray[np.int32]) -> Vectors:
        self._until_trial -= 1
        if self._until_trial <= 0 and ids.shape[1] <= LONGEST_TRIAL_TOKENS:
            return self._try_both(ids)
        if self._pair is None or self._losses:
            return _run(self._single, ids)
        vector, seconds = _timed(self._pair, ids)
        slow = seconds >= self._pace * ids.shape[1]
        self._disappointments = self._disappointments + 1 if slow else 0
        if self._disappointments >= MOST_DISAPPOINTMENTS:
            self._until_trial = 0
        return vector

    def _try_both(self, ids: NDArray[np.int32]) -> Vectors:
        """Find out which way is faster from now on."""
        self._until_trial, self._disappointments = NEXT_TRIAL, 0
        vector, first = _timed(self._single, ids)
        try:
            if self._pair is None:
                self._pair = _open_session(self._graph, threads=2)
                _run(self._pair, ids)  # the first run takes longer
            by_pair, second = _timed(self._pair, ids)
        except (ModelFilesError, EmbeddingError):  # the graph is gone, or memory is short
            self._pair, self._may_pair = None, False
            return vector
        first = min(first, _timed(self._single, ids)[1])
        second = min(second, _timed(self._pair, ids)[1])
        self._pace = first / ids.shape[1]
        self._losses = self._losses + 1 if second > WORTH_WHILE * first else 0
        if not np.array_equal(by_pair, vector):  # the file holds another model by now
            self._pair, self._may_pair = None, False
        elif self._losses >= MOST_LOSSES:
            self._pair, self._until_trial = None, TRIAL_AFTER_LOSSES
        return vector

    def wait(self, until: float) -> None:
        """Wait for texts that threads are at, up to a moment of the monotonic clock."""
        while self._running and time.monotonic() < until:
            time.sleep(0.001)


_models: weakref.WeakSet[OnnxModel] = weakref.WeakSet()
_ending = threading.Event()


@atexit.register
def _end() -> None:
    # A daemon thread that Python ends within ONNX Runtime takes the whole process down with it.
    _ending.set()
    until = time.monotonic() + LONGEST_END_SECONDS
    for model in list(_models):
        model.wait(until)


def _timed(session: Any, ids: NDArray[np.int32]) -> tuple[Vectors, float]:
    started = time.perf_counter()
    vector = _run(session, ids)
    return vector, time.perf_counter() - started


def _run(session: Any, ids: NDArray[np.int32]) -> Vectors:
    try:
        row: Vectors = session.run(None, {"input_ids": ids})[0][0]
    except Exception as error:  # noqa: BLE001 (the library raises nothing narrower)
        raise EmbeddingError(f"ONNX Runtime failed: {error}") from None
    return row


def _open_session(graph: Path, threads: int) -> Any:
    # Before the import: ONNX Runtime would otherwise keep a device id and a queue of events.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime  # slow to import, so only when vectors are made
    except ImportError as error:
        raise EmbedderUnavailable(
            f"ONNX Runtime cannot be loaded: {error}", "pip install onnxruntime"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Between texts the second thread sleeps; within one it must be there at once.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 3
    # An arena would keep the memory that the longest text needed.
    options.enable_cpu_mem_arena = False
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 (the library raises nothing narrower)
        raise ModelFilesError(f"{graph} cannot be loaded: {error}") from None
