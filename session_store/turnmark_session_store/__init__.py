"""The session store: every turn of every branch, one gate for tips and heads, and the marks.

It promises that an acknowledged turn survives kill -9 and power loss, that no tip or head moves
without its event row, and that a mark never claims more than is true. It does not know that a
memory exists: workspaces are names to it. Open `store.py` next; `heads.py` is the gate.
"""

from typing import TYPE_CHECKING

from turnmark_events.lazy_exports import exported_lazily

if TYPE_CHECKING:
    from turnmark_session_store.store import SessionStore
else:
    __getattr__ = exported_lazily(
        __name__,
        {
            "store": "SessionStore",
        },
    )

__all__ = ["SessionStore"]
