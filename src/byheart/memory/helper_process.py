"""Run a helper, which derives the texts that it gets through a pipe until the pipe is closed."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from typing import BinaryIO

from byheart.memory.deriving import Derived, derive


def main() -> None:
    """Read settings and a token counter, then requests; answer each."""
    # Modules that print write to stderr, because stdout has only the answers.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        with contextlib.suppress(EOFError, BrokenPipeError):
            _answer_all(sys.stdin.buffer, answers)


def _answer_all(requests: BinaryIO, answers: BinaryIO) -> None:
    settings, tokens = pickle.load(requests)
    while True:
        given, redacted = pickle.load(requests)
        derived: list[Derived | None] = []
        for request in given:
            # Whatever fails here fails again in the process that asked, which reports it.
            try:
                derived.append(derive(request, settings, lambda: tokens, redacted))
            except Exception:  # noqa: BLE001
                derived.append(None)
        pickle.dump(derived, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    main()
