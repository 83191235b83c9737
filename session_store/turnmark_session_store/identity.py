"""What makes a turn the same turn: its key, and the digest of its content."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable

import msgspec

from turnmark_session_store.fences import cut_fences
from turnmark_session_store.masking import mask_secrets
from turnmark_session_store.model import CallerRef, Kind, Role, TurnIn
from turnmark_session_store.names import check_name
from turnmark_session_store.recordable import is_recordable, text_of
from turnmark_session_store.times import from_rfc3339

DIGEST_BYTES = 16
_SEPARATOR = "\x00"

HASHED = "h-"
"""How the ids begin that stand for turns without one."""


class PreparedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn made ready off the writer thread: fences cut, secrets masked, tokens counted.

    `digest` covers role, kind, speaker id and the raw text in NFC; `text` is what will be stored.
    """

    id: str | None
    role: Role
    kind: Kind
    text: str
    digest: bytes
    speaker_id: str | None
    speaker_name: str | None
    time_ms: int | None
    caller: CallerRef | None
    supersedes: str | None
    metadata: bytes | None
    masked: bool
    tokens: int
    recordable: bool


def prepare(turn: TurnIn, *, count: Callable[[str], int], mask: bool) -> PreparedTurn:
    """Returns the turn ready to be stored; costs CPU in proportion to its text, touches no disk.

    Raises:
        Refused: if its id or time can't be used.
    """
    raw = cut_fences(text_of(turn.text))
    text, masked = mask_secrets(raw) if mask else (raw, False)
    recordable = is_recordable(role=turn.role, kind=turn.kind, text=raw, spawned=False)
    speaker_id = turn.speaker.id if turn.speaker else None
    return PreparedTurn(
        id=check_name(turn.id, "a turn's id") if turn.id is not None else None,
        role=turn.role,
        kind=turn.kind,
        text=text,
        digest=content_digest(turn.role, turn.kind, speaker_id, raw),
        speaker_id=speaker_id,
        speaker_name=turn.speaker.name if turn.speaker else None,
        time_ms=from_rfc3339(turn.time) if turn.time is not None else None,
        caller=turn.caller,
        supersedes=turn.supersedes,
        metadata=msgspec.json.encode(turn.metadata) if turn.metadata else None,
        masked=masked,
        tokens=count(text) if recordable else 0,
        recordable=recordable,
    )


def content_digest(role: str, kind: str, speaker_id: str | None, raw: str) -> bytes:
    """Returns the 16 bytes that say whether two turns have the same content."""
    return _digest(role, kind, speaker_id or "", unicodedata.normalize("NFC", raw))


def hashed_id(*, namespace: str, predecessor: str | None, origin: str, digest: bytes) -> str:
    """Returns the id of a turn that came without one: `h-` + 32 hex, time left out.

    `predecessor` is the id of the turn before it. `origin` is empty except for merges, where it
    names the other parents, and for roots, where it names the caller and, in a namespace that
    families share, the session: two families never share a turn by its text.
    """
    return HASHED + _digest(namespace, predecessor or "", origin, digest.hex()).hex()


def _digest(*parts: str) -> bytes:
    joined = _SEPARATOR.join(parts)
    if joined.count(_SEPARATOR) >= len(parts):  # a part holds one itself: each is made two signs
        joined = _SEPARATOR.join(part.replace(_SEPARATOR, "\x00\x01") for part in parts)
    content = joined.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
