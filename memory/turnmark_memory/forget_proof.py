"""The proof of an erasure: what the books still hold of it, and a search for the words themselves.

Books can be wrong; bytes can't. So beside the counts, every file of the state and of the workspace
is searched for pieces of what was erased. A piece that is found may well be somebody else's: the
same sentence said in another conversation, a person's own note, a title. The answer names the file
and leaves the judgement to the reader.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import apsw
import msgspec

_SHORTEST_PIECE_BYTES = 12
_LONGEST_PIECE_CHARACTERS = 60
"""Enough to be nobody else's sentence, short enough to survive being wrapped in a block."""

_PIECES = 200
_FOUND_LIMIT = 20
_READ_BYTES = 1 << 22

NOT_SEARCHED = (
    "the agents' own transcripts",
    "backups, and copies in other places",
    "the history of a version control system",
)


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What is left: rows and lines by place (all 0 if it worked), and files that hold the words.

    `searched` is the number of files, `bytes` their size; `found` names those with a piece of the
    words in them, relative to the state or the workspace. `not_searched` is out of reach.
    """

    left: dict[str, int]
    searched: int
    bytes: int
    found: tuple[str, ...]
    not_searched: tuple[str, ...] = NOT_SEARCHED


def pieces_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns a piece to search for of each text that is long enough, a bounded number in all."""
    found: dict[str, None] = {}
    for text in texts:
        longest = max((line.strip() for line in text.splitlines()), key=len, default="")
        piece = longest[:_LONGEST_PIECE_CHARACTERS].strip()
        if len(piece.encode("utf-8", "replace")) >= _SHORTEST_PIECE_BYTES:
            found[piece] = None
        if len(found) >= _PIECES:
            break
    return tuple(found)


def search(roots: Sequence[Path], pieces: Sequence[str]) -> tuple[int, int, tuple[str, ...]]:
    """Returns how many files and bytes were searched, and which files hold one of `pieces`.

    Costs a read of everything below `roots`; a file that vanishes meanwhile holds nothing. What
    this process has open as a database is read through SQLite (see `_Database`).
    """
    wanted = _pattern(pieces)
    files = size = 0
    found: list[str] = []
    for root in roots:
        for path in _files(root):
            held, read = _holds(path, wanted)
            files, size = files + 1, size + read
            if held and len(found) < _FOUND_LIMIT:
                found.append(str(path.relative_to(root)))
    return files, size, tuple(found)


def _pattern(pieces: Sequence[str]) -> re.Pattern[bytes] | None:
    """Returns what finds a piece as it is and as JSON writes it."""
    forms: dict[bytes, None] = {}
    for piece in pieces:
        for form in (piece, json.dumps(piece, ensure_ascii=False)[1:-1], json.dumps(piece)[1:-1]):
            forms[form.encode("utf-8", "replace")] = None
    return re.compile(b"|".join(map(re.escape, forms))) if forms else None


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            path = Path(folder, name)
            # The map of a log holds page numbers alone, and it carries locks (see `_Database`).
            if name.endswith(".db-shm"):
                continue
            if path.is_file() and not path.is_symlink():
                yield path


class _Database:
    """A database's bytes as they lie on disk.

    Closing any other handle on a database would end all locks that this process has on it: another
    process that opened and closed it would then take the log away from under the open store.
    SQLite knows its own handles and keeps the locks.
    """

    def __init__(self, path: Path) -> None:
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
        try:
            self._file = apsw.VFSFile("", str(path), [flags, 0])
        except apsw.Error as error:
            raise OSError(str(error)) from error
        self._place = 0

    def read(self, size: int) -> bytes:
        try:
            length = min(size, self._file.xFileSize() - self._place)
            part = self._file.xRead(length, self._place) if length > 0 else b""
        except apsw.Error as error:
            raise OSError(str(error)) from error
        self._place += len(part)
        return part

    def close(self) -> None:
        self._file.xClose()


def _holds(path: Path, wanted: re.Pattern[bytes] | None) -> tuple[bool, int]:
    """Tells whether a file holds what is wanted, reading in pieces that overlap."""
    overlap = 8 * _LONGEST_PIECE_CHARACTERS
    rest, read, held = b"", 0, False
    try:
        with closing(_Database(path) if path.suffix == ".db" else path.open("rb")) as file:
            while part := file.read(_READ_BYTES):
                read += len(part)
                held = held or (wanted is not None and wanted.search(rest + part) is not None)
                rest = part[-overlap:]
    except OSError:
        return held, read
    return held, read
