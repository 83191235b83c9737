"""What `turnmark setup` can set up: the service, and agents. Open `service.py` or `claude_code.py`.

Each subject says which files it would change, and how (`changes.py`); the command shows that, asks,
and carries it out. A subject never touches an entry that is not its own, and its undo takes away
what it put there and nothing else.
"""
