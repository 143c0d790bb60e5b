"""Define the verbs about logins of browsers: `store.logins`."""

from __future__ import annotations

from byheart.model import ApiKey, CreatedApiKey
from byheart.model import checks as check
from byheart.system.forks import RefusedInChild
from byheart.upkeep.logins import LoginManager
from byheart.verbs.engine import Engine

Text = str | None


class LoginVerbs(RefusedInChild):
    """Create login codes, exchange them for logins, check and end logins."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._manager = LoginManager(engine.storage)

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes, whatever a login may do."""
        return self._engine.storage.writable

    def create_code(self, access: str = "write", space: Text = None) -> CreatedApiKey:
        """Create a code that logs one browser in to a space, once, within 60 seconds."""
        return self._manager.create_code(access, self._engine.space(space))

    def exchange(self, code: str) -> CreatedApiKey | None:
        """Turn a code into a login for 12 hours; give `None` if the code is used or expired."""
        return self._manager.exchange(code)

    def check(self, secret: str) -> ApiKey | None:
        """Find the login of a secret; give `None` if it is unknown, ended or expired."""
        return self._manager.check(secret)

    def end(self, token_id: str) -> bool:
        """End a login; every process refuses it from now on."""
        return self._manager.end(check.check_label("token_id", token_id))
