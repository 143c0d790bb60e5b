"""Capture an agent's work automatically: choose what to keep, shorten it, remove secrets."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from hashlib import sha256

from byheart.memory.redaction import take_out_secrets
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

# The outputs of Byheart's own tools must not be saved again as new memories.
_OWN_TOOLS = ("mcp__byheart__*", "mcp__plugin_byheart*")
_KEY_DIGITS = 32
_LONGEST_TITLE = 200
# Half of a surrogate pair, which JSON may contain where a text was cut. It cannot be stored.
_UNSTORABLE = late_pattern("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Captured:
    """Hold a captured text, the number of its secrets, and whether it was shortened."""

    text: str
    secrets: int
    shortened: bool


def is_wanted(tool: str, settings: Settings) -> bool:
    """Return whether the outputs of a tool are to be captured."""
    return not _is_among(tool, _OWN_TOOLS) and _is_among(tool, settings.capture_tools)


def is_trusted(tool: str, settings: Settings) -> bool | None:
    """Return `False` for a tool whose outputs strangers write, `None` where nothing is known."""
    return False if _is_among(tool, settings.untrusted_tools) else None


def _is_among(tool: str, patterns: Iterable[str]) -> bool:
    name = tool.lower()
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def capture(text: str, settings: Settings, *, is_output: bool = False) -> Captured:
    """Remove secrets from a text; keep only the beginning and the end of a long output."""
    storable = text if text.isascii() else _UNSTORABLE.sub("\ufffd", text)
    redacted = take_out_secrets(storable, settings, "hooks")
    most = settings.capture_chars if is_output else 0
    if not most or len(redacted.text) <= most:
        return Captured(redacted.text, redacted.count, shortened=False)
    head, tail = most - most // 2, most // 2
    missing = len(redacted.text) - most
    mark = f"\n[… {missing:,} characters left out …]\n"
    kept = redacted.text[:head] + mark + (redacted.text[-tail:] if tail else "")
    return Captured(kept, redacted.count, shortened=True)


def capture_title(text: str, settings: Settings) -> str:
    """Remove secrets from the description of a tool call, then shorten it."""
    kept = capture(text, settings).text
    return kept if len(kept) <= _LONGEST_TITLE else f"{kept[:_LONGEST_TITLE]}…"


def name_turn(role: str, text: str, number: int) -> str:
    """Name a turn by its words, and by how often its session had the same words before.

    Hooks see a turn before the transcript does, and without the name that the transcript gives it.
    """
    digest = sha256(f"{role}\n{text}".encode(errors="replace")).hexdigest()
    return f"said:{digest[:_KEY_DIGITS]}:{number}"
