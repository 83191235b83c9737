"""OpenClaw's databases and files, finished or still written: `reader.py` says what they become."""
