"""Addresses of PostgreSQL databases are read as libpq reads them, and shown without secrets."""

from __future__ import annotations

import pickle
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from byheart.errors import StoreUnreachable
from byheart.storage.postgres.address import Address, is_postgres_address, parse_address


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE", "PGCONNECT_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)


def parameters(address: Address) -> dict[str, object]:
    return dict(conninfo_to_dict(address.conninfo))


def test_the_parameters_of_byheart_are_taken_out() -> None:
    address = parse_address(
        "postgres://ada:s%40crt@db.example:6543/memory?schema=team_1&sslmode=require&parts=4"
    )
    assert (address.schema, address.parts) == ("team_1", 4)
    assert parameters(address) == {
        "user": "ada",
        "password": "s@crt",
        "host": "db.example",
        "port": "6543",
        "dbname": "memory",
        "sslmode": "require",
        "fallback_application_name": "byheart",
        "connect_timeout": "10",
        "keepalives_idle": "30",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        "tcp_user_timeout": "60000",
    }


def test_the_schema_and_the_number_of_parts_have_defaults() -> None:
    address = parse_address("postgresql://db.example/memory")
    assert (address.schema, address.parts) == ("byheart", 16)


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("postgres://ada:secret@db.example/m", "postgresql://ada@db.example/m"),
        ("postgresql://a%40b:se?cret@h/m", "postgresql://a%40b@h/m"),
        ("postgresql://ada:secret@h1:1,h2:2/m", "postgresql://ada@h1:1,h2:2/m"),
        ("postgresql://h1,h2/m?port=7", "postgresql://h1:7,h2:7/m"),
        ("postgresql://ada@[::1]:5/m", "postgresql://ada@[::1]:5/m"),
        (
            "postgresql://ada@/m?host=/run/pg&port=7&password=secret",
            "postgresql://ada@/m?host=/run/pg&port=7",
        ),
        (
            "postgresql://h/m?sslmode=verify-full&sslpassword=secret&sslkey=/k&oauth_client_secret="
            "secret&scram_client_key=secret&options=-c%20my.key%3Dsecret&schema=other",
            "postgresql://h/m?sslmode=verify-full&schema=other",
        ),
        ("postgresql:///?service=team&schema=byheart", "postgresql:///?service=team"),
    ],
)
def test_a_location_has_no_secret(text: str, location: str) -> None:
    address = parse_address(text)
    assert address.location == location
    assert "secret" not in repr(address)
    assert "secret" not in str(address)
    assert parse_address(address.location).location == location


def test_an_address_survives_pickling() -> None:
    address = parse_address("postgresql://ada:secret@h/m")
    assert pickle.loads(pickle.dumps(address)) == address


def test_a_location_names_the_host_and_the_database_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGHOST", "far.example")
    monkeypatch.setenv("PGDATABASE", "memory")
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
    assert parse_address("postgresql://").location == "postgresql://far.example/memory"
    assert parse_address("postgresql://h/m").location == "postgresql://h/m"
    assert parse_address("postgresql:///?service=team").location == "postgresql:///?service=team"
    assert "connect_timeout" not in parameters(parse_address("postgresql://"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("postgresql://ada:se@hush@h/m", "an @ in a wrong place"),
        ("postgresql://ada:se/hush@h/m", "an @ in a wrong place"),
        ("postgresql://ada:12/hush@h/m", "an @ in a wrong place"),
        ("postgresql://ada:hush/x", "not a number from 1 to 65535"),
        ("postgresql://h:65536/m", "not a number from 1 to 65535"),
        ("postgresql://h:1,h2:0/m", "not a number from 1 to 65535"),
        ("postgresql://ada:hush%ZZ@h/m", "is not encoded"),
        ("postgresql://ada:hush x@h/m", "is not encoded"),
        ("postgresql://ada:\x00hush@h/m", "a NUL character"),
        ("postgresql://h/m?sslpassword=hush%ZZ", "is not encoded"),
        ("postgresql://ada:hush@h/m?ssl_mode=require", 'invalid URI query parameter: "ssl_mode"'),
        ("postgresql://ada:hush@[::1/m", "not valid"),
        ("postgresql://ada:hush@h/m?schema=Team", "'Team' cannot be the schema"),
        ("postgresql://ada:hush@h/m?schema=", "'' cannot be the schema"),
        ("postgresql://ada:hush@h/m?schema=pg_x", "'pg_x' cannot be the schema"),
        ("postgresql://ada:hush@h/m?schema=a%22b", "cannot be the schema"),
        ("postgresql://ada:hush@h/m?schema=" + "a" * 41, "cannot be the schema"),
        ("postgresql://ada:hush@h/m?schema=1a", "cannot be the schema"),
        ("postgresql://ada:hush@h/m?schema=byheart_07", "'byheart_07' cannot be the schema"),
        ("postgresql://ada:hush@h/m?schema=user", "'user' cannot be the schema"),
        ("postgresql://ada:hush@h/m?parts=0", "'0' cannot be the number of parts"),
        ("postgresql://ada:hush@h/m?parts=65", "'65' cannot be the number of parts"),
        ("postgresql://ada:hush@h/m?parts=x", "'x' cannot be the number of parts"),
        ("mysql://ada:hush@h/m", "not the address of a PostgreSQL database"),
    ],
)
def test_an_address_that_is_not_valid_is_refused_without_its_secret(
    text: str, message: str
) -> None:
    with pytest.raises(StoreUnreachable) as caught:
        parse_address(text)
    assert message in caught.value.message
    assert caught.value.hint
    assert "hush" not in str(caught.value)
    assert "hush" not in str(caught.value.__context__ or "")


@pytest.mark.parametrize(
    ("schema", "hint"),
    [("team_07", "does not end in _ and two digits"), ("order", "such as order_memory")],
)
def test_the_hint_says_why_a_name_cannot_be_the_schema(schema: str, hint: str) -> None:
    with pytest.raises(StoreUnreachable) as caught:
        parse_address(f"postgresql://h/m?schema={schema}")
    assert hint in str(caught.value.hint)


def test_an_address_of_40_characters_of_schema_and_64_parts_is_valid() -> None:
    address = parse_address(f"postgresql://h/m?schema={'a' * 40}&parts=64")
    assert (len(address.schema), address.parts) == (40, 64)


def test_only_addresses_of_postgresql_are_recognised() -> None:
    assert is_postgres_address("postgresql://h/m")
    assert is_postgres_address("postgres:///m")
    assert not is_postgres_address("mysql://h/m")
    assert not is_postgres_address("/home/ada/postgresql.db")


def test_a_service_file_gives_the_parameters(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = conninfo_to_dict(postgres_url)
    lines = "\n".join(f"{name}={value}" for name, value in given.items())
    (tmp_path / "services").write_text(f"[team]\n{lines}\n", encoding="utf-8")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    address = parse_address("postgresql:///?service=team&schema=mine")
    with psycopg.connect(address.conninfo) as connection:
        assert connection.info.dbname == given["dbname"]
        row = connection.execute("SHOW application_name").fetchone()
    assert row == ("byheart",)


def test_a_parsed_address_connects(postgres_url: str) -> None:
    address = parse_address(postgres_url + "&schema=mine&parts=2")
    with psycopg.connect(address.conninfo) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
