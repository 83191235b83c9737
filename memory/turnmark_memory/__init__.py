"""Memory: archives evidence, lets a writer distil it, installs topics, recalls them.

It promises that every turn of every live branch is written once, that a crash is a redo and never a
loss, and that each block says where it comes from. Open `memory.py` next; `worker.py` decides when,
`install.py` how.
"""

from turnmark_memory.memory import Memory, MemorySettings

__all__ = ["Memory", "MemorySettings"]
