"""One thread or two for a lone text: whichever is faster, and the vector is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest

from byheart.embedding import onnx_model
from byheart.embedding.model_sources import ModelSources
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.embedding.onnx_model import (
    FIRST_TRIAL,
    NEXT_TRIAL,
    TRIAL_TEXTS,
    OnnxModel,
)
from byheart.errors import EmbeddingError
from tests.waiting import PATIENCE_SECONDS

TEXT = np.array([[1, 5, 7, 2]], np.int32)


@pytest.fixture
def graph(tmp_path: Path, write_tiny_model) -> Path:
    folder = write_tiny_model(tmp_path / "tiny")
    embedder = OnnxEmbedder(str(folder), cache_dir=tmp_path / "cache", sources=ModelSources(()))
    return embedder.files().graph


@pytest.fixture
def model(graph: Path) -> OnnxModel:
    return OnnxModel(graph, may_pair=True)


def ask(model: OnnxModel, times: int, ids: np.ndarray = TEXT) -> None:
    expected = model.run(ids, alone=False)
    for _ in range(times):
        assert np.array_equal(model.run(ids, alone=True), expected)


class Stopwatch:
    """Tells the time that one thread and two are said to take, and how often they were timed."""

    def __init__(self, model: OnnxModel, single: float, pair: float) -> None:
        self._model = model
        self.seconds = {False: single, True: pair}
        self.timed = 0

    def time(self, session, ids):
        self.timed += 1
        return onnx_model._run(session, ids), self.seconds[session is not self._model._single]


@pytest.fixture
def watch(model: OnnxModel, monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    stopwatch = Stopwatch(model, single=4.0, pair=3.0)
    monkeypatch.setattr(onnx_model, "_timed", stopwatch.time)
    return stopwatch


def test_who_asks_now_and_then_loads_nothing_more(model):
    ask(model, FIRST_TRIAL - 1)
    assert model._pair is None
    ask(model, 1)
    assert model._pair is not None


def test_two_threads_are_used_where_they_are_worth_it(model, watch):
    ask(model, FIRST_TRIAL - 1)
    assert (watch.timed, model._paired) == (0, False)
    ask(model, TRIAL_TEXTS)
    assert (watch.timed, model._paired) == (2 * TRIAL_TEXTS, True)
    ask(model, NEXT_TRIAL - 1)
    assert watch.timed == 2 * TRIAL_TEXTS, "nothing is tried for a while"
    ask(model, TRIAL_TEXTS)
    assert (watch.timed, model._paired) == (4 * TRIAL_TEXTS, True)


def test_two_threads_that_gain_little_are_not_used_and_let_go_of(model, watch):
    watch.seconds[True] = 3.7
    ask(model, FIRST_TRIAL + TRIAL_TEXTS)
    assert not model._paired
    assert model._pair is not None, "the one time may have been chance"
    ask(model, NEXT_TRIAL + TRIAL_TEXTS)
    assert model._pair is None
    watch.seconds[True] = 3.0
    ask(model, NEXT_TRIAL + TRIAL_TEXTS)
    assert model._pair is None, "nor looked for again soon"


def test_two_threads_that_became_slow_are_given_up(model, watch):
    ask(model, FIRST_TRIAL + TRIAL_TEXTS)
    assert model._paired
    watch.seconds[True] = 5.0
    ask(model, NEXT_TRIAL + TRIAL_TEXTS)
    assert not model._paired
    watch.seconds[True] = 3.0
    ask(model, NEXT_TRIAL + TRIAL_TEXTS)
    assert model._paired, "and taken up when they are fast again"


def test_long_texts_are_not_compared_with_short_ones(model, watch, monkeypatch):
    monkeypatch.setattr(onnx_model, "LONGEST_TRIAL_TOKENS", 10)
    ask(model, 2 * FIRST_TRIAL, np.ones((1, 11), np.int32))
    assert model._pair is None
    ask(model, FIRST_TRIAL, np.ones((1, 10), np.int32))
    assert model._pair is not None
    ask(model, TRIAL_TEXTS, np.ones((1, 11), np.int32))
    assert watch.timed == 2


def test_texts_among_others_keep_to_one_thread_each(model, watch, monkeypatch):
    ask(model, FIRST_TRIAL + TRIAL_TEXTS)
    ran, done = [], threading.Event()
    run = onnx_model._run

    def held_up(session, ids):
        ran.append(session)
        assert threading.current_thread() is threading.main_thread() or done.wait(60)
        return run(session, ids)

    monkeypatch.setattr(onnx_model, "_run", held_up)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(model.run, TEXT, alone=False)
        while not ran:
            time.sleep(0.001)
        model.run(TEXT, alone=True)
        done.set()
        first.result()
    model.run(TEXT, alone=True)
    assert ran == [model._single, model._single, model._pair]


def test_one_thread_is_all_that_is_used_where_no_more_are_wanted(graph):
    model = OnnxModel(graph, may_pair=False)
    ask(model, 2 * FIRST_TRIAL)
    assert model._pair is None


def test_a_graph_that_is_gone_meanwhile_fails_no_question(model, graph):
    graph.unlink()
    ask(model, 2 * FIRST_TRIAL)
    assert model._pair is None


def test_a_graph_of_another_model_is_not_used_beside_the_one_that_is_loaded(model, graph, watch):
    """Whoever updates the model while another process asks replaces the file."""
    other = onnx.load(graph)
    for each in other.graph.initializer:
        if each.name == "word_scales":
            turned = onnx.numpy_helper.to_array(each) * np.linspace(0.1, 2, each.dims[0])[:, None]
            each.CopyFrom(onnx.numpy_helper.from_array(turned.astype(np.float32), each.name))
    onnx.save(other, graph)
    assert not np.array_equal(
        OnnxModel(graph, may_pair=False).run(TEXT, alone=True), model.run(TEXT, alone=False)
    )
    ask(model, FIRST_TRIAL + NEXT_TRIAL)
    assert (model._pair, watch.timed) == (None, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_embeds_and_ends_as_any_process_does(graph):
    """The second thread does not cross a fork, and whoever waited for it would wait for ever."""
    script = Path(__file__).with_name("forking_embedder.py")
    program = subprocess.Popen([sys.executable, str(script), str(graph)], start_new_session=True)
    try:
        assert program.wait(60) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


def test_a_program_may_end_while_daemon_threads_embed(graph, tmp_path):
    script = Path(__file__).with_name("ending_embedder.py")
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "tiny"), str(tmp_path / "cache")],
            timeout=PATIENCE_SECONDS,
            capture_output=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"(3, 32)\n", b"")


def test_a_question_is_answered_by_one_thread_if_two_fail(model, watch, monkeypatch):
    ask(model, FIRST_TRIAL + TRIAL_TEXTS)
    pair, run = model._pair, onnx_model._run

    def fail(session, ids):
        if session is pair:
            raise EmbeddingError("memory is short")
        return run(session, ids)

    monkeypatch.setattr(onnx_model, "_run", fail)
    ask(model, 3)
    assert model._pair is None


@pytest.mark.model
def test_two_threads_give_the_real_model_the_same_vectors(minilm, monkeypatch):
    model = OnnxModel(minilm.files().graph, may_pair=True)
    monkeypatch.setattr(onnx_model, "_timed", Stopwatch(model, single=4.0, pair=3.0).time)
    chance = np.random.default_rng(5)
    texts = [chance.integers(1000, 20_000, (1, n)).astype(np.int32) for n in (3, 9, 20, 60, 256)]
    ask(model, FIRST_TRIAL + TRIAL_TEXTS, texts[0])
    for ids in texts:
        assert model._paired
        ask(model, 3, ids)
