"""Errors and remarks name requests, never commands of the command line."""

from __future__ import annotations

from pathlib import Path

import byheart
from tests.interfaces.rest.conftest import Serve


def test_no_answer_of_a_server_names_a_command(serve: Serve, tmp_path: Path) -> None:
    with byheart.open(tmp_path / "memory.db", embedding_provider="none") as store:
        hidden = store.save("Anna drinks tea.").memory_id
        store.forget(hidden)
        shown = store.save("Ben drinks coffee.").memory_id
    client = serve().client()
    answers = [
        client.get(f"/memories/{hidden}"),
        client.get("/memories/mem_none"),
        client.patch(f"/memories/{shown}", json={"title": "Coffee", "expected_version": 7}),
        client.post("/promote", json={"memory_id": ["mem_none"]}),
        client.post("/entities/rename", json={"name": "Carl", "new_name": "Karl"}),
        client.post("/dedupe", json={}),
        client.post("/search", json={"query": "coffee"}),
        client.get("/status"),
        client.get("/health/ready"),
    ]
    assert not [each.text for each in answers if "byheart " in each.text or "store." in each.text]
    hints = [each.json().get("hint") for each in answers]
    assert hints[0] == f"bring it back with: POST /memories/{hidden}/restore"
    assert hints[1] == 'look for it with: POST /search with {"query": "…"}'
    assert hints[2] == f"read it with: GET /memories/{shown}, and change it again"
    assert hints[4] == "look for it with: GET /entities"
    for answer in answers[-4:]:
        assert "doctor with fix, which the operator of the store can run" in answer.text
