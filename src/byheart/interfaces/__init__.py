"""Let people and agents reach a store: an interface calls `MemoryStore` and renders the answer."""
