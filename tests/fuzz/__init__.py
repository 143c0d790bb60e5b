"""Fuzzers: each module generates hostile input for one target, for as long as it is told to.

`python -m tests.fuzz TARGET --seconds N --seed S` runs one; the tests beside them run each briefly.
"""
