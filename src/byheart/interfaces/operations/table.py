"""List every verb that an interface may offer; its parameters come from the verb's signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, get_args, get_type_hints

from byheart.errors import ByheartError, Hint, InvalidInput, Spelling
from byheart.interfaces.operations.grants import Grant, Reach
from byheart.interfaces.operations.parameters import PARAMETERS, SPECIAL, Schema
from byheart.model import Access, Voice, to_wire
from byheart.model.checks import check_label, check_names
from byheart.model.field_types import Verb
from byheart.model.fields import FIELDS, FILTERS
from byheart.startup.dataclass_types import dataclass
from byheart.store import MemoryStore

_NOT_GIVEN = inspect.Parameter.empty


# A verb reports with a value of its own.
OnProgress = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Parameter:
    """Describe one parameter of a verb; `default` is its value if the caller gives none."""

    name: str
    schema: Schema
    required: bool
    nullable: bool
    default: Any = None


@dataclass(frozen=True)
class Operation:
    """Describe a verb of `MemoryStore` as the interfaces offer it."""

    name: str
    needs: Access
    reach: Reach
    # The place of the verb in `MemoryStore`: `group.verb`, if it is not this operation's name.
    verb: str = ""
    # The flag that makes this verb write; without it, the verb only reads.
    writes_if: str | None = None
    # The verb that does the same for a list of items.
    several: str | None = None
    # Whether a memory may be named by the path of its file.
    by_path: bool = False
    # The least voice of a caller that writes.
    voice: Voice = "agent"
    # Fields of the answer that are about the whole store: no API key sees them.
    withheld: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Return the parameters, in the order of the verb's signature."""
        return {each.name: each for each in self._parameters()}

    def needed_for(self, given: Mapping[str, Any]) -> Access:
        """Return the access that a caller needs for a call with these parameters."""
        writes = self.writes_if is not None and given.get(self.writes_if)
        return "write" if writes else self.needs

    @property
    def result(self) -> Any:
        """Return the type of the answer."""
        return self._hints["return"]

    @cached_property
    def reports_progress(self) -> bool:
        """Tell whether the verb can report its progress."""
        return "on_progress" in inspect.signature(self._method).parameters

    @property
    def summary(self) -> str:
        """Return the first line of the verb's docstring."""
        return (inspect.getdoc(self._method) or "").partition("\n")[0]

    def bind(self, store: MemoryStore) -> Callable[..., Any]:
        """Return the verb of a store."""
        bound: Callable[..., Any] = attrgetter(self.verb or self.name)(store)
        return bound

    @cached_property
    def _method(self) -> Any:
        *groups, name = (self.verb or self.name).split(".")
        owner: type = MemoryStore
        for group in groups:
            owner = get_type_hints(owner)[group]
        return getattr(owner, name)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self._method)

    def _parameters(self) -> Iterator[Parameter]:
        for name, parameter in inspect.signature(self._method).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                [fields] = get_args(self._hints[name])  # Unpack[…] of a TypedDict
                for field, kind in get_type_hints(fields).items():
                    yield self._parameter(field, kind, self._defaults.get(field))
            elif name not in ("self", "on_progress"):
                yield self._parameter(name, self._hints[name], parameter.default)

    @property
    def _defaults(self) -> Mapping[str, Any]:
        """Give the defaults of the keywords that the signature does not spell out."""
        if self.name == "update":
            return {}  # a field that is not given stays as it is
        return _FIELD_DEFAULTS if self.name in get_args(Verb) else _FILTER_DEFAULTS

    def _parameter(self, name: str, kind: Any, default: Any) -> Parameter:
        return Parameter(
            name,
            SPECIAL.get((self.name, name)) or PARAMETERS[name],
            required=default is _NOT_GIVEN,
            nullable=type(None) in get_args(kind),
            default=None if default is _NOT_GIVEN else default,
        )


_FIELD_DEFAULTS = {field.name: field.default for field in FIELDS}
_FILTER_DEFAULTS = {name: asked.default for name, (asked, _) in FILTERS.items()}

