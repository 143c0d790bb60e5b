"""`python -m byheart`: the command line."""

from byheart.interfaces.cli import main

main()
