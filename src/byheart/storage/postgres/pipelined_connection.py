"""Keep a connection in pipeline mode between transactions, so that few of them wait for answers."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.pq import TransactionStatus


class PipelinedConnection(psycopg.Connection[Any]):
    """A connection that sends statements ahead, and whose transactions can end without waiting.

    psycopg's own `pipeline()` is a generator: if nobody closes it, Python would ask the server for
    an answer when it frees the generator.
    """

    _is_ending = False

    def pipe(self) -> psycopg.Pipeline:
        """Enter pipeline mode, if the connection is not in it."""
        if self._pipeline is None:
            self._pipeline = psycopg.Pipeline(self).__enter__()
        return self._pipeline

    def unpipe(self) -> None:
        """Leave pipeline mode; wait for all answers, and raise the first error among them."""
        pipeline, self._is_ending = self._pipeline, False
        if pipeline is not None:
            try:
                pipeline.__exit__(None, None, None)
            finally:
                self._pipeline = None

    def end_reading(self) -> None:
        """Commit a transaction that has read all it needs; nobody waits for the answer.

        The answer is read before the connection is used again, or together with the next one.
        At a rollback, psycopg would forget all prepared statements.
        """
        pipeline = self.pipe()
        # Behind a pooler, the server may not know a statement that was prepared before.
        self.execute("COMMIT", prepare=False)
        self.pgconn.pipeline_sync()
        pipeline.result_queue.append(None)  # tells psycopg to expect the answer
        self._is_ending = True

    @property
    def is_ending(self) -> bool:
        """Say whether the answer to the end of a transaction was not read yet."""
        pipeline = self._pipeline
        return self._is_ending and pipeline is not None and bool(pipeline.result_queue)

    def read_ending(self) -> None:
        """Read the answers to the end of the last transaction."""
        self._is_ending = False
        self.wait(self.pipe()._fetch_gen(flush=False))

    @property
    def is_idle(self) -> bool:
        """Say whether the connection works, and is in no transaction."""
        return not self.closed and self.info.transaction_status == TransactionStatus.IDLE
