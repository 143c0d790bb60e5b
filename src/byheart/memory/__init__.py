"""Save, change, forget and find memories."""
