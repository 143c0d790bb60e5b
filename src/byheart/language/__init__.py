"""Which words a text has: keyword terms, and the words that tell similar texts apart."""
