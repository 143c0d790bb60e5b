"""Report what the doctor checked, and repair it on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from byheart.errors import Do, Hint
from byheart.model import Finding
from byheart.storage.sql.connection import Connection

FIX = Hint("run: ", Do("admin.doctor", fix=True))
REBUILD = Hint("run: ", Do("admin.doctor", rebuild=True))

# Repairs rows within one transaction.
Mend = Callable[[Connection], None]
# Runs a repair in a transaction of its own.
Transact = Callable[[Mend], object]


class Checked(NamedTuple):
    """A finding, and the function that repairs it, if there is one."""

    finding: Finding
    mend: Callable[[], object] | None = None


def passed(name: str) -> Checked:
    """Report that a check found nothing wrong."""
    return Checked(Finding(name, True, "in order"))


def examine(check: Callable[[], list[Checked]], *, fix: bool) -> list[Finding]:
    """Check everything; with `fix`, repair what is possible, then check again."""
    checked = check()
    mends = [each.mend for each in checked if each.mend is not None]
    if not fix or not mends:
        return [each.finding for each in checked]
    for mend in mends:
        mend()
    again = {each.finding.check: each.finding for each in check()}
    known = {each.finding.check for each in checked}
    return [_after(each, again) for each in checked] + [
        finding for name, finding in again.items() if name not in known
    ]


def _after(before: Checked, again: dict[str, Finding]) -> Finding:
    finding = again.get(before.finding.check, before.finding)
    if before.mend is None or not finding.ok or finding.message == before.finding.message:
        return finding
    return replace(finding, message=Hint("fixed: ", before.finding.message), hint="", fixed=True)
