"""Run the command line: `python -m byheart`."""

from byheart.interfaces.cli import main

main()
