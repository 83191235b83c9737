"""Which commands there are, in the order in which help lists them."""

from __future__ import annotations

import argparse
import importlib
from typing import Protocol, cast

from turnmark.commands.invocation import Invocation

# Each command with its module under `turnmark.commands` and its line of help, by what it is for.
_GROUPS = {
    "the daemon": {
        "serve": ("serve", "run the daemon in the foreground"),
        "status": ("status", "say whether all is well, and what to do if not"),
        "setup": (
            "setup",
            "configure the service or an agent; says what it changes, can be undone",
        ),
        "doctor": ("doctor", "prove what can be proved on disk; say what is wrong, repair it"),
        "backup": ("backup", "copy state and memory to a directory, while the daemon runs"),
        "restore": ("restore", "put a backup in place, while no daemon runs"),
        "watch": ("watch", "print events as they happen"),
    },
    "the memory": {
        "recall": ("recall", "search memory"),
        "show": ("show", "show a block, a source, a turn or a topic"),
        "core": ("core", "print the page that is always in an agent's context"),
        "topics": ("topics", "list the topics"),
        "open": ("open_", "open a topic in your editor"),
        "remember": ("remember", "write one fact into memory now"),
        "log": ("log", "list what changed in memory, when and why"),
        "undo": ("undo", "take back what one revision changed"),
        "forget": ("forget", "erase for ever: shows what would go, asks, proves that it is gone"),
        "organize": ("organize", "tidy memory now, as every night"),
    },
    "conversations": {
        "sessions": ("sessions", "list the sessions"),
        "tree": ("tree", "draw a session: its turns, head, tips and marks"),
        "append": ("append", "add one turn to a session"),
        "import": ("import_", "read transcripts of agents, or exports, into sessions and memory"),
        "migrate": ("migrate", "take over another program's memory: sessions, topics, sources"),
        "export": ("export", "write a session as lines of JSON"),
        "owed": ("owed", "list the turns that memory has not dealt with"),
        "flush": ("flush", "write what is owed now"),
    },
    "for agents": {
        "mcp": ("mcp", "serve MCP on standard input and output, for agents that speak it"),
        "hook": ("hook", "what an agent's hooks run: prints memory in time, or nothing"),
    },
    "turnmark itself": {
        "demo": (
            "demo",
            "show the whole way on a conversation with branches, in a throw-away place",
        ),
        "completion": ("completion", "print what lets a shell complete commands and options"),
        "version": ("version", "print the version"),
        "help": ("help", "explain a command"),
    },
}
_COMMANDS = {name: entry for group in _GROUPS.values() for name, entry in group.items()}

# What people type who know other programs. Letters alone would not lead from one to the other.
_CALLED_ELSEWHERE = {
    "add": "append",
    "ask": "recall",
    "check": "doctor",
    "delete": "forget",
    "edit": "open",
    "erase": "forget",
    "find": "recall",
    "get": "show",
    "grep": "recall",
    "history": "log",
    "install": "setup",
    "list": "sessions",
    "ls": "sessions",
    "query": "recall",
    "revert": "undo",
    "rm": "forget",
    "run": "serve",
    "search": "recall",
    "start": "serve",
    "tidy": "organize",
    "uninstall": "setup",
    "why": "show",
}

_STOPPING = (
    "; Ctrl-C ends the daemon where it runs, `systemctl --user stop turnmark` the service. "
    "What agents write meanwhile is read at the next start"
)
# What no command does, and how it is done.
_DONE_OTHERWISE = {"kill": _STOPPING, "pause": _STOPPING, "quit": _STOPPING, "stop": _STOPPING}


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


def groups() -> dict[str, tuple[str, ...]]:
    """Returns the names by what the commands are for."""
    return {title: tuple(commands) for title, commands in _GROUPS.items()}


def meant_by(word: str) -> str:
    """Returns `, did you mean …?` for a word that is no command, nothing where none is like it.

    Of what no command does it returns how it is done.
    """
    if word.lower() in _DONE_OTHERWISE:
        return _DONE_OTHERWISE[word.lower()]
    from turnmark.commands.parser import nearest  # noqa: PLC0415 - parsers import this module

    called = nearest(word.lower(), [*names(), *_CALLED_ELSEWHERE])
    return f", did you mean {_CALLED_ELSEWHERE.get(called, called)}?" if called else ""


def help_of(name: str) -> str:
    """Returns the command's line of help."""
    return _COMMANDS[name][1]


def load(name: str) -> CommandModule:
    """Imports the command's module."""
    return cast("CommandModule", importlib.import_module(f"turnmark.commands.{_COMMANDS[name][0]}"))
