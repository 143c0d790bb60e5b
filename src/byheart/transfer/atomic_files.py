"""Write files completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from byheart.errors import ByheartError, Hint, InvalidInput, Option
from byheart.system.file_opening import open_to_write
from byheart.system.private_files import open_private


@contextmanager
def written_whole(path: Path, overwrite: bool) -> Iterator[BinaryIO]:
    """Write to a temporary name first: a file with its final name is complete.

    Links are followed. A target that is not a regular file (a device, a pipe) is written
    directly.
    """
    refuse_existing(path, overwrite, ordinary=False)
    if path.exists() and not path.is_file():
        with explained(path), open_to_write(path) as out:
            yield out
        return
    target = path.resolve()
    with explained(path):
        partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
        try:
            with open(partial, "xb", opener=open_private) as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            refuse_existing(path, overwrite)
            if target.exists():
                partial.chmod(target.stat().st_mode & 0o777)  # keep the permissions
            partial.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


def refuse_existing(path: Path, overwrite: bool, *, ordinary: bool = True) -> None:
    """Raise if the file exists, unless overwriting is allowed."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder", "name a file")
    if path.exists() and not overwrite:
        raise InvalidInput(
            f"{path} exists already",
            Hint("choose another name, or allow it with ", Option("overwrite", True)),
        )
    if ordinary and path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is a device or a pipe, not a file", "name a file")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Explain what to do if the system refuses to write a file."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise ByheartError(
            f"cannot write {path}: {error.strerror or error}",
            "free some space, or choose another place"
            if full
            else "choose a place that exists and that you may write to",
        ) from error
