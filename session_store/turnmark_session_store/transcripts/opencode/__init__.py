"""opencode's sessions, finished or still written: `reader.py` says what is made of them."""
