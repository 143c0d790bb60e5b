"""Get vectors from OpenAI, or from any server that speaks its protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from byheart.embedding.json_requests import JsonRequests
from byheart.embedding.served_embedder import ServedEmbedder
from byheart.errors import EmbedderUnavailable

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "text-embedding-3-small"
DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
# The service reads 8,191 tokens. Chinese text can have two tokens where the estimate counts one.
WINDOW_TOKENS = 4000


def openai_embedder(
    model: str = DEFAULT_MODEL,
    *,
    api_key: str | None = None,
    url: str = DEFAULT_URL,
    dimensions: int | None = None,
    window_tokens: int = WINDOW_TOKENS,
    requests: JsonRequests | None = None,
) -> ServedEmbedder:
    """Create an embedder that uses `POST /embeddings`; only OpenAI itself requires an API key."""
    if not api_key and url.rstrip("/") == DEFAULT_URL:
        raise EmbedderUnavailable("OpenAI needs an API key", "set OPENAI_API_KEY")

    def body(texts: Sequence[str]) -> dict[str, Any]:
        # The service refuses an empty text.
        asked = {"model": model, "input": [text or " " for text in texts]}
        return {**asked, "dimensions": dimensions} if dimensions else asked

    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return ServedEmbedder(
        name=f"openai/{model}" + (f"/{dimensions}" if dimensions else ""),
        url=f"{url.rstrip('/')}/embeddings",
        body=body,
        rows=read_rows,
        dimensions=dimensions or DIMENSIONS.get(model),
        window_tokens=window_tokens,
        # The service takes at most 2,048 texts and 300,000 tokens per request.
        batch_texts=256,
        batch_characters=250_000,
        requests=replace(requests or JsonRequests(), headers=headers),
    )


def read_rows(answer: Any) -> list[Any]:
    """Read the vectors of an answer in the order of the texts."""
    return [item["embedding"] for item in sorted(answer["data"], key=lambda item: item["index"])]
