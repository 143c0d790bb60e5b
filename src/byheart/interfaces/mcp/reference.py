"""Write `tools.json`: `python -m byheart.interfaces.mcp.reference`."""

from __future__ import annotations

import json
from pathlib import Path

from byheart.interfaces.mcp.definitions import make_definitions


def tools_json() -> str:
    """Return the definitions of all tools as text."""
    return json.dumps(make_definitions(), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("tools.json").write_text(tools_json(), encoding="utf-8")
