"""A folder to put files into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a file below the root, making its folders."""

    def write(path: str, content: str | bytes = "some text\n") -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write
