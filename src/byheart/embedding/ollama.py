"""Get vectors from an Ollama server."""

from __future__ import annotations

import urllib.request

from byheart.embedding.json_requests import JsonRequests
from byheart.embedding.served_embedder import ServedEmbedder
from byheart.errors import EmbedderUnavailable

DEFAULT_URL = "http://localhost:11434"
DEFAULT_MODEL = "all-minilm:l6-v2"
# Ollama cuts longer inputs silently. Its smallest embedding models read 512 tokens. Half of that,
# counted by an estimate that errs upwards, is never cut.
WINDOW_TOKENS = 254


def ollama_embedder(
    model: str = DEFAULT_MODEL,
    *,
    url: str = DEFAULT_URL,
    dimensions: int | None = None,
    window_tokens: int = WINDOW_TOKENS,
    requests: JsonRequests | None = None,
) -> ServedEmbedder:
    """Create an embedder that uses `POST /api/embed`."""
    return ServedEmbedder(
        name=f"ollama/{model}",
        url=f"{url.rstrip('/')}/api/embed",
        body=lambda texts: {"model": model, "input": list(texts)},
        rows=lambda answer: answer["embeddings"],
        dimensions=dimensions,
        window_tokens=window_tokens,
        batch_texts=64,
        batch_characters=100_000,
        requests=requests or JsonRequests(),
    )


def check_answers(url: str, timeout_seconds: float) -> None:
    """Raise unless an Ollama server answers at once."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/api/version", timeout=timeout_seconds):
            pass
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        raise EmbedderUnavailable(
            f"no Ollama server at {url} ({reason})", "start it with: ollama serve"
        ) from None
