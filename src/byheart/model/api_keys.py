"""Define API keys, which let programs in over the network."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Access = Literal["read", "write"]

ACCESSES: tuple[Access, ...] = ("read", "write")


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


@dataclass(frozen=True, slots=True)
class CreatedApiKey:
    """A new API key with its secret, which is not stored and cannot be shown again."""

    token: ApiKey
    secret: str
