"""What each install changed: `.turnmark/revisions/<n>.json`, one per revision, kept for ever.

A record is written before the files of its install are exchanged, so a revision that the
workspace has reached has its record; a record beyond the workspace's revision belongs to an
install that is still on its way (or was given up) and is replaced when the number is used again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import msgspec
import structlog

from turnmark_events.errors import NotFound, Unavailable
from turnmark_memory import durable
from turnmark_memory.rooted import names_in
from turnmark_memory.workspace import REVISIONS, STAGING, Workspace

log = structlog.get_logger(__name__)

_NAME = re.compile(r"([1-9][0-9]{0,17})\.json")
PAGE_LIMIT = 200


class BlockChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One block before and after: its words with its cites as they stand in the file.

    `before` is None for a new block, `after` for one that was taken out.
    """

    topic: str
    block: str
    before: str | None
    after: str | None


class RevisionRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One install: its number, when and why, the blocks and topics it changed, and how.

    `turns` is the number of turns it settled, None for an install that settles none.
    """

    revision: int
    at: datetime
    cause: str
    blocks: tuple[str, ...]
    topics: tuple[str, ...]
    changes: tuple[BlockChange, ...]
    turns: int | None = None


class RevisionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Records, newest first; `next` continues, None at the end."""

    records: tuple[RevisionRecord, ...]
    next: int | None


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[RevisionRecord] = msgspec.json.Decoder(RevisionRecord)


def write_record(workspace: Workspace, record: RevisionRecord) -> None:
    """Writes the record, durably, in place of one with its number; repeating it changes nothing.

    Raises:
        Unavailable: if the disk fails.
    """
    content = _encoder.encode(record) + b"\n"
    workspace.tree.replace(_path(record.revision), content, staging=STAGING)


def read_record(workspace: Workspace, revision: int) -> RevisionRecord:
    """Returns the record of a revision.

    Raises:
        NotFound: if there is none.
        Unavailable: if it can't be read.
    """
    content = workspace.tree.read(_path(revision))
    if content is None:
        raise NotFound(
            f"There is no revision {revision}; `turnmark log` lists them.", revision=revision
        )
    try:
        return _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Unavailable(
            f"{_path(revision)} can't be read ({error}); that revision can't be undone.",
            revision=revision,
        ) from error


def history(
    workspace: Workspace, *, before: int | None = None, limit: int = PAGE_LIMIT
) -> RevisionPage:
    """Returns at most `limit` records, newest first, of revisions below `before` (None: all).

    Reads only the page's files. Records that can't be read are left out, and logged.
    """
    numbers = [
        number for number in revision_numbers(workspace) if before is None or number < before
    ]
    page = numbers[:limit]
    more = page[-1] if page and len(numbers) > limit else None
    return RevisionPage(records=tuple(_readable(workspace, page)), next=more)


def revision_numbers(workspace: Workspace) -> list[int]:
    """Returns the numbers that have a record, newest first."""
    with (
        durable.disk_errors("list the revisions"),
        workspace.tree.directory(REVISIONS, create=True) as fd,
    ):
        matches = (_NAME.fullmatch(name) for name in names_in(fd))
        return sorted((int(match[1]) for match in matches if match), reverse=True)


def replace_record(
    workspace: Workspace, revision: int, changes: tuple[BlockChange, ...]
) -> RevisionRecord:
    """Puts other `changes` into a record, for words that were forgotten; the old bytes are gone."""
    record = msgspec.structs.replace(read_record(workspace, revision), changes=changes)
    write_record(workspace, record)
    return record


def scrub_records(workspace: Workspace, blocks: set[str]) -> int:
    """Takes the words of `blocks` out of every record; returns how many records held some.

    What was forgotten must not come back through an undo, nor be read in the history.
    """
    scrubbed = 0
    for record in _readable(workspace, revision_numbers(workspace)):
        changes = tuple(
            msgspec.structs.replace(change, before=None, after=None)
            if change.block in blocks
            else change
            for change in record.changes
        )
        if changes != record.changes:
            replace_record(workspace, record.revision, changes)
            scrubbed += 1
    return scrubbed


def _readable(workspace: Workspace, numbers: list[int]) -> Iterator[RevisionRecord]:
    for number in numbers:
        try:
            yield read_record(workspace, number)
        except (NotFound, Unavailable) as error:
            log.warning("revision_record_unreadable", revision=number, reason=error.message)


def _path(revision: int) -> str:
    return f"{REVISIONS}/{revision}.json"
