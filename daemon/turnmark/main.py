"""The command line: finds the command, calls it, and turns what went wrong into an exit code.

The only place that reads the environment and the process's streams. Each command's module is
imported when it is called, so that `turnmark recall` pays neither for the daemon nor for the
other commands.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from turnmark.commands import registry
from turnmark.commands.invocation import Invocation, WrongUse
from turnmark.commands.parser import VALUED_OPTIONS, common, parse, parser_of
from turnmark_events.errors import TurnmarkError

DONE, FAILED, WRONG_USE, NO_DAEMON, HELD = range(5)
# What a shell says of a program that SIGINT or SIGPIPE ended.
_INTERRUPTED = 130
_BROKEN_PIPE = 141

# By name: their modules (anyio, the configuration, locks) are not for every command to import.
_EXIT_CODES = {
    "DaemonNotRunning": NO_DAEMON,
    "PlaceTaken": HELD,
    "ConfigRefused": WRONG_USE,
    "SocketPathTooLong": WRONG_USE,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code.

    Without `arguments` those of the process are taken. Standard streams are set to UTF-8, whatever
    the locale says.
    """
    _speak_utf8()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except SystemExit as ended:  # argparse, after --help or --version
        return ended.code if isinstance(ended.code, int) else FAILED
    except WrongUse as error:
        about = f"{error}; see {_program(words)} --help"
        _complain(about, "wrong_use", as_json="--json" in words)
        return WRONG_USE
    except TurnmarkError as error:
        _complain(error.message, error.kind, as_json="--json" in words, facts=error.facts)
        return _exit_code(error)
    except BrokenPipeError:
        _drop_output()
        return _BROKEN_PIPE
    except OSError as error:
        _complain(_reason(error), "unavailable", as_json="--json" in words)
        _drop_output()
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(words: list[str]) -> int:
    before, name, after = _split(words)
    actions = [("-h", "--help", _Help, "print this"), ("-V", "--version", _Version, "print it")]
    options = parse(common("turnmark", actions), before, argparse.Namespace())
    if name is None:
        from turnmark.commands import manual  # noqa: PLC0415 - texts that only help needs

        sys.stderr.write(manual.overview())
        return WRONG_USE
    if name not in registry.names():
        raise WrongUse(f"there is no command {name}{registry.meant_by(name)}")
    parser, command = parser_of(name)
    invocation = Invocation(
        parse(parser, after, options),
        environ=os.environ,
        stdin=sys.stdin,
        stdout=sys.stdout,
        stderr=sys.stderr,
    )
    try:
        code = command.run(invocation)
        sys.stdout.flush()
        return code
    finally:
        invocation.close()


def _program(words: list[str]) -> str:
    """Returns whose help helps: a command's where it stands first, else that of `turnmark`."""
    return f"turnmark {words[0]}" if words and words[0] in registry.names() else "turnmark"


def _split(words: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Returns the options before the command, the command, and what follows it."""
    place = 0
    while place < len(words):
        word = words[place]
        if not word.startswith("-"):
            return words[:place], word, words[place + 1 :]
        place += 2 if word in VALUED_OPTIONS else 1
    return words, None, []


class _Help(argparse.Action):
    """Prints the list of commands."""

    def __call__(self, parser: argparse.ArgumentParser, *_unused: object) -> None:
        from turnmark.commands import manual  # noqa: PLC0415 - texts that only help needs

        sys.stdout.write(manual.overview())
        parser.exit()


class _Version(argparse.Action):
    """Prints the version that is installed."""

    def __call__(self, parser: argparse.ArgumentParser, *_unused: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom asked for

        sys.stdout.write(f"turnmark {version('turnmark')}\n")
        parser.exit()


def _exit_code(error: TurnmarkError) -> int:
    names = {kind.__name__ for kind in type(error).__mro__}
    codes = [code for name, code in _EXIT_CODES.items() if name in names]
    return codes[0] if codes else FAILED


def _reason(error: OSError) -> str:
    """Returns what the system said, without its number, and of which file."""
    said = error.strerror or str(error)
    return f"{error.filename}: {said}" if error.filename else said


def _complain(
    message: str, kind: str, *, as_json: bool, facts: Mapping[str, object] | None = None
) -> None:
    """Prints what is wrong to standard error: one line, or one JSON object."""
    import msgspec  # noqa: PLC0415 - every command that comes so far has it already

    if as_json:
        error = {**(facts or {}), "kind": kind, "message": message}
        line = msgspec.json.encode({"error": error}, enc_hook=str).decode()
    else:
        line = f"turnmark: {' '.join(message.split())}"
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _drop_output() -> None:
    """Keeps Python from trying, at its end, to write what could not be written before."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _speak_utf8() -> None:
    """Sets the standard streams to UTF-8; what can't be encoded is written as an escape."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        _set_encoding(stream)


def _set_encoding(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="backslashreplace")
