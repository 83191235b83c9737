"""A person's editor as a process of its own: it opens a file, waits, and saves it in its way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAYS = ("rename", "in-place", "vim")

_PROGRAM = """
import os, sys
way, path = sys.argv[1], sys.argv[2]
def slowly(file, new):
    for start in range(0, len(new), 64):
        file.write(new[start : start + 64])
        os.sched_yield()
def read():
    with open(path, "rb") as file:
        return file.read()
buffer = b""
for line in sys.stdin:
    command, _, rest = line.rstrip("\\n").partition(" ")
    if command == "open":
        buffer = read()
        print("opened", flush=True)
        continue
    if command == "fresh":
        buffer = read()
    own, _, change = rest.partition("|")
    old, _, new = change.partition(">")
    changed = bool(old) and old.encode() in buffer
    if changed:
        buffer = buffer.replace(old.encode(), new.encode(), 1)
    at = buffer.find(b"\\n[^s-")
    at = len(buffer) if at < 0 else at
    buffer = buffer[:at] + b"\\n" + own.encode() + b"\\n" + buffer[at:]
    if way == "rename":
        with open(path + ".tmp", "wb") as file:
            file.write(buffer)
        os.rename(path + ".tmp", path)
    elif way == "in-place":
        with open(path, "r+b", buffering=0) as file:
            file.truncate(0)
            slowly(file, buffer)
    else:
        os.rename(path, path + "~")
        with open(path, "wb", buffering=0) as file:
            slowly(file, buffer)
        os.unlink(path + "~")
    print("changed" if changed else "saved", flush=True)
"""


class Editor:
    """One editor on one file."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def open(self) -> None:
        """Reads the file and keeps it."""
        self._say("open")
        assert self.heard() == "opened"

    def save(self, own: str, change: tuple[str, str] = ("", ""), *, fresh: bool) -> None:
        """Puts a paragraph into what it has read (`fresh`: reads now) and saves; returns at once.

        `change` replaces words, where they stand.
        """
        self._say(f"{'fresh' if fresh else 'save'} {own}|{change[0]}>{change[1]}")

    def heard(self) -> str:
        """Waits for its answer: `saved`, or `changed` where the words to change were there."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


@contextmanager
def editor(way: str, file: Path) -> Iterator[Editor]:
    """Gives an editor of `file` that saves in `way`, and ends it."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, way, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Editor(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
