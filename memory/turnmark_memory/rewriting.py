"""Rewriting: turns that another writer dealt with are offered again, and old blocks make way.

Nothing happens to a block when its turns are offered. Only when the present writer's blocks are
installed do the old ones go, in the same revision: those that rest on the rewritten turns alone are
superseded by the new block that cites the same turns, so whatever fails leaves them in place. What
the new writer kept nothing of is retired with a reason, but never many at once. Blocks that a
person wrote or reworded stay, and so do blocks that rest on other turns as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from typing import Final

import anyio.to_thread
import apsw
import msgspec
import structlog

from turnmark_events.errors import Refused
from turnmark_memory.apply import NEW_BLOCK
from turnmark_memory.labels import label_of
from turnmark_memory.locality import local_turns
from turnmark_memory.model import Add, Edit, Evidence, Merge, Retire, Revise, ShownBlock, Split
from turnmark_memory.relations import keys_of
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic_path import topic_path
from turnmark_session_store import SessionStore
from turnmark_session_store.marks import REWRITTEN
from turnmark_session_store.queries import json_keys, rows_of
from turnmark_session_store.times import from_rfc3339

log = structlog.get_logger(__name__)

_RETIRED_LIMIT: Final = 10
_RETIRED_SHARE: Final = 10
"""Of the blocks that the new writer kept nothing of, a batch takes out this many, or a tenth of all
blocks where that is more; the others stay. A lazy answer must not empty a memory (law 14)."""

_LEFT_OUT: Final = "its turns were written anew, and nothing of this was kept"
_SUPERSEDED: Final = "its turns were written anew"


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """Turns to be offered again, oldest first, with their tokens."""

    turns: tuple[tuple[int, int], ...]

    @property
    def keys(self) -> list[int]:
        """The store's keys of the turns."""
        return [turn for turn, _ in self.turns]


_SETTLED = """
SELECT turn.id, turn.tokens, namespace.name, turn.key
FROM mark JOIN turn ON turn.id = mark.turn JOIN namespace ON namespace.id = turn.namespace
    JOIN session ON session.id = turn.session
WHERE workspace = :workspace AND outcome IN ('kept', 'nothing') AND recordable
    AND coalesce(reason, '') NOT IN ('reply_retried')
    AND (:kind IS NULL OR writer = :kind OR substr(writer, 1, length(:kind) + 1) = :kind || '/')
    AND (:other_than IS NULL OR writer <> :other_than)
    AND (:since_ms IS NULL OR turn.time_ms >= :since_ms)
    AND (:session IS NULL OR session.name = :session)
    AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE retired_turn.turn = mark.turn)
    AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE forgotten_turn.turn = mark.turn)
ORDER BY turn.id
"""


def written_by(
    db: apsw.Connection,
    workspace: int,
    kind: str,
    *,
    since_ms: int | None,
    session: str | None,
    spares_local: bool,
) -> Offered:
    """Returns the turns that a writer of `kind` (or of that full name) settled.

    `spares_local` leaves out turns of local sessions: their writer is the built-in one anyway.
    """
    rows = _settled(
        db, workspace, kind=kind, since_ms=since_ms, session=session, spares_local=spares_local
    )
    return Offered(turns=tuple((turn, tokens) for turn, tokens, _ in rows))


def uncited(
    db: apsw.Connection, workspace: int, shelf: Shelf, *, writer: str, spares_local: bool
) -> Offered:
    """Returns settled turns that no live block cites and that another writer than `writer` judged.

    Offered to the same writer again they would come to the same. Costs a look at each such turn.
    """
    rows = _settled(db, workspace, other_than=writer, spares_local=spares_local)
    return Offered(
        turns=tuple(
            (turn, tokens) for turn, tokens, ref in rows if not _is_cited(shelf, label_of(*ref))
        )
    )


