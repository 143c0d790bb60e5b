"""What does a text say about itself? Its summary, its entities and its importance; its secrets.

Pure functions of the text: no I/O, no model, linear time on any input.
"""

from byheart.extraction.entities import extract_entities
from byheart.extraction.importance import score_importance
from byheart.extraction.summary import summarize

__all__ = ["extract_entities", "score_importance", "summarize"]
