"""Let an agent that calls hooks remember by itself: `byheart hook EVENT`, for Claude Code.

events.py      the contents of an event
reactions.py   the reaction to each event; situation.py what a reaction works with
answers.py     reactions that add text to the prompt
captures.py    reactions that save the agent's work
guard.py       a waiting process, started by the agent, and a worker process
attempts.py    work in threads, under the time limit of the settings
handing_over.py  giving an event to a running server; service.py in that server; sockets.py
spool.py       a file that keeps a prompt until it is stored
journal.py     a log file of errors, which the agent never sees
"""
