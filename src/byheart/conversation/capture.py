"""Capturing: what of an agent's work is kept unasked, how much of it, and without secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256

from byheart.memory.redaction import take_out_secrets
from byheart.settings import Settings

# What Byheart itself gave must not come back as something new.
_OWN_TOOLS = ("mcp__byheart__*", "mcp__plugin_byheart*")
_KEY_DIGITS = 32
_LONGEST_TITLE = 200
# Half of a character, as JSON may have it where a text was cut: nothing that could be stored.
_UNSTORABLE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Captured:
    """A text as it is kept, how many secrets it had, and whether some of it was left out."""

    text: str
    secrets: int
    shortened: bool


def is_wanted(tool: str, settings: Settings) -> bool:
    """Say whether the outputs of a tool are worth keeping."""
    name = tool.lower()
    own = any(fnmatchcase(name, pattern) for pattern in _OWN_TOOLS)
    return not own and any(fnmatchcase(name, pattern) for pattern in settings.capture_tools)


def capture(text: str, settings: Settings, *, is_output: bool = False) -> Captured:
    """Take secrets out of a text; of a long output keep the beginning and the end."""
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
    """Take secrets out of a line that says what a tool was called for, then cut it."""
    kept = capture(text, settings).text
    return kept if len(kept) <= _LONGEST_TITLE else f"{kept[:_LONGEST_TITLE]}…"


def name_turn(role: str, text: str, number: int) -> str:
    """Name a turn by its words and how often they were said before in its session.

    Hooks see what is said before the transcript does, and without the name it gets there.
    """
    digest = sha256(f"{role}\n{text}".encode(errors="replace")).hexdigest()
    return f"said:{digest[:_KEY_DIGITS]}:{number}"
