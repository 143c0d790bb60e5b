"""Print the snippets for editing by hand: python -m byheart.interfaces.setup.snippets."""

from __future__ import annotations

from collections.abc import Iterator

from byheart.interfaces.setup.clients import CLIENTS, Client
from byheart.interfaces.setup.launching import NAME, Launch

_LAUNCH = Launch(NAME, ("mcp",))


def render_snippets() -> str:
    """Return the section of docs/mcp.md with a snippet for each client."""
    return "\n".join(line for client in CLIENTS.values() for line in _section(client))


def _section(client: Client) -> Iterator[str]:
    yield f"### {client.title}"
    yield ""
    yield f"`byheart setup {client.name}` does it; or by hand:"
    yield ""
    yield from (f"- {place}" for place in client.places)
    if client.project_path is not None:
        yield f"- for one project (`--project`): `{client.project_path}`"
    yield ""
    yield f"```{client.servers.language}"
    yield client.snippet(_LAUNCH).rstrip("\n")
    yield "```"
    yield ""
    yield f"Then {client.then}."
    yield ""


if __name__ == "__main__":
    print(render_snippets(), end="")
