"""Serve Byheart to agents: the Model Context Protocol, over stdio and HTTP.

The code that answers `initialize` and `tools/list` does not import the engine, so that a client
never waits for the import.
"""
