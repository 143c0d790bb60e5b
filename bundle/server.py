"""Start the MCP server of Byheart for Claude Desktop."""

import sys

from byheart.interfaces.cli import main

sys.argv = ["byheart", "mcp"]
main()
