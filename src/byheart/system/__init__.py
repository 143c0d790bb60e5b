"""Use the operating system: clocks, files, permissions, forks."""
