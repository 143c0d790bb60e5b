"""What happens to a memory: saving, versions, forgetting, references to it."""
