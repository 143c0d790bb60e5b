"""Define the command line: `byheart VERB …`.

commands.py    the list of verbs; each is loaded when it is needed
verb.py        shared parts of all verbs: --db, --space, --json, examples in the help
options.py     flags that several verbs share
store.py       opening the store of a command
save.py  search.py  recall.py  get.py  list.py  update.py  forget.py  turns.py  context.py
sessions.py  entities.py  duplicates.py  export_import.py  copy.py  workspaces.py  upkeep.py …
               one file per family of verbs; a verb is `<name>_command`
batches.py     saving and logging large inputs
hints.py       the operations of hints, spelled as commands
screen.py      the format of an answer in pipes; terminal.py the same on a terminal
progress.py    progress bars for long work
errors.py      errors as messages and exit codes
reference.py   docs/cli.md, generated from the verbs
"""

import os
import sys
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Run the command of this process, and exit."""
    try:
        # Imported here, since the user may press Ctrl-C while Python is still loading.
        from byheart.interfaces.cli.commands import byheart
    except KeyboardInterrupt:
        sys.exit(130)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller; the command still runs
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    byheart.main()
