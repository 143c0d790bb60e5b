"""Download a model's files from the Hugging Face hub.

This module uses plain HTTPS instead of `huggingface_hub`, which brings its own progress, time
limits and cache, and changes them from version to version. Here a dead network is noticed within
seconds.
"""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from byheart.embedding.progress import Progress
from byheart.embedding.sentence_model import REQUIRED_FILES, WEIGHTS
from byheart.errors import EmbedderUnavailable

OPTIONAL_FILES = (
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
CONNECT_SECONDS = 3.0
READ_SECONDS = 20.0
BLOCK_BYTES = 1 << 20


def download_from_hub(model: str, into: Path, *, url: str, progress: Progress) -> Path:
    """Download the files of a model into a folder; give up early if the hub does not answer."""
    base = f"{url.rstrip('/')}/{model}/resolve/main"

    def download(name: str) -> bool:
        report = progress if name == WEIGHTS else None
        return _download(urllib.request.Request(f"{base}/{name}"), into / name, report)

    _give_up_after(CONNECT_SECONDS, lambda: download(REQUIRED_FILES[0]))
    missing = [name for name in REQUIRED_FILES[1:] if not download(name)]
    if missing:
        raise EmbedderUnavailable(f"{base} has no {missing[0]}")
    for name in OPTIONAL_FILES:
        download(name)
    return into


def _download(request: urllib.request.Request, target: Path, progress: Progress | None) -> bool:
    """Stream one file to disk, and return whether the server has it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(request, timeout=READ_SECONDS) as response:
            total = int(response.headers.get("Content-Length") or 0)
            with target.open("wb") as file:
                while block := response.read(BLOCK_BYTES):
                    file.write(block)
                    if progress:
                        progress(file.tell(), total)
                received = file.tell()
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 404:
                return False
            raise EmbedderUnavailable(f"{request.full_url} answered {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise EmbedderUnavailable(f"{request.host} cannot be reached: {reason}") from None
    if total and received != total:
        raise EmbedderUnavailable(f"{request.full_url} broke off after {received} bytes")
    return True


def _give_up_after(seconds: float, work: Callable[[], bool]) -> None:
    """Run `work` with a time limit, because looking up a host name has none of its own."""
    outcome: list[bool | EmbedderUnavailable] = []

    def run() -> None:
        try:
            outcome.append(work())
        except EmbedderUnavailable as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    match outcome:
        case [EmbedderUnavailable() as error]:
            raise error
        case [False]:
            raise EmbedderUnavailable("there is no such model")
        case []:
            raise EmbedderUnavailable(f"no answer within {seconds:g} s")
