"""Find the memories that answer a query."""

from byheart.search.candidates import gather
from byheart.search.recalling import recall
from byheart.search.relevance import is_relevant
from byheart.search.request import RecallRequest, SearchRequest, Weights
from byheart.search.results import find

__all__ = [
    "RecallRequest",
    "SearchRequest",
    "Weights",
    "find",
    "gather",
    "is_relevant",
    "recall",
]
