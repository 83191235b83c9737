"""One call of a command: its options, its streams, and its connection to the daemon."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from turnmark import terminal
from turnmark_events.errors import Refused

if TYPE_CHECKING:
    from turnmark.client_sync import SyncClient


_YES = frozenset({"y", "yes", "是", "好"})


class WrongUse(Exception):
    """The command line can't be understood; the message is for whoever typed it."""


class Invocation:
    """What a command gets to work with.

    `options` are the parsed arguments; `environ` is the process's environment, read nowhere else.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        *,
        environ: Mapping[str, str],
        stdin: TextIO,
        stdout: TextIO,
        stderr: TextIO,
    ) -> None:
        self.options = options
        self.environ = environ
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.ink = terminal.Ink(color=terminal.wants_color(stdout, environ))
        self.columns = terminal.columns_of(stdout, environ)
        self._client: SyncClient | None = None

    @property
    def as_json(self) -> bool:
        """Says whether a machine reads the answer."""
        return bool(self.options.json)

    def print(self, *lines: str) -> None:
        """Prints lines to standard output."""
        self.stdout.writelines(f"{line}\n" for line in lines)

    def print_json(self, value: object) -> None:
        """Prints a value as one line of JSON."""
        self.print(msgspec.json.encode(value).decode())

    def print_text(self, text: str) -> None:
        """Prints text that is not ours: as it is into a pipe, harmless to a terminal."""
        shown = terminal.printable(text) if self.stdout.isatty() else text
        self.stdout.write(shown if shown.endswith("\n") or not shown else f"{shown}\n")

    def print_table(self, rows: Iterable[Iterable[str]]) -> None:
        """Prints rows aligned below the first, which is the heading; cut only on a terminal."""
        columns = self.columns if self.stdout.isatty() else None
        heading, *rest = terminal.table([list(row) for row in rows], columns=columns)
        self.print(self.ink.bold(heading), *rest)

    def note(self, line: str) -> None:
        """Prints a line beside the answer, to standard error; machines don't get it."""
        if not self.as_json:
            self.stderr.write(f"{line}\n")
            self.stderr.flush()

    def is_agreed(self, question: str) -> bool:
        """Asks on standard error and tells whether the answer is yes; where somebody can answer."""
        self.stderr.write(f"{question} [y/N] ")
        self.stderr.flush()
        return self.stdin.readline().strip().lower() in _YES

    def progress(self, what: str) -> terminal.ProgressBar:
        """Returns a progress bar on standard error, silent where no person watches."""
        columns = terminal.columns_of(self.stderr, self.environ)
        return terminal.ProgressBar(self.stderr, what, columns=columns)

    def read_stdin(self) -> str:
        """Returns all of standard input.

        Raises:
            Refused: if it is not UTF-8.
        """
        raw = self.stdin.buffer.read()
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise Refused(f"standard input is not UTF-8 at byte {error.start}") from error

    def client(self) -> SyncClient:
        """Returns the connection to the daemon, made at the first call.

        Raises:
            DaemonNotRunning: if no daemon answers.
        """
        if self._client is None:
            from turnmark.commands.connection import connect  # noqa: PLC0415 - serve needs none

            self._client = connect(self.options, self.environ)
        return self._client

    def call(self, method: str, **params: Any) -> Any:
        """Returns the daemon's answer; parameters that are None are left out.

        Raises:
            TurnmarkError: the daemon's own, as `turnmark.connect_sync` raises them.
        """
        given = {name: value for name, value in params.items() if value is not None}
        return self.client().call(method, given)

    def call_shown(self, what: str, method: str, **params: Any) -> Any:
        """Returns the daemon's answer like `call`, with a progress bar while it is awaited."""
        with self.progress(what) as bar:
            return self.client().call(method, params, progress=bar.show)

    def pages(self, method: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Yields every page of a list, following `next`."""
        cursor: str | None = None
        while True:
            page = self.call(method, **params, cursor=cursor)
            yield page
            cursor = page.get("next")
            if cursor is None:
                return

    def whole(self, method: str, key: str, **params: Any) -> dict[str, Any]:
        """Returns a list's answer as if it had come in one page."""
        first: dict[str, Any] = {}
        rows: list[Any] = []
        for page in self.pages(method, **params):
            first = first or page
            rows.extend(page[key])
        return {name: value for name, value in first.items() if name != "next"} | {key: rows}

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._client is not None:
            with contextlib.suppress(OSError):
                self._client.close()


_MOST_ROWS = 1_000
"""The interface's bound of a list."""


def number_of_rows(word: str) -> int:
    """Returns how many rows an option asks for, for argparse's `type`.

    Raises:
        argparse.ArgumentTypeError: if it is no number that a list may have.
    """
    if not word.isdecimal() or not 1 <= int(word) <= _MOST_ROWS:
        raise argparse.ArgumentTypeError(f"{word!r} is no number from 1 to {_MOST_ROWS:,}")
    return int(word)


def at_least_one(word: str) -> int:
    """Returns the number that an option was given, for argparse's `type`.

    Raises:
        argparse.ArgumentTypeError: if it is none, or less than 1.
    """
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no number from 1 on")
    return number


def whole_number(word: str) -> int:
    """Returns the number that an option was given, for argparse's `type`; 0 is one.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    if not (word.isascii() and word.isdecimal()):
        raise argparse.ArgumentTypeError(f"{word!r} is no number from 0 on")
    return int(word)


def time_of(word: str) -> str:
    """Returns a time that an option was given, for argparse's `type`; a date is one.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    try:
        datetime.fromisoformat(word.strip())
    except ValueError:
        message = f"{word!r} is no time; write 2026-08-09 or 2026-08-09T14:02:00Z"
        raise argparse.ArgumentTypeError(message) from None
    return word.strip()


def words_of(argument: str, what: str) -> str:
    """Returns an argument that is sent as text and must say something.

    Raises:
        WrongUse: if it is blank, as where a shell's variable is unset, or not UTF-8.
    """
    if not argument.strip():
        raise WrongUse(f"{what} is empty; nothing was done")
    return text_of(argument, what)


def text_of(argument: str, what: str) -> str:
    """Returns an argument that is sent as text.

    Raises:
        WrongUse: if the bytes that were typed are not UTF-8.
    """
    try:
        return os.fsencode(argument).decode()
    except UnicodeDecodeError as error:
        raise WrongUse(f"{what} is not UTF-8 at byte {error.start}") from error
