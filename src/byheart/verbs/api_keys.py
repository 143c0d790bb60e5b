"""Define the verbs about keys for network access: `store.api_keys`."""

from __future__ import annotations

from byheart.model import ApiKey, CreatedApiKey
from byheart.model import checks as check
from byheart.system.forks import RefusedInChild
from byheart.upkeep.api_keys import ApiKeyManager
from byheart.verbs.engine import Engine

Text = str | None


class ApiKeyVerbs(RefusedInChild):
    """Create, list, check and revoke API keys."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._manager = ApiKeyManager(engine.storage)

    def create(
        self,
        name: str,
        access: str = "write",
        session_id: Text = None,
        ttl_days: float | None = None,
        space: Text = None,
        voice: str = "agent",
    ) -> CreatedApiKey:
        """Create an API key for network access to one space; its secret is shown only this once.

        `voice` says whose words it may save: `user` (also the user's own), `agent`, or `stranger`.
        A stranger may only add texts, which wait for review.
        """
        where = self._engine.space(space)
        return self._manager.create(name, access, where, session_id, ttl_days, voice)

    def list(self, space: Text = None) -> tuple[ApiKey, ...]:
        """List the API keys of all spaces, or of one, oldest first, including expired ones."""
        chosen = check.check_optional_label("space", space)
        return self._manager.list(chosen)

    def revoke(self, key: str) -> ApiKey:
        """Revoke an API key by its id, name or secret; every process refuses it from now on."""
        return self._manager.revoke(key)

    def check(self, secret: str) -> ApiKey | None:
        """Find the API key of a secret; give `None` if it is unknown, revoked or expired."""
        return self._manager.check(secret)
