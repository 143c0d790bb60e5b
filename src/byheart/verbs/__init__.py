"""Define the groups of verbs of `MemoryStore`, and carry out its daily verbs."""
