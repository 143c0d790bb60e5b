"""Translate the errors of psycopg into ours, with a message and a hint for the user.

The SQLSTATE names the reason, in every language of the server. libpq gives none for a connection
that fails, only a text: an unknown text is shown as it is. No message has the DETAIL of the
server, which quotes the values of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg

from byheart.errors import (
    Do,
    Hint,
    Private,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    name_store,
)
from byheart.startup.late_patterns import late_pattern

OLDEST_SERVER = 14


class _Reason(NamedTuple):
    """Describe one reason: `{at}` is the location of the store, `{said}` the server's message.

    A hint may be `for_operator` alone: callers over the network cannot follow it.
    """

    kind: type[StoreError]
    message: str
    hint: str
    for_operator: bool = False


_RETRY = "try again in a few seconds; if it lasts, ask the administrator of the database"
_LOGIN_REFUSED = _Reason(
    StoreUnreachable,
    "the server of {at} refused the user or the password: {said}",
    "check the user in the address, and the password in the file that PGPASSFILE names (by "
    "default ~/.pgpass) or in PGPASSWORD",
    for_operator=True,
)
_NO_DATABASE = _Reason(
    StoreUnreachable,
    "there is no database at {at}: {said}",
    "check the name in the address, or create the database with: createdb NAME",
    for_operator=True,
)
_NO_RIGHTS = _Reason(
    StoreUnreachable,
    "the user of {at} does not have the rights that Byheart needs: {said}",
    "let the owner of the database run: GRANT CREATE, CONNECT ON DATABASE … TO …; if another user "
    "created the store, also the statements under Rights in docs/postgres.md",
    for_operator=True,
)
_NOT_ADMITTED = _Reason(
    StoreUnreachable,
    "the server of {at} does not admit this user from this machine: {said}",
    "check the user and the database in the address, and sslmode if the server takes encrypted "
    "connections alone; the administrator admits users and machines in pg_hba.conf",
    for_operator=True,
)
_READ_ONLY = _Reason(
    StoreReadOnly,
    "{at} can be read but not written: {said}",
    "if this is a replica, connect to the primary server (several hosts in the address and "
    "target_session_attrs=read-write find it); otherwise let the administrator switch "
    "default_transaction_read_only off for this user and database",
    for_operator=True,
)
_CONNECTIONS = _Reason(
    StoreBusy,
    "the server of {at} takes no more connections: {said}",
    "try again; if it lasts, stop processes that are not needed, put a pooler such as PgBouncer in "
    "front, or let the administrator raise max_connections or the limit of the user",
)
_UNAVAILABLE = _Reason(
    StoreUnreachable, "the server of {at} is starting up or shutting down: {said}", _RETRY
)
_BUSY = _Reason(
    StoreBusy,
    "other transactions kept {at} busy: {said}",
    "try again; if it lasts, look for a session that hangs in pg_stat_activity",
)
_DEADLOCK = _Reason(
    StoreBusy,
    "another transaction was in the way of this one in {at}, which wrote nothing: {said}",
    "try again; if it lasts, look for sessions that lock tables in pg_stat_activity",
)
_CANCELLED = _Reason(
    StoreBusy,
    "the server of {at} cancelled a statement: {said}",
    "try again; if it lasts, let the administrator raise statement_timeout for this user, for "
    "example with: ALTER ROLE … SET statement_timeout = '60s'",
)
_POOLED = _Reason(
    StoreBusy,
    "a pooler before {at} gave a statement to another server process: {said}",
    "try again",
)
_FULL = _Reason(
    StoreFull,
    "the disk of the server of {at} is full; this was not written",
    "free some space on the server and try again",
)
_MEMORY = _Reason(
    StoreError,
    "the server of {at} has not enough memory: {said}",
    "try again; if it lasts, let the administrator give the server more memory, or lower work_mem "
    "and max_connections",
)
_DISK = _Reason(
    StoreError,
    "the disk of the server of {at} failed: {said}",
    "try again; if it happens again, let the administrator look at the server's log and its disk",
)
_DAMAGED = _Reason(
    StoreDamaged,
    "the data of {at} is damaged: {said}",
    "let the administrator look at the server's log, and restore a backup if it is true",
)
_LOST = _Reason(
    StoreUnreachable,
    "the connection to {at} was lost; the transaction that was open wrote nothing",
    "try again",
)
_ENDED = _Reason(
    StoreUnreachable,
    "the server of {at} ended the connection; the transaction that was open wrote nothing: {said}",
    _RETRY,
)
_LOST_IN_COMMIT = _Reason(
    StoreUnreachable,
    "the connection to {at} was lost while a change was saved: it is saved either completely or "
    "not at all",
    "look whether the change is there before you make it again",
)
_NO_HOST = _Reason(
    StoreUnreachable,
    "there is no host with the name in {at}: {said}",
    "check the host in the address and the name server of this machine",
    for_operator=True,
)
_NO_SERVER = _Reason(
    StoreUnreachable,
    "no server answers at {at}: {said}",
    "check the host and port in the address, that the server runs and listens there "
    "(listen_addresses), and that no firewall is between",
    for_operator=True,
)
_TLS = _Reason(
    StoreUnreachable,
    "no encrypted connection to {at} is possible: {said}",
    "check sslmode, sslrootcert, sslcert and sslkey in the address, and that the server has TLS",
    for_operator=True,
)
_BAD_SERVICE = _Reason(
    StoreUnreachable,
    "cannot find out where {at} is: {said}",
    "check the service in the address and the file that PGSERVICEFILE names (by default "
    "~/.pg_service.conf)",
    for_operator=True,
)
_CUT_OFF = _Reason(
    StoreUnreachable,
    "cannot connect to {at}: {said}",
    "try again in a few seconds; if it lasts, check that a PostgreSQL server listens at this "
    "address, and look at its log",
    for_operator=True,
)
_NO_CONNECTION = _Reason(
    StoreUnreachable,
    "cannot connect to {at}: {said}",
    "check the address, the user, the password and the database; psql with the same address says "
    "the same",
    for_operator=True,
)

# The transaction was taken back, and may run again.
_UNDONE = (_DEADLOCK, _LOST, _ENDED, _POOLED)
# The server does not know whether a statement was completed.
_UNKNOWN_END = "40003"

_BY_SQLSTATE = {
    "08": _LOST,
    "25006": _READ_ONLY,
    "25P03": _LOST,  # idle in a transaction for too long
    "25P04": _CANCELLED,
    "26000": _POOLED,
    "28": _LOGIN_REFUSED,
    "3D000": _NO_DATABASE,
    "40": _DEADLOCK,
    "42501": _NO_RIGHTS,
    "42P05": _POOLED,
    "53100": _FULL,
    "53200": _MEMORY,
    "53300": _CONNECTIONS,
    "55P03": _BUSY,
    "57014": _CANCELLED,
    "57P01": _ENDED,
    "57P02": _ENDED,
    "57P03": _UNAVAILABLE,
    "57P04": _NO_DATABASE,
    "57P05": _LOST,
    "58030": _DISK,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}
# Texts of libpq, of psycopg, of an English server and of PgBouncer, for a failed connection.
_BY_TEXT = [
    (r"could not translate host name", _NO_HOST),
    (r"authentication failed|no password supplied", _LOGIN_REFUSED),
    (r"definition of service|service file", _BAD_SERVICE),
    (r'database "[^\n]*" does not exist|no such database', _NO_DATABASE),
    (r"permission denied for database", _NO_RIGHTS),
    (r'role "[^\n]*" does not exist|not permitted to log in|no pg_hba\.conf entry', _NOT_ADMITTED),
    (r"too many (?:clients|connections)|connection slots|no more connections", _CONNECTIONS),
    (r"database system is|not (?:yet )?accepting connections", _UNAVAILABLE),
    (r"closed the connection unexpectedly|reset by peer", _CUT_OFF),
    (r"session is read-only|server is in hot standby mode", _READ_ONLY),
    (r"\bSSL\b|certificate|\bTLS\b", _TLS),
    (r"Is the server running|timeout expired|refused|No route|unreachable", _NO_SERVER),
]
_CAUSES = [(late_pattern(text), reason) for text, reason in _BY_TEXT]
_PREFIX = late_pattern(r"^connection (?:failed|is bad): ")
# The location names the server already, unless there are several, each with a line of its own.
_SERVER = late_pattern(r"^connection to server (?:at|on socket) .{0,200}? failed: (?:FATAL:  )?")


@contextmanager
def translating(location: str, *, committing: bool = False) -> Iterator[None]:
    """Raise errors of psycopg as ours; `committing` means that a commit may have succeeded."""
    try:
        yield
    except psycopg.Error as error:
        # A traceback with the cause would show the DETAIL, which quotes values of rows.
        raise explain(error, location, committing=committing) from None


def explain(error: psycopg.Error, location: str, *, committing: bool = False) -> StoreError:
    """Translate an error of psycopg into one of ours."""
    reason = _find_reason(error)
    if committing and reason in (_LOST, _ENDED):
        reason = _LOST_IN_COMMIT
    if reason is None:
        name, said = type(error).__name__, _quote(error)
        code = f" ({error.sqlstate})" if error.sqlstate else ""
        return StoreError(
            Hint(
                name_store(location),
                f" failed: {name}{code}",
                Private(f": {said}" if said else "", ""),
            ),
            Hint("look for the reason with: ", Do("admin.doctor")),
        )
    message = _fill(reason.message, location, _quote(error) or type(error).__name__)
    hint = for_operator(reason.hint) if reason.for_operator else reason.hint
    explained = reason.kind(message, hint)
    explained.undone = reason in _UNDONE and error.sqlstate != _UNKNOWN_END
    return explained


def _fill(message: str, location: str, said: str) -> Hint:
    """Fill in a message; the server's words may name hosts, and are for the operator."""
    text, _, has_said = message.partition(": {said}")
    assert not has_said, "the server's words come last"
    before, _, after = text.partition("{at}")
    quoted = Private(f": {said}" if text != message else "", "")
    return Hint(before, name_store(location), after, quoted)


