"""Files while they are written, and what they are when all is written."""

from __future__ import annotations

import os
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Write(NamedTuple):
    """What is written to a file: more at its end, or all of it anew, in place."""

    path: str
    data: bytes
    anew: bool = False

    def to(self, root: Path) -> Path:
        """Writes it below a directory, as a program does, and returns where."""
        path = root / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not self.anew:
            append(path, self.data)
            return path
        with path.open("r+b") as file:
            file.write(self.data)
            file.truncate()
        return path


class WrittenFiles(ABC):
    """A set of files that an agent writes; `written` is each write, in order."""

    def __init__(self) -> None:
        self.written: list[Write] = []

    @abstractmethod
    def play(self, steps: int) -> None:
        """Plays that many things that a person or the program does."""

    def files(self) -> dict[str, bytes]:
        """The finished files."""
        found: dict[str, bytes] = {}
        for path, data, anew in self.written:
            found[path] = data if anew else found.get(path, b"") + data
        return found

    def write_to(self, root: Path) -> list[Path]:
        """Writes the finished files below a directory."""
        for path, data in self.files().items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        return [root / path for path in self.files()]

    def pieces(self, chance: random.Random, *, mixed: bool) -> list[Write]:
        """The writes cut at random bytes, as they were written or in another order across files."""
        pieces = torn(chance, self.written)
        return interleaved(chance, pieces) if mixed else pieces


class Disturbed:
    """Finished files that come about below a directory, and are cut and replaced on their way."""

    def __init__(self, chance: random.Random, root: Path, files: Mapping[str, bytes]) -> None:
        self._chance = chance
        self._files = {root / name: data for name, data in files.items()}
        self._sizes = dict.fromkeys(self._files, 0)

    @property
    def unfinished(self) -> list[Path]:
        """The files of which something is missing."""
        return [path for path, data in self._files.items() if self._sizes[path] < len(data)]

    def step(self) -> Path:
        """Adds to a file, cuts it, writes it anew in place or beside it, or deletes it."""
        path = self._chance.choice(self.unfinished)
        happens = (self._grow, self._cut, self._rewrite, self._replace, self._delete)
        what = self._chance.choices(happens, weights=(20, 1, 1, 1, 1))[0]
        (what if self._sizes[path] else self._grow)(path)
        return path

    def finish(self) -> None:
        """Writes all that is missing."""
        for path in self.unfinished:
            self._put(path, len(self._files[path]))

    def _grow(self, path: Path) -> None:
        start = self._sizes[path]
        size = self._chance.choice((1, 50, 400, 2_000, 9_000))
        append(path, self._files[path][start : start + size])
        self._sizes[path] = min(start + size, len(self._files[path]))

    def _cut(self, path: Path) -> None:
        self._sizes[path] = self._chance.randrange(self._sizes[path])
        os.truncate(path, self._sizes[path])

    def _rewrite(self, path: Path) -> None:
        self._put(path, self._chance.randrange(len(self._files[path])))

    def _replace(self, path: Path) -> None:
        self._sizes[path] = self._chance.randrange(len(self._files[path]))
        other = path.with_suffix(".new")
        other.write_bytes(self._files[path][: self._sizes[path]])
        other.rename(path)

    def _delete(self, path: Path) -> None:
        path.unlink()
        self._sizes[path] = 0

    def _put(self, path: Path, size: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._files[path][:size])
        self._sizes[path] = size


def append(path: Path, data: bytes) -> None:
    """Appends bytes to a file, as a program that writes it does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def torn(chance: random.Random, written: Sequence[Write]) -> list[Write]:
    """Returns the writes that add, cut at random bytes, in the order that each file has."""
    pieces: list[Write] = []
    for one in written:
        if one.anew:
            pieces.append(one)
            continue
        size = len(one.data)
        cuts = sorted(chance.sample(range(size), k=chance.choice((0, 0, 1, 2))))
        for start, end in zip([0, *cuts], [*cuts, size], strict=True):
            pieces.append(Write(one.path, one.data[start:end]))
    return pieces


def interleaved(chance: random.Random, pieces: Sequence[Write]) -> list[Write]:
    """Returns the pieces in another order across files; within a file they stay as they are."""
    queues: dict[str, list[Write]] = {}
    for piece in pieces:
        queues.setdefault(piece.path, []).append(piece)
    order = [piece.path for piece in pieces]
    chance.shuffle(order)
    return [queues[path].pop(0) for path in order]
