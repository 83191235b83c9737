"""Uploads: the lines of exports that come in parts, held until the last part is here."""

from __future__ import annotations

import secrets

from turnmark_events.errors import NotFound, Refused
from turnmark_session_store.requests import ImportLines

_LIMIT = 16
_LIMIT_CHARACTERS = 512 * 1024 * 1024


class Uploads:
    """The uploads that are under way, in memory: they end with the process."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def header_of(self, upload: str) -> str | None:
        """Returns the first line of an upload that is under way, None where there is none."""
        lines = self._lines.get(upload)
        return lines[0] if lines else None

    def collect(self, asked: ImportLines) -> tuple[str, list[str] | None]:
        """Returns the upload's name, and with its last part all of its lines.

        Raises:
            NotFound: if it is unknown: it began before a restart, or was never begun.
            Refused: if too many are under way, or this one is too large; it is given up. Also if
                there is no line to go on with, or it is the header, which has to come whole.
        """
        if asked.upload is not None and asked.upload not in self._lines:
            raise NotFound(
                f"no upload {asked.upload!r} is under way; begin again without it",
                upload=asked.upload,
            )
        upload = asked.upload or f"up-{secrets.token_hex(8)}"
        lines = self._lines.pop(upload, [])
        if asked.continued:
            if len(lines) < 2 or not asked.lines:  # noqa: PLR2004 - a header and a line of it
                raise Refused("continued: there is no line after the header to go on with")
            lines[-1] += asked.lines[0]
        lines += asked.lines[asked.continued :]
        if asked.last:
            return upload, lines
        if len(self._lines) >= _LIMIT or sum(map(len, lines)) > _LIMIT_CHARACTERS:
            raise Refused(
                f"at most {_LIMIT} uploads of {_LIMIT_CHARACTERS >> 20} MiB can be "
                "under way; finish one with last: true"
            )
        self._lines[upload] = lines
        return upload, None
