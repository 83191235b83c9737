"""`turnmark hook`: what an agent runs at its hooks; it prints memory in time, or nothing."""

from __future__ import annotations

import argparse

from turnmark import agent_hook
from turnmark.commands.invocation import Invocation, WrongUse, whole_number

_AGENTS = ("claude-code",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("agent", metavar="AGENT", help="whose hook this is: claude-code")
    parser.add_argument(
        "--within-ms",
        metavar="MS",
        type=whole_number,
        default=agent_hook.WITHIN_MS,
        help="print nothing after so long",
    )


def run(invocation: Invocation) -> int:
    """Prints what the agent expects, or nothing; always 0."""
    options = invocation.options
    if options.agent not in _AGENTS:
        raise WrongUse(f"there are no hooks for {options.agent}, only for claude-code")
    given = {name: getattr(options, name) for name in ("state", "socket", "config")}
    agent_hook.answer_hook(given, options.within_ms, invocation.environ)
    return 0
