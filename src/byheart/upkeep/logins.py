"""Log browsers in: a code that is used once becomes a login, which is listed with the API keys."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime, timedelta

from byheart.contracts import Storage, Writer, one_transaction
from byheart.model import ACCESSES, ApiKey, CreatedApiKey
from byheart.model import checks as check
from byheart.model.ids import new_token_id
from byheart.system import clock
from byheart.upkeep.api_keys import check_secret, hash_secret, is_secret, is_valid, new_secret

CODE_PREFIX, LOGIN_PREFIX = "bhc_", "bhl_"
# A code is in an address, which a browser may keep in its history: it is worthless soon.
CODE_LIFE = timedelta(seconds=60)
LOGIN_LIFE = timedelta(hours=12)
_NAME_BYTES = 3


class LoginManager:
    """Create login codes, exchange them for logins, and check and end logins."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @one_transaction
    def create_code(self, access: object, space: str) -> CreatedApiKey:
        """Create a code that logs one browser in to a space."""
        now = clock.now()
        code = ApiKey(
            token_id=new_token_id(),
            name=f"login-{secrets.token_hex(_NAME_BYTES)}",
            access=check.check_choice("access", access, ACCESSES),
            space=space,
            session_id=None,
            created_at=now,
            expires_at=now + CODE_LIFE,
            last_used_at=None,
            purpose="code",
            voice="user",
        )
        secret = new_secret(CODE_PREFIX)
        with self._storage.writing(None) as writer:
            _remove_expired(writer, now)
            writer.api_keys.put(code, hash_secret(secret))
        return CreatedApiKey(code, secret)

    @one_transaction
    def exchange(self, code: object) -> CreatedApiKey | None:
        """Turn a code into a login; `None` if the code is unknown, used or expired."""
        if not is_secret(code, CODE_PREFIX):
            return None
        now = clock.now()
        with self._storage.writing(None) as writer:
            found = writer.api_keys.find(secret_hash=hash_secret(code))
            held = next((each for each in found if is_valid(each, "code", now)), None)
            # If two processes exchange one code at the same time, one of them removes it.
            if held is None or not writer.api_keys.remove(held.token_id):
                return None
            login = replace(held, purpose="login", created_at=now, expires_at=now + LOGIN_LIFE)
            secret = new_secret(LOGIN_PREFIX)
            writer.api_keys.put(login, hash_secret(secret))
        return CreatedApiKey(login, secret)

    def check(self, secret: object) -> ApiKey | None:
        """Find the login of a secret; `None` if it is unknown, ended or expired."""
        return check_secret(self._storage, secret, LOGIN_PREFIX, "login")

    @one_transaction
    def end(self, token_id: str) -> bool:
        """End a login; say whether it existed."""
        with self._storage.writing(None) as writer:
            return writer.api_keys.remove(token_id)


def _remove_expired(writer: Writer, now: datetime) -> None:
    """Remove codes and logins that have expired: browsers leave many of them."""
    for each in writer.api_keys.find():
        if each.purpose != "key" and not is_valid(each, each.purpose, now):
            writer.api_keys.remove(each.token_id)
