"""The files in which older versions of Hermes keep a session: lines, or a snapshot of it whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnmark_session_store.transcripts.fields import mappings_in, string_at
from turnmark_session_store.transcripts.hermes.graph import HermesGraph
from turnmark_session_store.transcripts.hermes.records import (
    HermesRow,
    HermesSession,
    row_of,
    seconds,
)
from turnmark_session_store.transcripts.hermes.sessions import AGENT, sessions_of
from turnmark_session_store.transcripts.json_lines import parse_line, read_json_lines, unreadable
from turnmark_session_store.transcripts.reader import ReadSession, ReadWarning

_META = "session_meta"
_SNAPSHOT = "session_"
# A snapshot begins with what it is, before its messages.
_SNAPSHOT_MARKS = (b'"session_id"', b'"session_start"', b'"messages"')


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """What one file holds of its session."""

    path: Path
    session: HermesSession
    rows: tuple[HermesRow, ...]
    warnings: tuple[ReadWarning, ...]


def is_hermes_file(path: Path, head: bytes) -> bool:
    """Returns whether a file's first bytes are those of a session of an older version."""
    if path.suffix == ".jsonl":
        first = _object(head.split(b"\n", 1)[0])
        return first.get("role") == _META
    if path.suffix != ".json" or not path.name.startswith(_SNAPSHOT):
        return False
    return all(mark in head for mark in _SNAPSHOT_MARKS)


def read_hermes_files(
    paths: Sequence[Path], *, without: Collection[str] = ()
) -> Iterator[ReadSession]:
    """Yields the sessions of files; of two files of one session, the one that holds more.

    Raises:
        Unavailable: if a file can't be read.
    """
    best: dict[str, _File] = {}
    for path in sorted(paths):
        found = _lines(path) if path.suffix == ".jsonl" else _snapshot(path)
        known = best.get(found.session.id)
        if known is None or len(found.rows) > len(known.rows):
            best[found.session.id] = found
    for name, one in best.items():
        if name not in without:
            yield _read(one)


def _read(one: _File) -> ReadSession:
    name = one.session.id
    graph = HermesGraph({name: one.session}, {name: one.rows})
    found = sessions_of(graph, files={name: one.path.name}, projects={})
    empty = ReadSession(session=name, agent=AGENT)
    return msgspec.structs.replace(next(found, empty), warnings=one.warnings)


def _lines(path: Path) -> _File:
    warnings: list[ReadWarning] = []
    rows: list[HermesRow] = []
    meta: dict[str, Any] = {}
    for number, record in read_json_lines(path, warn=warnings.append):
        if record.get("role") == _META:
            meta = meta or record
        else:
            rows.append(row_of({**record, "id": number}))
    session = HermesSession(id=path.stem, source=string_at(meta, "platform"))
    return _File(path=path, session=session, rows=tuple(rows), warnings=tuple(warnings))


def _snapshot(path: Path) -> _File:
    try:
        found = _object(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
    warnings = () if found else (ReadWarning(file=str(path), line=0, reason="no JSON object"),)
    messages = mappings_in(found.get("messages"))
    return _File(
        path=path,
        session=HermesSession(
            id=string_at(found, "session_id") or path.stem.removeprefix(_SNAPSHOT),
            source=string_at(found, "platform"),
            started_at=seconds(found.get("session_start")),
        ),
        rows=tuple(row_of({**one, "id": number}) for number, one in enumerate(messages, 1)),
        warnings=warnings,
    )


def _object(data: bytes) -> dict[str, Any]:
    found = parse_line(data)
    return found if isinstance(found, dict) else {}
