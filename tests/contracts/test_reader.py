"""What a `Reader` promises, run on each implementation."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from byheart.contracts import (
    Emission,
    FileStamp,
    KnownFile,
    Listing,
    Question,
    Reader,
    Section,
    Storage,
)
from byheart.language.terms import query_terms
from byheart.memory import transactions
from byheart.model import Filter, Heading, IndexedFile, Session
from byheart.model.times import to_micros
from tests.contracts.conftest import OpenStorage
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft, found, key_of


@covers(Reader.memory, Reader.chunks_of)
def test_what_is_written_is_read_as_it_was_written(storage: Storage) -> None:
    made = draft(
        "# Title\n\nwords\r\n",
        EAST,
        title="T",
        session_id="s",
        agent_id="a",
        session_iter=3,
        task_code="c",
        path="p/q.md",
        tags=("x", "y"),
        entities=("Ann",),
        importance=7.25,
        metadata={"k": [1, {"n": None}]},
        expires_at=datetime(2099, 1, 1, tzinfo=UTC),
    )
    [result] = transactions.write(storage, [made], MODEL)
    assert (result.status, result.memory_id) == ("created", made.memory.memory_id)
    with storage.searching("space") as reader:
        assert reader.memory(result.memory_id, "space") == made.memory
        chunks = [each.chunk for each in reader.chunks_of(result.memory_id, "space")]
    assert tuple(chunks) == made.chunks


@covers(Reader.named)
def test_a_memory_of_a_session_is_read_by_its_client_id_forgotten_or_not(storage: Storage) -> None:
    made = draft("first words", session_id="s", client_id="c")
    elsewhere = draft("words of another session", session_id="t", client_id="c")
    transactions.write(storage, [made, elsewhere, draft("unnamed", session_id="s")], MODEL)
    with storage.reading("space") as reader:
        assert reader.named("c", "s", "space") == made.memory
        assert reader.named("c", "t", "space") == elsewhere.memory
        asked = (("d", "s", "space"), ("c", "u", "space"), ("c", "s", "other"))
        assert [reader.named(*names) for names in asked] == [None, None, None]
    transactions.forget(storage, [made.memory.memory_id], "space", "tester", None)
    with storage.reading("space") as reader:
        hidden = reader.named("c", "s", "space")
    assert hidden is not None
    assert (hidden.content, hidden.forgotten_at is None) == ("first words", False)


def test_some_chunks_of_a_memory_are_read_without_the_others(storage: Storage) -> None:
    made = draft("\n\n".join(f"## {number}\n\nwords" for number in range(9)))
    [result] = transactions.write(storage, [made], MODEL)
    with storage.reading() as reader:
        for part in (range(9), range(3, 6), range(7, 12), range(-2, 1), range(20, 30)):
            found = reader.chunks_of(result.memory_id, "space", part)
            assert [each.chunk for each in found] == [
                each for each in made.chunks if each.index in part
            ]


def test_chunks_under_a_heading_are_found_with_those_below_it_or_without(storage: Storage) -> None:
    made = draft('Before.\n\n# A "b"\n\none\n\n## B\n\ntwo\n\n### C\n\nthree\n\n## B\n\nfour\n')
    [result] = transactions.write(storage, [made, draft("## B\n\nelsewhere\n")], MODEL)[:1]
    tops: set[tuple[Heading, ...]] = {()}
    tops |= {each.headings[:depth] for each in made.chunks for depth in range(1, 4)}
    assert len(tops) == 5, "the two of one title are two"
    with storage.reading() as reader:
        for headings in tops:
            under = [each for each in made.chunks if each.headings[: len(headings)] == headings]
            exactly = [each for each in under if each.headings == headings]
            for below, expected in ((True, under), (False, exactly)):
                found = reader.chunks_of(result.memory_id, "space", under=Section(headings, below))
                assert [each.chunk for each in found] == expected
        assert reader.chunks_of(result.memory_id, "elsewhere", under=Section((), True)) == []


def test_known_finds_exactly_what_is_stored(storage: Storage) -> None:
    stored, missing = draft("stored", EAST, session_id="s"), draft("missing", EAST)
    transactions.write(storage, [stored], MODEL)
    elsewhere = key_of(stored)._replace(session_id=None)
    known = transactions.known(storage, [key_of(stored), key_of(missing), elsewhere])
    assert set(known) == {key_of(stored)}
    assert known[key_of(stored)].memory_id == stored.memory.memory_id


@covers(Storage.searching, Reader.index, Reader.count)
def test_a_reader_keeps_its_view_while_others_write(open_storage: OpenStorage) -> None:
    one, other = open_storage(), open_storage()
    transactions.write(one, [draft("apple one", EAST)], MODEL)
    with one.searching("space") as reader:
        transactions.write(other, [draft("apple two", NORTH)], MODEL)
        question = Question(Filter(space="space"), query_terms("apple"), None)
        assert len(reader.index.candidates(question, 10).chunk_nos) == 1
        assert reader.count(Listing(Filter(space="space"))) == 1
        assert reader.index.state("space").memories == 1
    assert found(one, "apple") == ["apple one", "apple two"]


@covers(Reader.memories, Reader.count)
def test_listings_are_in_order_counted_and_paged(storage: Storage) -> None:
    now = datetime.now(UTC)
    transactions.write(
        storage,
        [
            draft(f"text {n}", EAST, session_iter=n // 2, created_at=now + timedelta(seconds=n))
            for n in range(6)
        ],
        MODEL,
    )
    with storage.searching("space") as reader:
        listing = Listing(Filter(space="space"), "iteration", 3, 1)
        page, total = reader.memories(listing), reader.count(listing)
    assert [memory.content for memory in page] == ["text 4", "text 3", "text 2"]
    assert total == 6


@covers(Reader.salient_turns)
def test_turns_are_listed_in_order_and_no_two_are_the_same(storage: Storage) -> None:
    now = datetime.now(UTC)
    said = [
        draft("again", kind="message", session_id="s", role="user", created_at=now),
        draft("again", kind="message", session_id="s", role="user", created_at=now),
        draft("last", session_id="s", role="tool", created_at=now - timedelta(hours=1)),
    ]
    assert [each.status for each in transactions.write(storage, said, None)] == ["created"] * 3
    transactions.write(
        storage, [draft("again", kind="message", session_id="s")], None
    )  # saved, not said
    hour_ago = now - timedelta(hours=1)
    first = draft("first", session_id="s", role="tool", created_at=hour_ago)
    transactions.write(storage, [replace(first, placed_at=now - timedelta(hours=2))], None)
    where = Filter("space", session_id="s", include_global=False)
    with storage.reading() as reader:
        listed = [each.content for each in reader.memories(Listing(where, "said", 9, roles=()))]
        assert listed == ["first", "again", "again", "last"]
        last = reader.memories(Listing(where, "said last", 1, 3, roles=()))
        assert [each.content for each in last] == ["first"]
        assert reader.count(Listing(where, roles=("user",))) == 2
        assert reader.count(Listing(Filter("other", session_id="s"), roles=())) == 0
        salient = reader.salient_turns(where, (), 1)
        assert [(each.summary, each.text) for each in salient] == [("first", "first")]
    assert transactions.known(storage, [key_of(said[0])]) == {}


def test_pins_are_listed_as_they_were_set_where_they_can_be_seen(storage: Storage) -> None:
    made = [draft("one"), draft("two", session_id="s"), draft("three", session_id="t")]
    transactions.write(storage, made, None)
    one, two, three = (each.memory.memory_id for each in made)
    for memory_id in (two, one, three):
        transactions.pin(storage, memory_id, "space", "tester", pinned=True)
    where = Filter("space", session_id="s")
    with storage.reading() as reader:
        assert [each.memory_id for each in reader.memories(Listing(where, "pinned"))] == [two, one]
    transactions.pin(storage, two, "space", "tester", pinned=False)
    transactions.forget(storage, [one], "space", "tester", None)
    with storage.reading() as reader:
        assert reader.memories(Listing(where, "pinned")) == []


@covers(Reader.memories, Reader.count)
def test_pins_are_listed_and_counted_alone_among_memories_with_a_tag_or_a_path(
    storage: Storage,
) -> None:
    marks: dict[str, Any] = {"tags": ("red",), "path": "/w/docs/a.md"}
    made = [draft("pinned", **marks), draft("loose", **marks), draft("pinned, unmarked")]
    transactions.write(storage, made, None)
    for each in (made[0], made[2]):
        transactions.pin(storage, each.memory.memory_id, "space", "tester", pinned=True)
    with storage.reading() as reader:
        for where in (
            Filter("space", tags=("red",)),
            Filter("space", path="/w/docs"),
            Filter("space", path="docs/"),
        ):
            listing = Listing(where, "pinned", 5)
            assert [each.content for each in reader.memories(listing)] == ["pinned"]
            assert reader.count(listing) == 1


@covers(Reader.count)
def test_a_path_selects_what_it_names_and_what_lies_below_it(storage: Storage) -> None:
    paths = ("/w/doc", "/w/doc/a.md", "/w/doc/b/c.md", "/w/doc-1/a.md", "/w/doc0", "/w/Doc/a.md")
    paths += ("/w/doc.md", "/w/doc/é.md", "w/doc/a.md", "~/doc/a.md", "C:/doc/a.md")
    transactions.write(storage, [draft(path, path=path) for path in (*paths, "/v/[1]/a")], None)
    expected = {
        "/w/doc": {"/w/doc", "/w/doc/a.md", "/w/doc/b/c.md", "/w/doc/é.md"},
        "/w/doc/": {"/w/doc/a.md", "/w/doc/b/c.md", "/w/doc/é.md"},
        "/w/doc/a.md": {"/w/doc/a.md"},
        "/w/doc/a.md/": set(),
        "/w/do": set(),
        "/w/doc?": {"/w/doc0"},
        "/v/[1]": {"/v/[1]/a"},
        "/": {*paths[:8], "/v/[1]/a"},
        "~/doc": {"~/doc/a.md"},
        "C:/doc/": {"C:/doc/a.md"},
        "doc/a.md": {"/w/doc/a.md", "w/doc/a.md", "~/doc/a.md", "C:/doc/a.md"},
    }
    with storage.reading() as reader:
        for path, found in expected.items():
            listing = Listing(Filter("space", path=path))
            assert {each.path for each in reader.memories(listing)} == found, path
            assert reader.count(listing) == len(found), path


@covers(Reader.headings, Reader.chunks, Reader.token_counts)
def test_chunks_are_fetched_by_number_in_the_order_asked(storage: Storage) -> None:
    made = draft("Before.\n\n# A\n\none\n\n## B\n\ntwo\n")
    transactions.write(storage, [made, draft("other")], None)
    memory_id = made.memory.memory_id
    with storage.reading() as reader:
        numbers = [each.chunk_no for each in reader.chunks_of(memory_id, "space")]
        back = numbers[::-1]
        assert [each.chunk for each in reader.chunks(back)] == list(made.chunks[::-1])
        assert reader.headings(back) == [each.headings for each in made.chunks[::-1]]
        assert reader.chunks(numbers[:1])[0].memory.memory_id == memory_id
        tokens = sum(each.token_count for each in made.chunks)
        assert reader.token_counts([memory_id, "unheard-of"], "space") == {memory_id: tokens}
        assert reader.token_counts([memory_id], "other") == {}


@covers(Reader.find)
def test_texts_that_are_already_held_are_found(storage: Storage) -> None:
    held, missing = draft("held", session_id="s"), draft("missing")
    transactions.write(storage, [held], None)
    with storage.reading() as reader:
        found = reader.find([key_of(held), key_of(missing)])
    assert {key: each.memory_id for key, each in found.items()} == {
        key_of(held): held.memory.memory_id
    }


@covers(Reader.states, Reader.ids, Reader.history)
def test_the_fate_of_a_text_is_known_after_it_is_forgotten(storage: Storage) -> None:
    made = [draft("kept", session_id="s"), draft("forgotten"), draft("far", space="other")]
    transactions.write(storage, made, None)
    kept, gone, far = (each.memory.memory_id for each in made)
    transactions.forget(storage, [gone], "space", "tester", "because")
    with storage.reading() as reader:
        states = reader.states([kept, gone, far, "unheard-of", f"{kept}@9"], "space")
        assert set(states) == {kept, gone}
        assert states[kept][1:] == (made[0].memory.created_at, "s", None, True)
        assert states[gone].forgotten_at is not None
        assert reader.ids(Listing(Filter("space"))) == [kept]
        assert reader.ids(Listing(Filter("space", forgotten=True))) == [gone]
        assert reader.memory(gone, "space") is None
        assert reader.memory(gone, "space", hidden=True) is not None
        events = reader.history(gone, "space")
        assert [(each.operation, each.who, each.reason) for each in events] == [
            ("create", "tester", None),
            ("forget", "tester", "because"),
        ]
        assert reader.history(gone, "other") == reader.history("unheard-of", "space") == []


@covers(Reader.ids_beginning)
def test_memories_are_named_by_the_first_letters_of_their_ids(storage: Storage) -> None:
    made = [
        replace(each, memory=replace(each.memory, memory_id=memory_id, space=space))
        for each, memory_id, space in (
            (draft("one"), "mem_aa1", "space"),
            (draft("two"), "mem_aa2", "space"),
            (draft("three"), "mem_ab", "space"),
            (draft("four"), "mem_ab1", "other"),
        )
    ]
    transactions.write(storage, made, None)
    with storage.reading("space") as reader:
        assert reader.ids_beginning(["mem_aa", "mem_ab", "mem_b"], "space", 9) == {
            "mem_aa": ["mem_aa1", "mem_aa2"],
            "mem_ab": ["mem_ab"],
            "mem_b": [],
        }
        assert reader.ids_beginning(["mem_a"], "space", 2) == {"mem_a": ["mem_aa1", "mem_aa2"]}
        assert reader.ids_beginning([], "space", 2) == {}


@covers(Reader.at_path, Reader.files_ending)
def test_memories_are_found_by_paths_and_by_endings_of_file_names(storage: Storage) -> None:
    paths = ("/w/docs/a.md", "/w/docs/xa.md", "/w/docs/a.md")
    first, second, last = (draft(f"{path} {n}", path=path) for n, path in enumerate(paths))
    second = replace(second, memory=replace(second.memory, session_id="s"))
    transactions.write(storage, [first, second, last], None)
    ids = [each.memory.memory_id for each in (first, second, last)]
    with storage.writing("space") as writer:
        number = writer.workspaces.add("space", "/w")
        for path, memory_id in (("docs/a.md", ids[2]), ("docs/xa.md", ids[1])):
            file = KnownFile(memory_id, FileStamp(1, 1, 1), b"", datetime.now(UTC))
            writer.workspaces.put_file(number, path, file)
    with storage.reading() as reader:
        assert reader.at_path("/w/docs/a.md", "space") == ids[2], "the latest"
        assert reader.at_path("/w/docs/a.md", "other") is None
        assert reader.at_path("a.md", "space") is None
        ending = reader.files_ending
        assert ending("a.md", "space", None, 9) == {paths[2]: ids[2]}, "whole names only"
        assert ending("w/docs/xa.md", "space", None, 9) == {paths[1]: ids[1]}
        assert ending("xa.md", "space", ["s"], 9) == {paths[1]: ids[1]}
        assert ending("xa.md", "space", [None], 9) == ending("a.md", "other", None, 9) == {}
        assert ending("a.md", "space", [None, "s"], 0) == {}


@covers(Reader.given_since)
def test_passages_given_to_a_session_are_known_since_a_moment(storage: Storage) -> None:
    first, second = draft("first"), draft("second")
    transactions.write(storage, [first, second], None)
    at = datetime.now(UTC)
    for made, moment in ((first, at - timedelta(hours=1)), (second, at)):
        storage.note([Emission(f"{made.memory.memory_id}#0", "space", "s", moment)])
        storage.settle()
    with storage.reading() as reader:
        one, two = (
            reader.chunks_of(each.memory.memory_id, "space")[0].chunk_no for each in (first, second)
        )
        assert reader.given_since("space", "s", None) == {one, two}
        assert reader.given_since("space", "s", at) == {two}
        assert reader.given_since("space", "t", None) == frozenset()
        assert reader.given_since("other", "s", None) == frozenset()


@covers(Reader.sessions, Reader.session_stats)
def test_sessions_are_listed_by_agent_and_counted(storage: Storage) -> None:
    hours = [datetime(2026, 5, 1, hour, tzinfo=UTC) for hour in range(4)]
    given = [
        {"session_id": "s", "agent_id": "a", "session_iter": 1, "task_code": "t"},
        {"session_id": "s", "agent_id": "a", "session_iter": 2, "role": "user"},
        {"session_id": "t", "agent_id": "b", "kind": "file"},
        {},
    ]
    made = [
        draft(f"text {n}", created_at=hours[n], updated_at=hours[n], **fields)
        for n, fields in enumerate(given)
    ]
    transactions.write(storage, made, None)
    with storage.reading() as reader:
        listed, total = reader.sessions("space", None, 9, 0)
        assert total == 2
        assert listed == [
            Session("t", "b", 1, None, hours[2], hours[2], ("file",)),
            Session("s", "a", 2, 2, hours[0], hours[1], ("note",)),
        ]
        assert reader.sessions("space", "a", 9, 0) == (listed[1:], 1)
        assert reader.sessions("space", None, 1, 1) == (listed[1:], 2)
        assert reader.sessions("other", None, 9, 0) == ([], 0)
        own = reader.session_stats(Filter("space", session_id="s"))
        assert (own.total_memories, own.turns, own.unique_agents, own.unique_tasks) == (2, 1, 1, 1)
        assert (own.max_session_iter, own.avg_content_length, own.kinds) == (2, 6.0, {"note": 2})
        assert (own.first_activity, own.latest_activity) == (hours[0], hours[1])
        both = reader.session_stats(Filter("space"))
        assert (both.total_memories, both.unique_sessions) == (3, 2), "global ones belong to none"


@covers(Reader.copies_of)
def test_the_valid_copies_of_memories_are_found_by_their_source(storage: Storage) -> None:
    source = {"metadata": {"promoted_from": "mem_1"}}
    copies = [
        draft("copy", **source),
        draft("forgotten copy", **source),
        draft("in a session", session_id="s", **source),
        draft("far", space="other", **source),
    ]
    transactions.write(storage, copies, None)
    ids = [each.memory.memory_id for each in copies]
    transactions.forget(storage, ids[1:2], "space", "tester", None)
    with storage.reading() as reader:
        assert reader.copies_of(["mem_1", "mem_2"], "space") == [(ids[0], "mem_1")]
        assert reader.copies_of(["mem_2"], "space") == []


@covers(Reader.indexed_files)
def test_memories_of_files_name_the_files_of_their_workspace(storage: Storage) -> None:
    made = draft("words", EAST, kind="file", path="/home/x/docs/a.md")
    other = draft("others", EAST, path="/home/x/docs/a.md")
    [result, beside] = transactions.write(storage, [made, other], MODEL)
    read_at = datetime(2026, 1, 1, tzinfo=UTC)
    with storage.writing("space") as writer:
        number = writer.workspaces.add("space", "/home/x")
        known = KnownFile(result.memory_id, FileStamp(5, 7, 9), b"h", read_at)
        writer.workspaces.put_file(number, "docs/a.md", known)
    with storage.searching("space") as reader:
        ids = [result.memory_id, beside.memory_id]
        file = IndexedFile("/home/x", "docs/a.md", 5, 7, to_micros(read_at))
        assert reader.indexed_files(ids, "space") == {result.memory_id: file}
        assert reader.indexed_files(ids, "another") == {}
        [found] = reader.chunks_of(result.memory_id, "space")
        assert found.file == file
