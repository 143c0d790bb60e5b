"""Manage API keys for network access. A secret is shown once, and only its hash is stored."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TypeGuard

from byheart.contracts import KeyUse, Storage, one_transaction
from byheart.errors import Conflict, Do, Hint, InvalidInput, NotFound
from byheart.model import ACCESSES, VOICES, ApiKey, CreatedApiKey, KeyPurpose
from byheart.model import checks as check
from byheart.model.ids import TOKEN_PREFIX, new_token_id
from byheart.startup.late_patterns import late_pattern
from byheart.system import clock

SECRET_PREFIX = "bh_"
_SECRET_BYTES = 32
_RANDOM_PART = late_pattern(r"[A-Za-z0-9_-]{43}")  # 32 bytes as URL-safe base64
# Record a use at most this often: a request that only reads must not become a write.
_NOTED_EVERY = timedelta(minutes=1)


class ApiKeyManager:
    """Create and revoke API keys, and find the key that a secret belongs to."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @one_transaction
    def create(
        self,
        name: object,
        access: object,
        space: str,
        session_id: object,
        ttl_days: object,
        voice: object = "agent",
    ) -> CreatedApiKey:
        """Create an API key with a random secret."""
        now = clock.now()
        key = ApiKey(
            token_id=new_token_id(),
            name=_check_name(name),
            access=check.check_choice("access", access, ACCESSES),
            space=space,
            session_id=check.check_optional_label("session_id", session_id),
            created_at=now,
            expires_at=_check_expiry(ttl_days, now),
            last_used_at=None,
            voice=check.check_choice("voice", voice, VOICES),
        )
        secret = new_secret(SECRET_PREFIX)
        with self._storage.writing(None) as writer:
            refuse_taken_name(key, writer.api_keys.find())
            writer.api_keys.put(key, hash_secret(secret))
        return CreatedApiKey(key, secret)

    def list(self, space: str | None) -> tuple[ApiKey, ...]:
        """List the API keys of a space, or of all spaces, oldest first."""
        with self._storage.reading() as reader:
            return tuple(reader.api_keys.find(space))

    def revoke(self, named: object) -> ApiKey:
        """Revoke an API key by its id, its name, or its secret."""
        text = check.check_label("key", named)
        key = self._find(text)
        if key is None or not self._remove(key):
            # A mistyped secret is nearly a real one: it does not belong on a screen or in a log.
            shown = "with this secret" if text.startswith(SECRET_PREFIX) else repr(text)
            raise NotFound(
                f"there is no API key {shown}",
                Hint("see which there are with: ", Do("api_keys.list")),
            )
        return key

    def _find(self, text: str) -> ApiKey | None:
        if text.startswith(SECRET_PREFIX):
            return self._holder_of(text)
        tokens = self.list(None)
        return next((each for each in tokens if text in (each.token_id, each.name)), None)

    def _holder_of(self, secret: str) -> ApiKey | None:
        with self._storage.reading() as reader:
            return next(iter(reader.api_keys.find(secret_hash=hash_secret(secret))), None)

    @one_transaction
    def _remove(self, key: ApiKey) -> bool:
        with self._storage.writing(None) as writer:
            return writer.api_keys.remove(key.token_id)

    def check(self, secret: object) -> ApiKey | None:
        """Find the API key of a secret; None if it is unknown, revoked or expired."""
        return check_secret(self._storage, secret, SECRET_PREFIX, "key")


def check_secret(
    storage: Storage, secret: object, prefix: str, purpose: KeyPurpose
) -> ApiKey | None:
    """Find the valid key of a purpose that a secret belongs to, and note its use."""
    if not is_secret(secret, prefix):
        return None
    with storage.reading() as reader:
        found = reader.api_keys.find(secret_hash=hash_secret(secret))
    now = clock.now()
    key = next((each for each in found if is_valid(each, purpose, now)), None)
    if key is not None and (key.last_used_at is None or now - key.last_used_at >= _NOTED_EVERY):
        storage.note([KeyUse(key.token_id, now)])
    return key


def is_valid(key: ApiKey, purpose: KeyPurpose, now: datetime) -> bool:
    """Tell whether a key is for a purpose and has not expired."""
    return key.purpose == purpose and (key.expires_at is None or key.expires_at > now)


def new_secret(prefix: str) -> str:
    """Make a random secret that nobody can guess."""
    return prefix + secrets.token_urlsafe(_SECRET_BYTES)


def is_secret(secret: object, prefix: str) -> TypeGuard[str]:
    """Tell whether a text has the form of a secret, so that no other text is looked up."""
    if not isinstance(secret, str) or not secret.startswith(prefix):
        return False
    return _RANDOM_PART.fullmatch(secret, len(prefix)) is not None


def refuse_taken_name(key: ApiKey, held: Iterable[ApiKey]) -> None:
    """Refuse an API key whose name another one has, even if that one has expired."""
    for each in held:
        if each.name == key.name:
            expired = each.expires_at is not None and each.expires_at <= key.created_at
            raise Conflict(
                f"there is an API key named {key.name!r} already" + ", which has expired" * expired,
                Hint(
                    "choose another name, or revoke that one first: ",
                    Do("api_keys.revoke", key.name),
                ),
            )


def _check_name(name: object) -> str:
    text = check.check_label("name", name)
    # A name must not look like an id or a secret, or revoking by name could hit another key.
    for prefix in (TOKEN_PREFIX, SECRET_PREFIX):
        if text.startswith(prefix):
            raise InvalidInput(
                f"the name of an API key cannot begin with {prefix}",
                "name it after who will use it",
            )
    return text


def _check_expiry(ttl_days: object, now: datetime) -> datetime | None:
    expires_at = check.check_expiry(ttl_days, None, now)
    if expires_at is not None and expires_at <= now:
        raise InvalidInput(
            f"ttl_days is {ttl_days}: the API key would expire at once",
            "give more than 0 days; without ttl_days it is good for ever",
        )
    return expires_at


def hash_secret(secret: str) -> bytes:
    """Hash a secret for storage."""
    # Slow hashes protect passwords chosen by people; 256 random bits cannot be guessed anyway.
    return hashlib.sha256(secret.encode()).digest()
