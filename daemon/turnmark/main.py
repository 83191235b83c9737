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
from typing import NoReturn, TextIO

from turnmark.commands import registry
from turnmark.commands.invocation import Invocation, WrongUse
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
_VALUED_OPTIONS = frozenset({"--state", "--workspace", "--socket", "--config"})


class _Parser(argparse.ArgumentParser):
    """Raises what argparse would print and exit with."""

    def error(self, message: str) -> NoReturn:
        raise WrongUse(message)


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
        _complain(str(error), "unavailable", as_json="--json" in words)
        _drop_output()
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(words: list[str]) -> int:
    before, name, after = _split(words)
    options = _parse(_common("turnmark"), before, argparse.Namespace())
    if name is None:
        sys.stderr.write(_help())
        return WRONG_USE
    if name not in registry.names():
        raise WrongUse(f"there is no command {name}{_nearest(name, registry.names())}")
    command = registry.load(name)
    parser = _common(f"turnmark {name}", about=registry.help_of(name))
    command.configure(parser)
    invocation = Invocation(
        _parse(parser, after, options),
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
        place += 2 if word in _VALUED_OPTIONS else 1
    return words, None, []


def _common(program: str, *, about: str | None = None) -> _Parser:
    """Returns a parser with the options that stand before or after any command."""
    parser = _Parser(
        prog=program, description=about, allow_abbrev=False, add_help=about is not None
    )
    parser.add_argument("--json", action="store_true", help="answer with JSON, for machines")
    parser.add_argument("--state", metavar="DIR", help="where the daemon keeps its state")
    parser.add_argument("--workspace", metavar="DIR", help="where the Markdown memory is")
    parser.add_argument("--socket", metavar="PATH", help="where the daemon listens")
    parser.add_argument("--config", metavar="FILE", help="the configuration")
    if about is None:
        parser.add_argument("-h", "--help", action=_Help, nargs=0)
        parser.add_argument("--version", action=_Version, nargs=0)
    return parser


class _Help(argparse.Action):
    """Prints the list of commands."""

    def __call__(self, parser: argparse.ArgumentParser, *_unused: object) -> None:
        sys.stdout.write(_help())
        parser.exit()


class _Version(argparse.Action):
    """Prints the version that is installed."""

    def __call__(self, parser: argparse.ArgumentParser, *_unused: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom asked for

        sys.stdout.write(f"turnmark {version('turnmark')}\n")
        parser.exit()


def _help() -> str:
    widest = max(len(name) for name in registry.names())
    commands = [f"  {name:<{widest}}  {registry.help_of(name)}" for name in registry.names()]
    lines = (
        "usage: turnmark COMMAND [options]",
        "",
        "A memory daemon for AI agents: every turn of every branch reaches one memory, once.",
        "",
        "commands (turnmark COMMAND --help says more):",
        *commands,
        "",
        "options, before or after the command:",
        "  --json             answer with JSON, for machines",
        "  --state DIR        where the daemon keeps its state",
        "  --workspace DIR    where the Markdown memory is",
        "  --socket PATH      where the daemon listens",
        "  --config FILE      the configuration",
        "  --version, --help  print and exit",
        "",
        "exit codes: 0 done, 1 failed, 2 wrong use, 3 no daemon answers, 4 another daemon is there",
    )
    return "".join(f"{line}\n" for line in lines)


def _parse(
    parser: argparse.ArgumentParser, words: list[str], options: argparse.Namespace
) -> argparse.Namespace:
    """Returns `options` with those of `words` added.

    Raises:
        WrongUse: if a word is left over; the nearest option is named.
    """
    found, left_over = parser.parse_known_args(words, options)
    if not left_over:
        return found
    word = left_over[0]
    if not word.startswith("-"):
        raise WrongUse(f"{parser.prog} has no place for {word!r}; quote words that belong together")
    known = [part.strip("[],") for part in parser.format_usage().split() if "-" in part]
    name = word.partition("=")[0]
    raise WrongUse(f"{parser.prog} has no option {name}{_nearest(name, known)}")


def _nearest(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only after a slip of the pen

    matches = get_close_matches(word, known, n=1)
    return f", did you mean {matches[0]}?" if matches else ""


def _exit_code(error: TurnmarkError) -> int:
    names = {kind.__name__ for kind in type(error).__mro__}
    codes = [code for name, code in _EXIT_CODES.items() if name in names]
    return codes[0] if codes else FAILED


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
