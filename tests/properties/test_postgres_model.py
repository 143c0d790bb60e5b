"""Two processes on one PostgreSQL database against a plain dictionary: all three agree."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

pytest.importorskip("psycopg")
from byheart.storage.postgres.address import parse_address
from tests.postgres_stores import postgres_store_url
from tests.properties.other_process import OtherProcess, open_here
from tests.storage.postgres.wholeness import check_rows

SPACES = ("red", "blue")
WORDS = ("apple", "pear", "plum", "cherry", "fig")
# A text may hold a NUL character, which PostgreSQL does not take.
TEXTS = [
    f"{word} number {n} of the garden{end}" for word in WORDS for n, end in ((1, ""), (2, "\0"))
]
which = st.integers(0, 1)
spaces = st.sampled_from(SPACES)
texts = st.sampled_from(TEXTS)
_shared: dict[str, Any] = {}


class TwoProcesses(RuleBasedStateMachine):
    """Change the store in one process, and look at it in the other.

    `model` maps a memory to its text and state.
    """

    examples = 0

    def __init__(self) -> None:
        super().__init__()
        TwoProcesses.examples += 1
        # The spaces of an example are its own, so that all examples share one database.
        self.prefix = f"e{TwoProcesses.examples}-"
        self.model: dict[str, dict[str, tuple[str, bool]]] = {space: {} for space in SPACES}

    def store(self, number: int) -> Any:
        return _shared["stores"][number]

    def visible(self, space: str) -> dict[str, str]:
        return {id_: text for id_, (text, hidden) in self.model[space].items() if not hidden}

    def pick(self, space: str, data: st.DataObject, *, hidden: bool) -> str | None:
        ids = [id_ for id_, (_, is_hidden) in self.model[space].items() if is_hidden == hidden]
        return data.draw(st.sampled_from(sorted(ids))) if ids else None

    @rule(number=which, space=spaces, text=texts)
    def save(self, number: int, space: str, text: str) -> None:
        saved = self.store(number).save(text, space=self.prefix + space)
        known = {held: id_ for id_, held in self.visible(space).items()}
        assert saved.memory_id == known.get(text, saved.memory_id)
        assert (saved.status == "created") == (text not in known)
        self.model[space][saved.memory_id] = (text, False)

    @rule(number=which, space=spaces, text=texts, data=st.data())
    def update(self, number: int, space: str, text: str, data: st.DataObject) -> None:
        id_ = self.pick(space, data, hidden=False)
        if id_ is not None and text not in self.visible(space).values():
            self.store(number).update(id_, content=text, space=self.prefix + space)
            self.model[space][id_] = (text, False)

    @rule(number=which, space=spaces, data=st.data())
    def forget(self, number: int, space: str, data: st.DataObject) -> None:
        id_ = self.pick(space, data, hidden=False)
        if id_ is not None:
            self.store(number).forget(id_, space=self.prefix + space)
            self.model[space][id_] = (self.model[space][id_][0], True)

    @rule(number=which, space=spaces, data=st.data())
    def restore(self, number: int, space: str, data: st.DataObject) -> None:
        id_ = self.pick(space, data, hidden=True)
        if id_ is not None and self.model[space][id_][0] not in self.visible(space).values():
            self.store(number).restore(id_, space=self.prefix + space)
            self.model[space][id_] = (self.model[space][id_][0], False)

    @precondition(lambda self: any(self.model.values()))
    @rule(number=which, space=spaces, word=st.sampled_from(WORDS))
    def search(self, number: int, space: str, word: str) -> None:
        answer = self.store(number).search(word, mode="fts", limit=20, space=self.prefix + space)
        found = {hit.memory_id: hit.chunk_content for hit in answer.results}
        expected = {id_: text for id_, text in self.visible(space).items() if word in text}
        assert found == expected

    @invariant()
    def both_list_the_same(self) -> None:
        for space in SPACES:
            for number in range(2):
                page = self.store(number).list(limit=100, space=self.prefix + space)
                held = {memory.memory_id: memory.content for memory in page.memories}
                assert held == self.visible(space)


def test_two_processes_agree_with_a_dictionary() -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgres_store_url())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        other = OtherProcess()
        stack.callback(other.leave)
        other.open(folder / "second" / "none", url)
        here = stack.enter_context(open_here(folder / "first" / "none", address=url))
        _shared["stores"] = [here, other]
        chosen = settings(
            max_examples=20,
            stateful_step_count=10,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(TwoProcesses, settings=chosen)
        check_rows(parse_address(f"{url}&parts=2"))
