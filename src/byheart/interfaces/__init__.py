"""How do people and agents reach it? An interface calls `MemoryStore` and renders the answer."""
