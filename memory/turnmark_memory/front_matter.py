"""The front matter of a topic: `about` is read and written, everything else is left alone."""

from __future__ import annotations

import json
import re
from typing import Final

from turnmark_memory.words import join_lines

_ABOUT = re.compile(r"about[ \t]*:(?=[ \t\r\n]|$)")
_PLAIN_SCALAR = re.compile(r"[^\W_][^\r\n]*")
# What YAML would read as something else than the plain string it is.
_SPECIAL = re.compile(r": |:$| #|^(?:true|false|yes|no|on|off|null|[-+.\d]+)$", re.IGNORECASE)
_BLOCK_SCALAR: Final = re.compile(r"[|>][-+\d]*")


def about_of(raw: str) -> str | None:
    """Returns the value of `about` in front matter `raw`, on one line; None without one."""
    lines = raw.split("\n")
    span = _about_span(lines)
    if span is None:
        return None
    first = lines[span[0]].split(":", 1)[1].strip()
    if _BLOCK_SCALAR.fullmatch(first):
        first = ""
    return _unquoted(join_lines([first, *lines[span[0] + 1 : span[1]]])) or None


def with_about(raw: str, about: str, newline: str) -> str:
    """Returns front matter `raw` with `about` set, every other line as it was."""
    lines = raw.split("\n")
    span = _about_span(lines) or (1, 1)
    end = "\r" if newline == "\r\n" else ""
    return "\n".join([*lines[: span[0]], about_line(about) + end, *lines[span[1] :]])


def about_line(about: str) -> str:
    """Returns the line for `about`, quoted where YAML needs it."""
    value = join_lines(about.split("\n"))
    plain = _PLAIN_SCALAR.fullmatch(value) and not _SPECIAL.search(value)
    return f"about: {value}" if plain else f"about: {json.dumps(value, ensure_ascii=False)}"


def _about_span(lines: list[str]) -> tuple[int, int] | None:
    for index in range(1, len(lines)):
        if _ABOUT.match(lines[index]):
            end = index + 1
            while end < len(lines) and lines[end][:1] in (" ", "\t") and lines[end].strip():
                end += 1
            return index, end
    return None


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            decoded: object = json.loads(value)
        except ValueError:  # YAML allows more escapes than JSON; the raw words serve as well
            return value[1:-1]
        return str(decoded)
    return value
