"""Test that dataclasses with late methods behave as those of the standard library."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, InitVar, asdict, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

import pytest

from byheart.model import ChunkHit, Memory
from byheart.startup.dataclass_types import dataclass

SOURCE = Path(__file__).parents[2] / "src" / "byheart"


@dataclass(frozen=True, slots=True)
class Place:
    """A frozen class."""

    name: str
    number: int = 0
    tags: dict[str, int] = field(default_factory=dict)
    secret: str = field(default="", repr=False)

    @property
    def loud(self) -> str:
        return self.name.upper()


@dataclass(frozen=True, slots=True)
class City(Place):
    """A class that adds a field to another."""

    people: int = 0


@dataclass(slots=True)
class Tally:
    """A class that changes."""

    count: int = 0
    seen: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A class without positional parameters."""

    left: int = 1
    right: int


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """A class whose instances are equal to themselves only."""

    one: int


@dataclass(frozen=True, slots=True)
class Empty:
    """A class without fields."""


@dataclass(frozen=True, slots=True)
class Single:
    """A class with one field."""

    one: Any


def standard(kind: type, **flags: bool) -> Any:
    """Make the class that the standard library makes of the same fields."""
    same = [
        (each.name, each.type, field(default=each.default, repr=each.repr))
        if each.default_factory is dataclasses.MISSING
        else (each.name, each.type, field(default_factory=each.default_factory))
        for each in fields(kind)  # type: ignore[arg-type]
    ]
    return dataclasses.make_dataclass(kind.__name__, same, **flags)  # type: ignore[arg-type]


def test_fields_are_set_by_place_by_name_and_by_default() -> None:
    place = Place("Ulm", number=3)

    assert (place.name, place.number, place.tags, place.secret) == ("Ulm", 3, {}, "")
    assert Place("Ulm").tags is not Place("Ulm").tags
    assert Place("Ulm", tags={"a": 1}).tags == {"a": 1}
    assert City("Ulm", people=5).loud == "ULM"
    assert City("Ulm", 1, {}, "", 5).people == 5


@pytest.mark.parametrize("make", [lambda: Place(), lambda: Place("a", nmae=1)])  # type: ignore[call-arg]
def test_wrong_arguments_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"name|nmae"):
        make()


def test_fields_that_have_to_be_named_are_refused_by_place() -> None:
    assert Named(right=2).left == 1
    with pytest.raises(TypeError, match="positional"):
        Named(1, 2)  # type: ignore[misc]


def test_equality_hash_and_repr_are_those_of_the_standard_library() -> None:
    other = standard(Place, frozen=True)
    assert repr(Place("Ulm", 1, secret="x")) == repr(other("Ulm", 1, secret="x"))
    assert "x" not in repr(Place("Ulm", 1, secret="x"))
    assert Place("Ulm") == Place("Ulm") != Place("Bonn")
    assert Place("Ulm") != City("Ulm")
    assert Place("Ulm") != "Ulm"
    assert hash(Single("a")) == hash(standard(Single, frozen=True)("a")) == hash(("a",))
    assert hash(Named(right=2)) == hash((1, 2))
    assert Empty() == Empty()
    assert hash(Empty()) == hash(())
    assert repr(Empty()) == "Empty()"
    nan = float("nan")
    assert Single(nan) == Single(nan)
    assert Single([Single(1)]) == Single([Single(1)])
    with pytest.raises(TypeError, match="unhashable"):
        hash(Place("Ulm"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Tally())


def test_a_class_without_equality_keeps_identity() -> None:
    one, two = Apart(1), Apart(1)

    assert one != two
    assert len({one, two, one}) == 2


def test_a_frozen_class_refuses_changes() -> None:
    place = Place("Ulm")

    with pytest.raises(FrozenInstanceError, match="name"):
        place.name = "Bonn"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="name"):
        del place.name
    assert not hasattr(place, "__dict__")


def test_another_class_can_be_changed() -> None:
    tally = Tally()
    tally.count += 1
    tally.seen.append("a")

    assert tally == Tally(1, ["a"])
    with pytest.raises(AttributeError):
        tally.other = 1  # type: ignore[attr-defined]


def test_the_functions_of_the_standard_library_work() -> None:
    place = City("Ulm", people=5)

    assert is_dataclass(place)
    assert [each.name for each in fields(place)] == ["name", "number", "tags", "secret", "people"]
    assert replace(place, name="Bonn") == City("Bonn", people=5)
    assert asdict(place)["people"] == 5
    match place:
        case City(name, number):
            assert (name, number) == ("Ulm", 0)


def test_nouns_are_copied_and_pickled() -> None:
    place = City("Ulm", 3, {"a": 1}, people=5)

    assert pickle.loads(pickle.dumps(place)) == place
    assert copy.copy(place) == place
    assert copy.deepcopy(place).tags is not place.tags
    assert pickle.loads(pickle.dumps(Tally(3))) == Tally(3)


def test_the_signature_is_known_before_the_first_use() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        """A class that nobody has used yet."""

        name: str
        number: int = 3

    assert str(inspect.signature(Fresh)) == "(name: 'str', number: 'int' = 3) -> None"