def _settled(
    db: apsw.Connection,
    workspace: int,
    *,
    kind: str | None = None,
    other_than: str | None = None,
    since_ms: int | None = None,
    session: str | None = None,
    spares_local: bool,
) -> list[tuple[int, int, tuple[str, str]]]:
    asked = {
        "workspace": workspace,
        "kind": kind,
        "other_than": other_than,
        "since_ms": since_ms,
        "session": session,
    }
    rows = rows_of(db, _SETTLED, asked)
    spared = local_turns(db, [row[0] for row in rows]) if spares_local else set[int]()
    return [(turn, tokens, (space, key)) for turn, tokens, space, key in rows if turn not in spared]


def _is_cited(shelf: Shelf, label: str) -> bool:
    blocks = map(shelf.index.block, shelf.index.blocks_citing(label))
    return any(block is not None and block.superseded_by is None for block in blocks)


def since_ms(text: str | None) -> int | None:
    """Returns the moment that `--since` names: RFC 3339, or a local date's beginning.

    Raises:
        Refused: if it is neither.
    """
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return from_rfc3339(text)
    try:
        return int(datetime(day.year, day.month, day.day).astimezone().timestamp() * 1_000)
    except (ValueError, OverflowError) as error:
        raise Refused(f"the date {text!r} is out of range") from error


