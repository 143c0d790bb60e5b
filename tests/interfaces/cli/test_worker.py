"""The command `worker`."""

import os
import signal
import subprocess

import pytest

import byheart
from tests.forked_program import start_program
from tests.interfaces.cli.conftest import Run
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.usefixtures("home")


def test_once_embeds_what_saves_left_and_says_how_much(
    run: Run, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBED_ON_SAVE", "false")
    saved = run("save", "Anna likes tea.")
    assert saved.code == 0
    assert "1 chunk can be found by keyword only, until a worker makes the vectors" in saved.err
    run("--space", "work", "save", "Ben likes coffee.")
    done = process("worker", "--once", "--json", "--batch", "1")
    assert (done.code, done.json, done.err) == (
        0,
        {"embedded": 2, "refused": 0, "pending_vectors": 0},
        "",
    )
    assert process("worker", "--once").out == "0 chunks embedded, 0 waiting\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(library: byheart.MemoryStore, number: signal.Signals) -> None:
    running = start_program(
        "worker", env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert running.stderr.readline() == "waiting for chunks to embed (stop with Ctrl-C)\n"
    with byheart.open(embed_on_save=False) as store:
        store.save("Anna likes tea.")
    wait_until(lambda: not library.admin.count_pending())
    running.send_signal(number)
    answer, errors = running.communicate(timeout=PATIENCE_SECONDS)
    assert (running.returncode, answer, errors) == (0, "1 chunk embedded, 0 waiting\n", "")


def test_it_does_not_start_without_a_model(process: Run) -> None:
    off = process("worker", BYHEART_EMBEDDING_PROVIDER="none")
    assert (off.code, off.out) == (1, "")
    assert "error: embedding is switched off" in off.err
    missing = process(
        "worker", "--json", BYHEART_EMBEDDING_PROVIDER="onnx", BYHEART_MODEL_PATH="/nowhere"
    )
    assert missing.code == 1
    assert '"hint"' in missing.err


def test_it_does_not_start_without_a_store(run: Run) -> None:
    refused = run("--db", "nowhere.db", "worker")
    assert refused.code == 1
    assert "there is no store at" in refused.err
