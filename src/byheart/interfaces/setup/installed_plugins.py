"""Notice whether Claude Code has Byheart as a plugin, which brings its own server and hooks."""

from __future__ import annotations

import contextlib
import json

from byheart.interfaces.setup.clients import Machine
from byheart.interfaces.setup.launching import NAME


def enabled_plugin(machine: Machine) -> str | None:
    """Return the full name of the plugin, such as `byheart@market`, if it is enabled."""
    folder = machine.folder_of("CLAUDE_CONFIG_DIR", machine.home / ".claude")
    with contextlib.suppress(OSError, ValueError, AttributeError):
        held = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        for name, enabled in held.get("enabledPlugins", {}).items():
            if name.startswith(f"{NAME}@") and enabled:
                return str(name)
    return None
