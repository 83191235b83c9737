"""The parser of a command line: a command's own options, and those of all."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from turnmark.commands import registry
from turnmark.commands.invocation import WrongUse

# What stands before or after any command; in a usage it would only hide what is the command's own.
_COMMON = ("json", "state", "workspace", "socket", "config", "help", "version")
COMMON_HELP = (
    ("--json", "", "answer with JSON, for machines"),
    ("--state", "DIR", "where the daemon keeps its state"),
    ("--workspace", "DIR", "where the Markdown memory is"),
    ("--socket", "PATH", "where the daemon listens"),
    ("--config", "FILE", "the configuration"),
)
"""The options of every command: their names, what their values are, what they are for."""

VALUED_OPTIONS = frozenset(option for option, metavar, _help in COMMON_HELP if metavar)

_ONE_OF = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)$", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """Raises what argparse would print and exit with, in the words of all other messages."""

    def __init__(self, program: str, **options: Any) -> None:
        super().__init__(
            prog=program,
            allow_abbrev=False,
            add_help=False,
            formatter_class=_Formatter,
            **options,
        )
        self._positionals.title = "arguments"

    def error(self, message: str) -> NoReturn:
        """Raises what is wrong as the command line's own error.

        Raises:
            WrongUse: always.
        """
        raise WrongUse(_worded(message))

    def option_names(self) -> list[str]:
        """Returns every option as it is typed."""
        return list(self._option_string_actions)

    def arguments(self) -> Iterable[argparse.Action]:
        """Yields the options and the positional arguments, the command's own first."""
        yield from self._actions


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Leaves what all commands take out of the usage; it is listed below."""

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None = None,
    ) -> None:
        own = [action for action in actions if action.dest not in _COMMON]
        super().add_usage(usage, own, groups, prefix)


class _CommandHelp(argparse.Action):
    """Prints the help of one command: what it takes, when it is wanted, and examples."""

    def __call__(self, parser: argparse.ArgumentParser, *_unused: object) -> None:
        from turnmark.commands import manual  # noqa: PLC0415 - texts that only help needs

        sys.stdout.write(manual.help_text(parser.prog.split()[-1]))
        parser.exit()


def common(program: str, actions: Sequence[tuple[str, str, type[argparse.Action], str]]) -> Parser:
    """Returns a parser with the options that stand before or after any command.

    `actions` are options that print something and end: both names, what they do, their help.
    """
    parser = Parser(program)
    group = parser.add_argument_group("options of every command")
    for option, metavar, what in COMMON_HELP:
        if metavar:
            group.add_argument(option, metavar=metavar, help=what)
        else:
            group.add_argument(option, action="store_true", help=what)
    for short, option, action, what in actions:
        group.add_argument(short, option, action=action, nargs=0, help=what)
    return parser


def parser_of(name: str) -> tuple[Parser, registry.CommandModule]:
    """Returns a command's parser and its module, which is imported."""
    command = registry.load(name)
    parser = common(f"turnmark {name}", [("-h", "--help", _CommandHelp, "print this")])
    command.configure(parser)
    return parser, command


def parse(parser: Parser, words: Sequence[str], options: argparse.Namespace) -> argparse.Namespace:
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
    name = word.partition("=")[0]
    raise WrongUse(f"{parser.prog} has no option {name}{hint(name, parser.option_names())}")


def nearest(word: str, known: Sequence[str]) -> str | None:
    """Returns what looks most like a word, None where nothing does."""
    from difflib import get_close_matches  # noqa: PLC0415 - only after a slip of the pen

    return next(iter(get_close_matches(word, known, n=1)), None)


def hint(word: str, known: Sequence[str]) -> str:
    """Returns `, did you mean …?` with what looks most like a word, nothing where nothing does."""
    found = nearest(word, known)
    return f", did you mean {found}?" if found else ""


def _worded(message: str) -> str:
    """Returns argparse's sentence in this program's words; one that is not known stays."""
    said = message.removeprefix("argument ")
    missing = said.removeprefix("the following arguments are required: ")
    if missing != said:
        return f"{missing} is missing" if "," not in missing else f"{missing} are missing"
    said = said.replace(": expected one argument", " needs a value")
    said = re.sub(r"^one of the arguments (.*) is required$", r"one of \1 is needed", said)
    wrong = _ONE_OF.search(said)
    if wrong is None:
        return said
    choices = [choice.strip(" '") for choice in wrong[2].split(",")]
    known = ", ".join(choices)
    return f"{said[: wrong.start()]}there is no {wrong[1]!r}, only {known}" + (
        hint(wrong[1], choices)
    )
