"""Start the other processes of a server, give them connections, and replace those that crash.

The first process listens, answers requests itself, and does the work in the background. It passes
an open connection to the process that has the fewest. Listening together would be simpler, but the
system spreads connections by chance, and those that wait for a process that crashes would be lost.

Each process is started anew, not forked: a store that is open cannot be used in a forked child.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from byheart.errors import SettingsError
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.system.cores import count_cores

# Signals between the processes, one byte each.
CONNECTION = b"c"  # to a worker, with an open connection
READY = b"r"  # from a worker: it can take connections
ENDED = b"-"  # from a worker: a connection has ended
_JOB_SIZE = struct.Struct("=I")
# Each process takes about 80 MB while it is idle.
_MOST_UNASKED = 4
_HEARD_AT_ONCE = 4096
# A process that crashes again and again is started after longer and longer pauses.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 30.0
_SOUND_AFTER_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """Tell a process what to serve, and how.

    `settings` are its share, `key` proves that it belongs to the server, and `folder` holds the
    counts of all processes.
    """

    number: int
    settings: Settings
    key: str
    folder: Path
    quiet: bool
    log_level: int

    @classmethod
    def receive(cls, channel: socket.socket) -> Job:
        """Read the job from the first process, which sends nothing else before."""
        [size] = _JOB_SIZE.unpack(_read(channel, _JOB_SIZE.size))
        job = pickle.loads(_read(channel, size))
        assert isinstance(job, cls)
        return job


def _read(channel: socket.socket, size: int) -> bytes:
    data = channel.recv(size, socket.MSG_WAITALL)
    if len(data) < size:
        raise EOFError("the first process has ended")
    return data


def count_workers(settings: Settings) -> int:
    """Return how many processes the settings want; 1 where processes cannot pass connections."""
    able = hasattr(socket, "send_fds")
    if settings.serve_workers > 1 and not able:
        raise SettingsError(
            "this system cannot run several workers", "leave serve_workers out, or set it to 1"
        )
    if not able:
        return 1
    return settings.serve_workers or min(count_cores(), _MOST_UNASKED)


def share_settings(settings: Settings, workers: int) -> Settings:
    """Return the limits of each process, so that together they keep to those of the settings."""

    def share(limit: int, least: int) -> int:
        return min(limit, max(least, -(-limit // workers)))

    if workers == 1:
        return settings
    return replace(
        settings,
        # One long answer must not keep all others of its process waiting.
        max_concurrent_reads=share(settings.max_concurrent_reads, 2),
        max_concurrent_writes=share(settings.max_concurrent_writes, 2),
        max_waiting_requests=share(settings.max_waiting_requests, 1),
        max_connections=share(settings.max_connections, 1),
        embedding_threads=settings.embedding_threads or max(1, count_cores() // workers),
    )


class _Worker:
    """Represent one process, and the channel to it."""

    def __init__(self, number: int, command: Sequence[str], job: bytes) -> None:
        self.number = number
        self.ready = False
        self.connections = 0
        self.started = time.monotonic()
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the first process, which tells the others
            )
        with contextlib.suppress(OSError):  # it has ended already, which is noticed below
            self.channel.sendall(_JOB_SIZE.pack(len(job)) + job)
        self.channel.setblocking(False)


class WorkerPool:
    """Keep a number of processes running until the server stops."""

    def __init__(self, module: str, jobs: Sequence[Job], folder: Path) -> None:
        # -P: the folder that the user is in must not take the place of any module.
        self._command = (sys.executable, "-P", "-m", module)
        self.folder = folder
        self._jobs = [pickle.dumps(each) for each in jobs]
        self._workers: dict[int, _Worker] = {}
        self._pauses = dict.fromkeys(range(len(jobs)), _FIRST_PAUSE_SECONDS)
        self._stopping = False

    def start(self) -> None:
        """Start all processes, from within the event loop."""
        for number in range(len(self._jobs)):
            self._start(number)

    def give(self, connection: socket.socket, own: int) -> bool:
        """Pass a connection to the process that has the fewest; `own` is how many are here.

        Return `False` if this process is to take it.
        """
        ready = [each for each in self._workers.values() if each.ready]
        chosen = min(ready, key=lambda each: each.connections, default=None)
        if chosen is None or own < chosen.connections:
            return False
        try:
            socket.send_fds(chosen.channel, [CONNECTION], [connection.fileno()])
        except OSError:  # it has crashed, or is too busy to take one
            return False
        chosen.connections += 1
        connection.close()
        return True

    def stop(self) -> None:
        """Tell all processes to finish their requests and end."""
        self._stopping = True
        for worker in self._workers.values():
            with contextlib.suppress(OSError):
                worker.channel.shutdown(socket.SHUT_WR)

    async def wait(self) -> None:
        """Wait until all processes have ended."""
        while any(each.process.poll() is None for each in self._workers.values()):
            await asyncio.sleep(_LOOK_SECONDS)
        for worker in self._workers.values():
            worker.channel.close()

    def kill(self) -> None:
        """End all processes at once."""
        self._stopping = True
        for worker in self._workers.values():
            worker.process.kill()

    def _start(self, number: int) -> None:
        if self._stopping:
            return
        try:
            worker = _Worker(number, self._command, self._jobs[number])
        except OSError as error:
            _log.warning("a worker cannot be started: %s", error)
            self._start_later(number)
            return
        self._workers[number] = worker
        loop = asyncio.get_running_loop()
        loop.add_reader(worker.channel, partial(self._hear, worker))

    def _start_later(self, number: int) -> None:
        pause = self._pauses[number]
        self._pauses[number] = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        asyncio.get_running_loop().call_later(pause, self._start, number)

    def _hear(self, worker: _Worker) -> None:
        try:
            heard = worker.channel.recv(_HEARD_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:
            worker.ready = False
            asyncio.get_running_loop().remove_reader(worker.channel)
            self._bury(worker)
            return
        worker.ready = worker.ready or READY in heard
        worker.connections -= heard.count(ENDED)

    def _bury(self, worker: _Worker) -> None:
        """Replace a process when it has ended; it has closed its channel already."""
        if self._stopping:
            return
        code = worker.process.poll()
        if code is None:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._bury, worker)
            return
        worker.channel.close()
        del self._workers[worker.number]
        if time.monotonic() - worker.started >= _SOUND_AFTER_SECONDS:
            self._pauses[worker.number] = _FIRST_PAUSE_SECONDS
        _log.warning(
            "worker process %d ended with code %d, and is started again",
            worker.process.pid,
            code,
        )
        self._start_later(worker.number)
