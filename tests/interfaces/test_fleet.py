"""Several servers and workers on one PostgreSQL store, killed and started at will."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

import byheart
from tests.forked_program import start_program
from tests.interfaces.rest.conftest import make_client
from tests.postgres_server import PostgresServer, private_server
from tests.postgres_stores import postgres_store_url
from tests.waiting import PATIENCE_SECONDS, wait_until

WAITING = "SELECT count(*), count(claimed_until) FROM byheart.pending_vectors"


@dataclass(slots=True)
class Fleet:
    """Start servers and workers on one store, each with a cache folder of its own."""

    url: str
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BYHEART_")},
            "BYHEART_CONFIG": str(self.folder / "config.toml"),
            "BYHEART_DB_PATH": self.url,
            "BYHEART_CACHE_DIR": str(self.folder / f"machine-{len(self.started)}"),
            "BYHEART_EMBEDDING_PROVIDER": "hash",
            "BYHEART_EMBED_ON_SAVE": "false",
            "BYHEART_BUSY_TIMEOUT_SECONDS": "5",
            **variables,
        }
        pipe = subprocess.PIPE
        running = start_program(*arguments, env=environment, stdout=pipe, stderr=pipe, text=True)
        self.started.append(running)
        return running

    def serve(self) -> tuple[subprocess.Popen[str], str]:
        """Start a server, and give its address."""
        running = self.start("serve", "--json", "--port", "0", "--quiet")
        assert running.stdout is not None
        line = running.stdout.readline()
        assert line, running.communicate()[1]
        return running, json.loads(line)["url"]

    def work(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a worker."""
        running = self.start("worker", *arguments)
        assert running.stderr is not None
        assert running.stderr.readline().startswith("waiting for chunks to embed")
        return running

    def open(self) -> byheart.MemoryStore:
        return byheart.open(
            self.url,
            embedding_provider="hash",
            embed_on_save=False,
            cache_dir=str(self.folder / "ours"),
        )

    def waiting(self) -> tuple[int, int]:
        """Count the chunks that wait for vectors, and those of them that are claimed."""
        with psycopg.connect(self.url.partition("&parts")[0]) as connection:
            found: Any = connection.execute(WAITING).fetchone()
        return found  # type: ignore[no-any-return]

    def stop(self) -> None:
        for each in self.started:
            if each.poll() is None:
                each.kill()
            each.wait()
            for stream in (each.stdout, each.stderr):
                if stream is not None:
                    stream.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with postgres_store_url() as url:
        fleet = Fleet(url, tmp_path)
        yield fleet
        fleet.stop()


def client_of(url: str, secret: str) -> httpx2.Client:
    return make_client(url, headers={"Authorization": f"Bearer {secret}"})


def test_two_servers_and_a_worker_serve_one_store(fleet: Fleet) -> None:
    with fleet.open() as store:
        secret, lost = (store.api_keys.create(name).secret for name in ("laptop", "lost"))
    worker = fleet.work()
    (first, first_url), (_, second_url) = fleet.serve(), fleet.serve()
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(client_of(first_url, secret))
        two = stack.enter_context(client_of(second_url, secret))

        def find(client: httpx2.Client, query: str, mode: str = "fts") -> list[str]:
            answer = client.post("/search", json={"query": query, "mode": mode}).json()
            return [hit["memory_id"] for hit in answer["results"]]

        for n in range(20):
            saved = one.post("/memories", json={"content": f"Fact {n} is about subject{n}."}).json()
            assert find(two, f"subject{n}")[0] == saved["memory_id"], "found by the other at once"
        wait_until(lambda: fleet.waiting()[0] == 0)
        query = "Fact 19 is about subject19."
        assert find(two, query, "vector")[0] == saved["memory_id"]

        stranger = stack.enter_context(client_of(second_url, lost))
        assert stranger.get("/memories").status_code == 200
        with fleet.open() as store:
            store.api_keys.revoke("lost")
        assert stranger.get("/memories").status_code == 401
        with client_of(first_url, lost) as elsewhere:
            assert elsewhere.get("/memories").status_code == 401

        first.send_signal(signal.SIGKILL)
        first.wait(20)
        after = two.post("/memories", json={"content": "Saved after a server was killed."}).json()
        assert find(two, "killed") == [after["memory_id"]]
        _, third_url = fleet.serve()
        three = stack.enter_context(client_of(third_url, secret))
        assert find(three, "killed") == [after["memory_id"]]
        wait_until(lambda: fleet.waiting()[0] == 0)
        forgotten = three.request("DELETE", f"/memories/{after['memory_id']}")
        assert forgotten.status_code == 200
        assert find(two, "killed") == []
    worker.send_signal(signal.SIGTERM)
    assert worker.communicate(timeout=PATIENCE_SECONDS) == ("21 chunks embedded, 0 waiting\n", "")
    assert worker.returncode == 0


