"""Passwords in addresses, and how they are hidden."""

from __future__ import annotations

import pytest

from byheart.model.address_secrets import has_secret, hide_secrets, hide_secrets_in


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:s3cret@db.example/team", "postgresql://ann:***@db.example/team"),
        ("postgresql://:s3cret@db.example/team", "postgresql://:***@db.example/team"),
        ("postgresql:///team?password=s3cret", "postgresql:///team?password=***"),
        ("postgres://h/t?user=a&PassWord=s3cret&x=1", "postgres://h/t?user=a&PassWord=***&x=1"),
        ("postgresql://h/t?sslpassword=s3cret", "postgresql://h/t?sslpassword=***"),
        ("postgresql://h/t?pass%77ord=s3cret", "postgresql://h/t?pass%77ord=***"),
        ("postgresql://h/t?oauth_client_secret=s3cret", "postgresql://h/t?oauth_client_secret=***"),
        ("mysql://ann:s3cret@db.example/team", "mysql://ann:***@db.example/team"),
        # An unencoded sign in the password: its end is unclear.
        ("postgresql://ann:s3/cret@db.example/team", "postgresql://***"),
        ("postgresql://ann:s3@cret@db.example/team", "postgresql://***"),
        ("postgresql://ann:s3?password=cret@db/team", "postgresql://***"),
        ("postgresql://h/t?password=s3@cret", "postgresql://***"),
        ("postgresql://ann:s3 cret@db.example/team", "postgresql://ann:***@db.example/team"),
        ("host=db password='s3 cret' user=ann", "host=db password=*** user=ann"),
        ("host=db password=s3cret user=ann", "host=db password=*** user=ann"),
    ],
)
def test_no_part_of_a_password_is_left(address: str, shown: str) -> None:
    assert hide_secrets(address) == shown
    assert has_secret(address)
    assert not any(part in hide_secrets(address) for part in ("s3", "cret@", "cret'"))


@pytest.mark.parametrize(
    "address",
    [
        "/home/ann/memory.db",
        "postgresql://ann@db.example:5432,other:5433/team?sslmode=verify-full&schema=notes",
        "postgresql:///team?service=notes&host=/run/postgresql",
        "https://api.example/v1",
    ],
)
def test_an_address_without_secrets_stays_as_it_is(address: str) -> None:
    assert hide_secrets(address) == address
    assert not has_secret(address)


def test_every_address_in_a_text_is_hidden() -> None:
    text = '{"args": ["--db", "postgresql://a:s3cret@h/t"], "url": "http://b:s3cret@i"}\n# end'
    shown = '{"args": ["--db", "postgresql://a:***@h/t"], "url": "http://b:***@i"}\n# end'
    assert hide_secrets_in(text) == shown
