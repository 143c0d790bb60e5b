"""The command line, and scripts, in processes forked from one which has loaded Byheart already.

Loading takes a second of the processor, the program itself a fraction of that. What loading does,
the locale and the installed command are shown by processes that Python is really started for:
tests/interfaces/cli/test_process.py, the documents, and tests/interfaces/mcp/test_revisions.py.

The process that is forked never opens a store: no program may inherit what SQLite
knows of its locks.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

PROGRAM = (sys.executable, "-c", "from byheart.interfaces.cli import main; main()")
_PR_SET_CHILD_SUBREAPER = 36
_SIZE = struct.Struct("=I")
_asking = threading.Lock()


def start_program(*arguments: str, env: Mapping[str, str], **options: Any) -> subprocess.Popen[Any]:
    """Start the program as `subprocess.Popen` would."""
    return _start([*PROGRAM, *arguments], env=env, **options)


def start_script(script: str, *arguments: object, **options: Any) -> subprocess.Popen[Any]:
    """Start Python with a script, as `python -c` would."""
    return _start([sys.executable, "-c", script, *map(str, arguments)], **options)


def _start(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    kind = _Forked if sys.platform == "linux" else subprocess.Popen
    return kind(command, **options)


class _Forked(subprocess.Popen[Any]):
    """A process that was forked instead of executed; all else is as ever."""

    def _execute_child(  # type: ignore[no-untyped-def]
        self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *more
    ) -> None:
        pipes = more[3:9]  # both ends of stdin, of stdout and of stderr, or -1
        theirs = (pipes[0], pipes[3], pipes[5])
        [_, _, script, *arguments] = args
        asked = {
            "script": script,
            "arguments": arguments,
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
        }
        given = [own if fd == -1 else fd for own, fd in enumerate(theirs)]
        self.pid = _ask(_loaded_process(), asked, given)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


@cache
def _loaded_process() -> socket.socket:
    """Start the process that loads everything once, and is forked from then on."""
    # Those whose parent has gone become our children, and can be waited for like any other.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair()
    with theirs:
        subprocess.Popen(
            [sys.executable, "-m", "tests.forked_program", str(theirs.fileno())],
            cwd=Path(__file__).parents[1],
            pass_fds=[theirs.fileno()],
        )
    return ours


def _ask(loaded: socket.socket, asked: dict[str, Any], files: list[int]) -> int:
    message = json.dumps(asked).encode()
    with _asking:
        socket.send_fds(loaded, [_SIZE.pack(len(message))], files)
        loaded.sendall(message)
        [pid] = _SIZE.unpack(loaded.recv(_SIZE.size, socket.MSG_WAITALL))
    return int(pid)


# --- In the process that has loaded everything ------------------------------------------------


def _serve(tests: socket.socket) -> None:
    # With what they would load only when it is used, each of them anew.
    import numpy.fft
    import numpy.ma
    import numpy.random  # noqa: F401

    import byheart.chunking
    import byheart.embedding.hash_embedder
    import byheart.interfaces.cli.commands
    import byheart.interfaces.cli.terminal
    import byheart.interfaces.mcp.stdio
    import byheart.interfaces.rest
    import byheart.opening
    import byheart.upkeep  # noqa: F401

    while True:
        head, files, _, _ = socket.recv_fds(tests, _SIZE.size, 3)
        if not head:
            return
        [size] = _SIZE.unpack(head)
        asked = json.loads(tests.recv(size, socket.MSG_WAITALL))
        into, out = os.pipe()
        between = os.fork()  # ends at once, so that the next is the child of the tests
        if not between:
            between = os.getpid()
            pid = os.fork()
            if not pid:
                while os.getppid() == between:  # a server that sees its parent change would end
                    time.sleep(0.001)
                for each in (into, out, tests.fileno()):
                    os.close(each)
                _be_program(files, **asked)
            os.write(out, _SIZE.pack(pid))
            os._exit(0)
        os.waitpid(between, 0)
        tests.sendall(os.read(into, _SIZE.size))
        for each in (into, out, *files):
            os.close(each)


def _be_program(
    files: list[int], script: str, arguments: list[str], cwd: str, env: dict[str, str]
) -> NoReturn:
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, max(files) + 1)
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        sys.argv = ["-c", *arguments]
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(script, "<string>", "exec"), sys.modules["__main__"].__dict__)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 (as Python itself does at the outermost)
        traceback.print_exc()
    finally:
        _end(code)


def _end(code: int) -> NoReturn:
    """End as Python does."""
    import atexit

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    # Ctrl-C is for the programs, and ends with them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        _serve(connection)
