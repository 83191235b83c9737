"""`turnmark mcp`: an MCP server on standard input and output that speaks to the daemon."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from turnmark.commands.invocation import Invocation
from turnmark_events.errors import Unavailable

NEEDED = "pip install 'turnmark[mcp]'"


def is_here() -> bool:
    """Tells whether the MCP library is installed, without importing it."""
    return find_spec("mcp") is not None and find_spec("mcp_types") is not None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments: there are none of its own."""
    del parser


def run(invocation: Invocation) -> int:
    """Serves one client until it closes standard input.

    Raises:
        Unavailable: if the MCP library isn't installed.
    """
    if not is_here():
        raise Unavailable(f"the MCP server needs a library that is not installed; {NEEDED}")
    import anyio  # noqa: PLC0415 - both cost a second that no other command should pay

    from turnmark.client import connect  # noqa: PLC0415
    from turnmark.commands.connection import place_of  # noqa: PLC0415
    from turnmark.mcp_bridge.server import serve  # noqa: PLC0415

    async def ask(method: str, params: Mapping[str, Any]) -> Any:
        socket, state = place_of(invocation.options, invocation.environ)
        async with connect(socket, state=state, client="turnmark-mcp") as memory:
            return await memory.call(method, params)

    anyio.run(serve, ask)
    return 0
