"""Which memories answer a query?"""

from byheart.search.request import SearchRequest
from byheart.search.results import find

__all__ = ["SearchRequest", "find"]
