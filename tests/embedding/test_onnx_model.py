"""One thread or two for a lone text: whichever is faster, and the vector is the same."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from byheart.embedding import onnx_model
from byheart.embedding.model_sources import ModelSources
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.embedding.onnx_model import FIRST_TRIAL, NEXT_TRIAL, OnnxModel

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


def slow_down(monkeypatch: pytest.MonkeyPatch, model: OnnxModel, which: str) -> None:
    run = onnx_model._run

    def delayed(session, ids):
        if session is getattr(model, which):
            time.sleep(0.02)
        return run(session, ids)

    monkeypatch.setattr(onnx_model, "_run", delayed)


def test_who_asks_now_and_then_loads_nothing_more(model):
    ask(model, FIRST_TRIAL - 1)
    assert model._pair is None
    ask(model, 1)
    assert model._pair is not None


@pytest.mark.parametrize(("slow", "fast"), [("_pair", "_single"), ("_single", "_pair")])
def test_the_faster_way_is_taken_and_looked_for_again(model, monkeypatch, slow, fast):
    with monkeypatch.context() as patched:
        slow_down(patched, model, slow)
        ask(model, FIRST_TRIAL)
        assert model._faster is getattr(model, fast)
    slow_down(monkeypatch, model, fast)
    ask(model, NEXT_TRIAL - 1)
    assert model._faster is getattr(model, fast), "not before it is time"
    ask(model, 1)
    assert model._faster is getattr(model, slow)


def test_long_texts_are_not_run_over_and_over_again(model, monkeypatch):
    monkeypatch.setattr(onnx_model, "LONGEST_TRIAL_TOKENS", 10)
    ask(model, 2 * FIRST_TRIAL, np.ones((1, 11), np.int32))
    assert model._pair is None
    ask(model, 1, np.ones((1, 10), np.int32))
    assert model._pair is not None


def test_texts_among_others_keep_to_one_thread_each(model, monkeypatch):
    with monkeypatch.context() as patched:
        slow_down(patched, model, "_single")
        ask(model, FIRST_TRIAL)
    assert model._faster is model._pair
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_embeds_and_ends_as_any_process_does(graph):
    """The second thread does not cross a fork, and whoever waited for it would wait for ever."""
    script = Path(__file__).with_name("forking_embedder.py")
    child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, str(script), str(graph)])
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
    assert os.waitstatus_to_exitcode(ended[1]) == 0


@pytest.mark.model
def test_two_threads_give_the_real_model_the_same_vectors(minilm):
    model = OnnxModel(minilm.files().graph, may_pair=True)
    chance = np.random.default_rng(5)
    texts = [chance.integers(1000, 20_000, (1, n)).astype(np.int32) for n in (3, 9, 20, 60, 256)]
    ask(model, FIRST_TRIAL, texts[0])
    model._faster = model._pair
    for ids in texts:
        ask(model, 3, ids)
