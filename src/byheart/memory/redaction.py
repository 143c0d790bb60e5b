"""Remove secrets from texts before they are saved, as the settings demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from byheart.settings import RedactSecrets, Settings

if TYPE_CHECKING:
    from byheart.extraction.secrets import Redacted


def take_out_secrets(
    text: str, settings: Settings, level: RedactSecrets, *, keep_lines: bool = False
) -> Redacted:
    """Replace the secrets of a text, unless `redact_secrets` is set below this level."""
    # Imported here, because most calls of a hook end before they need this module.
    from byheart.extraction.secrets import Redacted, redact

    levels = get_args(RedactSecrets)
    if levels.index(settings.redact_secrets) < levels.index(level):
        return Redacted(text, {})
    return redact(text, keep_lines=keep_lines)
