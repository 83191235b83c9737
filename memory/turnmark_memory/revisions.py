"""What each install changed: `.turnmark/revisions/<n>.json`, one per revision, kept for ever.

A record is written before the files of its install are exchanged, so a revision that the
workspace has reached has its record; a record beyond the workspace's revision belongs to an
install that is still on its way (or was given up) and is replaced when the number is used again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
import structlog

from turnmark_events.errors import NotFound, Unavailable
from turnmark_memory import durable
from turnmark_memory.block_change import BlockChange
from turnmark_memory.line_delta import Hunk
from turnmark_memory.rooted import names_in
from turnmark_memory.workspace import REVISIONS, STAGING, Workspace

log = structlog.get_logger(__name__)

_ABOUT = re.compile(rb"(?m)^about[ \t]*:")
_NAME = re.compile(r"([1-9][0-9]{0,17})\.json")
PAGE_LIMIT = 200


class RecordedChange(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One block (or pin) before and after: its words with its cites as they stand in the file.

    `before` is None for a new block, `after` for one that was taken out; both are None once its
    words were forgotten. Where a line is no UTF-8 its exact bytes stand beside. `heading` is the
    section it stood under, or stands under now if it is new; `reason` is why it was retired.
    """

    topic: str
    block: str
    before: str | None
    after: str | None
    before_bytes: bytes | None = None
    after_bytes: bytes | None = None
    heading: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, change: BlockChange) -> RecordedChange:
        """Returns a block's change as the record keeps it."""
        old, old_bytes = _readable_line(change.before)
        new, new_bytes = _readable_line(change.after)
        return cls(
            topic=change.topic,
            block=change.block,
            before=old,
            after=new,
            before_bytes=old_bytes,
            after_bytes=new_bytes,
            heading=change.heading,
            reason=change.reason,
        )

    @property
    def old(self) -> bytes | None:
        """The exact line before."""
        return _exact_line(self.before, self.before_bytes)

    @property
    def new(self) -> bytes | None:
        """The exact line after."""
        return _exact_line(self.after, self.after_bytes)

    @property
    def is_scrubbed(self) -> bool:
        """Tells whether its words were forgotten."""
        return self.before is None and self.after is None


class FileChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One topic's file before and after, by digest (None: no file), and the way back.

    `back` makes the bytes before out of those after, so an undo can put the file back exactly.
    """

    topic: str
    before: str | None
    after: str | None
    back: tuple[Hunk, ...]


class RevisionRecord(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One install: its number, when and why, the blocks and topics it changed, and how.

    `turns` is the number of turns it settled, None for an install that settles none. A file whose
    words were forgotten in part is not in `files` any more.
    """

    revision: int
    at: datetime
    cause: str
    blocks: tuple[str, ...]
    topics: tuple[str, ...]
    changes: tuple[RecordedChange, ...]
    turns: int | None = None
    files: tuple[FileChange, ...] = ()

    @classmethod
    def of(
        cls,
        changes: Sequence[BlockChange],
        *,
        revision: int,
        at: datetime,
        cause: str,
        files: Iterable[FileChange] = (),
        turns: int | None = None,
    ) -> RevisionRecord:
        """Returns the record of an install that makes these changes."""
        return cls(
            revision=revision,
            at=at,
            cause=cause,
            blocks=tuple(dict.fromkeys(change.block for change in changes)),
            topics=tuple(dict.fromkeys(change.topic for change in changes)),
            changes=tuple(map(RecordedChange.of, changes)),
            turns=turns,
            files=tuple(files),
        )


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
    workspace: Workspace,
    revision: int,
    changes: tuple[RecordedChange, ...],
    files: tuple[FileChange, ...] = (),
) -> RevisionRecord:
    """Puts other `changes` into a record, for words that were forgotten; the old bytes are gone.

    `files` are those that may stay: what they hold would come back byte for byte.
    """
    record = msgspec.structs.replace(read_record(workspace, revision), changes=changes, files=files)
    write_record(workspace, record)
    return record


