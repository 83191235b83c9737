"""One line of the archive: a turn word for word with its label, or the place of a forgotten one."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from turnmark_memory.model import Evidence
from turnmark_session_store.model import Speaker

# What is left of a line whose turn was forgotten, so that the numbers of the others hold.
FORGOTTEN_LINE = b'{"forgotten":true}\n'


class ArchivedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the archive; `after` as in `Evidence`: lines alone don't tell the branch."""

    label: str
    namespace: str
    id: str
    session: str
    agent: str
    role: Literal["user", "assistant"]
    time: datetime
    text: str
    project: str | None = None
    speaker: Speaker | None = None
    tokens: int | None = None
    after: str | None = None


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[ArchivedTurn] = msgspec.json.Decoder(ArchivedTurn)


def archived(turn: Evidence, label: str) -> ArchivedTurn:
    """Returns `turn` as the archive keeps it, under `label`."""
    speaker = None
    if turn.speaker_id is not None or turn.speaker_name is not None:
        speaker = Speaker(id=turn.speaker_id, name=turn.speaker_name)
    return ArchivedTurn(
        label=label,
        namespace=turn.namespace,
        id=turn.id,
        session=turn.session,
        agent=turn.agent,
        project=turn.project,
        role=turn.role,
        speaker=speaker,
        time=turn.time,
        text=turn.text,
        tokens=turn.tokens,
        after=turn.after,
    )


def encode_line(turn: ArchivedTurn) -> bytes:
    """Returns the line, with its newline."""
    try:
        return _encoder.encode(turn) + b"\n"
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8; it becomes "?" so that the rest is kept.
        text = turn.text.encode("utf-8", "replace").decode()
        return _encoder.encode(msgspec.structs.replace(turn, text=text)) + b"\n"


def decode_line(line: bytes) -> ArchivedTurn | None:
    """Returns the turn of a line, None if it is forgotten or no line of ours."""
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
