"""Run the tests about memories on stores of every database."""

from tests.databases import database

__all__ = ["database"]
