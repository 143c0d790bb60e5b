"""What goes into the prompt?"""

from byheart.context.assembly import ContextRequest, Materials, assemble
from byheart.context.measure import Measure
from byheart.context.running_summary import extract_summary

__all__ = ["ContextRequest", "Materials", "Measure", "assemble", "extract_summary"]
