"""Threads share work, as long as there are any to be had."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from byheart.embedding.thread_sharing import share
from tests.waiting import PATIENCE_SECONDS


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_results_come_in_the_order_of_the_items(threads):
    assert share(str, range(100), threads) == [str(number) for number in range(100)]
    assert share(str, [], threads) == []


def test_threads_work_side_by_side():
    together = threading.Barrier(3, timeout=PATIENCE_SECONDS)
    assert sorted(share(lambda _: together.wait(), range(3), 3)) == [0, 1, 2]


def test_the_first_error_ends_it_and_is_raised():
    done = []

    def work(number):
        if number == 3:
            raise ValueError("the third")
        done.append(number)

    with pytest.raises(ValueError, match="the third"):
        share(work, range(1000), 1)
    assert done == [0, 1, 2]


def test_without_more_threads_one_does_it_all(monkeypatch):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert share(str, range(5), 4) == ["0", "1", "2", "3", "4"]


def test_a_thread_that_outlives_the_main_one_may_embed(tmp_path):
    script = """
import sys, threading, time
from byheart.opening import open
store = open(sys.argv[1], embedding_provider="hash")

def work():
    threading.main_thread().join()
    from byheart.embedding.thread_sharing import share
    from byheart.embedding import onnx_embedder
    print(share(str, range(4), 2), store.save("words").status)

threading.Thread(target=work).start()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "memory.db")],
        timeout=PATIENCE_SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.stdout == "['0', '1', '2', '3'] created\n"
