"""API keys: who may come in over the network, and who may not any more."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

import byheart
from byheart.errors import Conflict, InvalidInput, NotFound
from byheart.model import to_wire
from byheart.store import MemoryStore
from tests.forked_program import start_script

OpenStore = Callable[..., MemoryStore]
COMPAT = Path(__file__).parents[1] / "compat"
MOMENT_DAYS = 1e-9  # over before the next line
PATIENCE_SECONDS = 60

# Another process: says after each line it is sent whether the secret lets somebody in.
CHECKER = """
import sys
import byheart
with byheart.open(sys.argv[1], embedding_provider="hash") as store:
    for line in sys.stdin:
        token = store.api_keys.check(line.strip())
        print("refused" if token is None else token.name, flush=True)
"""


def move_clock_back(path: Path, column: str, by: timedelta) -> None:
    """Make a moment of every token lie further back."""
    connection = apsw.Connection(str(path))
    connection.execute(f"UPDATE tokens SET {column} = {column} - ?", (by // timedelta.resolution,))
    connection.close()


def test_a_token_is_known_by_its_secret(store: MemoryStore) -> None:
    created = store.api_keys.create("laptop")
    assert created.secret.startswith("bh_")
    assert len(created.secret) == 3 + 43
    token = store.api_keys.check(created.secret)
    assert token == created.token
    assert (token.name, token.access, token.space) == ("laptop", "write", "default")
    assert (token.session_id, token.expires_at, token.last_used_at) == (None, None, None)


def test_a_token_is_bound_to_a_space_a_session_and_an_access(store: MemoryStore) -> None:
    created = store.api_keys.create("helper", access="read", session_id="s1", space="work")
    token = store.api_keys.check(created.secret)
    assert token is not None
    assert (token.access, token.session_id, token.space) == ("read", "s1", "work")


def test_a_token_belongs_to_the_space_of_the_store_it_is_made_in(open_store: OpenStore) -> None:
    assert open_store(space="work").api_keys.create("a").token.space == "work"


def test_every_secret_is_another(store: MemoryStore) -> None:
    made = [store.api_keys.create(f"t{number}") for number in range(20)]
    assert len({each.secret for each in made}) == len({each.token.token_id for each in made}) == 20
    for each in made:
        assert store.api_keys.check(each.secret) == each.token


def test_the_secret_is_in_no_file_of_the_store(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    secret = store.api_keys.create("laptop").secret
    assert store.api_keys.check(secret)
    store.admin.backup(path.with_name("copy.db"))
    store.export(path.with_name("all.jsonl"), all_spaces=True)
    store.close()
    files = [each for each in path.parent.iterdir() if each.is_file()]
    assert {"memory.db", "copy.db", "all.jsonl"} <= {each.name for each in files}
    assert any(b"laptop" in each.read_bytes() for each in files)
    for each in files:
        held = each.read_bytes()
        assert secret.encode() not in held
        assert secret.removeprefix("bh_").encode() not in held


def test_an_export_knows_nothing_of_tokens(store: MemoryStore, tmp_path: Path) -> None:
    store.save("A text.")
    store.api_keys.create("laptop-of-anna")
    store.export(tmp_path / "all.jsonl", all_spaces=True)
    assert b"laptop-of-anna" not in (tmp_path / "all.jsonl").read_bytes()


def test_a_backup_lets_the_same_tokens_in(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path
) -> None:
    created = store.api_keys.create("laptop")
    store.admin.backup(tmp_path / "copy.db")
    assert open_store(tmp_path / "copy.db").api_keys.check(created.secret) == created.token


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "bh_",
        "bh_" + "A" * 43,
        "bh_" + "A" * 1_000_000,
        "x" * 1_000_000,
        "bh_" + "ü" * 43,
        "bh_" + "１" * 43,
        "bh_" + "\ud800" * 43,
        "bh_" + "A" * 42 + "\n",
        "bh_" + "A" * 43 + "\n",
        "' OR 1=1 --",
        "\x00",
        None,
        b"bh_" + b"A" * 43,
        17,
    ],
    ids=lambda secret: repr(secret)[:20],
)
def test_what_is_no_secret_lets_nobody_in(store: MemoryStore, secret: object) -> None:
    store.api_keys.create("laptop")
    assert store.api_keys.check(secret) is None  # type: ignore[arg-type]


def test_one_wrong_character_is_enough_to_be_refused(store: MemoryStore) -> None:
    secret = store.api_keys.create("laptop").secret
    for at in range(3, len(secret)):
        other = "A" if secret[at] != "A" else "B"
        assert store.api_keys.check(secret[:at] + other + secret[at + 1 :]) is None
    assert store.api_keys.check(secret.swapcase()) is None
    assert store.api_keys.check(secret[:-1]) is None
    assert store.api_keys.check(f" {secret}") is None


def test_half_a_hash_that_agrees_is_not_enough(store: MemoryStore, path: Path) -> None:
    secret = store.api_keys.create("laptop").secret
    connection = apsw.Connection(str(path))
    held = connection.execute("SELECT secret_hash FROM tokens").get
    other = held[:-1] + bytes([held[-1] ^ 1])
    connection.execute("UPDATE tokens SET secret_hash = ?", (other,))
    connection.close()
    assert store.api_keys.check(secret) is None


@pytest.mark.parametrize("named_by", ["id", "name", "secret"])
def test_a_token_is_revoked_by_its_id_its_name_or_its_secret(
    store: MemoryStore, named_by: str
) -> None:
    created, other = store.api_keys.create("laptop"), store.api_keys.create("phone")
    named = {"id": created.token.token_id, "name": "laptop", "secret": created.secret}[named_by]
    assert store.api_keys.revoke(named) == created.token
    assert store.api_keys.check(created.secret) is None
    assert store.api_keys.check(other.secret) == other.token
    assert [each.name for each in store.api_keys.list()] == ["phone"]
    with pytest.raises(NotFound):
        store.api_keys.revoke(named)


def test_a_wrong_secret_is_not_repeated(store: MemoryStore) -> None:
    with pytest.raises(NotFound) as caught:
        store.api_keys.revoke("bh_almost-a-secret")
    assert "almost" not in str(caught.value)
    with pytest.raises(NotFound, match="nobody"):
        store.api_keys.revoke("nobody")


def test_a_blank_key_is_refused_by_the_name_of_its_parameter(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="key is blank"):
        store.api_keys.revoke("")


def test_revoked_in_one_process_is_refused_in_another(store: MemoryStore, path: Path) -> None:
    secret = store.api_keys.create("laptop").secret
    pipe = subprocess.PIPE
    other = start_script(CHECKER, path, stdin=pipe, stdout=pipe, text=True, bufsize=1)
    assert other.stdin is not None
    assert other.stdout is not None

    def ask() -> str:
        other.stdin.write(f"{secret}\n")
        return other.stdout.readline().strip()

    try:
        assert ask() == "laptop"
        assert ask() == "laptop"
        store.api_keys.revoke("laptop")
        assert ask() == "refused"
        secret = store.api_keys.create("laptop").secret
        assert ask() == "laptop"
    finally:
        other.stdin.close()
        other.wait(20)
        other.stdout.close()


def test_a_token_expires(store: MemoryStore, path: Path) -> None:
    created = store.api_keys.create("guest", ttl_days=2)
    assert created.token.expires_at is not None
    assert created.token.expires_at - created.token.created_at == timedelta(days=2)
    assert store.api_keys.check(created.secret) == created.token
    move_clock_back(path, "expires_at", timedelta(days=2))
    assert store.api_keys.check(created.secret) is None
    assert [each.name for each in store.api_keys.list()] == ["guest"]
    assert store.api_keys.revoke("guest").name == "guest"


def test_a_token_for_a_moment_is_refused_after_it(store: MemoryStore) -> None:
    assert store.api_keys.check(store.api_keys.create("late", ttl_days=MOMENT_DAYS).secret) is None


@pytest.mark.parametrize("ttl_days", [0, 0.0, 1e-30, -1])
def test_a_token_for_no_time_at_all_is_not_made(store: MemoryStore, ttl_days: float) -> None:
    with pytest.raises(InvalidInput):
        store.api_keys.create("late", ttl_days=ttl_days)
    assert store.api_keys.list() == ()


def test_a_name_is_taken_until_it_is_revoked(store: MemoryStore) -> None:
    store.api_keys.create("laptop of Anna", space="a")
    with pytest.raises(Conflict) as caught:
        store.api_keys.create("laptop of Anna", space="b")
    assert 'store.api_keys.revoke("laptop of Anna")' in caught.value.hint
    store.api_keys.revoke("laptop of Anna")
    store.api_keys.create("laptop of Anna", space="b")
    store.api_keys.create("over", ttl_days=MOMENT_DAYS)
    with pytest.raises(Conflict, match="has expired"):
        store.api_keys.create("over")


def test_tokens_are_listed_oldest_first_of_all_spaces_or_of_one(store: MemoryStore) -> None:
    for name, space in (("b", "work"), ("a", "default"), ("c", "work")):
        store.api_keys.create(name, space=space)
    assert [each.name for each in store.api_keys.list()] == ["b", "a", "c"]
    assert [each.name for each in store.api_keys.list(space="work")] == ["b", "c"]
    assert store.api_keys.list(space="nowhere") == ()
    assert "secret" not in str(to_wire(store.api_keys.list()))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "  "},
        {"name": "a\nb"},
        {"name": "x" * 201},
        {"name": None},
        {"name": "tok_mine"},
        {"name": "bh_mine"},
        {"access": "admin"},
        {"access": None},
        {"ttl_days": -1},
        {"ttl_days": "soon"},
        {"ttl_days": float("nan")},
        {"session_id": ""},
        {"space": "\x07"},
    ],
    ids=str,
)
def test_bad_values_are_refused_and_make_no_token(
    store: MemoryStore, fields: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        store.api_keys.create(**{"name": "laptop", **fields})  # type: ignore[arg-type]
    assert store.api_keys.list() == ()


# --- When it was used -------------------------------------------------------------------------


def changes_seen(path: Path) -> Callable[[], int]:
    """Give a counter that moves whenever anybody commits to the store."""
    connection = apsw.Connection(str(path))
    return lambda: int(connection.execute("PRAGMA data_version").get)


def test_the_use_of_a_token_is_noted_once_a_minute(store: MemoryStore, path: Path) -> None:
    secret = store.api_keys.create("laptop").secret
    before = datetime.now(UTC)
    assert store.api_keys.check(secret)
    [used] = store.api_keys.list()
    assert used.last_used_at is not None
    assert before <= used.last_used_at <= datetime.now(UTC)
    version = changes_seen(path)
    start = version()
    for _ in range(50):
        assert store.api_keys.check(secret) == used
    assert version() == start
    move_clock_back(path, "last_used_at", timedelta(minutes=1))
    assert store.api_keys.check(secret)
    [later] = store.api_keys.list()
    assert later.last_used_at is not None
    assert later.last_used_at > used.last_used_at
    assert version() > start


def test_a_check_does_not_wait_for_who_writes_and_the_use_is_noted_later(
    open_store: OpenStore, path: Path
) -> None:
    store = open_store(busy_timeout_seconds=600)
    secret = store.api_keys.create("laptop").secret
    writer = apsw.Connection(str(path))
    writer.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as thread:
        try:
            assert thread.submit(store.api_keys.check, secret).result(PATIENCE_SECONDS)
            assert store.api_keys.list()[0].last_used_at is None
        finally:
            writer.execute("ROLLBACK")
    writer.close()
    store.close()
    assert open_store().api_keys.list()[0].last_used_at is not None


def test_a_use_that_could_not_be_noted_is_noted_with_the_next_one(
    store: MemoryStore, path: Path
) -> None:
    laptop, phone = (store.api_keys.create(name).secret for name in ("laptop", "phone"))
    writer = apsw.Connection(str(path))
    writer.execute("BEGIN IMMEDIATE")
    store.api_keys.check(laptop)
    writer.execute("ROLLBACK")
    writer.close()
    store.api_keys.check(phone)
    assert None not in [token.last_used_at for token in store.api_keys.list()]


def test_a_store_that_can_only_be_read_lets_tokens_in(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    secret = store.api_keys.create("laptop").secret
    store.close()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        reading = open_store()
        if reading.status().writable:
            pytest.skip("this user may write anything")
        token = reading.api_keys.check(secret)
        assert token is not None
        assert token.name == "laptop"
    finally:
        path.parent.chmod(0o700)
        path.chmod(0o600)


def test_names_of_tokens_are_no_traces_of_what_was_forgotten(store: MemoryStore) -> None:
    store.api_keys.create("the laptop of Anna Keller")
    memory_id = store.save("the laptop of Anna Keller").memory_id
    removal = store.forget(memory_id, hard=True).removal
    assert removal is not None
    assert removal.traces == ()
    assert [each.name for each in store.api_keys.list()] == ["the laptop of Anna Keller"]


def test_a_store_of_before_gets_room_for_tokens(open_store: OpenStore, path: Path) -> None:
    path.write_bytes(gzip.decompress((COMPAT / "schema-1.db.gz").read_bytes()))
    store = open_store()
    created = store.api_keys.create("laptop")
    assert store.api_keys.check(created.secret) == created.token


def test_the_nouns_are_in_the_model() -> None:
    assert {"ApiKey", "CreatedApiKey"} <= set(byheart.model.__all__)
