"""The doctor: is everything as it should be, and what is to be done where it is not?"""

from __future__ import annotations

from collections.abc import Callable

from byheart.contracts import Storage
from byheart.errors import ByheartError
from byheart.model import Finding


def examine(
    storage: Storage, unavailable: str | None, embed_pending: Callable[[], int] | None
) -> tuple[Finding, ...]:
    """Check the store, the embedder, and the vectors still to be made (made now, if asked)."""
    findings = storage.examine()
    findings.append(
        Finding(
            "embedding",
            unavailable is None,
            unavailable or "in order",
            "" if unavailable is None else "look at: byheart model status, byheart config list",
        )
    )
    findings.append(_pending(storage, embed_pending))
    return tuple(findings)


def _pending(storage: Storage, embed_pending: Callable[[], int] | None) -> Finding:
    name = "vectors complete"
    made = 0
    if embed_pending is not None:
        try:
            made = embed_pending()
        except ByheartError as error:
            return Finding(name, False, error.message, error.hint)
    waiting = storage.count_pending()
    if waiting:
        return Finding(
            name, False, f"vectors are missing for {waiting:,} chunks", "run: byheart doctor --fix"
        )
    message = f"made {made:,} that were missing" if made else "in order"
    return Finding(name, True, message, fixed=made > 0)
