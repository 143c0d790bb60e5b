"""How does an agent that calls hooks remember by itself? `byheart hook EVENT`, for Claude Code.

events.py      what an event says
reactions.py   what is done about each: what is captured, and what goes into the prompt
attempts.py    work that nobody waits for longer than the settings allow
journal.py     what went wrong, in a file: the agent never hears of it
"""
