"""A graph in ONNX Runtime: one thread for each text of many, two for one that is alone."""

from __future__ import annotations

import atexit
import ctypes
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
from byheart.system.forking import renew_after_fork

# Two threads need a second session: 36 MB, and the time of some ten questions to open it. That is
# for whoever asks many. After so many lone texts both ways are tried, and again after so many more,
# since other programs come and go; two threads that lost twice are let go of for long.
FIRST_TRIAL, NEXT_TRIAL, TRIAL_AFTER_LOSSES = 24, 128, 1024
MOST_LOSSES = 2
# How many texts a trial takes, and how long one may be, since each is run twice.
TRIAL_TEXTS, LONGEST_TRIAL_TOKENS = 8, 64
# What two threads must stay below, as a part of the time of one: they take two cores.
WORTH_WHILE = 0.9
LONGEST_END_SECONDS = 2.0


class OnnxModel:
    """Run one text at a time through a graph; any number of threads may do so at once.

    While a core is idle, two threads have the vector of a question in three quarters of the time;
    while it is busy they take longer, because each operator waits for both. Only time tells: now
    and then some lone texts are run both ways. The vectors are the same.
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
        self._paired = False
        self._until_trial = FIRST_TRIAL
        # What two threads took of the time of one, for each text of a trial.
        self._shares: list[float] = []
        self._losses = 0
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
        try:
            return self._run_faster(ids)
        except EmbeddingError:  # memory is short: one thread needs less
            if self._pair is None:
                raise
            self._give_up_pairing()
            return _run(self._single, ids)

    def _run_faster(self, ids: NDArray[np.int32]) -> Vectors:
        if ids.shape[1] <= LONGEST_TRIAL_TOKENS:
            self._until_trial -= 1
            if self._until_trial <= 0 and (self._pair is not None or self._open_pair(ids)):
                return self._run_both(ids)
        return _run(self._pair if self._paired else self._single, ids)

    def _run_both(self, ids: NDArray[np.int32]) -> Vectors:
        # In turn, because who comes second finds in the cache what the first has brought there.
        if len(self._shares) % 2:
            (vector, single), (_, pair) = _timed(self._single, ids), _timed(self._pair, ids)
        else:
            (vector, pair), (_, single) = _timed(self._pair, ids), _timed(self._single, ids)
        self._shares.append(pair / single)
        if len(self._shares) >= TRIAL_TEXTS:
            self._choose()
        return vector

    def _open_pair(self, ids: NDArray[np.int32]) -> bool:
        """Open the second session, and say whether it gives the same vector as the first."""
        try:
            self._pair = _open_session(self._graph, threads=2)
            if np.array_equal(_run(self._pair, ids), _run(self._single, ids)):
                return True
        except (ModelFilesError, EmbeddingError):  # the file is gone, or memory is short
            pass
        # If it is not the same, another model has taken its place in the file.
        self._give_up_pairing()
        return False

    def _give_up_pairing(self) -> None:
        self._pair, self._paired, self._may_pair = None, False, False

    def _choose(self) -> None:
        """Keep to the faster way from now on."""
        self._paired = bool(np.median(self._shares) < WORTH_WHILE)
        self._shares.clear()
        self._losses = 0 if self._paired else self._losses + 1
        self._until_trial = NEXT_TRIAL
        if self._losses >= MOST_LOSSES:
            self._pair, self._until_trial = None, TRIAL_AFTER_LOSSES

    def wait(self, until: float) -> None:
        """Wait for texts that threads are at, up to a moment of the monotonic clock."""
        while self._running and time.monotonic() < until:
            time.sleep(0.001)


_models: weakref.WeakSet[OnnxModel] = weakref.WeakSet()
_ending = threading.Event()


def is_main_thread_alone() -> bool:
    """Say whether no other thread may embed any more, because the program is about to end."""
    return _ending.is_set()


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
