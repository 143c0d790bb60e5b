"""Register Byheart with agents, by careful edits of their own configuration files."""
