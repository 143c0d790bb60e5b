"""Generated calls to every tool: none is answered with "something unexpected went wrong"."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

from byheart.interfaces.mcp.tool_texts import TOOLS, load_definitions
from tests.fuzz.report import Report
from tests.fuzz.served import fill
from tests.fuzz.values import hostile_value, valid_values
from tests.interfaces.mcp.conftest import RawServer

_SCHEMAS = {each["name"]: each["inputSchema"] for each in load_definitions("full")}
_NAMES = sorted({name for tool in TOOLS for name in tool.parameters})


def run(seconds: float, seed: int, most: int | None = None) -> Report:
    """Call tools for so long, or so many times if that is fewer."""
    report, chance = Report(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="byheart-fuzz-") as folder:
        path = Path(folder) / "memory.db"
        held = fill(path, 600)
        server = RawServer(path, BYHEART_CONFIG=str(Path(folder) / "none.toml"))
        try:
            server.begin()
            end = time.monotonic() + seconds
            while time.monotonic() < end and report.tried != most:
                _call(server, chance, held, report)
            if server.ask("ping", id=1)["result"] != {}:
                report.failures.append("ping is not answered")
        finally:
            _end(server)
    return report


def _call(server: RawServer, chance: random.Random, held: list[str], report: Report) -> None:
    # The more arguments a tool has, the more there is to try.
    [name] = chance.choices(
        list(_SCHEMAS), [1 + len(each["properties"]) for each in _SCHEMAS.values()]
    )
    arguments = _make_arguments(name, chance, held)
    report.tried += 1
    answer = server.ask("tools/call", {"name": name, "arguments": arguments}, id=report.tried + 10)
    call = f"{name}({str(arguments)[:600]})"
    if "result" not in answer:
        report.failures.append(f"{call}: {str(answer)[:300]}")
        return
    told = answer["result"]["content"][0]["text"]
    if not told.strip() or "something unexpected" in told or "Traceback" in told:
        report.failures.append(f"{call}: {told[:500]!r}")


def _make_arguments(name: str, chance: random.Random, held: list[str]) -> dict[str, Any]:
    schema = _SCHEMAS[name]
    known = schema["properties"]
    chosen = {each for each in schema["required"] if chance.random() < 0.95}
    chosen |= set(chance.sample(list(known), chance.randint(0, min(6, len(known)))))
    ids = chance.sample(held, 3)
    hostility = chance.choice((0.0, 0.2, 0.8))
    given = {
        each: hostile_value(chance)
        if chance.random() < hostility
        else chance.choice(valid_values(each, known[each], ids))
        for each in chosen
    }
    if chance.random() < 0.05:
        given[chance.choice((*_NAMES, "bogus", ""))] = hostile_value(chance)
    return given


def _end(server: RawServer) -> None:
    server.process.kill()
    server.process.wait()
    for pipe in (server.process.stdin, server.process.stdout, server.process.stderr):
        if pipe:
            pipe.close()
