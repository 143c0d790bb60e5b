"""Read and replace the config file as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from byheart.errors import SettingsError
from byheart.system.file_opening import read_to_end
from byheart.system.private_files import FILE_MODE, make_private_folder

CONFIG_VARIABLE = "BYHEART_CONFIG"
# The table of the file that holds the settings.
FILE_TABLE = "memory"


def default_config_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the config file, whether it exists or not."""
    named = (os.environ if environ is None else environ).get(CONFIG_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    return platformdirs.user_config_path("byheart", appauthor=False) / "config.toml"


def read_text(path: Path) -> str:
    """Read the config file; a missing file counts as empty."""
    try:
        # utf-8-sig, because Windows editors often begin a file with a byte order mark.
        return read_to_end(path).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path} is not UTF-8 text (byte {error.start})", "save the file as UTF-8"
        ) from error
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}",
            f"correct the file, or name another in {CONFIG_VARIABLE}",
        ) from error


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of the config file."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}", "correct that line") from error


def write_atomically(path: Path, text: str, *, private: bool = False) -> None:
    """Replace the file in one step, so that no reader ever sees an incomplete file."""
    target = path.resolve()  # the config file is often a link to a folder of dotfiles
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        make_private_folder(target.parent)
        # The file may contain an API key, so only its owner may read it, unless an existing file
        # is already readable by others.
        mode = target.stat().st_mode & 0o777 if target.exists() else FILE_MODE
        if private:
            mode &= FILE_MODE
        temporary.touch(mode=FILE_MODE)
        temporary.chmod(mode)
        with temporary.open("wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SettingsError(
            f"{path} cannot be written: {error.strerror}", "check the folder's permissions"
        ) from error
