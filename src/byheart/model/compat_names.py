"""List the names that callers of other systems use: every interface takes them from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from byheart.model import checks as check

# The least and the largest cosine.
COSINES = (-1, 1)


class CompatName(NamedTuple):
    """Describe another name of a parameter, or a cosine that is accepted and not used."""

    name: str
    # The parameter that the name means; `None` if its value is only checked.
    means: str | None
    # The flag of the command line.
    flag: str

    @property
    def note(self) -> str:
        """Return the text for schemas."""
        return f"Another name of {self.means}." if self.means else "Accepted; drops nothing."


# The compatibility names by verb. The Python library, REST and MCP take the names, the command line
# the flags. MCP's schemas do not show them: each name costs tokens in every conversation.
COMPAT_NAMES: Mapping[str, tuple[CompatName, ...]] = {
    "search": (
        CompatName("topK", "limit", "--top-k"),
        CompatName("source", "mode", "--source"),
        CompatName("similarity_threshold", None, "--similarity-threshold"),
    ),
}
# Other names of an answer's fields, by verb: REST adds them, MCP if the caller used such a name.
COMPAT_FIELDS: Mapping[str, Mapping[str, str]] = {"search": {"count": "total_results"}}


def translate(verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Move the values of compatibility names to the parameters that they mean."""
    own = dict(given)
    for each in COMPAT_NAMES.get(verb, ()):
        value = own.pop(each.name, None)
        if value is None:
            continue
        if each.means is None:
            check.check_number(each.name, value, *COSINES)
        else:
            own[each.means] = value
    return own


def other_flags(parameter: str | None) -> tuple[str, ...]:
    """List the flags of the command line that mean a parameter, or with `None`, nothing."""
    return tuple(
        each.flag for names in COMPAT_NAMES.values() for each in names if each.means == parameter
    )
