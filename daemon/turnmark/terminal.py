"""Text on a terminal: how wide it is, how it is cut and aligned, colour, and a progress bar.

Everything that comes from a turn goes through `one_line` or `printable` first: a stored escape
sequence must not steer the terminal of whoever reads it.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Self, TextIO

import msgspec

# What a pipe gets, and a terminal that does not say how wide it is.
DEFAULT_COLUMNS = 80
# Narrower than this nothing can be aligned; lines wrap instead.
_FEWEST_COLUMNS = 20
# A cell that is wider (an id of a sub-agent's session) shifts its own row, not the whole table:
# a UUID has 36.
_WIDEST_CELL = 36

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ZERO_WIDTH = frozenset(("Mn", "Me", "Cf"))
_BAR_CELLS = 24


class Ink(msgspec.Struct, frozen=True, kw_only=True):
    """Paints text where colour is allowed, returns it as it is elsewhere."""

    color: bool = False

    def bold(self, text: str) -> str:
        """Returns `text` in bold."""
        return self._paint("1", text)

    def dim(self, text: str) -> str:
        """Returns `text` fainter than the rest."""
        return self._paint("2", text)

    def struck(self, text: str) -> str:
        """Returns `text` faint and struck through."""
        return self._paint("2;9", text)

    def good(self, text: str) -> str:
        """Returns `text` in green."""
        return self._paint("32", text)

    def warning(self, text: str) -> str:
        """Returns `text` in yellow."""
        return self._paint("33", text)

    def accent(self, text: str) -> str:
        """Returns `text` in cyan."""
        return self._paint("36", text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text


def columns_of(stream: TextIO, environ: Mapping[str, str]) -> int:
    """Returns how many cells a line of `stream` has: `COLUMNS`, the terminal's own, or 80."""
    said = environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said) > 0:
        return max(int(said), _FEWEST_COLUMNS)
    try:
        found = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return DEFAULT_COLUMNS
    return max(found or DEFAULT_COLUMNS, _FEWEST_COLUMNS)


def wants_color(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Says whether `stream` is a terminal with colours and `NO_COLOR` is not set."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Returns `text` with what could steer a terminal written as its code; newlines stay."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Returns `text` printable and on one line, each run of white space one blank."""
    return printable(" ".join(text.split()))


def width_of(text: str) -> int:
    """Returns how many cells `text` takes: Chinese two each, combining marks none.

    Characters of ambiguous width count one, as terminals outside of CJK locales draw them.
    """
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def clip(text: str, columns: int) -> str:
    """Returns `text` in at most `columns` cells, ending in `…` where something was cut."""
    if width_of(text) <= columns:
        return text
    kept: list[str] = []
    used = 0
    for character in text:
        used += _cells(character)
        if used > columns - 1:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…" if columns > 0 else ""


def pad(text: str, columns: int) -> str:
    """Returns `text` with blanks up to `columns` cells; longer text stays as it is."""
    return text + " " * max(0, columns - width_of(text))


def table(rows: Sequence[Sequence[str]], *, columns: int | None = None) -> list[str]:
    """Returns rows as aligned lines, two blanks between; the last column is cut to `columns`.

    The first row is the heading. None for `columns` cuts nothing, which is what a pipe wants. What
    is wider than a UUID stands out of its column and is whole.
    """
    if not rows:
        return []
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [
        min(_WIDEST_CELL, max(width_of(row[place]) for row in cells))
        for place in range(len(cells[0]))
    ]
    lines: list[str] = []
    for row in cells:
        aligned = [pad(cell, width) for cell, width in zip(row[:-1], widths, strict=False)]
        line = "  ".join([*aligned, row[-1]]).rstrip()
        lines.append(line if columns is None else clip(line, columns))
    return lines


class ProgressBar:
    """One line on a terminal that shows how far something long has come; silent elsewhere.

    Draws only when what it shows has changed. Used as a context: leaving clears the line.
    """

    def __init__(self, stream: TextIO, what: str, *, columns: int = DEFAULT_COLUMNS) -> None:
        self._stream = stream if stream.isatty() else None
        self._what = what
        self._columns = columns
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._stream and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, done: float, total: float | None, note: str | None = None) -> None:
        """Shows `done` of `total`; without a total only the number and the note."""
        if self._stream is None:
            return
        share = min(done / total, 1.0) if total else 0.0
        cells = "█" * int(share * _BAR_CELLS)
        bar = f"{cells:░<{_BAR_CELLS}} {share:4.0%}" if total else f"{done:g}"
        line = clip(f"{self._what} {bar} {one_line(note or '')}".rstrip(), self._columns - 1)
        if line != self._shown:
            self._stream.write(f"\r{line}\x1b[K")
            self._stream.flush()
            self._shown = line


def _cells(character: str) -> int:
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
