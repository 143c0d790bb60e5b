"""A graph in ONNX Runtime: one thread for each text of many, two for one that is alone."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Vectors
from byheart.errors import EmbedderUnavailable, EmbeddingError, ModelFilesError
from byheart.forking import renew_after_fork

# Two threads need another 36 MB of weights: for whoever asks more than now and then. How they do is
# found out with so many lone texts, and again after so many more, since other programs come and go.
FIRST_TRIAL, NEXT_TRIAL = 8, 64
# A trial runs a text four times over, so not a long one.
LONGEST_TRIAL_TOKENS = 64


class OnnxModel:
    """Run one text at a time through a graph; any number of threads may do so at once.

    While a core is idle, two threads have the vector of a question in two thirds of the time; while
    none is, they take twice as long, each operator waiting for both. Only time tells which: a lone
    text is run both ways now and then. Its vector is the same.
    """

    def __init__(self, graph: Path, *, may_pair: bool) -> None:
        self._graph = graph
        self._single = _open_session(graph, threads=1)
        self._may_pair = may_pair
        self._pair: Any = None
        self._renew()
        renew_after_fork(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._faster = self._single
        self._until_trial = FIRST_TRIAL
        if self._pair is not None:
            # Its second thread stayed with the parent. Letting go of it would wait for that one.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pair))
            self._pair = None

    def run(self, ids: NDArray[np.int32], *, alone: bool) -> Vectors:
        """Give the vector of a row of tokens; `alone` says that no others are given beside it."""
        with self._lock:
            self._running += 1
            alone = alone and self._running == 1
        try:
            if not alone:
                return _run(self._single, ids)
            if self._may_pair:
                self._until_trial -= 1
                if self._until_trial <= 0 and ids.shape[1] <= LONGEST_TRIAL_TOKENS:
                    self._try_both(ids)
            return _run(self._faster, ids)
        finally:
            with self._lock:
                self._running -= 1

    def _try_both(self, ids: NDArray[np.int32]) -> None:
        self._until_trial = NEXT_TRIAL
        if self._pair is None:
            try:
                self._pair = _open_session(self._graph, threads=2)
            except ModelFilesError:  # gone or replaced meanwhile: what is loaded serves on
                self._may_pair = False
                return
            _run(self._pair, ids)  # the first run takes longer
        times: dict[Any, list[float]] = {self._single: [], self._pair: []}
        for _ in range(2):
            for session, taken in times.items():
                started = time.perf_counter()
                _run(session, ids)
                taken.append(time.perf_counter() - started)
        self._faster = min(times, key=lambda session: min(times[session]))


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