OPERATIONS: Mapping[str, Operation] = {
    each.name: each
    for each in (
        Operation("save", "write", "filter", several="save_many", voice="stranger"),
        Operation("search", "read", "filter"),
        Operation("recall", "read", "filter"),
        Operation("get", "read", "memory", by_path=True),
        Operation("expand", "read", "memory", by_path=True),
        Operation("history", "read", "memory"),
        Operation("list", "read", "filter"),
        Operation("brief", "read", "memory", "views.brief"),
        Operation("chunks", "read", "memory", "views.chunks", by_path=True),
        Operation("render", "read", "memory", "views.render", by_path=True),
        Operation("similar", "read", "both", "views.similar"),
        # A memory may have had its earlier texts in another session.
        Operation("versions", "read", "space", "views.versions"),
        Operation("map", "read", "filter", "views.map"),
        Operation("timeline", "read", "filter", "views.timeline"),
        Operation("update", "write", "memory"),
        Operation("supersede", "write", "memory"),
        Operation("feedback", "write", "memory"),
        Operation("forget", "write", "filter"),
        Operation("restore", "write", "memory"),
        Operation("review", "read", "filter", "review.queue"),
        # An item may have memories of several sessions.
        Operation("keep_item", "write", "space", "review.keep"),
        Operation("unkeep_item", "write", "space", "review.unkeep"),
        Operation("quarantine", "read", "filter", "review.quarantine"),
        Operation("trust", "write", "filter", "review.trust", voice="user"),
        Operation("distrust", "write", "filter", "review.distrust"),
        Operation("merge", "write", "memory", "admin.merge"),
        Operation("cleanup", "write", "filter", "admin.cleanup"),
        Operation("dedupe", "read", "filter", "admin.dedupe", writes_if="apply"),
        Operation("log", "write", "filter", several="log_many", voice="stranger"),
        Operation("transcript", "read", "filter", "sessions.transcript"),
        Operation("summarize", "write", "filter", "sessions.summarize"),
        Operation("context", "read", "filter"),
        Operation("receipts", "read", "both", "receipts.list"),
        Operation("receipt", "read", "both", "receipts.get"),
        Operation("pin", "write", "memory"),
        Operation("unpin", "write", "memory"),
        Operation("sessions", "read", "space", "sessions.list"),
        Operation("session_stats", "read", "filter", "sessions.stats"),
        Operation("resume", "read", "filter", "sessions.resume"),
        # A key for one session may not promote: global memories belong to no session.
        Operation("promote", "write", "space", "sessions.promote"),
        Operation("forget_session", "write", "filter", "sessions.forget"),
        Operation("restore_session", "write", "filter", "sessions.restore"),
        Operation("entities", "read", "space", "entities.list"),
        Operation("rename_entity", "write", "space", "entities.rename"),
        Operation("merge_entities", "write", "space", "entities.merge"),
        Operation(
            "status",
            "read",
            "space",
            withheld=("store", "spaces", "size_bytes", "index_bytes"),
        ),
        Operation(
            "stats", "read", "space", "admin.stats", writes_if="reset", withheld=("store", "sizes")
        ),
    )
}


def perform(
    store: MemoryStore,
    operation: Operation,
    given: Mapping[str, Any],
    grant: Grant,
    spelling: Spelling = str,
    on_progress: OnProgress | None = None,
) -> Any:
    """Call a verb as far as the grant allows; return the answer in wire format.

    `spelling` spells the operations that remarks in the answer name. A verb that reports its
    progress does so to `on_progress`.
    """
    answer = to_wire(carry_out(store, operation, given, grant, on_progress), spelling)
    if grant.space is None or not operation.withheld:
        return answer
    return {name: each for name, each in answer.items() if name not in operation.withheld}


def perform_many(
    store: MemoryStore,
    operation: Operation,
    items: object,
    grant: Grant,
    of_all: Mapping[str, Any] | None = None,
    spelling: Spelling = str,
) -> Any:
    """Call a verb for each item of a list; do nothing unless all items are allowed."""
    common = dict(of_all or {})
    # This comes before the items: a caller without access is refused even for an empty list.
    grant.narrow(operation, common, store)
    if operation.several is None:
        raise InvalidInput(f"{operation.name} takes no list of items", "ask for one at a time")
    asked = [
        _item(store, operation, number, item, common, grant)
        for number, item in enumerate(_check_items(items))
    ]
    return to_wire(getattr(store, operation.several)(asked, check_first=True), spelling)


def carry_out(
    store: MemoryStore,
    operation: Operation,
    given: Mapping[str, Any],
    grant: Grant,
    on_progress: OnProgress | None = None,
) -> Any:
    """Call a verb within the grant, for the interface's own use: no field is withheld."""
    reports = {"on_progress": on_progress} if on_progress and operation.reports_progress else {}
    answer = operation.bind(store)(**narrow(store, operation, given, grant), **reports)
    return grant.visible(answer) if operation.name == "history" else answer


def narrow(
    store: MemoryStore, operation: Operation, given: Mapping[str, Any], grant: Grant
) -> dict[str, Any]:
    """Return the arguments for a caller's call of a verb, or refuse it; do not call it yet."""
    check_names(given, tuple(operation.parameters), f"parameter of {operation.name}")
    asked = grant.narrow(operation, dict(given), store)
    for parameter in operation.parameters.values():
        if parameter.required and parameter.name not in asked:
            raise InvalidInput(
                f"{operation.name} needs {parameter.name}",
                f"give {parameter.name}: {parameter.schema['description']}",
            )
    if grant.who is not None and "who" in operation.parameters:
        check_label("who", asked.get("who", grant.who))  # checked, then replaced by the grant's
        asked["who"] = grant.who
    return asked


def _check_items(items: object) -> Sequence[object]:
    if not isinstance(items, list) or not items:
        raise InvalidInput(
            "items must be a list with something in it",
            'send {"items": [{"content": …}, …]}, each with its own fields',
        )
    return items


def _item(
    store: MemoryStore,
    operation: Operation,
    number: int,
    item: object,
    of_all: Mapping[str, Any],
    grant: Grant,
) -> dict[str, Any]:
    if not isinstance(item, dict) or item.keys() & of_all.keys():
        without = f" without {' and '.join(of_all)}, which is said once" if of_all else ""
        raise InvalidInput(
            f"item {number} is not an object{without}", 'send {"content": …} for each'
        )
    try:
        return narrow(store, operation, {**item, **of_all}, grant)
    except ByheartError as error:
        error.message = Hint(f"item {number}: ", error.message)
        raise
