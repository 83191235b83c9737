"""opencode's sessions outside of its database: the files of old versions, and exports.

    storage/session/<project>/<session>.json     then message/<session>/*.json, part/<message>/*
    storage/session/info/<session>.json          older still; then session/message/…, session/part/…

Names are those of the ids as a rule, but what stands in a file counts.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from turnmark_session_store.transcripts.fields import mapping_at, mappings_in, string_at
from turnmark_session_store.transcripts.ids import is_plain_id
from turnmark_session_store.transcripts.json_lines import parse_line, unreadable
from turnmark_session_store.transcripts.opencode.chain import SessionRecord
from turnmark_session_store.transcripts.opencode.info import (
    RANK_EXPORT,
    RANK_FILES,
    RawMessage,
    session_of,
)
from turnmark_session_store.transcripts.opencode.records import Read, message_of_row
from turnmark_session_store.transcripts.reader import ReadWarning

SUFFIX: Final = ".json"
_SESSION, _MESSAGE, _PART, _INFO = "session", "message", "part", "info"
KINDS: Final = (_SESSION, _MESSAGE, _PART)
"""The directories of a storage in which files of sessions lie."""

# What stands in each kind of file, also where it is too long to be looked at whole.
_MARKS = {_SESSION: b'"directory"', _MESSAGE: b'"role"', _PART: b'"type"'}
# An export begins with the session; its messages may come behind what is looked at.
_EXPORT_HEAD = re.compile(rb'\s*\{\s*"info"\s*:\s*\{')
_SESSION_ID = re.compile(rb'"id"\s*:\s*"ses_')


class Place(NamedTuple):
    """What a file of a storage is: `kind` is `session`, `message` or `part`.

    `base` is the directory in which those three kinds lie, `owner` the name of the file's own
    directory: the session of a message, the message of a part.
    """

    kind: str
    base: Path
    owner: str
    is_nested: bool


def place_of(path: Path) -> Place | None:
    """Returns what a file of a storage is, None for any other file, by its place alone."""
    if path.suffix != SUFFIX:
        return None
    folders = [parent.name for parent in path.parents][:4]
    folders += [""] * (4 - len(folders))
    own, second, third, fourth = folders
    if own == _INFO and second == _SESSION:
        return Place(_SESSION, path.parents[2], own, is_nested=True)
    if second == _MESSAGE and third == _SESSION:
        return Place(_MESSAGE, path.parents[3], own, is_nested=True)
    if third == _PART and fourth == _SESSION:
        return Place(_PART, path.parents[4], own, is_nested=True)
    if second in KINDS:
        return Place(second, path.parents[2], own, is_nested=False)
    return None


def is_stored(path: Path, head: bytes) -> bool:
    """Returns whether a file is one of a storage, by its place and by what stands in it."""
    place = place_of(path)
    if place is None or head.lstrip()[:1] != b"{":
        return False
    record = parse_line(head)
    if not isinstance(record, dict):  # longer than what is looked at, or cut off
        return _MARKS[place.kind] in head
    if place.kind == _SESSION:
        return "id" in record and ("directory" in record or "version" in record)
    if place.kind == _MESSAGE:
        return record.get("role") in ("user", "assistant")
    return isinstance(record.get("type"), str)


def is_export(path: Path, head: bytes) -> bool:
    """Returns whether a file is an export of a session."""
    found = _EXPORT_HEAD.match(head) if path.suffix == SUFFIX else None
    return found is not None and _SESSION_ID.search(head, found.end()) is not None


def read_export(path: Path) -> SessionRecord:
    """Returns the session of an export; one without any, and a warning, if it can't be read.

    Raises:
        Unavailable: if the file cannot be read.
    """
    record = _record(path)
    if isinstance(record, str):
        warning = ReadWarning(file=str(path), line=0, reason=record)
        return session_of({}, [], name=path.stem, rank=-1, warnings=[warning])
    info = mapping_at(record, _INFO)
    name = info.get("id")
    entries = mappings_in(record.get("messages"))
    session = session_of(
        info,
        [raw for entry in entries if (raw := _entry(entry, path)) is not None],
        name=str(name) if is_plain_id(name) else path.stem,
        rank=RANK_EXPORT,
    )
    return session if session.messages else _of_rows(session, entries, path)


class Storage:
    """The files of old versions below one directory, `storage` itself or one like it.

    While they are written (`is_live`), they say by themselves when that was last done.
    """

    def __init__(self, base: Path, *, is_live: bool = False) -> None:
        self._base = base
        self._is_live = is_live

    def sessions(self, names: Iterable[Path]) -> Iterator[SessionRecord]:
        """Yields the sessions whose own files are given; one that is lost says nothing.

        Raises:
            Unavailable: if a file cannot be read.
        """
        for path in names:
            warnings: list[ReadWarning] = []
            info: Mapping[str, Any] = _object(path, warnings) if path.exists() else {}
            name = id_in(info, path)
            yield session_of(
                info,
                list(self._messages(name, path, warnings)),
                name=name,
                rank=RANK_FILES,
                warnings=warnings,
            )

    def session_files(self) -> list[Path]:
        """Returns the files of all sessions."""
        places = (self._base / _SESSION).glob(f"*/*{SUFFIX}")
        return sorted(
            path for path in places if (place := place_of(path)) and place.kind == _SESSION
        )

    def message_files(self, session: str, path: Path) -> list[Path]:
        """Returns the files of a session's messages in their order; `path` is its own file.

        Raises:
            Unavailable: if the directory cannot be read.
        """
        return _files_in(self._top(path) / _MESSAGE / session)

    def part_files(self, session: str, message: str, path: Path) -> list[Path]:
        """Returns the files of a message's parts; `path` is the session's own file.

        Raises:
            Unavailable: if the directory cannot be read.
        """
        folder = self._top(path) / _PART
        return _files_in(folder / session / message if _is_nested(path) else folder / message)

    def session_file_of(self, place: Place, path: Path) -> Path | None:
        """Returns the file of the session that another file belongs to; it need not be there.

        None for a part of a message that is not there.
        """
        session = place.owner
        if place.kind == _SESSION:
            return path
        if place.kind == _PART:
            session = path.parents[1].name if place.is_nested else self._session_of_part(path)
        if not session:
            return None
        folder = self._base / _SESSION
        there = sorted(folder.glob(f"*/{session}{SUFFIX}"))
        lost = folder / (_INFO if place.is_nested else "") / f"{session}{SUFFIX}"
        return there[0] if there else lost

    def _session_of_part(self, path: Path) -> str:
        record = _record(path)
        named = string_at(record, "sessionID") if isinstance(record, dict) else None
        if named is not None and is_plain_id(named):
            return named
        for message in (self._base / _MESSAGE).glob(f"*/{path.parent.name}{SUFFIX}"):
            return message.parent.name
        return ""

    def _messages(
        self, session: str, own: Path, warnings: list[ReadWarning]
    ) -> Iterator[RawMessage]:
        for path in self.message_files(session, own):
            info = _object(path, warnings)
            name = id_in(info, path)
            files = self.part_files(session, name, own)
            parts = [part for one in files if (part := _object(one, warnings))]
            if info:
                written = _written_ms((path, *files)) if self._is_live else None
                yield RawMessage(info, parts, Read(id=name, file=path.name, updated=written))

    def _top(self, path: Path) -> Path:
        return self._base / _SESSION if _is_nested(path) else self._base


def id_in(info: Mapping[str, Any], path: Path) -> str:
    """Returns the id that a file's object names, else the file's own name."""
    own = info.get("id")
    return str(own) if is_plain_id(own) else path.stem


def read_object(path: Path) -> Mapping[str, Any]:
    """Returns the object in a file, an empty one if it holds none.

    Raises:
        Unavailable: if the file cannot be read.
    """
    return _object(path, [])


def _is_nested(path: Path) -> bool:
    return path.parent.name == _INFO


def _entry(entry: Mapping[str, Any], path: Path) -> RawMessage | None:
    info = mapping_at(entry, _INFO)
    name = info.get("id")
    if not is_plain_id(name):
        return None
    parts = mappings_in(entry.get("parts"))
    return RawMessage(info, parts, Read(id=str(name), file=path.name))


def _of_rows(
    session: SessionRecord, entries: Iterable[Mapping[str, Any]], path: Path
) -> SessionRecord:
    """Returns a session with the messages of an export of 2.x, which are rows."""
    rows = (
        message_of_row(
            string_at(entry, "type") or "",
            entry,
            number,
            Read(id=string_at(entry, "id") or f"{session.id}.{number}", file=path.name),
        )
        for number, entry in enumerate(entries)
    )
    messages = tuple(message for message in rows if message is not None)
    return SessionRecord(
        id=session.id,
        rank=session.rank,
        title=session.title,
        project=session.project,
        parent=session.parent,
        created_ms=session.created_ms,
        updated_ms=session.updated_ms,
        messages=messages,
        origin=session.origin,
        warnings=session.warnings,
    )


def _written_ms(paths: Iterable[Path]) -> int:
    """Returns when one of these files was written last; one that is gone says nothing."""
    times = [0.0]
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            times.append(path.stat().st_mtime)
    return round(max(times) * 1000)


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from error


def _object(path: Path, warnings: list[ReadWarning]) -> Mapping[str, Any]:
    """Returns the object in a file, an empty one and a warning if it holds none."""
    record = _record(path)
    if isinstance(record, dict):
        return record
    warnings.append(ReadWarning(file=str(path), line=0, reason=record))
    return {}


def _record(path: Path) -> dict[str, Any] | str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    record = parse_line(data)
    return "empty" if record is None else record
