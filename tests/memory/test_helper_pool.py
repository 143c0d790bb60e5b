"""Helper processes derive a text exactly as the process that writes, or leave it to that one."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from byheart.contracts import TokenCounter
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.memory.deriving import derive
from byheart.memory.helper_pool import MODULE, HelperPool, end_pool, open_pool, start_pool
from byheart.memory.save_requests import SaveRequest
from byheart.settings import Settings, load_settings
from tests.waiting import PATIENCE_SECONDS

TEXTS = {
    "prose": "Marie Curie moved to Paris in 1891. She discovered polonium and radium. " * 40,
    "markdown": "# Herons\n\nThey wait.\n\n## Food\n\n- eels\n- frogs\n\n```py\nx = 1\n```\n",
    "other scripts": "Η Αθήνα είναι μεγάλη πόλη. 北京大学的图书馆。 Größe und Straße.",
    "nothing but marks": "!!! ???",
}
CODE = "import os\n\n\nclass Heron:\n    def wait(self) -> None:\n        os.getpid()\n\n" * 30


def request_of(content: str, **given: object) -> SaveRequest:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    content_hash = sha256(content.encode()).hexdigest()
    return SaveRequest(content, content_hash, "default", at, **given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings({"embedding_provider": "hash", "max_chunks": 50})


@pytest.fixture(scope="module")
def pool(settings: Settings) -> Iterator[HelperPool]:
    made = HelperPool(settings, EstimatedTokens(), 1)
    yield made
    made.end()


@pytest.mark.parametrize("name", TEXTS)
def test_a_helper_derives_what_this_process_derives(
    pool: HelperPool, settings: Settings, name: str
) -> None:
    request = request_of(TEXTS[name])
    assert pool.derive(request, ()) == derive(request, settings, EstimatedTokens)


def test_a_helper_cuts_code_by_its_path(pool: HelperPool, settings: Settings) -> None:
    request = request_of(CODE, path="/src/heron.py", kind="file", title="heron.py")
    derived = pool.derive(request, ("content",))
    assert derived == derive(request, settings, EstimatedTokens, ("content",))
    assert derived is not None
    assert derived.format == "code:python"
    assert "".join(chunk.content for chunk in derived.chunks) == CODE


def test_a_helper_removes_secrets_and_keeps_the_lines(pool: HelperPool, settings: Settings) -> None:
    secret = "AKIA" + "Q7XWPL2M9ZKD4RTV"
    request = request_of(f"first\naws_key = {secret}\nlast\n", title=f"keys {secret}")
    derived = pool.derive(request, ("content", "title"))
    assert derived == derive(request, settings, EstimatedTokens, ("content", "title"))
    assert derived is not None
    text, title = derived.request.content, derived.request.title
    assert secret not in text + (title or "")
    assert text.count("\n") == 3
    assert derived.request.content_hash == sha256(text.encode()).hexdigest()
    assert sum(derived.secrets.values()) == 1


def test_a_text_that_fails_is_left_to_the_caller_and_the_next_one_is_not(
    pool: HelperPool, settings: Settings
) -> None:
    assert pool.derive(request_of("Plain words fill it to the brim. " * 20_000), ()) is None
    request = request_of("short")
    assert pool.derive(request, ()) == derive(request, settings, EstimatedTokens)


def test_a_helper_that_was_killed_is_asked_nothing_more(settings: Settings) -> None:
    pool = HelperPool(settings, EstimatedTokens(), 1)
    assert pool.derive(request_of("before"), ()) is not None
    [helper] = pool._helpers
    os.kill(helper._process.pid, signal.SIGKILL)
    helper._process.wait(PATIENCE_SECONDS)
    assert pool.derive(request_of("at its end"), ()) is None
    assert pool.derive(request_of("after"), ()) is None
    pool.end()


def test_a_text_that_cannot_be_sent_is_left_to_the_caller_and_the_next_one_is_not(
    pool: HelperPool, settings: Settings
) -> None:
    class LocalText(str):
        """A class that no other process finds."""

        __slots__ = ()

    assert pool.derive_all([request_of("sent"), request_of(LocalText("not sent"))]) is None
    request = request_of("after")
    assert pool.derive(request, ()) == derive(request, settings, EstimatedTokens)


def test_there_is_no_pool_if_no_process_can_be_started(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("byheart.memory.helper_pool.count_cores", lambda: 2)
    with monkeypatch.context() as full:
        full.setattr(subprocess, "Popen", refuse)
        assert start_pool(settings, EstimatedTokens()) is None
    pool = start_pool(settings, EstimatedTokens())  # the failure kept no other run from helpers
    assert pool is not None
    end_pool(pool)


def test_the_helpers_end_with_the_run(settings: Settings) -> None:
    pool = HelperPool(settings, EstimatedTokens(), 2)
    processes = [each._process for each in pool._helpers]
    assert [each.poll() for each in processes] == [None, None]
    pool.end()
    assert [each.returncode for each in processes] == [0, 0]


def test_a_helper_ends_when_the_process_that_started_it_is_gone() -> None:
    helper = subprocess.run(
        [sys.executable, "-P", "-m", MODULE], input=b"", check=False, timeout=PATIENCE_SECONDS
    )
    assert helper.returncode == 0


class OwnCounter(HashEmbedder):
    """Count tokens as no other process does."""

    def token_starts(self, text: str) -> list[int]:
        return list(range(len(text)))


class NoCounter:
    """Count tokens without any way to send the counter."""

    def token_starts(self, text: str) -> list[int]:
        return list(range(len(text)))


@pytest.mark.parametrize("tokens", [OwnCounter(), NoCounter()])
def test_a_counter_of_the_callers_own_gets_no_helpers(
    settings: Settings, tokens: TokenCounter
) -> None:
    with open_pool(settings, tokens) as pool:
        assert pool is None
