"""Convert items from other programs' files to the requests of `log` and `save`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from byheart.contracts import DedupKey
from byheart.conversation.capture import (
    Captured,
    capture,
    capture_title,
    is_trusted,
    is_wanted,
    name_turn,
)
from byheart.memory.save_requests import SaveRequest, check_request
from byheart.model.checks import check_moment
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.transfer.foreign import Format, Piece
from byheart.transfer.foreign.import_items import label

# Checks the fields of `log`.
CheckTurn = Callable[[Mapping[str, Any], Settings], SaveRequest]


@dataclass(slots=True)
class Tally:
    """Count the items found, and what was done with them."""

    turns: int = 0
    memories: int = 0
    redacted: int = 0
    shortened: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    sessions: set[tuple[str, str]] = field(default_factory=set)
    # The redactions of texts that may turn out to be known already.
    captured: dict[DedupKey, Captured] = field(default_factory=dict)

    def count_captured(self, new: Iterable[DedupKey]) -> None:
        """Count the redactions and cuts of texts that are new."""
        for key in new:
            if (kept := self.captured.pop(key, None)) is not None:
                self.redacted += kept.secrets
                self.shortened += kept.shortened


class ItemConverter:
    """Build requests from a file's pieces, with stable names and, if captured, without secrets."""

    def __init__(
        self,
        format_: Format,
        settings: Settings,
        check_turn: CheckTurn,
        tally: Tally | None = None,
        said: Mapping[str, int] | None = None,
        latest: Mapping[str, str] | None = None,
    ) -> None:
        self._format = format_
        self._settings = settings
        self._check_turn = check_turn
        # How often each text occurred in the part of the file that was read before.
        self.said: Counter[str] = Counter(said)
        # The latest time of a turn in each session so far: if the clock was set back while the file
        # was written, the order of the turns must not change.
        self._latest = {
            session_id: datetime.fromisoformat(at) for session_id, at in (latest or {}).items()
        }
        self.tally = Tally() if tally is None else tally

    @property
    def latest(self) -> dict[str, str]:
        """Return the latest time of each session so far, in a form that a bookmark can store."""
        return {session_id: at.isoformat() for session_id, at in self._latest.items()}

    def convert(self, piece: Piece) -> SaveRequest | None:
        """Return the request for a piece, or None if nothing is to be kept."""
        if not self._format.is_captured:
            return self._request(piece)
        if piece.tool is not None and not is_wanted(piece.tool, self._settings):
            self.leave_out(f"output of {piece.tool}")
            return None
        kept = capture(
            str(piece.fields["content"]), self._settings, is_output=piece.tool is not None
        )
        fields = {**piece.fields, "content": kept.text}
        if piece.tool is not None:
            fields["trusted"] = is_trusted(piece.tool, self._settings)
        if "title" in fields:  # a command line may contain a password
            fields["title"] = capture_title(fields["title"], self._settings)
        request = self._request(replace(piece, fields=fields))
        self.tally.captured.setdefault(request.key, kept)
        return request

    def key_of_output(self, piece: Piece) -> DedupKey | None:
        """Return the key under which a wanted tool output will be stored, before processing it."""
        if piece.tool is None or piece.name is None or not is_wanted(piece.tool, self._settings):
            return None
        session_id = piece.fields.get("session_id")
        return DedupKey(
            self._settings.space, session_id, "", "", is_turn=True, client_id=piece.name
        )

    def pass_over(self, key: DedupKey) -> None:
        """Count a turn that is already stored."""
        self.tally.turns += 1
        self.tally.sessions.add((key.space, key.session_id or ""))

    def leave_out(self, what: str) -> None:
        """Count an item that is not kept, under the name its file gives it."""
        self.tally.left_out[label(what) or "part"] += 1

    def _request(self, piece: Piece) -> SaveRequest:
        return self._turn(piece) if piece.is_turn else self._memory(piece)

    def _turn(self, piece: Piece) -> SaveRequest:
        request = self._check_turn(piece.fields, self._settings)
        assert request.role is not None, "a turn has one"
        assert request.session_id is not None, "a turn belongs to one"
        name = piece.name
        if name is None:
            words = f"{request.session_id} {name_turn(request.role, request.content, 0)}"
            known = blake2b(words.encode(errors="replace"), digest_size=8).hexdigest()
            name = name_turn(request.role, request.content, self.said[known])
            self.said[known] += 1
        self.tally.turns += 1
        self.tally.sessions.add((request.space, request.session_id))
        return self._in_order(replace(request, client_id=name, source=self._format.name))

    def _in_order(self, turn: SaveRequest) -> SaveRequest:
        """Keep a turn after those that precede it in the file, whatever its time is."""
        assert turn.session_id is not None, "a turn belongs to one"
        latest = self._latest.get(turn.session_id)
        created_at = turn.created_at or latest
        if created_at is None:
            return turn
        placed_at = created_at if latest is None else max(created_at, latest)
        self._latest[turn.session_id] = placed_at
        return replace(turn, created_at=created_at, placed_at=placed_at)

    def _memory(self, piece: Piece) -> SaveRequest:
        fields = {"source": self._format.name, **piece.fields}
        request = check_request(fields, self._settings)
        self.tally.memories += 1
        return replace(
            request,
            client_id=piece.name,
            created_at=check_moment("created_at", piece.created_at),
            origin=request.origin or "import",
        )
