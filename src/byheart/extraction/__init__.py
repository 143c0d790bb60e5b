"""Extract the summary, the entities, the importance and the secrets of a text.

All functions are pure: no I/O, no model, linear time on any input.
"""

from byheart.extraction.entities import extract_entities
from byheart.extraction.importance import score_importance
from byheart.extraction.summary import summarize

__all__ = ["extract_entities", "score_importance", "summarize"]
