"""Find the local sockets of running servers that can answer a hook.

A server of the same store, settings and version has opened everything already. Its socket is in
the platform's folder for state files, which only its owner can enter; its name tells all three.
"""

from __future__ import annotations

import socket
from dataclasses import fields
from hashlib import sha256
from pathlib import Path

import platformdirs

import byheart
from byheart.settings import Settings

# These settings change nothing about the reaction to an event.
_OTHER = ("serve_host", "serve_port", "serve_workers", "log_level", "log_file")
_DIGITS = 16
HAS_SOCKETS = hasattr(socket, "AF_UNIX")


def socket_folder() -> Path:
    """Return the folder of the sockets."""
    return platformdirs.user_state_path("byheart", appauthor=False)


def name_sockets(settings: Settings) -> str:
    """Return the beginning of the names of all sockets for these settings and this version."""
    named = {each.name: getattr(settings, each.name) for each in fields(settings)}
    values = [(name, str(value)) for name, value in sorted(named.items()) if name not in _OTHER]
    said = repr((byheart.__version__, values))
    return f"hook-{sha256(said.encode(errors='replace')).hexdigest()[:_DIGITS]}-"
