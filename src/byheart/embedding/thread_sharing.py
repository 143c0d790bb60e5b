"""Share work among threads.

`concurrent.futures` is no option: after the main thread has ended, its pools accept no work and
cannot even be imported, although other threads may still be running.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def share(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Apply `work` to every item; this thread and the others each take the next free item."""
    lock, numbers = threading.Lock(), iter(range(len(items)))
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def take() -> None:
        while not errors:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                results[number] = work(items[number])
            except BaseException as error:  # noqa: BLE001 - raised again below
                errors.append(error)

    others: list[threading.Thread] = []
    with suppress(RuntimeError):  # no more threads can start: the present ones do all the work
        for _ in range(min(threads, len(items)) - 1):
            other = threading.Thread(target=take, name="byheart-embed", daemon=True)
            other.start()
            others.append(other)
    try:
        take()
        for other in others:
            other.join()
    except BaseException as error:  # Ctrl-C: the other threads stop after their current item
        errors.append(error)
        raise
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]
