"""Connections that read beside the writer: a few, kept open, each use one short snapshot."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from turnmark_session_store.database import open_reader


class Readers:
    """A stack of read-only connections; may be used from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def snapshot(self) -> Generator[apsw.Connection, None, None]:
        """Gives a connection inside a read transaction: every query sees the same commit."""
        with self._lock:
            connection = self._free.pop() if self._free else None
        connection = connection or open_reader(self._path)
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                # A disk that fails ends the transaction by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Closes the idle connections; ones in use close when they come back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(connection)
                return
        connection.close()