def test_methods_that_a_class_defines_are_kept() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:
        """A class with methods of its own."""

        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

    assert repr(Own("a")) == "<a>"


def test_threads_may_use_a_class_for_the_first_time_together() -> None:
    @dataclass(frozen=True, slots=True)
    class Shared:
        """A class that many threads use."""

        number: int

    start, made = threading.Barrier(8), []

    def make(number: int) -> None:
        start.wait()
        made.append(Shared(number))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(each.number for each in made) == list(range(8))


def test_a_class_compiles_nothing_until_it_is_used() -> None:
    @dataclass(frozen=True, slots=True)
    class Unused:
        """A class that is only defined."""

        name: str

    assert type(Unused.__dict__["__init__"]).__name__ == "_Init"
    Unused("a")
    assert inspect.isfunction(Unused.__dict__["__init__"])


@pytest.mark.parametrize(
    ("members", "refused"),
    [
        ({"__post_init__": lambda self: None}, "__post_init__"),
        ({"number": field(default=0, init=False)}, "number"),
        ({"number": field(default=0, compare=False)}, "number"),
        ({"number": field(default=0, hash=False)}, "number"),
        ({"__annotations__": {"number": InitVar[int]}}, "InitVar"),
        ({"__annotations__": {"number": "InitVar[int]"}}, "InitVar"),
    ],
)
def test_what_these_dataclasses_do_not_have_is_refused(
    members: dict[str, Any], refused: str
) -> None:
    module = {"__module__": __name__, "__annotations__": {"number": int}}
    for flags in ({"frozen": True, "slots": True}, {}):
        with pytest.raises(TypeError, match=f"Odd .*{refused}"):
            dataclass(**flags)(type("Odd", (), module | members))  # type: ignore[call-overload]


def test_a_class_variable_is_no_field() -> None:
    @dataclass(frozen=True, slots=True)
    class Counted:
        """A class with a variable of its own."""

        most: ClassVar[int] = 3
        number: int

    assert Counted(1) == Counted(number=1)
    assert Counted.most == 3


def test_a_frozen_class_with_its_own_equality_has_the_usual_hash() -> None:
    @dataclass(frozen=True)
    class Loose:
        """A class that is equal to all others."""

        number: int

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass(frozen=True)
    class Hashed(Loose):
        """A class with a hash of its own too."""

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert Loose(1) == Loose(2)
    assert hash(Loose(1)) == hash((1,))
    assert hash(Hashed(1)) == 7


def test_the_standard_library_can_derive_a_class() -> None:
    @dataclasses.dataclass(frozen=True)
    class Marked(Memory):
        """A memory with a mark."""

        mark: int = 0

    given = {each.name: None for each in fields(Memory)}
    marked = Marked(**given, mark=2)  # type: ignore[arg-type]
    assert (marked.mark, marked.content) == (2, None)
    assert marked == replace(marked) != replace(marked, mark=3)
    with pytest.raises(FrozenInstanceError):
        marked.mark = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(type("Changing", (Memory,), {}))
    with pytest.raises(TypeError, match="frozen"):
        dataclass()(type("Changing", (Memory,), {}))
    with pytest.raises(TypeError, match="frozen"):
        dataclass(frozen=True)(type("Fixed", (Tally,), {}))


@pytest.mark.parametrize("kind", [Place, City, Tally, Named, Apart, Empty, ChunkHit])
def test_the_parameters_of_the_class_are_told(kind: Any) -> None:
    told = kind.__dataclass_params__

    assert (told.init, told.repr, told.order) == (True, True, False)
    assert told.frozen is (kind is not Tally)
    assert told.eq is (kind is not Apart)


def test_the_types_of_the_parameters_are_found() -> None:
    known = get_type_hints(Memory.__init__)

    assert set(known) == {"return", *(each.name for each in fields(Memory))}
    assert known["content"] is str
    assert get_type_hints(Place.__init__)["tags"] == dict[str, int]


def uses_the_standard_library(source: str) -> bool:
    """Say whether a module takes `dataclass` from the standard library."""
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, ast.ImportFrom) and each.module == "dataclasses":
            if {name.name for name in each.names} & {"dataclass", "make_dataclass", "*"}:
                return True
        elif isinstance(each, ast.Attribute) and each.attr in {"dataclass", "make_dataclass"}:
            return True
    return False


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from dataclasses import field, dataclass", True),
        ("from dataclasses import (\n    dataclass,\n    field,\n)", True),
        ("def late():\n    from dataclasses import dataclass as made", True),
        ("import dataclasses\n@dataclasses.dataclass\nclass A: ...", True),
        ("import dataclasses as d\nd.dataclass(frozen=True)", True),
        ("from dataclasses import field, is_dataclass", False),
        ("from byheart.startup.dataclass_types import dataclass", False),
    ],
)
def test_a_dataclass_of_the_standard_library_is_noticed(source: str, expected: bool) -> None:
    assert uses_the_standard_library(source) is expected


def test_all_dataclasses_of_the_project_are_made_this_way() -> None:
    own = SOURCE / "startup" / "dataclass_types.py"
    wrong = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path != own and uses_the_standard_library(path.read_text(encoding="utf-8"))
    ]

    assert wrong == []