def for_operator(hint: str) -> Hint:
    """Hold a hint that only the operator of a server can follow."""
    return Hint(Private(hint, "ask the operator of the server; its log has the reason"))


def explain_rights(error: psycopg.Error, location: str, hint: str | None) -> StoreError:
    """Translate the refusal of a right, with the statements that grant what is missing."""
    explained = explain(error, location)
    if hint is None:
        return explained
    return type(explained)(explained.message, for_operator(hint))


def explain_wait(location: str, seconds: float) -> StoreError:
    """Make the error for a process that uses all its connections."""
    return StoreBusy(
        Hint(
            "all connections of this process to ",
            name_store(location),
            f" were in use for {seconds:g} seconds",
        ),
        "try again; if it lasts, make fewer calls at the same time",
    )


def explain_closed(location: str) -> StoreError:
    """Make the error for a store that was closed."""
    return StoreError(Hint(name_store(location), " is closed"), "open it again")


def check_server(connection: psycopg.Connection[Any], location: str) -> None:
    """Refuse a server that is too old, and a database that cannot hold every text."""
    version = connection.info.server_version
    encoding = connection.info.parameter_status("server_encoding")
    check_version(version, location)
    if encoding != "UTF8":
        raise StoreUnreachable(
            f"the database at {location} has the encoding {encoding}, which cannot hold every text",
            "create another one with: createdb --encoding=UTF8 --template=template0 NAME",
        )


