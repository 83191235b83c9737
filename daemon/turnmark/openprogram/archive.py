"""OpenProgram's evidence: one file a thread, records that say how many lines they have.

A body may imitate anything, so records are read by their line counts alone, and from the first one
that is not as it must be nothing of the file counts any more. Files of the older form give no
counts; nothing is read out of them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote, unquote

import msgspec

from turnmark_session_store.transcripts.fields import normal_time

_MARKER: Final = b"<!-- openprogram-source-archive:v2 -->"
_FOLDER: Final = "_v2"
_SAFE: Final = "-_."
_ANCHOR = re.compile(r'<a id="(source-[0-9a-f]{16})"></a>')
_SOURCE = re.compile(r"<!-- source-id:(.*) -->")
_SPEAKER = re.compile(r"<!-- speaker-id:(\S*) -->")
_META = re.compile(r"<!-- source-meta:([A-Za-z0-9_-]+) -->")
_COUNT = re.compile(r"<!-- record-lines:([0-9]{1,9}) -->")
_HEADER = re.compile(r"\[([^\[\]\x00-\x1f]*)\][^\S\n]+([^:\n]+): (.*)", re.DOTALL)
_FORBIDDEN: Final = frozenset("[]<>")
_PARTS: Final = 3
# A label where nothing is known of the speaker is the role.
_ROLES: Final = ("user", "assistant")


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One archived record; `time` is RFC 3339, None where it bears none that can be read."""

    provider: str
    thread: str
    message: str
    words: str
    time: str | None
    speaker_id: str | None
    speaker_name: str | None
    by_agent: bool
    trusted: bool

    @property
    def anchor(self) -> str:
        """What links to this record point at."""
        return anchor_of(f"{self.provider}/{self.thread}/{self.message}")


class ArchiveFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file's records; `problem` says why the rest of it does not count."""

    path: Path
    frames: tuple[Frame, ...]
    problem: str | None


def anchor_of(source: str) -> str:
    """Returns the anchor of a source by its id: provider, thread and message."""
    return f"source-{sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def read_archive(sources: Path) -> Iterator[ArchiveFile]:
    """Yields the files of `sources/` that have line counts, sorted; blocks on disk."""
    for path in sorted(sources.glob(f"*/{_FOLDER}/*.md")):
        if path.is_file() and not path.is_symlink():
            yield _read_file(path)


def _read_file(path: Path) -> ArchiveFile:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        return ArchiveFile(path=path, frames=(), problem=f"can't be read ({error.strerror})")
    if lines[:2] != [_MARKER, b""]:
        return ArchiveFile(path=path, frames=(), problem="does not begin as an archive")
    frames: dict[str, Frame] = {}
    problem: str | None = None
    at = 2
    while at < len(lines) and problem is None:
        found = _frame_at(lines, at, path)
        if found is None or found[0].anchor in frames:
            problem = f"is not as it should be from line {at + 1} on"
        else:
            frames[found[0].anchor] = found[0]
            at = found[1]
    return ArchiveFile(path=path, frames=tuple(frames.values()), problem=problem)


def _frame_at(lines: Sequence[bytes], at: int, path: Path) -> tuple[Frame, int] | None:
    """Returns the record that begins at a line, and where the next one does; None if none does."""
    head = iter(_text(line) or "" for line in lines[at : at + 5])
    anchor = _ANCHOR.fullmatch(next(head, ""))
    source = _SOURCE.fullmatch(next(head, ""))
    line, at = next(head, ""), at + 2
    speaker = _SPEAKER.fullmatch(line)
    if speaker:
        line, at = next(head, ""), at + 1
    meta = _META.fullmatch(line)
    if meta:
        line, at = next(head, ""), at + 1
    counted = _COUNT.fullmatch(line)
    if anchor is None or source is None or counted is None:
        return None
    start, count = at + 1, int(counted[1])
    record = lines[start : start + count]
    ends_well = count > 0 and lines[start + count : start + count + 1] == [b""]
    words = _text(b"\n".join(record))
    parts = _source_parts(source[1], path)
    who = _speaker(speaker[1]) if speaker else None
    said = _meta(meta[1]) if meta else {"trust_state": "trusted"}
    header = _HEADER.fullmatch(words) if words is not None else None
    if not ends_well or parts is None or header is None or said is None:
        return None
    if anchor_of(source[1]) != anchor[1] or (speaker and who is None):
        return None
    return _frame(parts, header, who, said), start + count + 1


def _frame(
    parts: Sequence[str], header: re.Match[str], who: str | None, said: dict[str, Any]
) -> Frame:
    stamp, label, words = header.groups()
    name: str | None = label.strip()
    kind = said.get("speaker_kind")
    by_agent = name == "assistant" or kind in ("runtime", "agent", "assistant")
    if who:
        name = re.sub(r"\s*\([^()]*\)$", "", str(name))
    return Frame(
        provider=parts[0],
        thread=parts[1],
        message=parts[2],
        words=words,
        time=normal_time(stamp),
        speaker_id=who or None,
        speaker_name=None if name in ("", who, *_ROLES) else name,
        by_agent=by_agent,
        trusted=said.get("trust_state") == "trusted",
    )


def _text(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _source_parts(source: str, path: Path) -> list[str] | None:
    """Returns provider, thread and message, if they are those of this very file."""
    parts = source.split("/", _PARTS - 1)
    if len(parts) != _PARTS or not all(parts) or parts[0] in (".", ".."):
        return None
    if not source.isprintable() or _FORBIDDEN.intersection(source):
        return None
    provider, thread = (quote(part, safe=_SAFE) for part in parts[:2])
    is_own = path.parent.parent.name == provider and path.name == f"{thread}.md"
    return parts if is_own else None


def _speaker(written: str) -> str | None:
    """Returns a speaker's id, empty where only a name is known; None if it is not as it must be."""
    identity = unquote(written)
    again = quote(identity, safe="").replace("-", "%2D")
    return identity if written == again else None


def _meta(written: str) -> dict[str, Any] | None:
    """Returns what a record says of itself, None if it is not written in its one form."""
    try:
        packed = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4))
        parsed = json.loads(packed)
        is_whole = base64.urlsafe_b64encode(packed).rstrip(b"=").decode() == written
        is_one_form = packed in (_written(parsed, ascii_only=True), _written(parsed))
    except (binascii.Error, ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict) or not (is_whole and is_one_form):
        return None
    return cast("dict[str, Any]", parsed)


def _written(said: Any, *, ascii_only: bool = False) -> bytes:
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only)
    return text.encode("utf-8", "replace")
