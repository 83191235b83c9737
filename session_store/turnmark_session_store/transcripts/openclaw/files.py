"""Reads the transcripts that OpenClaw wrote up to 2026.7: a file each, and an index beside them.

`agents/<agent>/sessions/<session>.jsonl`, in the grammar of pi's version 3. `sessions.json` maps
the key of each conversation to the transcript in which it is now. A transcript is called what its
file is called, also where its first record has another name. Beside it lie copies of it, made at a
compaction or before a repair, and the trajectory of tools: they say nothing that it doesn't. A file
of a conversation that was reset is read like any other; one that was deleted is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

import msgspec

from turnmark_session_store.transcripts.fields import mapping_at, string_at
from turnmark_session_store.transcripts.json_lines import parse_line, read_json_lines
from turnmark_session_store.transcripts.openclaw.set import Family, Transcript
from turnmark_session_store.transcripts.openclaw.windows import Facts, Windows

INDEX = "sessions.json"
FOLDER = "sessions"
_NAME = re.compile(r"(?P<session>[^/]+)\.jsonl(?:\.reset\.[^/]+(?<!\.zst))?")
_COPY = re.compile(r".*\.(?:checkpoint\.[^/]+|trajectory)")
# The index is rewritten whole at each message; it holds no words.
_INDEX_LIMIT_BYTES = 64 * 1024 * 1024


def name_of(path: PurePath) -> str | None:
    """Returns what the transcript in a file is called, None if its name is of none."""
    found = _NAME.fullmatch(path.name)
    if found is None or _COPY.fullmatch(found["session"]):
        return None
    return found["session"]


def facts_of(paths: Iterable[Path]) -> dict[Path, Facts]:
    """Returns what the indexes beside them and their first records say of some transcripts."""
    indexes: dict[Path, Mapping[str, Facts]] = {}
    found: dict[Path, Facts] = {}
    for path in paths:
        name = name_of(path)
        if name is None:
            continue
        if path.parent not in indexes:
            indexes[path.parent] = read_index(path.parent / INDEX)
        found[path] = indexes[path.parent].get(name, Facts(session=name, is_lasting=False))
    return found


def read_index(path: Path) -> Mapping[str, Facts]:
    """Returns what an index says of the transcripts that it names; nothing if it can't be read."""
    try:
        found = path.stat()
        return _index_at(path, found.st_mtime_ns, found.st_size)
    except OSError:
        return {}


@lru_cache(maxsize=32)  # asked for at each line that is written, and changed as often by others
def _index_at(path: Path, mtime_ns: int, size: int) -> Mapping[str, Facts]:
    del mtime_ns, size
    with path.open("rb") as file:
        index = parse_line(file.read(_INDEX_LIMIT_BYTES))
    if not isinstance(index, dict):
        return {}
    rows = ((key, mapping_at(index, key)) for key in index)
    facts = (_facts(key, row) for key, row in rows)
    return {one.session: one for one in facts if one is not None}


def _facts(key: str, row: Mapping[str, Any]) -> Facts | None:
    file = string_at(row, "sessionFile")
    name = (name_of(PurePath(file)) if file is not None else None) or string_at(row, "sessionId")
    if name is None:
        return None
    return Facts(
        session=name,
        conversation=key,
        spawned_by=string_at(row, "spawnedBy"),
        title=string_at(row, "label") or string_at(row, "displayName"),
        channel=string_at(row, "channel") or string_at(row, "lastChannel"),
        is_lasting=False,
    )


def families_of(transcripts: Iterable[Transcript]) -> Iterator[Family]:
    """Yields the families of a set of files, resolved.

    Of a file that was moved away at a reset and one in its place, the longer has it all.
    """
    longest: dict[str, Transcript] = {}
    for one in transcripts:
        known = longest.get(one.facts.session)
        if known is None or len(one.entries) > len(known.entries):
            longest[one.facts.session] = one
    windows = Windows(one.facts for one in longest.values())
    members: dict[str, list[Transcript]] = {}
    for name, transcript in longest.items():
        members.setdefault(windows.families[name], []).append(transcript)
    for family in members.values():
        yield Family(windows, family)


def read_file(path: Path, facts: Facts) -> Transcript:
    """Returns the transcript in a finished file.

    Raises:
        Unavailable: if it can't be read.
    """
    transcript = Transcript(facts=facts, file=path.name)
    for line, record in read_json_lines(path, warn=transcript.warnings.append):
        transcript.take(line, record)
    return with_origin(transcript)


def with_origin(transcript: Transcript) -> Transcript:
    """Notes what a transcript's first record says: when it began, and what it is a copy of."""
    header = transcript.header
    if header is not None:
        parent = name_of(PurePath(header.parent.replace("\\", "/"))) if header.parent else None
        transcript.facts = msgspec.structs.replace(
            transcript.facts,
            created_ms=header.started_ms,
            origin=(parent or header.parent) if header.parent else None,
        )
    return transcript
