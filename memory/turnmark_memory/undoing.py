"""Taking a revision back: exactly its blocks, as long as nothing later touched or rests on them.

An undo is a revision like any other (`undo of 12`) and can be undone. Where a topic's file is still
as the revision left it, it gets the bytes back that it had before; elsewhere each block's line goes
back alone, and every other byte, a person's edits since included, stays.

What keeps a block from being taken back: a later change of its line or place; where other
revisions followed, a block that it superseded, or a link or pin, that would be left pointing at
nothing; words that were forgotten, or that rest only on turns which were taken back: those never
return through an undo.

Turns whose last block goes are parked as removed, as if a person had removed it by hand: they were
dealt with, and somebody said that they don't want the result. Undoing the undo takes them out of
that state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import anyio.to_thread
import msgspec

from turnmark_events.errors import NotFound, Refused
from turnmark_memory.apply import Applied, Sources
from turnmark_memory.backlinks import links_in
from turnmark_memory.block_change import BlockChange, change_of, line_of
from turnmark_memory.compose import Work
from turnmark_memory.durable import digest_of
from turnmark_memory.editing import composer
from turnmark_memory.fallen import taken_back_refs
from turnmark_memory.install import Installer
from turnmark_memory.line_delta import patched
from turnmark_memory.pins import embedded_topic, pin, retarget, unpin
from turnmark_memory.requests import UndoRequest
from turnmark_memory.revisions import FileChange, RecordedChange, RevisionRecord, read_record
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic import Block, Embed, Raw, Segment, Topic
from turnmark_memory.topic_edit import new_topic, remove_block, restore_block
from turnmark_memory.topic_format import CITE, parse, render
from turnmark_memory.topic_path import CORE
from turnmark_memory.workspace import RevisionStamp
from turnmark_session_store import SessionStore

_CHANGED = "was changed since"
_NAMED_LIMIT = 5
"""Blocks that a refusal names in its sentence; its facts list them all."""

Place = tuple[str, str]
"""A topic and a block's id in it, as a record names a change."""


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """`memory.undo`'s answer: the new revision, and the blocks that it took back."""

    revision: int
    blocks: list[str]


class Undoing:
    """Takes revisions of one workspace back."""

    def __init__(self, store: SessionStore, shelf: Shelf, installer: Installer) -> None:
        self._store = store
        self._shelf = shelf
        self._installer = installer

    async def undo(self, asked: UndoRequest) -> Undone:
        """Takes back exactly one revision.

        With `force` also blocks that were changed since, later words included, and only those of
        its blocks that can be taken back.

        Raises:
            NotFound: if there is no such revision.
            Refused: if something later changed one of its blocks or rests on it, or nothing of it
                can be taken back; `facts["blocks"]` lists them, `facts["reasons"]` says why.
            Unavailable: if the record can't be read, or the disk fails.
        """
        record = await anyio.to_thread.run_sync(self._record, asked.revision)
        turns = await anyio.to_thread.run_sync(self._turns, record)
        gone = await self._store.read(lambda db: taken_back_refs(db, list(turns.values())))
        fallen = frozenset(label for label, ref in turns.items() if ref in gone)

        def carry_out(sources: Sources) -> Applied:
            undo = _Undo(record, self._shelf, sources, fallen, force=asked.force)
            return undo.carry_out()

        cause = f"undo of {asked.revision}"
        work = Work(name=cause, by_person=True, carry_out=carry_out)
        installed = await self._installer.carry_out(composer(self._shelf, work, cause=cause))
        return Undone(revision=installed.revision, blocks=list(installed.composed.done[0].blocks))

    def _record(self, revision: int) -> RevisionRecord:
        record = read_record(self._shelf.workspace, revision)
        stamp = self._shelf.workspace.revision()
        if isinstance(stamp, RevisionStamp) and revision > stamp.revision:
            raise NotFound(
                f"There is no revision {revision} yet; `turnmark log` lists them.",
                revision=revision,
            )
        if not (record.changes or record.files):
            raise Refused(
                f"revision {revision} changed no block ({record.cause}); there is nothing to take "
                "back",
                revision=revision,
            )
        return record

    def _turns(self, record: RevisionRecord) -> dict[str, tuple[str, str]]:
        """Returns the turns, as (namespace, id), that the lines to be restored rest on."""
        labels = {label for change in record.changes for label in _labels(change.old)}
        turns = {label: self._shelf.index.turn(label) for label in sorted(labels)}
        return {
            label: (turn.namespace, turn.id) for label, turn in turns.items() if turn is not None
        }


