"""Find the memories that answer a query."""

from byheart.search.candidates import gather
from byheart.search.conflicting_hits import find_conflicts
from byheart.search.recalling import recall
from byheart.search.relevance import is_relevant
from byheart.search.request import RecallRequest, SearchRequest, Weights
from byheart.search.reranking import Reranking
from byheart.search.results import find
from byheart.search.stale_files import describe_file

__all__ = [
    "RecallRequest",
    "Reranking",
    "SearchRequest",
    "Weights",
    "describe_file",
    "find",
    "find_conflicts",
    "gather",
    "is_relevant",
    "recall",
]
