"""Say where each shell looks for the completion of a command."""

from __future__ import annotations

from pathlib import Path

from platformdirs.unix import Unix

from byheart.interfaces.setup.launching import NAME

SHELLS = ("bash", "zsh", "fish")


def completion_file(shell: str) -> Path:
    """Return the user's file for the completion of Byheart in a shell."""
    # Shells use the XDG folders on every platform, including macOS.
    folders = Unix()
    if shell == "bash":
        return folders.user_data_path / "bash-completion" / "completions" / NAME
    if shell == "fish":
        return folders.user_config_path / "fish" / "completions" / f"{NAME}.fish"
    return Path.home() / ".zfunc" / f"_{NAME}"
