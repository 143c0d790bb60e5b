"""Define the rows of API keys."""

from __future__ import annotations

from typing import Protocol

from byheart.model import ApiKey


class ApiKeyReader(Protocol):
    """Look up API keys. The hash of a secret is stored, never the secret itself."""

    def find(self, space: str | None = None, secret_hash: bytes | None = None) -> list[ApiKey]:
        """List API keys, oldest first: of one space, or of all; with one secret, or with any."""
        ...


class ApiKeyRows(ApiKeyReader, Protocol):
    """Look up and change API keys; every process sees the same keys at once."""

    def put(self, token: ApiKey, secret_hash: bytes) -> None:
        """Add an API key."""
        ...

    def remove(self, token_id: str) -> bool:
        """Remove an API key; say whether it existed."""
        ...