class _Undo:
    """One revision on its way back; one use."""

    def __init__(
        self,
        record: RevisionRecord,
        shelf: Shelf,
        sources: Sources,
        fallen: frozenset[str],
        *,
        force: bool,
    ) -> None:
        self._record = record
        self._force = force
        self._index = shelf.index
        self._archive = shelf.archive
        self._sources = sources
        self._fallen = fallen
        self._changes = {(change.topic, change.block): change for change in record.changes}
        self._names = {change.block for change in record.changes}
        left = {change.block for change in record.changes if change.new is None}
        came = {change.block for change in record.changes if change.old is None}
        self._moved = left & came
        stamp = shelf.workspace.revision()
        self._is_newest = isinstance(stamp, RevisionStamp) and stamp.revision == record.revision
        self._blocked: dict[Place, str] = {}

    def carry_out(self) -> Applied:
        """Returns what the undo makes of the topics; see `Undoing.undo` for what it refuses."""
        self._find_blocked()
        wanted = {
            place: change for place, change in self._changes.items() if place not in self._blocked
        }
        if self._blocked and not (self._force and wanted):
            raise self._refusal(any_left=bool(wanted))
        before = {topic: self._sources.load(topic) for topic, _ in wanted}
        exact = {} if self._blocked else self._exact()
        if not (wanted or exact):
            number = self._record.revision
            raise Refused(
                f"revision {number} only arranged blocks, in files that were changed since; move "
                "them by hand",
                revision=number,
                blocks=[],
            )
        after = {topic: parse(content) for topic, content in exact.items() if content is not None}
        for (topic, _), change in reversed(wanted.items()):
            if topic not in exact:
                found = after.get(topic) or before[topic] or new_topic(topic)
                after[topic] = _put_back(found, change)
        return Applied(
            topics=after,
            blocks=(tuple(dict.fromkeys(block for _, block in wanted)),),
            changes=tuple(self._undone(wanted, before, after)),
            exact=exact,
        )

    def _undone(
        self,
        wanted: Mapping[Place, RecordedChange],
        before: Mapping[str, Topic | None],
        after: Mapping[str, Topic],
    ) -> Iterator[BlockChange]:
        reason = f"undo of {self._record.revision}"
        for topic, block in wanted:
            change = change_of(before[topic], after.get(topic), topic, block, reason)
            if change is not None:
                yield change

    def _exact(self) -> dict[str, bytes | None]:
        """Returns the files that are as the revision left them, with the bytes from before it."""
        found: dict[str, bytes | None] = {}
        for file in self._record.files:
            topic = self._sources.load(file.topic)
            content = None if topic is None else render(topic)
            if (None if content is None else digest_of(content)) == file.after:
                self._restore(found, file, content or b"")
        if found and len(found) == len(self._record.files) and CORE not in found:
            # What the revision did not arrange is not arranged anew because it goes back.
            core = self._sources.load(CORE)
            found[CORE] = None if core is None else render(core)
        return found

    def _restore(self, found: dict[str, bytes | None], file: FileChange, content: bytes) -> None:
        if file.before is None:
            found[file.topic] = None
            return
        old = patched(content, file.back)
        brought = b"".join(hunk.put for hunk in file.back)
        if (
            digest_of(old) == file.before
            and self._all_resolve(brought)
            and self._names_all(file.topic, old)
        ):
            found[file.topic] = old

    def _names_all(self, topic: str, content: bytes) -> bool:
        """Tells whether bytes from before name each block that comes back with them.

        A file that a person made bore no ids when it was seen: its blocks would be nobody's.
        """
        before = parse(content)
        return all(
            before.named(change.block) is not None
            for change in self._record.changes
            if change.topic == topic and change.old is not None
        )

    def _refusal(self, *, any_left: bool) -> Refused:
        number = self._record.revision
        reasons = {block: reason for (_, block), reason in self._blocked.items()}
        named = "; ".join(f"{block} {why}" for block, why in [*reasons.items()][:_NAMED_LIMIT])
        more = f"; and {len(reasons) - _NAMED_LIMIT} more" if len(reasons) > _NAMED_LIMIT else ""
        eased = any_left or _CHANGED in reasons.values()
        rest = ", or take back what can be with force" if eased and not self._force else ""
        return Refused(
            f"revision {number} can't be taken back: {named}{more}. Undo what came later first"
            f"{rest}",
            revision=number,
            blocks=list(reasons),
            reasons=reasons,
        )

    def _find_blocked(self) -> None:
        """Finds the changes that can't be taken back, and those that can't without them."""
        for place, change in self._changes.items():
            self._block(place, self._hindrance(change))
        known = -1
        while known < len(self._blocked):
            known = len(self._blocked)
            for place, change in self._changes.items():
                if place not in self._blocked:
                    self._block(place, self._dependence(change))

    def _block(self, place: Place, reason: str | None) -> None:
        if reason is not None:
            self._blocked[place] = reason

    def _hindrance(self, change: RecordedChange) -> str | None:
        """Returns why a change can't be taken back by itself."""
        if change.is_scrubbed:
            return "was forgotten"
        line, _ = line_of(self._sources.load(change.topic), change.block)
        if line is None and change.new is not None:
            return "is gone since"
        if line != change.new and change.new is None:
            return "is there again since"
        if line != change.new and not self._force:
            return _CHANGED
        if change.new is None and not _is_pin(change):
            holder = self._index.block(change.block)
            if holder is not None and holder.block not in self._names:
                return f"is {holder.block} in {holder.topic} since"
        return None if change.old is None else self._hindered_return(change.old)

    def _hindered_return(self, line: bytes) -> str | None:
        if not self._all_resolve(line):
            return "rests on a source that was forgotten"
        block = next(parse(line).blocks(), None)
        if block is not None and block.origin == "writer" and self._fallen.issuperset(block.cites):
            return "rests only on turns that were taken back"
        return None

    def _all_resolve(self, text: bytes) -> bool:
        return all(self._archive.resolve(label) is not None for label in _labels(text))

    def _dependence(self, change: RecordedChange) -> str | None:
        """Returns why a change can't be taken back while others stay."""
        stay = {block for _, block in self._blocked}
        if change.block in stay:
            return "stays in another topic"
        if _is_pin(change):
            return None
        if change.new is None:
            holder = self._index.block(change.block)
            if holder is not None and holder.block in stay:
                return f"is part of {holder.block}, which stays"
        if change.old is not None or change.block in self._moved or self._is_newest:
            return None
        return self._rested_on(change.block)

    def _rested_on(self, block: str) -> str | None:
        """Returns what would be left pointing at a block that goes, None if nothing would."""
        for older in self._index.superseded_by(block):
            if not self._lets_go(older, block):
                return f"is what holds in place of {older}"
        for topic in self._index.topics_linking(block):
            arranged = False
            found = self._sources.load(topic)
            for part in found.segments if found is not None else ():
                arranged = arranged or (isinstance(part, Raw) and part.kind == "line")
                if arranged and isinstance(part, Embed):
                    continue
                if block in links_in(part) and not self._unlinks(topic, part, block):
                    return f"is linked to from {topic}"
        return None

    def _lets_go(self, name: str, block: str) -> bool:
        """Tells whether the undo gives `name` a line back that doesn't name `block`."""
        return any(
            change.block == name
            and place not in self._blocked
            and (change.old is None or block.encode() not in change.old)
            for place, change in self._changes.items()
        )

    def _unlinks(self, topic: str, part: Segment, block: str) -> bool:
        if isinstance(part, Embed):
            return self._changes.get((topic, part.block)) is not None and (
                (topic, part.block) not in self._blocked
            )
        if isinstance(part, Block) and part.id is not None:
            return part.id == block or self._lets_go(part.id, block)
        return False


def _put_back(topic: Topic, change: RecordedChange) -> Topic:
    """Returns the topic with one change taken back."""
    if _is_pin(change):
        return _pin_put_back(topic, change)
    if change.old is None:
        return remove_block(topic, change.block)
    if change.old == change.new:  # it only went under another heading
        topic = remove_block(topic, change.block)
    line = change.old.decode("utf-8", "surrogateescape")
    return restore_block(topic, change.block, line, change.heading)


def _pin_put_back(core: Topic, change: RecordedChange) -> Topic:
    target = embedded_topic(change.old)
    if target is None:
        return unpin(core, change.block)
    if change.new is None:
        return pin(core, target, change.block)
    return retarget(core, change.block, target)


def _is_pin(change: RecordedChange) -> bool:
    return change.topic == CORE and any(map(embedded_topic, (change.old, change.new)))


def _labels(line: bytes | None) -> tuple[str, ...]:
    """Returns the labels that a text cites, each once."""
    text = "" if line is None else line.decode("utf-8", "replace")
    return tuple(dict.fromkeys(found[2] for found in CITE.finditer(text)))