class Rewriting:
    """What a rewritten batch means for the blocks that are there already."""

    def __init__(self, store: SessionStore, shelf: Shelf, workspace_key: int) -> None:
        self._store = store
        self._shelf = shelf
        self._workspace = workspace_key

    async def old_blocks(self, turns: Sequence[Evidence]) -> frozenset[str]:
        """Returns the blocks that rest on those of `turns` which are offered again.

        They are not to be shown to the writer; `succeeded` says what becomes of them.
        """
        keys = [turn.key for turn in turns]
        again = await self._store.read(lambda db: _offered_again(db, self._workspace, keys))
        labels = [turn.label for turn in turns if turn.key in again]
        if not labels:
            return frozenset()
        return await anyio.to_thread.run_sync(self._citing, labels)

    def _citing(self, labels: Iterable[str]) -> frozenset[str]:
        names = {name for label in labels for name in self._shelf.index.blocks_citing(label)}
        shown = self._shelf.all_shown(sorted(names))
        return frozenset(one.block for one in shown if not self._shelf.by_person(one.block))

    async def succeeded(
        self, old: Collection[str], turns: Sequence[Evidence], edits: Sequence[Edit]
    ) -> tuple[Edit, ...]:
        """Returns `edits`, followed by what makes the `old` blocks give way to what they make."""
        if not old:
            return tuple(edits)
        blocks = await anyio.to_thread.run_sync(self._shelf.all_shown, sorted(old))
        labels = {turn.label for turn in turns}
        outside = {cite for block in blocks for cite in block.cites}.difference(labels)
        done = labels | await self._rewritten(outside)
        mine = [one for one in blocks if done.issuperset(one.cites)]
        names = {one.block for one in mine}
        mine = [one for one in mine if await self._stands(one, labels, names)]
        return (*edits, *self._successions(mine, edits))

    async def _rewritten(self, labels: Collection[str]) -> set[str]:
        """Returns those of `labels` whose turns this rewriting has dealt with already."""
        turns = {label: self._shelf.index.turn(label) for label in labels}
        refs = {label: (one.namespace, one.id) for label, one in turns.items() if one is not None}

        def read(db: apsw.Connection) -> set[str]:
            keys = keys_of(db, list(refs.values()))
            done = _marked_rewritten(db, self._workspace, [key for key in keys if key is not None])
            return {label for label, key in zip(refs, keys, strict=True) if key in done}

        return await self._store.read(read)

    async def _stands(
        self, block: ShownBlock, labels: Collection[str], going: Collection[str]
    ) -> bool:
        """Tells whether what a block rests on outside of the batch stands in another block too."""
        outside = [cite for cite in block.cites if cite not in labels]
        return all(
            any(name not in going and self._is_live(name) for name in names)
            for names in map(self._shelf.index.blocks_citing, outside)
        )

    def _is_live(self, name: str) -> bool:
        block = self._shelf.index.block(name)
        return block is not None and block.superseded_by is None

    def _successions(self, old: Sequence[ShownBlock], edits: Sequence[Edit]) -> list[Edit]:
        made = [one for place, edit in enumerate(edits) for one in _made(place, edit)]
        limit = max(_RETIRED_LIMIT, self._shelf.index.counts().blocks // _RETIRED_SHARE)
        found: list[Edit] = []
        left_out = 0
        for block in old:
            if any(self._says_the_same(edit, block) for edit in edits):
                continue
            successor = _successor(block, made)
            if successor is None:
                left_out += 1
                if left_out > limit:
                    continue
            found.append(
                Retire(
                    block=block.block,
                    reason=_LEFT_OUT if successor is None else _SUPERSEDED,
                    successor=successor,
                    expect=block.hash,
                )
            )
        if left_out > limit:
            log.warning("old_blocks_left", blocks=left_out - limit, limit=limit)
        return found

    def _says_the_same(self, edit: Edit, block: ShownBlock) -> bool:
        """Tells whether an edit adds what stands there: composing will leave the block as it is."""
        if not isinstance(edit, Add) or edit.text != block.text:
            return False
        topic = self._shelf.workspace.topic_name(topic_path(edit.topic))
        return topic == block.topic and set(edit.cites) == set(block.cites)


class _Made(msgspec.Struct, frozen=True, kw_only=True):
    """A block that an edit makes or rewords: how a successor names it, and what it says."""

    name: str
    text: str
    cites: tuple[str, ...]


def _made(place: int, edit: Edit) -> list[_Made]:
    match edit:
        case Add():
            return [_Made(name=f"{NEW_BLOCK}{place}", text=edit.text, cites=edit.cites)]
        case Revise():
            return [_Made(name=edit.block, text=edit.text, cites=edit.cites)]
        case Split():
            first = edit.parts[0]
            return [_Made(name=edit.block, text=first.text, cites=first.cites)]
        case Merge():
            return []  # of blocks that were there: it says nothing new about these turns
        case _:
            return []


def _successor(block: ShownBlock, made: Sequence[_Made]) -> str | None:
    """Returns the new block that cites most of what the old one does, the likest in words."""
    cites, words = set(block.cites), _pairs(block.text)
    rated = [
        (len(cites.intersection(one.cites)), len(words & _pairs(one.text)), -place)
        for place, one in enumerate(made)
    ]
    best = max(rated, default=(0, 0, 0))
    return made[-best[2]].name if best[0] else None


def _pairs(text: str) -> set[str]:
    """Returns the pairs of neighbouring signs of a text, which tell likeness in any script."""
    signs = "".join(text.casefold().split())
    return {signs[at : at + 2] for at in range(len(signs) - 1)}


def _offered_again(db: apsw.Connection, workspace: int, turns: Iterable[int]) -> set[int]:
    """Returns the turns whose old blocks are to go; one may have failed in a rewriting before."""
    rows = rows_of(
        db,
        "SELECT mark.turn FROM json_each(?) AS asked JOIN mark ON mark.turn = asked.value"
        " WHERE workspace = ? AND outcome = 'parked' AND reason IN ('rewrite', 'failed')",
        (json_keys(turns), workspace),
    )
    return {turn for (turn,) in rows}


def _marked_rewritten(db: apsw.Connection, workspace: int, turns: Iterable[int]) -> set[int]:
    rows = rows_of(
        db,
        "SELECT mark.turn FROM json_each(?) AS asked JOIN mark ON mark.turn = asked.value"
        " WHERE workspace = ? AND outcome = 'kept' AND reason = ?",
        (json_keys(turns), workspace, REWRITTEN),
    )
    return {turn for (turn,) in rows}
