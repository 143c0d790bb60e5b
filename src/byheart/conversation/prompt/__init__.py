"""Choose and write the texts that go into a prompt."""

from byheart.conversation.prompt.assembly import Assembler, ContextRequest, Materials
from byheart.conversation.prompt.control_marks import break_marks, unquote
from byheart.conversation.prompt.echoes import Emitted, find_quotations
from byheart.conversation.prompt.identity_files import IdentityFile, read_identity_files
from byheart.conversation.prompt.measure import Measure
from byheart.conversation.prompt.pleasantries import says_nothing
from byheart.conversation.prompt.recall_text import RecallText
from byheart.conversation.prompt.running_summary import extract_summary
from byheart.conversation.prompt.token_budget import STABLE_SHARE

__all__ = [
    "STABLE_SHARE",
    "Assembler",
    "ContextRequest",
    "Emitted",
    "IdentityFile",
    "Materials",
    "Measure",
    "RecallText",
    "break_marks",
    "extract_summary",
    "find_quotations",
    "read_identity_files",
    "says_nothing",
    "unquote",
]
