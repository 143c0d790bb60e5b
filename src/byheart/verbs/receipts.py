"""Define the verbs about what was put into prompts: `store.receipts`."""

from __future__ import annotations

from byheart.conversation.receipts import kept_since, read_receipt
from byheart.errors import Do, Hint, NotFound
from byheart.model import ReceiptPage, StoredReceipt
from byheart.model import checks as check
from byheart.model.ids import parse_text_id
from byheart.system import clock
from byheart.system.forks import RefusedInChild
from byheart.verbs.engine import Engine

Text = str | None


class ReceiptVerbs(RefusedInChild):
    """List and read the receipts of `context` and `remind`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept_days = engine.settings.receipt_days

    def get(self, receipt_id: str, session_id: Text = None, space: Text = None) -> StoredReceipt:
        """Read a receipt: what went into a prompt, what was left out, and why."""
        name = check.check_label("receipt_id", receipt_id)
        session = check.check_optional_label("session_id", session_id)
        where = self._engine.space(space)
        self._engine.storage.settle()
        since = kept_since(clock.now(), self._kept_days)
        with self._engine.storage.reading(where) as reader:
            row = reader.receipts.get(name, where, since)
            if row is None or session not in (None, row.summary.session_id):
                raise NotFound(
                    f"there is no receipt {name!r} in this space, or no longer",
                    Hint("see which there are with: ", Do("receipts.list")),
                )
            stored = read_receipt(row, ())
            named = {parse_text_id(each.memory_id)[0] for each in stored.receipt.items}
            shown = reader.views.briefs(sorted(named), where)
        visible = {each.memory_id for each in shown if each.forgotten_at is None}
        return read_receipt(row, named - visible)

    def list(
        self,
        session_id: Text = None,
        memory_id: Text = None,
        limit: int = 20,
        offset: int = 0,
        space: Text = None,
    ) -> ReceiptPage:
        """List receipts, the latest first: of a session, or of contexts that a memory was in."""
        session = check.check_optional_label("session_id", session_id)
        memory = check.check_optional_label("memory_id", memory_id)
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        where = self._engine.space(space)
        self._engine.storage.settle()
        since = kept_since(clock.now(), self._kept_days)
        with self._engine.storage.reading(where) as reader:
            found, total = reader.receipts.find(where, since, session, memory, limit, offset)
        return ReceiptPage(tuple(found), total, offset + len(found) < total, self._kept_days)