def scrub_records(
    workspace: Workspace,
    blocks: Collection[str],
    labels: Iterable[str] = (),
    *,
    causes: Collection[str] = (),
) -> int:
    """Takes the words of `blocks`, and lines that cite `labels`, out of every record.

    Records of `causes` lose all their words. Returns how many records held some. What was
    forgotten must not come back through an undo, nor be read in the history. Costs a read of every
    record.
    """
    marks = [f"[^{label}]".encode() for label in labels]
    names = [f"^{block}".encode() for block in blocks]
    scrubbed = 0
    topics: set[str] = set()
    abouts: list[RevisionRecord] = []
    for record in all_records(workspace):
        whole = record.cause in causes
        changes = tuple(
            _scrubbed(change)
            if whole or change.block in blocks or _holds(change, marks)
            else change
            for change in record.changes
        )
        files = tuple(
            file
            for file in (() if whole or changes != record.changes else record.files)
            if not any(mark in hunk.put for hunk in file.back for mark in (*marks, *names))
        )
        if changes != record.changes or files != record.files:
            replace_record(workspace, record.revision, changes, files)
            scrubbed += 1
        topics.update(change.topic for change in changes if change.is_scrubbed)
        if any(map(_tells_about, files)):
            abouts.append(msgspec.structs.replace(record, changes=changes, files=files))
    return scrubbed + sum(_scrub_abouts(workspace, record, topics) for record in abouts)


def all_records(workspace: Workspace) -> list[RevisionRecord]:
    """Returns every record that can be read, newest first; costs a read of every file."""
    return list(_readable(workspace, revision_numbers(workspace)))


def hide_topics(
    workspace: Workspace, records: Iterable[RevisionRecord], topics: Collection[str], name: str
) -> None:
    """Puts `name` in place of `topics`, of which no record holds a word, and drops links there.

    `records` are all, as `all_records` gives them; those that name a topic are written anew.
    """
    links = [f"[[{topic}{end}".encode() for topic in topics for end in ("]", "#", "|")]
    for record in records:
        hidden = _without_names(record, topics, links, name)
        if hidden != record:
            write_record(workspace, hidden)


def _without_names(
    record: RevisionRecord, topics: Collection[str], links: list[bytes], name: str
) -> RevisionRecord:
    changes = tuple(
        _scrubbed(change) if _holds(change, links) else change for change in record.changes
    )
    return msgspec.structs.replace(
        record,
        topics=tuple(dict.fromkeys(name if one in topics else one for one in record.topics)),
        changes=tuple(
            msgspec.structs.replace(change, topic=name) if change.topic in topics else change
            for change in changes
        ),
        files=tuple(
            file
            for file in record.files
            if file.topic not in topics
            and not any(link in hunk.put for link in links for hunk in file.back)
        ),
    )


def _scrub_abouts(workspace: Workspace, record: RevisionRecord, topics: Collection[str]) -> int:
    """Takes out what the files of `topics` were about: it may have been made of what went."""
    files = tuple(
        file for file in record.files if file.topic not in topics or not _tells_about(file)
    )
    if files == record.files:
        return 0
    replace_record(workspace, record.revision, record.changes, files)
    return 1


def _tells_about(file: FileChange) -> bool:
    return any(_ABOUT.search(hunk.put) for hunk in file.back)


def _holds(change: RecordedChange, marks: list[bytes]) -> bool:
    lines = [line for line in (change.old, change.new) if line is not None]
    return any(mark in line for line in lines for mark in marks)


def _scrubbed(change: RecordedChange) -> RecordedChange:
    return RecordedChange(topic=change.topic, block=change.block, before=None, after=None)


def _readable_line(line: bytes | None) -> tuple[str | None, bytes | None]:
    """Returns a line to be read, and its bytes where it is no UTF-8."""
    if line is None:
        return None, None
    try:
        return line.decode(), None
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace"), line


def _exact_line(text: str | None, exact: bytes | None) -> bytes | None:
    return exact if exact is not None or text is None else text.encode("utf-8", "replace")


def _readable(workspace: Workspace, numbers: list[int]) -> Iterator[RevisionRecord]:
    for number in numbers:
        try:
            yield read_record(workspace, number)
        except (NotFound, Unavailable) as error:
            log.warning("revision_record_unreadable", revision=number, reason=error.message)


def _path(revision: int) -> str:
    return f"{REVISIONS}/{revision}.json"
