"""Start fast: make classes and patterns at a small part of their usual cost."""
