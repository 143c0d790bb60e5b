"""Tell other processes of this user where the server of a store listens.

A server writes its address to a private file. The file may be stale: its process may be gone, and
another program may listen on the port. So the file also has a key, and the server proves that it
knows the key before anybody relies on the address.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import urllib.parse
import urllib.request
from hashlib import sha256
from pathlib import Path

import platformdirs

from byheart.system.private_files import make_private_folder, open_private

PROOF_PATH = "/login/server"
_PATIENCE_SECONDS = 5.0
_MOST_BYTES = 1_000


def prove(key: str, challenge: str) -> str:
    """Answer a challenge: only a process that knows the key can."""
    return hmac.new(key.encode(), challenge.encode(), sha256).hexdigest()


class Announcement:
    """Announce where the server of a store listens, until `withdraw`."""

    def __init__(self, store: str) -> None:
        self._path = _file_of(store)
        self.key = secrets.token_hex(32)

    def publish(self, url: str) -> None:
        """Write the address; a server that cannot write it serves all the same."""
        written = json.dumps({"url": url, "pid": os.getpid(), "key": self.key})
        fresh = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            make_private_folder(self._path.parent)
            with open(fresh, "w", encoding="utf-8", opener=open_private) as file:
                file.write(written)
            fresh.replace(self._path)

    def withdraw(self) -> None:
        """Remove the file, unless another server has written its own address meanwhile."""
        if _read(self._path).get("key") == self.key:
            with contextlib.suppress(OSError):
                self._path.unlink()


def find_server(store: str) -> str | None:
    """Find the address of the running server of a store; `None` if there is none."""
    announced = _read(_file_of(store))
    url, key = announced.get("url", ""), announced.get("key", "")
    if not url.startswith("http://") or not key:
        return None
    challenge = secrets.token_hex(16)
    query = urllib.parse.urlencode({"challenge": challenge})
    # The environment may name a proxy, which must not see this.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}{PROOF_PATH}?{query}", timeout=_PATIENCE_SECONDS) as answer:
            proof = answer.read(_MOST_BYTES).decode("ascii", "replace")
    except (OSError, ValueError):
        return None
    return url if hmac.compare_digest(proof.encode(), prove(key, challenge).encode()) else None


def _file_of(store: str) -> Path:
    folder = platformdirs.user_state_path("byheart", appauthor=False) / "servers"
    return folder / f"{sha256(store.encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> dict[str, str]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {name: each for name, each in value.items() if isinstance(each, str)}
