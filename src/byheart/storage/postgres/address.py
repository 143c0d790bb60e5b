"""Parse the address of a PostgreSQL database, and name the database without secrets.

libpq reads the address, as it does for `psql`: several hosts, TLS parameters, services, password
files and the environment. `schema` and `parts` are parameters of Byheart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from urllib.parse import quote, unquote

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from byheart.errors import StoreUnreachable
from byheart.model.address_secrets import hide_parameters
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

DEFAULT_SCHEMA = "byheart"
DEFAULT_PARTS = 16
MOST_PARTS = 64
# A host that does not answer must not hold a caller up for minutes.
_CONNECT_SECONDS = 10
# A host that vanished is noticed after a minute. By default a system asks after two hours, and
# until then the call waits.
_KEEPALIVES = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}

_SCHEMES = ("postgresql://", "postgres://")
# The schemas of the parts have a number behind this name.
_SCHEMA = late_pattern(r"(?!pg_)[a-z_][a-z0-9_]{0,39}", re.ASCII)
_PART_SCHEMA = late_pattern(r".*_[0-9]{2}", re.ASCII)
# PostgreSQL takes these words for a part of a statement (its appendix C: reserved, and reserved
# except as the name of a function or type).
_SQL_WORDS = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check
    collate collation column concurrently constraint create cross current_catalog current_date
    current_role current_schema current_time current_timestamp current_user default deferrable desc
    distinct do else end except false fetch for foreign freeze from full grant group having ilike in
    initially inner intersect into is isnull join lateral leading left like limit localtime
    localtimestamp natural not notnull null offset on only or order outer overlaps placing primary
    references returning right select session_user similar some symmetric system_user table
    tablesample then to trailing true union unique user using variadic verbose when where window
    with"""
_RESERVED = frozenset(_SQL_WORDS.split())
_USER_INFO = late_pattern(r"[^@/]*@")
# Name the parameters that may be shown: a later libpq may have secrets that are unknown here.
_SHOWN = ("hostaddr", "service", "sslmode", "target_session_attrs")
_EXAMPLE = "for example postgresql://user@host:5432/database?schema=byheart"
_ENCODE = (
    "write these characters in the user name and the password as %40 (@), %2F (/), %3A (:), "
    "%25 (%) and %20 (space); better, leave the password out and keep it in the file that "
    "PGPASSFILE names"
)


@dataclass(frozen=True, slots=True)
class Address:
    """Name a database, and the schema in it that holds a store.

    `conninfo` may hold a password, and is for libpq alone. `location` has no secrets. `parts` is
    the number of partitions that a new store gets.
    """

    conninfo: str = field(repr=False)
    location: str
    schema: str = DEFAULT_SCHEMA
    parts: int = DEFAULT_PARTS


def is_postgres_address(text: str) -> bool:
    """Tell whether a text is the address of a PostgreSQL database."""
    return text.startswith(_SCHEMES)


def parse_address(text: str) -> Address:
    """Parse an address; raise `StoreUnreachable` if it is not valid."""
    if not is_postgres_address(text):
        raise StoreUnreachable("this is not the address of a PostgreSQL database", _EXAMPLE)
    if "\0" in text:  # the end of the text for libpq
        raise StoreUnreachable("the address of the database has a NUL character", _EXAMPLE)
    rest = text.partition("://")[2]
    _check_user_info(rest)
    rest, own = _take_own_parameters(rest)
    given = _parse(rest)
    _check_ports(given.get("port", ""))
    schema = _check_schema(own.get("schema", DEFAULT_SCHEMA))
    parts = _check_parts(own.get("parts", str(DEFAULT_PARTS)))
    return Address(_complete(given), _locate(given, schema), schema, parts)


def _check_user_info(rest: str) -> None:
    """Refuse an unencoded `@` or `/` in a password, which would become part of the host."""
    target = rest[_user_info_end(rest) :].partition("?")[0]
    if "@" in target:
        raise StoreUnreachable("the address of the database has an @ in a wrong place", _ENCODE)


def _user_info_end(rest: str) -> int:
    """Find the end of the user name and the password, as libpq does."""
    found = _USER_INFO.match(rest)
    return found.end() if found else 0


def _take_own_parameters(rest: str) -> tuple[str, dict[str, str]]:
    """Divide an address into one for libpq and the parameters of Byheart."""
    end = _user_info_end(rest)
    target, _, query = rest[end:].partition("?")
    own: dict[str, str] = {}
    others: list[str] = []
    for each in filter(None, query.split("&")):
        name, _, value = each.partition("=")
        if name in ("schema", "parts"):
            own[name] = unquote(value)
        else:
            others.append(each)
    return rest[:end] + target + ("?" if others else "") + "&".join(others), own


