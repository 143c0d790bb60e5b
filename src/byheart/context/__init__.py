"""What goes into the prompt?"""

from byheart.context.assembly import STABLE_SHARE, Assembler, ContextRequest, Materials
from byheart.context.control_marks import break_marks, unquote
from byheart.context.echoes import Emitted, find_quotations
from byheart.context.identity_files import IdentityFile, read_identity_files
from byheart.context.measure import Measure
from byheart.context.pleasantries import says_nothing
from byheart.context.running_summary import extract_summary

__all__ = [
    "STABLE_SHARE",
    "Assembler",
    "ContextRequest",
    "Emitted",
    "IdentityFile",
    "Materials",
    "Measure",
    "break_marks",
    "extract_summary",
    "find_quotations",
    "read_identity_files",
    "says_nothing",
    "unquote",
]