def check_version(version: int, location: str) -> None:
    """Refuse a server that is too old; `version` is a number of libpq, such as 140005."""
    major, minor = divmod(version, 10_000)
    if major < OLDEST_SERVER:
        raise StoreUnreachable(
            f"the server of {location} is PostgreSQL {major}.{minor}, which is too old",
            f"use PostgreSQL {OLDEST_SERVER} or later",
        )


def _find_reason(error: psycopg.Error) -> _Reason | None:
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return _NO_SERVER
    if error.sqlstate:
        return _BY_SQLSTATE.get(error.sqlstate) or _BY_SQLSTATE.get(error.sqlstate[:2])
    if not isinstance(error, psycopg.OperationalError):
        return None
    text = _quote(error, lines=2)
    if error.pgconn is None:  # not from an attempt to connect
        return _NO_HOST if text.startswith("failed to resolve host") else _LOST
    for cause, reason in _CAUSES:
        if cause.search(text):
            return reason
    return _LOGIN_REFUSED if error.pgconn.needs_password else _NO_CONNECTION


def _quote(error: psycopg.Error, lines: int = 1) -> str:
    """Give the part of an error's text that quotes no value of a row."""
    if error.sqlstate:
        # Messages about a value (class 22) quote the value.
        return "" if error.sqlstate.startswith("22") else error.diag.message_primary or ""
    said = _PREFIX.sub("", str(error)).splitlines()
    if sum(bool(_SERVER.match(line)) for line in said) == 1:
        said[0] = _SERVER.sub("", said[0])
    return "\n".join(said[:lines])
