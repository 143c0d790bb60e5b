"""What the operating system gives: clocks, files, permissions, forks."""
