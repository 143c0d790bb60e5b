"""Check the fields of a save, look for secrets, and derive the fields that were not given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from byheart.contracts import DedupKey
from byheart.errors import InvalidInput
from byheart.language.detection import UNDETERMINED, detect_language
from byheart.model import Origin, SaveResult, usual_origin
from byheart.model import checks as check
from byheart.model.fields import BY_NAME, LOG_FIELDS, NOTICED, SAVE_FIELDS
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.system import clock


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """Hold the checked fields of a save; `None` stands for a field that was not given."""

    content: str
    content_hash: str
    space: str
    at: datetime
    kind: str = "note"
    title: str | None = None
    summary: str | None = None
    source: str = "manual"
    session_id: str | None = None
    agent_id: str | None = None
    session_iter: int | None = None
    task_code: str | None = None
    path: str | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] | None = None
    language: str | None = None
    importance: float | None = None
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # A memory that comes back from an export keeps its id and its age.
    memory_id: str | None = None
    created_at: datetime | None = None
    # The time that decides its place in the session, if that is not `created_at`.
    placed_at: datetime | None = None
    role: str | None = None
    client_id: str | None = None
    origin: Origin | None = None
    # Whether it may enter a prompt unasked; by default, its origin and the settings decide.
    trusted: bool | None = None
    # Text that was extracted from a file no longer has the format that its path names.
    format: str | None = None
    who: str | None = None
    # The spans of the text that only repeat what a prompt contained.
    echoes: tuple[tuple[int, int], ...] = ()
    # How many secrets of each kind were found in it, and whether they were replaced.
    secrets_found: Mapping[str, int] = field(default_factory=dict)
    secrets_redacted: bool = False

    @property
    def key(self) -> DedupKey:
        """Give the key by which a save finds the same memory again."""
        return DedupKey(
            self.space,
            self.session_id,
            self.kind,
            self.content_hash,
            self.role is not None,
            self.client_id,
        )

    @property
    def own_words(self) -> str:
        """Give the text without the parts that only repeat a prompt."""
        parts, at = [], 0
        for start, end in self.echoes:
            parts.append(self.content[at:start])
            at = end
        return "".join((*parts, self.content[at:]))

    @property
    def whose(self) -> Origin:
        """Say whose words the text has."""
        return self.origin or usual_origin(
            self.kind, self.role, self.path, self.agent_id, self.client_id
        )


# The fields that are checked by themselves; the others need the settings or one another.
_CHECKED_ALONE = tuple(
    field
    for field in map(BY_NAME.__getitem__, SAVE_FIELDS)
    if field.check is not None and field.name not in ("expires_at", "space")
)
# The fields that a memory takes from the request as they are; the others are derived.
TAKEN_OVER = tuple(
    name
    for name in dict.fromkeys((*SAVE_FIELDS, *LOG_FIELDS))
    if BY_NAME[name].owner == "memory"
    and name not in (*NOTICED, "created_at", "expires_at", "origin")
)


def check_request(
    given: Mapping[str, Any], settings: Settings, *, blank: bool = False
) -> SaveRequest:
    """Accept the fields of `save`, or refuse them before anything is written."""
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"an item must be an object with the fields of save, not {type(given).__name__}",
            'give {"content": "…"}',
        )
    check.check_names(given, SAVE_FIELDS, "field")
    at = clock.now()
    content = check.check_text(
        "content", given.get("content"), longest=settings.max_content_bytes, blank=blank
    )
    said = {
        field.name: field.check(field.name, given.get(field.name, field.default))
        for field in _CHECKED_ALONE
        if field.check is not None
    }
    check.check_validity(said["valid_from"], said["valid_until"])
    space = settings.space if given.get("space") is None else given["space"]
    return SaveRequest(
        content=content,
        content_hash=sha256(content.encode()).hexdigest(),
        expires_at=check.check_expiry(given.get("ttl_days"), given.get("expires_at"), at),
        space=check.check_label("space", space),
        at=at,
        **said,
    )


_TEXTS = ("content", "title", "summary")


def look_for_secrets(
    request: SaveRequest, settings: Settings, names: Sequence[str] = _TEXTS
) -> SaveRequest:
    """Note the secrets of what is saved on purpose; replace them if the settings say so.

    `names` are the fields to look at: an update leaves alone what it was not given.
    """
    # Imported here, because only saves need the patterns.
    from byheart.extraction.secrets import redact

    texts = {name: getattr(request, name) for name in _TEXTS}
    found: Counter[str] = Counter()
    for name in _TEXTS:
        if name in names and texts[name]:
            redacted = redact(texts[name])
            texts[name] = redacted.text
            found.update(redacted.found)
    if not found:
        return request
    request = replace(request, secrets_found=dict(found))
    if settings.redact_secrets != "all":
        return request
    return replace(
        request,
        content=texts["content"],
        content_hash=sha256(texts["content"].encode()).hexdigest(),
        title=texts["title"],
        summary=texts["summary"],
        secrets_redacted=True,
    )


def check_saved(given: Mapping[str, Any], settings: Settings) -> SaveRequest:
    """Accept the fields of `save`, and look for secrets in them."""
    return look_for_secrets(check_request(given, settings), settings)


def tell_secrets(request: SaveRequest, result: SaveResult) -> SaveResult:
    """Add the secrets that were found in a text to its result."""
    if not request.secrets_found:
        return result
    return replace(
        result,
        secrets_found=request.secrets_found,
        secrets_redacted=request.secrets_redacted,
    )


def notice(request: SaveRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Keep the given fields of a text, derive the others, and name the derived ones."""
    # Imported here, so that a process that only searches does not wait for these modules.
    from byheart.extraction import extract_entities, score_importance, summarize

    noticed: dict[str, Any] = {name: getattr(request, name) for name in NOTICED}
    if request.language == UNDETERMINED:
        noticed["language"] = None  # the caller does not know it
    derived = tuple(name for name, value in noticed.items() if value is None)
    if request.summary is None:
        noticed["summary"] = summarize(request.content)
    if request.entities is None:
        noticed["entities"] = extract_entities(request.content)
    if noticed["language"] is None:
        noticed["language"] = detect_language(request.content)
    if request.importance is None:
        noticed["importance"] = score_importance(
            request.content,
            kind=request.kind,
            entities=noticed["entities"],
            # Being logged does not make a turn important.
            has_source=request.source != "manual" and request.role is None,
            has_metadata=bool(request.metadata),
        )
    return noticed, derived
