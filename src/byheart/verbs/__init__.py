"""Which verbs does a store have? The groups of `MemoryStore`, and what its daily verbs do."""
