"""Run a graph in ONNX Runtime: one thread per text for many texts, up to two for a single text."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from byheart.contracts import Vectors
from byheart.errors import EmbedderUnavailable, EmbeddingError, ModelFilesError
from byheart.startup.late_numpy import NDArray, np
from byheart.system.forks import never_free, tell_after_fork

# Two threads need a second session, which takes 36 MB, and the time of about ten questions to open.
# That pays off only for a process with many questions. So both ways are tried after FIRST_TRIAL
# single texts, and again after NEXT_TRIAL more, since the load by other programs changes. If two
# threads are slower twice in a row, the session is closed for TRIAL_AFTER_LOSSES texts.
FIRST_TRIAL, NEXT_TRIAL, TRIAL_AFTER_LOSSES = 24, 128, 1024
MOST_LOSSES = 2
# The number of texts in a trial, and their greatest length, since each of them is run twice.
TRIAL_TEXTS, LONGEST_TRIAL_TOKENS = 8, 64
# Two threads occupy two cores, so they must take less than this share of one thread's time.
WORTH_WHILE = 0.9
LONGEST_END_SECONDS = 2.0


class OnnxModel:
    """Run one text at a time through a graph; any number of threads may call this at once.

    While a second core is idle, two threads embed a question in three quarters of the time. While
    it is busy, two threads take longer, because each operator waits for both. Only measuring shows
    which way is faster, so from time to time some single texts are run both ways. Both ways give
    the same vectors.
    """

    def __init__(self, graph: Path, *, may_pair: bool) -> None:
        self._graph = graph
        self._single = _open_session(graph, threads=1)
        self._may_pair = may_pair
        self._pair: Any = None
        self._begin()
        tell_after_fork(self)
        _models.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._paired = False
        self._until_trial = FIRST_TRIAL
        # The time of two threads divided by the time of one, for each text of a trial.
        self._shares: list[float] = []
        self._losses = 0

    def leave_to_parent(self) -> None:
        """Begin again in a forked child: the second thread of the pair is only in the parent."""
        never_free(self._pair)  # freeing it would wait for that thread forever
        self._pair = None
        self._begin()

    def run(self, ids: NDArray[np.int32], *, alone: bool) -> Vectors:
        """Return the vector of one row of token ids; `alone` says that it is the only text."""
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
        # Alternate the order, because the second run profits from the processor cache of the first.
        if len(self._shares) % 2:
            (vector, single), (_, pair) = _timed(self._single, ids), _timed(self._pair, ids)
        else:
            (vector, pair), (_, single) = _timed(self._pair, ids), _timed(self._single, ids)
        self._shares.append(pair / single)
        if len(self._shares) >= TRIAL_TEXTS:
            self._choose()
        return vector

    def _open_pair(self, ids: NDArray[np.int32]) -> bool:
        """Open the second session, and return whether it gives the same vector as the first."""
        try:
            self._pair = _open_session(self._graph, threads=2)
            if np.array_equal(_run(self._pair, ids), _run(self._single, ids)):
                return True
        except (ModelFilesError, EmbeddingError):  # the file is gone, or memory is short
            pass
        # If the vectors differ, the file now holds another model.
        self._give_up_pairing()
        return False

    def _give_up_pairing(self) -> None:
        self._pair, self._paired, self._may_pair = None, False, False

    def _choose(self) -> None:
        """Use the faster way from now on."""
        self._paired = bool(np.median(self._shares) < WORTH_WHILE)
        self._shares.clear()
        self._losses = 0 if self._paired else self._losses + 1
        self._until_trial = NEXT_TRIAL
        if self._losses >= MOST_LOSSES:
            self._pair, self._until_trial = None, TRIAL_AFTER_LOSSES

    def wait(self, until: float) -> None:
        """Wait until no thread is embedding, at most until this time of the monotonic clock."""
        while self._running and time.monotonic() < until:
            time.sleep(0.001)


_models: weakref.WeakSet[OnnxModel] = weakref.WeakSet()
_ending = threading.Event()


def is_main_thread_alone() -> bool:
    """Return whether only the main thread may embed, because the program is about to end."""
    return _ending.is_set()


@atexit.register
def _end() -> None:
    # If Python ends a daemon thread inside ONNX Runtime, the whole process crashes.
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
    # Set before the import, else ONNX Runtime keeps a device id and a queue of telemetry events.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime  # imported only when vectors are made, because the import is slow
    except ImportError as error:
        raise EmbedderUnavailable(
            f"ONNX Runtime cannot be loaded: {error}", "pip install onnxruntime"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # The second thread sleeps between texts, but spins within a text to respond at once.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 3
    # A memory arena would never release the memory that the longest text needed.
    options.enable_cpu_mem_arena = False
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 (the library raises nothing narrower)
        raise ModelFilesError(f"{graph} cannot be loaded: {error}") from None
