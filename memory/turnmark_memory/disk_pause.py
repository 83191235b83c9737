"""The pause after a failing disk: nobody announces that it is well again, so it is tried again."""

from __future__ import annotations

from typing import Final

from turnmark_session_store.times import now_ms

_FIRST_MS: Final = 1_000
_LONGEST_MS: Final = 60_000
_DOUBLINGS_LIMIT: Final = 16


class DiskPause:
    """When to look again; `until_ms` None where no disk failed. Doubled up to a minute."""

    def __init__(self) -> None:
        self.until_ms: int | None = None
        self._failures = 0

    def begin(self) -> None:
        """Notes that a look was stopped by the disk: the next one comes after a longer pause."""
        pause_ms = min(_FIRST_MS * 2 ** min(self._failures, _DOUBLINGS_LIMIT), _LONGEST_MS)
        self._failures += 1
        self.until_ms = now_ms() + pause_ms

    def begin_short(self) -> None:
        """Notes that something was left undone; a pause that is going on covers it."""
        if self.until_ms is None:
            self.until_ms = now_ms() + _FIRST_MS

    def end(self) -> None:
        """Notes that a look begins."""
        self.until_ms = None

    def forget(self) -> None:
        """Notes that a look ended well: if nothing was left undone, pauses begin small again."""
        if self.until_ms is None:
            self._failures = 0
