"""What Byheart does, in a minute: save a few texts, then find them in six ways.

What stands after a `$` goes through the real command line, and every answer is a real one. The
store lives in a temporary folder and is gone afterwards.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from byheart.interfaces.cli.commands import byheart

REPORT = """\
# Checkout Performance Report

We measured the checkout of the web shop for one week in March.

## Database

### Query Times

The slowest statement loads the open orders of a customer. Its 95th percentile rose from 40 ms
to 900 ms after the index on orders.customer_id was dropped in release 4.2.

### Locks

Schema migrations held row locks for up to 12 seconds. Run them in small batches at night.

## Frontend

The first paint takes 2.1 s on a mid-range phone. Two thirds of that is one unused chart library.

## Recommendations

1. Put the index on orders.customer_id back.
2. Load the chart library only on the statistics page.
"""

CODE = '''\
"""Retry a call that may fail for a moment."""

import time


def retry(call, attempts=5, first_pause_seconds=0.1):
    """Try again after growing pauses, and give the last error up to the caller."""
    for attempt in range(attempts):
        try:
            return call()
        except ConnectionError:
            if attempt == attempts - 1:
                raise
            time.sleep(first_pause_seconds * 2**attempt)


def parse_port(address):
    """Give the port of an address such as example.org:8080."""
    return int(address.rpartition(":")[2])
'''

SAVES = (
    ("save", "Anna has a dog called Biscuit.", "--kind", "fact", "--tags", "people"),
    ("save", "The staging server is restarted every Sunday at 04:00 UTC.", "--kind", "fact"),
    ("save", "Our invoices are due thirty days after delivery.", "--kind", "fact"),
    ("save", "--file", "report.md", "--kind", "report", "--tags", "shop"),
    ("save", "--file", "retry.py", "--kind", "file"),
    ("save", "The customer wants the logo in dark green.", "--session-id", "monday"),
    ("save", "The customer wants the logo in bright orange.", "--session-id", "tuesday"),
)

SEARCHES = (
    (
        "By keyword: the words themselves, in any order.",
        ("search", "restarted staging", "--mode", "fts", "--limit", "1"),
    ),
    (
        "By meaning: the question shares no word with its answer.",
        ("search", "what is the name of her pet?", "--mode", "vector", "--limit", "1"),
    ),
    (
        "Hybrid, the default: both at once. Here a question finds a function.",
        ("search", "how do we retry after a connection error?", "--limit", "1"),
    ),
    (
        "Medium: the whole section around the passages that match.",
        ("search", "slow orders query", "--granularity", "medium", "--limit", "1", "--full"),
    ),
    (
        "Coarse: whole memories, each once, however many of their passages match.",
        ("search", "web shop performance", "--granularity", "coarse", "--limit", "1"),
    ),
    (
        "Scoped: what Monday's session knows. Tuesday's orange stays in Tuesday's session.",
        ("search", "which colour for the logo?", "--session-id", "monday", "--no-include-global"),
    ),
    (
        "The same question in the other session.",
        ("search", "which colour for the logo?", "--session-id", "tuesday", "--no-include-global"),
    ),
)


def main() -> int:
    """Run the demonstration in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="byheart-demo-") as folder, chdir(folder):
        os.environ["BYHEART_DB_PATH"] = "memory.db"
        Path("report.md").write_text(REPORT, encoding="utf-8")
        Path("retry.py").write_text(CODE, encoding="utf-8")
        print("--- Saving: facts, a report, code, and two sessions\n")
        for arguments in SAVES:
            run(*arguments)
        for title, arguments in SEARCHES:
            print(f"\n--- {title}\n")
            run(*arguments)
        print("\n--- What the store holds now\n")
        run("status")
    return 0


def run(*arguments: str) -> None:
    """Do what the shell does with a command line, and stop if it fails."""
    print(f"$ byheart {shlex.join(arguments)}")
    try:
        byheart.main(arguments)
    except SystemExit as end:
        if end.code:
            raise


if __name__ == "__main__":
    sys.exit(main())
