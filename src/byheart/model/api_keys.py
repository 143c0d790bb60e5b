"""Define API keys, which let programs and browsers in over the network."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from byheart.startup.dataclass_types import dataclass

Access = Literal["read", "write"]
# Whose words a caller may save: also the user's; an agent's; or only a stranger's, which wait for
# review.
Voice = Literal["user", "agent", "stranger"]

# An API key of a program, the login of a browser, or the single-use code that becomes a login.
KeyPurpose = Literal["key", "login", "code"]

ACCESSES: tuple[Access, ...] = ("read", "write")
VOICES: tuple[Voice, ...] = ("user", "agent", "stranger")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key: the space that it opens for network access, and how much it may do there.

    `last_used_at` is exact to a minute.
    """

    token_id: str
    name: str
    access: Access
    space: str
    session_id: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    purpose: KeyPurpose = "key"
    voice: Voice = "agent"


@dataclass(frozen=True, slots=True)
class CreatedApiKey:
    """A new API key with its secret, which is not stored and cannot be shown again."""

    token: ApiKey
    secret: str
