"""Which commands there are, in the order in which help lists them."""

from __future__ import annotations

import argparse
import importlib
from typing import Protocol, cast

from turnmark.commands.invocation import Invocation

# Each command with its module under `turnmark.commands` and its line of help.
_COMMANDS = {
    "serve": ("serve", "run the daemon in the foreground"),
    "demo": ("demo", "show the whole way on a conversation with branches, in a throw-away place"),
    "status": ("status", "say whether all is well, and what to do if not"),
    "sessions": ("sessions", "list the sessions"),
    "tree": ("tree", "draw a session: its turns, head, tips and marks"),
    "append": ("append", "add one turn to a session"),
    "import": ("import_", "read transcripts of agents, or exports, into sessions and memory"),
    "migrate": ("migrate", "take over another program's memory: sessions, topics, sources"),
    "export": ("export", "write a session as lines of JSON"),
    "owed": ("owed", "list the turns that memory has not dealt with"),
    "flush": ("flush", "write what is owed now"),
    "recall": ("recall", "search memory"),
    "show": ("show", "show a block, a source, a turn or a topic"),
    "core": ("core", "print the page that is always in an agent's context"),
    "topics": ("topics", "list the topics"),
    "remember": ("remember", "write one fact into memory now"),
    "log": ("log", "list what changed in memory, when and why"),
    "undo": ("undo", "take back what one revision changed"),
    "forget": ("forget", "erase for ever: shows what would go, asks, proves that it is gone"),
    "organize": ("organize", "tidy memory now, as every night"),
    "watch": ("watch", "print events as they happen"),
    "backup": ("backup", "copy state and memory to a directory, while the daemon runs"),
    "restore": ("restore", "put a backup in place, while no daemon runs"),
    "doctor": ("doctor", "prove what can be proved on disk; say what is wrong, repair it"),
    "setup": ("setup", "configure the service or an agent; says what it changes, can be undone"),
    "mcp": ("mcp", "serve MCP on standard input and output, for agents that speak it"),
    "hook": ("hook", "what an agent's hooks run: prints memory in time, or nothing"),
}


class CommandModule(Protocol):
    """What a module of this package offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declares the arguments of the command."""
        ...

    def run(self, invocation: Invocation) -> int:
        """Does the command's work and returns its exit code."""
        ...


def names() -> tuple[str, ...]:
    """Returns the names of all commands."""
    return tuple(_COMMANDS)


def help_of(name: str) -> str:
    """Returns the command's line of help."""
    return _COMMANDS[name][1]


def load(name: str) -> CommandModule:
    """Imports the command's module."""
    return cast("CommandModule", importlib.import_module(f"turnmark.commands.{_COMMANDS[name][0]}"))
