"""Write listings of memories as SQL."""

from __future__ import annotations

from byheart.contracts import Listing, ListingPlace
from byheart.contracts.reader import Order
from byheart.model.times import to_micros
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.filters import labelled, where_clause

_ORDERS = {
    "newest": "m.created_at DESC, m.memory_no DESC",
    "iteration": "m.session_iter DESC NULLS LAST, m.created_at DESC, m.memory_no DESC",
    "last turn": "m.session_iter DESC NULLS LAST, m.turn_no DESC, m.memory_no DESC",
    "oldest": "m.created_at, m.memory_no",
    "said": "m.turn_no, m.memory_no",
    "said last": "m.turn_no DESC, m.memory_no DESC",
    "pinned": "m.pinned_at, m.memory_id",
    "waiting": "m.untrusted_at, m.memory_no",
    "expiring": "m.expires_at, m.memory_no",
    "untouched": "CASE WHEN ifnull(m.accessed_at, 0) > m.updated_at THEN m.accessed_at "
    "ELSE m.updated_at END, m.memory_no",
}


# If at most this many memories have the labels, sort all of them for a page. If more have them,
# reading the space in order finds a page sooner.
_FEW_LABELLED = 1_000


def is_of_few(connection: Connection, listing: Listing) -> bool:
    """Say whether few memories have the labels that a listing asks for; count no more than needed.

    SQLite does not know, and would go through the whole space.
    """
    counted = (
        connection.get(
            f"SELECT count(*) FROM (SELECT 1 FROM ({query}) AS labelled LIMIT ?) AS first",
            [*values, _FEW_LABELLED + 1],
        )
        for query, values in labelled(listing.where)
    )
    return any(count <= _FEW_LABELLED for count in counted)


def select(listing: Listing, now: int, *, by_labels: bool = False) -> tuple[str, list[object], str]:
    """Give the query for the rows of a listing by number, its values, and the order to show.

    The numbers are sorted and cut before any text is read; otherwise SQLite would load every text
    to sort the rows.
    """
    clause, values = source(listing, now, by_labels=by_labels)
    if listing.after is not None:
        condition, place = _behind(listing.order, listing.after)
        clause, values = f"{clause} AND {condition}", [*values, *place]
    query = f"SELECT m.memory_no {clause}"
    if listing.limit is not None:
        query += f" ORDER BY {_ORDERS[listing.order]} LIMIT ? OFFSET ?"
        values += [listing.limit, listing.offset]
    # The last turns are chosen from the end, and shown as they were said.
    shown = "said" if listing.order == "said last" else listing.order
    return query, values, f"ORDER BY {_ORDERS[shown]}"


def _behind(order: Order, place: ListingPlace) -> tuple[str, list[object]]:
    """Leave out all memories up to a place, which an index finds without reading them."""
    created_at = to_micros(place.created_at)
    older = "(m.created_at, m.memory_no) < (?, ?)"
    values: list[object] = [created_at, place.memory_no]
    if order == "newest":
        return older, values
    assert order == "iteration", f"no place is known in the order {order}"
    if place.session_iter is None:
        return f"m.session_iter IS NULL AND {older}", values
    return (
        f"(m.session_iter < ? OR m.session_iter IS NULL OR m.session_iter = ? AND {older})",
        [place.session_iter, place.session_iter, *values],
    )


def source(listing: Listing, now: int, *, by_labels: bool = False) -> tuple[str, list[object]]:
    """Give the rows that a listing chooses from: the rest of a query, and its values.

    With `by_labels`, SQLite begins with the labels that are asked for, and reads their memories
    alone.
    """
    clause, values = where_clause(listing.where, now)
    table = "memories m"
    if by_labels and labelled(listing.where):
        table += " NOT INDEXED"
    elif listing.order == "pinned":
        # SQLite would scan the whole space instead.
        table += " INDEXED BY memories_by_pin"
    if listing.order == "pinned":
        clause += " AND m.pinned_at IS NOT NULL"
    if listing.roles is not None:
        clause += " AND m.role IS NOT NULL"
    if listing.roles:
        clause += f" AND m.role IN ({', '.join('?' * len(listing.roles))})"
        values += listing.roles
    if listing.task_code is not None:
        clause += " AND (m.task_code = ? OR m.task_code IS NULL)"
        values.append(listing.task_code)
    if listing.untouched_since is not None:
        clause += " AND m.updated_at < ? AND ifnull(m.accessed_at, 0) < ?"
        values += [to_micros(listing.untouched_since)] * 2
    if listing.expires_before is not None:
        clause += " AND m.expires_at < ?"
        values.append(to_micros(listing.expires_before))
    if listing.exclude_turns:
        clause += " AND m.role IS NULL"
    if listing.exclude_pinned:
        clause += " AND m.pinned_at IS NULL"
    if listing.exclude_kinds:
        clause += f" AND m.kind NOT IN ({', '.join('?' * len(listing.exclude_kinds))})"
        values += listing.exclude_kinds
    if listing.not_kept_as is not None:
        clause += (
            " AND NOT EXISTS (SELECT 1 FROM kept_items k WHERE k.space = m.space "
            "AND k.item_id = CAST(? AS TEXT) || m.memory_id || '@' || m.version)"
        )
        values.append(f"{listing.not_kept_as}:")
    return f"FROM {table} WHERE {clause}", values
