"""Define dataclasses whose methods are written when they are first used.

`dataclasses.dataclass` compiles up to six methods of a class when the class is defined. The engine
has more than 200 such classes, and a short command uses few of them: defining them took a third of
its time. Here the methods that all classes can share are shared, and `__init__` is compiled when it
is looked up for the first time. For type checkers, this is `dataclasses.dataclass`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, cast

_UNSET: Any = object()


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
) -> Callable[[type], type]:
    """Make a class a dataclass, without `__post_init__`, `InitVar`, `order` and `weakref_slot`.

    Every field is a parameter of `__init__`, and counts for equality and hash.
    """

    def make(plain: type) -> type:
        own = dict(plain.__dict__)
        if own.get("__hash__") is None and "__eq__" in own:
            own.pop("__hash__", None)  # Python adds it to a class that defines `__eq__` alone.
        # A class and its base have to agree, so the standard library is told of `frozen` then. It
        # compiles two methods for that.
        derived = any(map(dataclasses.is_dataclass, plain.__mro__[1:]))
        collect = dataclasses.dataclass(
            init=False,
            repr=False,
            eq=False,
            slots=slots,
            kw_only=kw_only,
            frozen=frozen and derived,
        )
        made: Any = collect(plain)
        _refuse_what_is_missing(made)
        truth = made.__dataclass_params__
        truth.init, truth.repr, truth.eq, truth.frozen = True, True, eq, frozen
        methods: dict[str, Any] = {"__init__": _Init(made, frozen), "__repr__": _show}
        if eq:
            methods |= {"__eq__": _equals, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if frozen and slots:
            methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
        for name, method in methods.items():
            if name not in own:
                setattr(made, name, method)
        return cast("type", made)

    return make


def _refuse_what_is_missing(kind: Any) -> None:
    """Refuse what type checkers accept and the methods of this module would ignore."""
    refused = ["__post_init__"] if hasattr(kind, "__post_init__") else []
    for name, field in kind.__dataclass_fields__.items():
        if "InitVar" in str(field.type):
            refused.append(f"InitVar ({name})")
        elif not (field.init and field.compare and field.hash is None):
            refused.append(f"init, compare or hash of the field {name}")
    if refused:
        raise TypeError(
            f"{kind.__qualname__} uses what byheart.startup.dataclass_types does not have: "
            + ", ".join(refused)
        )


class _Init:
    """Stand for the `__init__` of a class until it is looked up, then take its place."""

    def __init__(self, kind: type, frozen: bool) -> None:
        self._kind = kind
        self._frozen = frozen

    def __get__(self, noun: object, owner: type) -> Any:
        written = _write_init(self._kind, self._frozen)
        self._kind.__init__ = written  # type: ignore[misc]
        return written.__get__(noun, owner)


def _write_init(kind: Any, frozen: bool) -> Any:
    used: dict[str, Any] = {"_set": object.__setattr__, "_UNSET": _UNSET}
    by_place, body = ["self"], ["pass"]
    by_name: list[str] = []
    types: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        name = value = field.name
        parameter = name
        if field.default is not dataclasses.MISSING:
            used[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            used[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_UNSET"
            value = f"_make_{name}() if {name} is _UNSET else {name}"
        (by_name if field.kw_only else by_place).append(parameter)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        types[name] = field.type
    parameters = ", ".join([*by_place, *(["*", *by_name] if by_name else [])])
    written = _compile(
        f"def __init__({parameters}):\n  " + "\n  ".join(body), used, kind.__module__
    )
    written.__qualname__ = f"{kind.__qualname__}.__init__"
    written.__module__ = kind.__module__
    written.__annotations__ = types | {"return": None}
    return written


def _compile(method: str, used: dict[str, Any], module: str) -> Any:
    """Compile `__init__` in its module, where `typing.get_type_hints` looks for its types."""
    made: dict[str, Any] = {}
    factory = f"def make({', '.join(used)}):\n {method}\n return __init__"
    exec(factory, vars(sys.modules[module]) if module in sys.modules else {}, made)
    return made["make"](**used)


@cache
def _reader_of(kind: Any) -> Callable[[object], tuple[object, ...]]:
    names = [field.name for field in dataclasses.fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda noun: tuple(getattr(noun, name) for name in names)


def _values_of(noun: object) -> tuple[object, ...]:
    kind: Any = type(noun)
    return _reader_of(kind)(noun)


def _equals(self: object, other: object) -> Any:  # or `NotImplemented`
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values_of(self) == _values_of(other)


def _hash(self: object) -> int:
    return hash(_values_of(self))


@recursive_repr()
def _show(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{self.__class__.__qualname__}({values})"


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: object) -> tuple[object, ...]:
    return _values_of(self)


def _set_state(self: Any, state: tuple[object, ...]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass

__all__ = ["dataclass"]
