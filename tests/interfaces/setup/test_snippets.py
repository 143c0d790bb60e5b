"""The snippets of the documentation are what `setup` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from byheart.interfaces.setup.clients import CLIENTS, Client
from byheart.interfaces.setup.snippets import render_snippets

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_snippet_starts_byheart(client: Client) -> None:
    section = render_snippets().split(f"### {client.title}\n")[1].split("\n### ")[0]
    block = section.split("```")[1].removeprefix(client.servers.language)
    entry = client.servers.read(block)
    assert entry is not None
    assert (entry["command"], entry["args"]) == ("byheart", ["mcp"])
    assert f"byheart setup {client.name}" in section


def test_the_document_has_the_snippets() -> None:
    text = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    shown = text.split("<!-- snippets -->")[1].split("<!-- /snippets -->")[0]
    assert shown.strip() == render_snippets().strip(), (
        "put the answer of this between the marks: python -m byheart.interfaces.setup.snippets"
    )
