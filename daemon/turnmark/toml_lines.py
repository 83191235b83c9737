"""Where a key stands in a TOML text, so that a message about it can name the line."""

from __future__ import annotations

import re
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]

_KEY = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"^\s*(?P<open>\[\[?)\s*(?P<keys>{_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(rf"^\s*(?P<keys>{_DOTTED})\s*=")
_TRIPLE = re.compile(r'"""|\'\'\'')


def line_of(text: str, path: KeyPath) -> int:
    """Returns the 1-based line of the key at `path`, or of the nearest table that holds it.

    `path` is made of keys and of indices into arrays of tables. Reads lines, not grammar: the
    text must have been parsed before, and a key inside a multi-line inline table is found by its
    name. The answer is for a person's eyes; 1 where nothing is found.
    """
    places = dict(reversed(list(_places(text))))
    for length in range(len(path), 0, -1):
        start = places.get(path[:length])
        if start is not None:
            return _line_with(text, path[length:], start)
    return 1


def show_path(path: KeyPath) -> str:
    """Returns `path` as a person writes it: `rules[1].match.project`."""
    shown = ""
    for part in path:
        shown += f"[{part}]" if isinstance(part, int) else f".{part}"
    return shown.removeprefix(".")


def _places(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yields each table and key with its line, in the order of the text."""
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    inside_string = False
    for number, line in enumerate(text.splitlines(), start=1):
        opened = len(_TRIPLE.findall(line)) % 2 == 1
        if inside_string:
            inside_string = not opened
            continue
        inside_string = opened
        if header := _HEADER.match(line):
            table = _resolve(_split(header["keys"]), counts)
            if header["open"] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            yield table, number
        elif assignment := _ASSIGNMENT.match(line):
            yield (*table, *_split(assignment["keys"])), number


def _resolve(keys: list[str], counts: dict[KeyPath, int]) -> KeyPath:
    """Returns the path of a header's keys: below an array of tables, in its last element."""
    path: KeyPath = ()
    for place, key in enumerate(keys):
        path = (*path, key)
        if path in counts and place < len(keys) - 1:
            path = (*path, counts[path])
    return path


def _split(dotted: str) -> list[str]:
    return [key.strip("\"'") for key in re.findall(_KEY, dotted)]


def _line_with(text: str, rest: KeyPath, start: int) -> int:
    """Returns the first line from `start` on that holds the last name of `rest`, else `start`."""
    names = [part for part in rest if isinstance(part, str)]
    if not names:
        return start
    word = re.compile(rf"(?<![\w-]){re.escape(names[-1])}(?![\w-])")
    for number, line in enumerate(text.splitlines()[start - 1 :], start=start):
        if word.search(line):
            return number
    return start
