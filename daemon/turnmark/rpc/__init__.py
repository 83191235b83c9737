"""The socket: newline-framed JSON-RPC 2.0 between the daemon and its clients.

`framing` cuts bytes into frames, `messages` turns frames into requests and results into frames,
`dispatch` runs methods, `connection` is one client, `server` is the listener, `subscriptions` puts
the bus on the wire. Nothing here knows what a method does: the table comes from outside.
"""

from turnmark.rpc.dispatch import Call, Method
from turnmark.rpc.server import Server
from turnmark.rpc.subscriptions import subscription_methods

__all__ = ["Call", "Method", "Server", "subscription_methods"]
