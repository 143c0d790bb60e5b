"""The official conformance suite, run against our transport: see docs/mcp.md."""