def test_another_worker_takes_over_the_share_of_a_killed_one(fleet: Fleet) -> None:
    text = "\n\n".join(
        f"# Part {n}\n\n" + f"Sentence {n} has some words. " * 20 for n in range(2000)
    )
    with fleet.open() as store:
        chunks = store.save(text).chunks
        assert fleet.waiting() == (chunks, 0)
        worker = fleet.work("--lease", "2")

        def is_caught_with_a_share() -> bool:
            worker.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
            if fleet.waiting()[1]:
                return True
            worker.send_signal(signal.SIGCONT)
            return False

        wait_until(is_caught_with_a_share)
        worker.kill()
        worker.wait(20)
        time.sleep(0.2)  # the database ends what it was doing for the worker
        left, claimed = fleet.waiting()
        assert 0 < claimed <= left <= chunks
        others = [fleet.work() for _ in range(2)]
        wait_until(lambda: fleet.waiting()[0] == 0)
        for each in others:
            each.send_signal(signal.SIGTERM)
        made = [
            int(each.communicate(timeout=PATIENCE_SECONDS)[0].split()[0].replace(",", ""))
            for each in others
        ]
        assert sum(made) == left, "each chunk once"
        assert store.search("Sentence 77 has some words.", mode="vector").total_results


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with private_server() as server:
        yield server


def test_a_worker_and_a_server_go_on_after_a_restart_of_the_database(
    server: PostgresServer, tmp_path: Path
) -> None:
    fleet = Fleet(f"{server.url()}&parts=1", tmp_path)
    try:
        with fleet.open() as store:
            secret = store.api_keys.create("laptop").secret
        worker = fleet.work()
        _, url = fleet.serve()
        with client_of(url, secret) as client:
            assert client.post("/memories", json={"content": "Before."}).status_code == 201
            wait_until(lambda: fleet.waiting()[0] == 0)
            server.stop("immediate")
            refused = client.post("/memories", json={"content": "Meanwhile."})
            assert refused.status_code == 503
            ready = client.get("/health/ready")
            assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
            assert ready.json()["reason"] == "no server answers at the store"
            for answer in (refused.text, ready.text):
                assert "postgres" not in answer
                assert str(server.folder) not in answer
            assert refused.json()["hint"].startswith("ask the operator of the server")
            assert worker.stderr is not None
            told = next(line for line in worker.stderr if "byheart" in line)
            assert "no vectors are made; trying again" in told
            server.start()
            after = {"content": "After."}
            wait_until(lambda: client.post("/memories", json=after).is_success)
        wait_until(lambda: fleet.waiting()[0] == 0)
        worker.send_signal(signal.SIGTERM)
        answer, errors = worker.communicate(timeout=PATIENCE_SECONDS)
        assert (worker.returncode, answer) == (0, "2 chunks embedded, 0 waiting\n")
        assert "vectors are made again" in errors
    finally:
        fleet.stop()
