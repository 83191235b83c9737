"""`turnmark tree SESSION`: the DAG of a session, drawn as text."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from turnmark.commands.invocation import Invocation, text_of
from turnmark.terminal import Ink
from turnmark.tree_drawing import DrawnBranch, DrawnTurn, draw_tree

if TYPE_CHECKING:
    from turnmark.client_sync import SyncClient


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("session", metavar="SESSION", help="the session to draw")
    parser.add_argument("--ids", action="store_true", help="write ids out in full")


def run(invocation: Invocation) -> int:
    """Draws the session from its export: turns, branches, head and this workspace's marks."""
    session = text_of(invocation.options.session, "SESSION")
    if invocation.as_json:
        invocation.print_json(_whole(invocation.client(), session))
        return 0
    drawing = drawing_of(
        invocation.client(),
        session,
        columns=invocation.columns,
        ink=invocation.ink,
        whole_ids=invocation.options.ids,
    )
    invocation.print(*(drawing or ["This session has no turn yet."]))
    return 0


def drawing_of(
    client: SyncClient, session: str, *, columns: int, ink: Ink, whole_ids: bool = False
) -> list[str]:
    """Returns the session's lines, none where it has no turn."""
    whole = _whole(client, session)
    return draw_tree(
        msgspec.convert(whole["turns"], list[DrawnTurn]),
        msgspec.convert(whole["branches"], list[DrawnBranch]),
        whole["head"],
        workspace=client.call("hello")["workspace"],
        whole_ids=whole_ids,
        columns=columns,
        ink=ink,
    )


def _whole(client: SyncClient, session: str) -> dict[str, Any]:
    records: dict[str, list[dict[str, Any]]] = {}
    for line in client.export(session):
        record = msgspec.json.decode(line, type=dict[str, Any])
        records.setdefault(record["type"], []).append(record)
    ends = records.get("end", [])
    head = ends[-1]["head"] if ends else None
    turns, branches = records.get("turn", []), records.get("branch", [])
    return {"session": session, "head": head, "turns": turns, "branches": branches}
