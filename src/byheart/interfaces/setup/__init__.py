"""How do agents come to know of Byheart? Their own configuration files, changed with care."""
