"""Write the files of the tools' definitions: `python -m byheart.interfaces.mcp.reference`."""

from __future__ import annotations

import json
from pathlib import Path

from byheart.interfaces.mcp.definitions import make_definitions
from byheart.interfaces.mcp.tool_texts import FILES, ToolProfile


def tools_json(profile: ToolProfile = "core") -> str:
    """Return the definitions of all tools as text."""
    return json.dumps(make_definitions(profile), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    for each, name in FILES.items():
        Path(__file__).with_name(name).write_text(tools_json(each), encoding="utf-8")
