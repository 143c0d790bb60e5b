"""What was said, and what goes into the prompt: turns, sessions, context, reminders."""
