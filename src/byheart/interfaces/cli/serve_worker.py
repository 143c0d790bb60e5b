"""Run one of the other processes of `byheart serve`, which starts it with a channel to itself."""

from __future__ import annotations

import logging
import socket
import sys

import byheart
from byheart.errors import ByheartError
from byheart.interfaces.cli.store import configure_logging
from byheart.interfaces.rest.shared_counts import SharedCounts
from byheart.interfaces.rest.work import Work
from byheart.interfaces.rest.worker_pool import Job

_log = logging.getLogger(__name__)


def main() -> None:
    """Serve the connections that the first process passes on, until it closes the channel."""
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        try:
            job = Job.receive(channel)
        except EOFError:
            return
        configure_logging(job.settings, job.log_level)
        try:
            _serve(job, channel)
        except ByheartError as error:
            _log.error("a worker cannot serve: %s", error)
            sys.exit(1)


def _serve(job: Job, channel: socket.socket) -> None:
    from byheart.interfaces.mcp.http import McpOverHttp
    from byheart.interfaces.rest.serving import serve_connections
    from byheart.interfaces.web import page_routes

    with byheart.open(settings=job.settings, create=False) as store:
        work = Work(job.settings)
        agents = McpOverHttp(store, job.settings, work)
        serve_connections(
            store,
            job.settings,
            channel,
            SharedCounts(job.folder, job.number, work),
            work,
            mounts=[agents.route, *page_routes(store, work, job.key)],
            lifespan=agents.lifespan,
            quiet=job.quiet,
        )


if __name__ == "__main__":
    main()
