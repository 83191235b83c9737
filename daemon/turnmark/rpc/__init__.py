"""The socket: newline-framed JSON-RPC 2.0 between the daemon and its clients.

`framing` cuts bytes into frames, `messages` turns frames into requests and results into frames,
`dispatch` runs methods, `connection` is one client with its `outgoing` half, `server` is the
listener, `subscriptions` puts the bus on the wire. Nothing here knows what a method does: the table
comes from outside. Start reading at `connection`.

Promises:

- No bytes end a connection, except where the end of the frame can't be found.
- Ordered methods of one session on one connection run in the order sent; all others side by side.
- A client that does not read costs at most `ROOM_BYTES` and the answers to the requests it has in
  flight; it is not read further, and nobody else waits for it.
- An error in a method is an answer. The daemon goes on.
- Nothing wakes up while no client speaks.
"""

from typing import TYPE_CHECKING

from turnmark_events.lazy_exports import exported_lazily

if TYPE_CHECKING:
    from turnmark.rpc.dispatch import Call, Method
    from turnmark.rpc.server import Server
    from turnmark.rpc.subscriptions import subscription_methods
else:
    __getattr__ = exported_lazily(
        __name__,
        {
            "dispatch": "Call Method",
            "server": "Server",
            "subscriptions": "subscription_methods",
        },
    )

__all__ = ["Call", "Method", "Server", "subscription_methods"]
