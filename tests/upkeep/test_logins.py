"""Logins of browsers: a code is used once, soon, and becomes a login that can be ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from byheart.errors import InvalidInput
from byheart.store import MemoryStore
from byheart.system import clock
from tests.conftest import OpenStore
from tests.databases import database as database


def pass_time(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + by)


def test_a_code_becomes_a_login_of_its_space_and_access_once(store: MemoryStore) -> None:
    code = store.logins.create_code("read", "work")
    assert code.secret.startswith("bhc_")
    login = store.logins.exchange(code.secret)
    assert login is not None
    assert login.secret.startswith("bhl_")
    assert store.logins.exchange(code.secret) is None
    found = store.logins.check(login.secret)
    assert found == login.token
    assert (found.space, found.access, found.session_id) == ("work", "read", None)
    assert found.expires_at is not None
    assert found.expires_at - found.created_at == timedelta(hours=12)


def test_one_of_many_who_exchange_a_code_at_once_is_let_in(open_store: OpenStore) -> None:
    stores = [open_store() for _ in range(4)]
    code = stores[0].logins.create_code()
    with ThreadPoolExecutor(4) as pool:
        logins = list(pool.map(lambda each: each.logins.exchange(code.secret), stores))
    assert sum(login is not None for login in logins) == 1


def test_a_code_is_valid_for_a_minute(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    late, in_time = store.logins.create_code(), store.logins.create_code()
    pass_time(monkeypatch, timedelta(seconds=58))
    assert store.logins.exchange(in_time.secret) is not None
    pass_time(monkeypatch, timedelta(seconds=61))
    assert store.logins.exchange(late.secret) is None


def test_a_login_is_valid_for_twelve_hours_and_then_removed(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = store.logins.exchange(store.logins.create_code().secret)
    assert login is not None
    pass_time(monkeypatch, timedelta(hours=11, minutes=59))
    assert store.logins.check(login.secret) is not None
    pass_time(monkeypatch, timedelta(hours=12, minutes=1))
    assert store.logins.check(login.secret) is None
    assert login.token.name in [each.name for each in store.api_keys.list()]
    store.logins.create_code()
    assert login.token.name not in [each.name for each in store.api_keys.list()]


def test_a_secret_is_valid_for_its_own_purpose_only(store: MemoryStore) -> None:
    key, code = store.api_keys.create("laptop"), store.logins.create_code()
    other = store.logins.create_code()
    login = store.logins.exchange(other.secret)
    assert login is not None
    for secret in (code.secret, login.secret, "bh_" + login.secret[4:]):
        assert store.api_keys.check(secret) is None
    for secret in (code.secret, key.secret, "bhl_" + key.secret[3:], "bhl_", "", 7):
        assert store.logins.check(secret) is None  # type: ignore[arg-type]
    for secret in (key.secret, login.secret, "bhc_" + key.secret[3:], None):
        assert store.logins.exchange(secret) is None  # type: ignore[arg-type]


def test_logins_are_listed_and_revoked_with_the_api_keys(store: MemoryStore) -> None:
    store.api_keys.create("laptop")
    login = store.logins.exchange(store.logins.create_code().secret)
    assert login is not None
    waiting = store.logins.create_code()
    assert [each.purpose for each in store.api_keys.list()] == ["key", "login", "code"]
    store.api_keys.revoke(login.token.name)
    assert store.logins.check(login.secret) is None
    store.api_keys.revoke(waiting.token.token_id)
    assert store.logins.exchange(waiting.secret) is None


def test_a_login_can_be_ended(store: MemoryStore) -> None:
    login = store.logins.exchange(store.logins.create_code().secret)
    assert login is not None
    assert store.logins.end(login.token.token_id)
    assert not store.logins.end(login.token.token_id)
    assert store.logins.check(login.secret) is None


def test_the_access_of_a_code_is_checked(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="access"):
        store.logins.create_code("everything")
