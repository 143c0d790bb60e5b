"""Send JSON to an embedding server: retry temporary failures, report permanent ones."""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from byheart.errors import EmbedderUnavailable, EmbeddingError
from byheart.startup.dataclass_types import dataclass

FIRST_PAUSE_SECONDS = 0.5
LONGEST_ANSWER_BYTES = 256 * 1024 * 1024
# Ollama's message, with status 500, for a text that its model cannot embed. A retry would not help.
NO_NUMBERS = "unsupported value: NaN"


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, because they would send the API key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(_StayHere)


@dataclass(frozen=True, slots=True)
class JsonRequests:
    """Send requests to one server; `headers` may hold an API key and are never shown.

    Callers send at most `parallel` requests at the same time.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 30.0
    retries: int = 3
    total_seconds: float = 120.0
    parallel: int = 4
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def post(self, url: str, body: Mapping[str, Any], total_seconds: float | None = None) -> Any:
        """Send a request and return the decoded answer; retry on 429, 5xx and network errors."""
        deadline = self.clock() + (total_seconds or self.total_seconds)
        attempt = 0
        while True:
            try:
                timeout = min(self.timeout_seconds, max(deadline - self.clock(), 0.1))
                return self._post_once(url, body, timeout)
            except _Passing as failure:
                pause = failure.pause_seconds
                if pause is None:
                    # Jitter, so that clients that failed together do not retry at the same moment.
                    pause = FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.75, 1.25)
                if attempt >= self.retries or self.clock() + pause > deadline:
                    raise EmbedderUnavailable(
                        f"{url} failed {attempt + 1} times: {failure}", failure.hint
                    ) from None
            attempt += 1
            self.sleep(pause)

    def _post_once(self, url: str, body: Mapping[str, Any], timeout_seconds: float) -> Any:
        headers = {"Content-Type": "application/json", **self.headers}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
        try:
            with OPENER.open(request, timeout=timeout_seconds) as response:
                answer = response.read(LONGEST_ANSWER_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(url, error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise _Passing(f"{reason or type(error).__name__}", "is the server running?") from None
        try:
            return json.loads(answer)
        except ValueError:
            raise EmbeddingError(
                f"{url} did not answer with JSON", "check that the URL is an embedding server's"
            ) from None

    def _refusal(self, url: str, error: urllib.error.HTTPError) -> Exception:
        """Translate an HTTP status into a temporary or a permanent error."""
        status = f"{error.code} {error.reason}"
        if error.code == 429:
            return _Passing(status, "wait, or ask the provider for a higher limit", _pause(error))
        if error.code in (401, 403):
            return EmbedderUnavailable(f"{url} refused the key: {status}", "check the API key")
        detail = error.read(200).decode("utf-8", "replace").strip()
        if error.code >= 500 and NO_NUMBERS not in detail:
            return _Passing(status, "see the server's log", _pause(error))
        for secret in self.headers.values():  # some servers quote the request
            detail = detail.replace(secret.rpartition(" ")[2], "…")
        return EmbeddingError(f"{url} answered {status}: {detail}", "check the URL and the model")


class _Passing(Exception):
    """Signal a failure that a retry may resolve."""

    def __init__(self, message: str, hint: str, pause_seconds: float | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.pause_seconds = pause_seconds


def _pause(error: urllib.error.HTTPError) -> float | None:
    try:
        return max(0.0, float(error.headers.get("Retry-After") or ""))
    except ValueError:
        return None
