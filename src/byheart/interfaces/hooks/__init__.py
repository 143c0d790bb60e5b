"""How does an agent that calls hooks remember by itself? `byheart hook EVENT`, for Claude Code.

events.py      what an event says
reactions.py   what is done about each; situation.py what there is to do it with
answers.py     what goes into the prompt
captures.py    what is kept
guard.py       the process that the agent waits for, and the one that works
attempts.py    work that nobody waits for longer than the settings allow
journal.py     what went wrong, in a file: the agent never hears of it
"""