def _parse(rest: str) -> dict[str, str]:
    try:
        return _to_dict(rest)
    except (psycopg.ProgrammingError, ValueError):
        pass  # an error that is raised here must not carry this one, which may quote a password
    try:
        _to_dict(hide_parameters(rest[_user_info_end(rest) :], "secret"))
    except (psycopg.ProgrammingError, ValueError) as error:
        reason = str(error).strip()
    else:
        raise StoreUnreachable(
            "the user name, the password or another secret in the address is not encoded", _ENCODE
        )
    raise StoreUnreachable(
        f"the address of the database is not valid: {reason}",
        f"{_EXAMPLE}; besides schema and parts, the parameters are those of libpq",
    )


def _to_dict(rest: str) -> dict[str, str]:
    given = conninfo_to_dict(f"postgresql://{rest}")
    return {name: str(value) for name, value in given.items() if value is not None}


def _check_ports(ports: str) -> None:
    for port in filter(None, ports.split(",")):
        if not (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= 65_535):
            # An unencoded password can be mistaken for a port: do not show it.
            raise StoreUnreachable(
                "the port in the address of the database is not a number from 1 to 65535",
                f"{_EXAMPLE}; {_ENCODE}",
            )


def _check_schema(schema: str) -> str:
    if not _SCHEMA.fullmatch(schema) or schema == "information_schema":
        hint = (
            "choose a name of at most 40 characters: lower-case letters a-z, digits and _, "
            "beginning with a letter or _, and not with pg_"
        )
    elif _PART_SCHEMA.fullmatch(schema):
        hint = "choose a name that does not end in _ and two digits: the parts of stores have these"
    elif schema in _RESERVED:
        hint = f"choose another name, such as {schema}_memory: this one is a word of SQL"
    else:
        return schema
    raise StoreUnreachable(f"{schema[:60]!r} cannot be the schema of a store", hint)


def _check_parts(parts: str) -> int:
    if parts.isascii() and parts.isdigit() and 1 <= int(parts[:9]) <= MOST_PARTS:
        return int(parts)
    raise StoreUnreachable(
        f"{parts[:60]!r} cannot be the number of parts of a store",
        f"choose a number from 1 to {MOST_PARTS}; the default is {DEFAULT_PARTS}",
    )


def _defaults() -> dict[str, str]:
    """Give the values that libpq takes from the environment, or has itself."""
    return {
        each.keyword.decode(): each.val.decode(errors="replace")
        for each in pq.Conninfo.get_defaults()
        if each.val
    }


def _complete(given: Mapping[str, str]) -> str:
    """Make the text for libpq, with the defaults of Byheart."""
    added = {"fallback_application_name": "byheart"}
    # A service file may name a time limit, which a value here would override.
    if "service" not in given:
        added.update(_KEEPALIVES)
        if "connect_timeout" not in _defaults():
            added["connect_timeout"] = str(_CONNECT_SECONDS)
    return make_conninfo(**{**added, **given})


def _locate(given: Mapping[str, str], schema: str) -> str:
    """Spell an address that can be shown to everybody."""
    known = dict(given)
    defaults = _defaults()
    if "service" not in known | defaults:  # the service file names the database
        known = {name: defaults[name] for name in ("host", "dbname") if name in defaults} | known
    host, port = known.get("host", ""), known.get("port", "")
    shown = {name: known[name] for name in _SHOWN if known.get(name)}
    authority = ""
    if host.startswith(("/", "@")):  # a folder of sockets
        shown = {"host": host, **({"port": port} if port else {}), **shown}
    else:
        hosts, ports = host.split(","), port.split(",")
        ports *= len(hosts) if len(ports) == 1 else 1
        authority = ",".join(map(_spell_host, hosts, ports))
    if schema != DEFAULT_SCHEMA:
        shown["schema"] = schema
    user = f"{quote(known['user'], safe='')}@" if known.get("user") else ""
    query = "&".join(f"{name}={quote(value, safe='/:,')}" for name, value in shown.items())
    database = quote(known.get("dbname", ""), safe="")
    return f"postgresql://{user}{authority}/{database}" + (f"?{query}" if query else "")


def _spell_host(host: str, port: str) -> str:
    host = f"[{host}]" if ":" in host else quote(host, safe="")
    return f"{host}:{port}" if port else host
