"""Decide which files become memories, and read their text."""

from byheart.errors import NotText, Unreadable
from byheart.workspace.explaining import explain
from byheart.workspace.paths import escape, is_writable, lies_within, read_path
from byheart.workspace.reading import FileText, read_file
from byheart.workspace.regular_file import SeenFile
from byheart.workspace.rules.ignoring import MAX_FILE_BYTES, Decision, IgnoreRules, check_root
from byheart.workspace.walking import Unseen, check_same, identify, see, walk

__all__ = [
    "MAX_FILE_BYTES",
    "Decision",
    "FileText",
    "IgnoreRules",
    "NotText",
    "SeenFile",
    "Unreadable",
    "Unseen",
    "check_root",
    "check_same",
    "escape",
    "explain",
    "identify",
    "is_writable",
    "lies_within",
    "read_file",
    "read_path",
    "see",
    "walk",
]
