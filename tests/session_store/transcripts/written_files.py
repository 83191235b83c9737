"""Files while they are written, and what they are when all is written."""

from __future__ import annotations

from pathlib import Path


class WrittenFiles:
    """A set of files; `written` is what each write adds to which, in order."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bytes]] = []

    def files(self) -> dict[str, bytes]:
        """The finished files."""
        found: dict[str, bytes] = {}
        for path, data in self.written:
            found[path] = found.get(path, b"") + data
        return found

    def write_to(self, root: Path) -> list[Path]:
        """Writes the finished files below a directory."""
        for path, data in self.files().items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        return [root / path for path in self.files()]
