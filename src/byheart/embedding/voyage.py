"""Get vectors from Voyage AI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from byheart.embedding.json_requests import JsonRequests
from byheart.embedding.openai import read_rows
from byheart.embedding.served_embedder import ServedEmbedder
from byheart.errors import EmbedderUnavailable

DEFAULT_URL = "https://api.voyageai.com/v1"
DEFAULT_MODEL = "voyage-3.5"
# The models read 32,000 tokens, but a vector of so long a text says little.
WINDOW_TOKENS = 4000


def voyage_embedder(
    model: str = DEFAULT_MODEL,
    *,
    api_key: str | None = None,
    url: str = DEFAULT_URL,
    requests: JsonRequests | None = None,
) -> ServedEmbedder:
    """Create an embedder that uses `POST /embeddings`; questions and passages are told apart."""
    if not api_key:
        raise EmbedderUnavailable("Voyage needs an API key", "set VOYAGE_API_KEY")

    def body(texts: Sequence[str], input_type: str) -> Mapping[str, Any]:
        # The service refuses an empty text.
        return {
            "model": model,
            "input": [text or " " for text in texts],
            "input_type": input_type,
        }

    headers = {"Authorization": f"Bearer {api_key}"}
    return ServedEmbedder(
        name=f"voyage/{model}",
        url=f"{url.rstrip('/')}/embeddings",
        body=partial(body, input_type="document"),
        query_body=partial(body, input_type="query"),
        rows=read_rows,
        dimensions=None,
        window_tokens=WINDOW_TOKENS,
        # Some models take no more than 120,000 tokens per request; a token may be one character.
        batch_texts=128,
        batch_characters=100_000,
        requests=replace(requests or JsonRequests(), headers=headers),
    )
