"""`turnmark tree SESSION`: the DAG of a session, drawn as text."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from turnmark.commands.invocation import Invocation, text_of
from turnmark.tree_drawing import DrawnBranch, DrawnTurn, draw_tree


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("session", metavar="SESSION", help="the session to draw")
    parser.add_argument("--ids", action="store_true", help="write ids out in full")


def run(invocation: Invocation) -> int:
    """Draws the session from its export: turns, branches, head and this workspace's marks."""
    session = text_of(invocation.options.session, "SESSION")
    records: dict[str, list[dict[str, Any]]] = {}
    for line in invocation.client().export(session):
        record = msgspec.json.decode(line, type=dict[str, Any])
        records.setdefault(record["type"], []).append(record)
    turns, branches = records.get("turn", []), records.get("branch", [])
    ends = records.get("end", [])
    head = ends[-1]["head"] if ends else None
    if invocation.as_json:
        whole = {"session": session, "head": head, "turns": turns, "branches": branches}
        invocation.print_json(whole)
        return 0
    drawing = draw_tree(
        msgspec.convert(turns, list[DrawnTurn]),
        msgspec.convert(branches, list[DrawnBranch]),
        head,
        workspace=invocation.call("hello").get("workspace"),
        whole_ids=invocation.options.ids,
        columns=invocation.columns,
        ink=invocation.ink,
    )
    invocation.print(*(drawing or ["This session has no turn yet."]))
    return 0
