"""Run a transaction again that the database undid for the sake of another one.

A database server may end a transaction because of a deadlock, of a conflict with another one, or of
a lost connection. Nothing of it was committed then, so it can run again. A connection that was lost
during the commit is another matter: the change may be there, and the caller has to look.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from byheart.errors import StoreError

Given = ParamSpec("Given")
Result = TypeVar("Result")

# The longest pauses before the further attempts. They are random, or two transactions that met
# once would meet again.
_PAUSES_SECONDS = (0.05, 0.2, 0.5)


def one_transaction(run: Callable[Given, Result]) -> Callable[Given, Result]:
    """Mark a function that makes one transaction: it runs again if that was undone.

    The function gets no iterators, and changes nothing but the store.
    """

    @wraps(run)
    def attempt(*given: Given.args, **named: Given.kwargs) -> Result:
        for pause in _PAUSES_SECONDS:
            try:
                return run(*given, **named)
            except StoreError as error:
                if not error.undone:
                    raise
            time.sleep(random.uniform(0, pause))
        return run(*given, **named)

    return attempt
