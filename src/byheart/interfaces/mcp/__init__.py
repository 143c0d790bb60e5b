"""The door for agents: the Model Context Protocol, over stdio and HTTP.

What answers `initialize` and `tools/list` imports no engine, so that a client never waits for it.
"""
