"""The command line: `byheart VERB …`.

commands.py    which verbs there are; each is loaded when it is asked for
verb.py        what all verbs share: --db, --space, --json, examples in the help
options.py     the flags that several verbs have
store.py       opening the store that a command means
saving.py  searching.py  recalling.py  reading.py  listing.py  upkeep.py  config.py  model.py
entities.py  deduping.py  completion.py
               one file per family of verbs; a verb is `<name>_command`
screen.py      what an answer looks like, in pipes; terminal.py the same on a terminal
progress.py    how far long work has come
errors.py      what goes wrong, as a message and an exit code
reference.py   docs/cli.md, written from the verbs themselves
"""

import os
import sys
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Run the command that the process was started with, and exit."""
    try:
        # Here, since an impatient Ctrl-C may come while Python is still loading.
        from byheart.interfaces.cli.commands import byheart
    except KeyboardInterrupt:
        sys.exit(130)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: the work is done all the same
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    byheart.main()
