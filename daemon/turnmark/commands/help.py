"""`turnmark help [COMMAND]`: what `--help` prints, where people look for it first."""

from __future__ import annotations

import argparse

from turnmark.commands import manual, registry
from turnmark.commands.invocation import Invocation, WrongUse


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="which; without: the list")


def run(invocation: Invocation) -> int:
    """Prints the list of commands, or one command's help.

    Raises:
        WrongUse: if there is no such command.
    """
    name = invocation.options.command
    if name is not None and name not in registry.names():
        raise WrongUse(f"there is no command {name}{registry.meant_by(name)}")
    if invocation.as_json:
        named = registry.names() if name is None else (name,)
        invocation.print_json({"commands": {one: registry.help_of(one) for one in named}})
    else:
        invocation.print_text(manual.overview() if name is None else manual.help_text(name))
    return 0
