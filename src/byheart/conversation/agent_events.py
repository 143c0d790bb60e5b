"""Read what agents said and did from the records of their programs.

Hooks get these records while the agent works, importers read them later. Both must get the same
result.
"""

from __future__ import annotations

import json
import ntpath
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from byheart.model.checks import LONGEST_LABEL
from byheart.startup.late_patterns import late_pattern

CLAUDE_CODE = "claude-code"

# The arguments that describe a tool call best, in this order.
_TELLING = (
    "command",
    "cmd",
    "url",
    "query",
    "pattern",
    "file_path",
    "path",
    "description",
    "prompt",
)
# Far more than is kept, because a secret must not be cut before it is recognized.
_MOST_CALL_CHARS = 4000

# Texts that the agent's program adds to the words of the user.
_INSERTED = late_pattern(r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>")
_BLANKS = late_pattern(r"\s*")
_COMMANDS = ("<command-name>", "<command-message>")
_NOT_SAID = late_pattern(
    r"\s*(?:<(?:local-command-\w+|bash-\w+|task-notification|command-message>\s*<)"
    r"|\[Request interrupted by user|Caveat: The messages below were generated)"
)

_CONTROL = late_pattern(r"[\x00-\x1f\x7f]+")
_POINTER = late_pattern(r"gitdir:[ \t]*(.+?)\s*\Z")
_HASH_DIGITS = 6
_LONGEST_NAME = 80


# --- Words and tool calls -------------------------------------------------------------------------


def said_by_user(text: str) -> str | None:
    """Return the words that the user typed, without added texts, or `None` if there are none."""
    text = _without_inserted(text).strip()
    # Command tags elsewhere than at the beginning are quotations.
    if text.startswith(_COMMANDS) and (command := _within(text, "command-name")):
        return f"{command} {_within(text, 'command-args')}".strip()
    return None if _NOT_SAID.match(text) or not text else text


def _without_inserted(text: str) -> str:
    """Remove inserted elements; search for a missing end tag only once, to stay linear."""
    kept, at, unclosed = list[str](), 0, set[str]()
    for opens in _INSERTED.finditer(text):
        tag = opens[1]
        if opens.start() < at or tag in unclosed:
            continue
        end = text.find(f"</{tag}>", opens.end())
        if end < 0:
            unclosed.add(tag)
            continue
        kept.append(text[at : opens.start()])
        blanks = _BLANKS.match(text, end + len(f"</{tag}>"))
        assert blanks is not None, "none at all are blanks too"
        at = blanks.end()
    return "".join((*kept, text[at:]))


def _within(text: str, tag: str) -> str:
    """Return the content of the first element with this tag, or an empty text."""
    inside, closed, _ = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return inside.strip() if closed else ""


def describe_call(tool: str, given: object) -> str:
    """Describe a tool call in one line: `Bash: npm test`."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return _one_line(tool, given)
    if isinstance(given, dict):
        for name in _TELLING:
            if given.get(name):
                return _one_line(tool, given[name])
    return tool


def _one_line(tool: str, said: object) -> str:
    text = " ".join(map(str, said)) if isinstance(said, list) else str(said)
    text = " ".join(text[:_MOST_CALL_CHARS].split())
    return f"{tool}: {text}" if text else tool


# --- Projects -------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def project_of(folder: str) -> str | None:
    """Name the project of a folder: the name of its repository, and a hash of its location.

    All worktrees of a repository belong to one project.
    """
    if not folder.strip():
        return None
    home = _repository(Path(folder)) if Path(folder).is_absolute() else None
    place = folder.rstrip("/\\") or folder if home is None else str(home)
    # A path may come from another operating system, so split at both kinds of slash.
    name = ntpath.basename(place.removesuffix("/.git").removesuffix("\\.git"))
    name = (_label(name.removesuffix(".git")) or "root")[:_LONGEST_NAME]
    return f"{name}-{sha256(place.encode(errors='replace')).hexdigest()[:_HASH_DIGITS]}"


def _label(name: str) -> str:
    text = " ".join(_CONTROL.sub(" ", name).split())
    return text.encode(errors="ignore")[:LONGEST_LABEL].decode(errors="ignore").strip()


def _repository(folder: Path) -> Path | None:
    """Find the folder that all worktrees of a repository share."""
    try:
        for each in (folder, *folder.parents):
            found = each / ".git"
            if found.is_dir():
                return found.resolve()
            if found.is_file():
                return _shared(found)
    except OSError:  # treat an unreadable folder as a missing one
        return None
    return None


def _shared(pointer: Path) -> Path | None:
    """Follow the `.git` file of a worktree to its repository."""
    target = _POINTER.match(pointer.read_text(encoding="utf-8", errors="replace"))
    if target is None:
        return None
    own = (pointer.parent / target[1]).resolve()
    common = own / "commondir"
    if common.is_file():
        return (own / common.read_text(encoding="utf-8", errors="replace").strip()).resolve()
    return own  # a submodule is a separate repository
