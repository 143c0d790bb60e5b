"""Read the words of a text: keyword terms, and words that distinguish similar texts."""
