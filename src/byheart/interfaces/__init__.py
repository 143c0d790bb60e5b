"""How do people and agents reach it? A door calls `MemoryStore` and renders the answer."""
