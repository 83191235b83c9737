"""The revisions of a workspace, newest first and paged: `memory.history`."""

from __future__ import annotations

from datetime import datetime

import msgspec

from turnmark_memory.requests import HistoryRequest
from turnmark_memory.revisions import history
from turnmark_memory.workspace import RevisionStamp, Workspace
from turnmark_session_store.paging import cursor_of, position_of


class RevisionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One revision: when it was installed and why, and the blocks and topics that it changed."""

    revision: int
    at: datetime
    cause: str
    blocks: tuple[str, ...]
    topics: tuple[str, ...]


class RevisionList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`memory.history`'s answer."""

    revisions: list[RevisionSummary]
    next: str | None = None


def list_revisions(workspace: Workspace, asked: HistoryRequest) -> RevisionList:
    """Returns a page of the revisions that the workspace has reached; blocks on disk.

    Raises:
        Refused: if `cursor` is not one that was given.
        Unavailable: if the disk fails.
    """
    stamp = workspace.revision()
    reached = stamp.revision if isinstance(stamp, RevisionStamp) else None
    before = position_of(asked.cursor) or (None if reached is None else reached + 1)
    page = history(workspace, before=before, limit=asked.limit)
    return RevisionList(
        revisions=[
            RevisionSummary(
                revision=record.revision,
                at=record.at,
                cause=record.cause,
                blocks=record.blocks,
                topics=record.topics,
            )
            for record in page.records
        ],
        next=None if page.next is None else cursor_of(page.next),
    )
