"""Record conversations and build prompts from them: turns, sessions, context, reminders."""
