"""The entries of a session as pi writes them: a tree, and the turns that it holds.

An entry names its parent; those of the first version have no ids and follow each other. Most say
nothing (tool calls and results, labels, changes of the model, summaries) and only carry the chain:
they are collapsed, so that a turn's predecessor is the nearest turn above it.

A turn's id is the same in every copy of its entry, in a fork's file as well as after a rewriting:

- an id that is a UUID stands for itself;
- other ids have 8 hex digits and are unique in one file only: two files of a family, which share
  what stands before a fork, may draw the same one later, so the entry's time is added;
- an entry without an id, or that had none when it was written, has a hash of its time and words.
  The rewriting that gives ids appends them to the records, behind `timestamp`; where the ids were
  made with the entry they stand before it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from turnmark_session_store.transcripts.fields import mapping_at, string_at
from turnmark_session_store.transcripts.ids import hash_of, is_uuid
from turnmark_session_store.transcripts.moments import moment_ms, written_time
from turnmark_session_store.transcripts.ordering import cut_cycles, parents_first
from turnmark_session_store.transcripts.pi.words import Words, words_of

# An id names a session on the command line, too: any that a terminal can show will do.
_PLAIN_ID = re.compile(r"[\x21-\x7e]{1,200}")
_HASH_BYTES = 10


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry, reduced to what the tree of turns needs.

    `is_linked` says that it names its place in the tree, else it follows the entry before it.
    `written_ms` is when it was stored, which copies keep; `time` when it was said. `was_given_id`
    says that it was written without an id. `fingerprint` is the same in all copies, before and
    after ids were given, and of nothing else that was said.
    """

    id: str | None
    parent: str | None
    is_linked: bool
    line: int
    written_ms: int | None
    time: str | None
    was_given_id: bool
    fingerprint: str
    words: Words | None


class TreeTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of a tree: the entry that says it, and the id of the turn before it.

    `is_lost` says that the chain above it leads to an entry that is nowhere in the tree.
    """

    id: str
    entry: Entry
    words: Words
    predecessor: str | None
    is_lost: bool


class _Above(NamedTuple):
    """The turn at or above an entry, None for none, and whether the way to it is lost."""

    turn: str | None
    is_lost: bool


def read_entry(record: Mapping[str, Any], line: int) -> Entry | None:
    """Returns the entry of a record, None if it is none; its `timestamp` is ISO text or ms."""
    kind = record.get("type")
    if not isinstance(kind, str) or kind == "session":
        return None
    message = mapping_at(record, "message")
    written_ms = moment_ms(record.get("timestamp"))
    said_ms = moment_ms(message.get("timestamp"))
    entry_id = string_at(record, "id")
    return Entry(
        id=entry_id,
        parent=string_at(record, "parentId"),
        is_linked="parentId" in record or entry_id is not None,
        line=line,
        written_ms=written_ms,
        time=written_time(said_ms if said_ms is not None else written_ms),
        was_given_id=entry_id is not None and _stands_behind_its_time(record),
        fingerprint=_fingerprint(record, written_ms, said_ms),
        words=words_of(record),
    )


class EntryTree:
    """The entries of one session, in the order in which they were written.

    `session` is the session's own id: an entry that names it as its parent is a root. `leaf` is
    the name of the node where the session is, None before the first entry and after a move to the
    start. `repeated` are the lines of entries whose id stood there before with other words.
    """

    def __init__(self, session: str | None = None) -> None:
        self.session = session
        self.leaf: str | None = None
        self.repeated: list[int] = []
        self._nodes: dict[str, Entry] = {}
        self._befores: dict[str, str | None] = {}
        self._last: str | None = None
        self._own_ids: dict[str, str] = {}
        self._old_ids: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._above: dict[str, _Above] = {}
        self._made: tuple[object, dict[str, TreeTurn]] | None = None

    def __len__(self) -> int:
        """Returns how many entries there are, copies within it not counted."""
        return len(self._nodes)

    def add(self, entry: Entry) -> None:
        """Adds the next entry and moves the leaf to it; a copy of one that is there adds none."""
        name = entry.id if entry.id is not None else f"\0{entry.line}"
        known = self._nodes.get(name)
        if known is not None and known.fingerprint != entry.fingerprint:
            self.repeated.append(entry.line)
            name, known = f"{name}\0{entry.line}", None
        if known is None:
            self._nodes[name] = entry
            self._befores[name] = self._last
            self._name_turn(name, entry)
        self._last = self.leaf = name

    def move_leaf(self, target: str | None) -> None:
        """Says that the session went on from another entry; None: from before the first."""
        self.leaf = target

    def turns(self, known: Collection[str] = ()) -> dict[str, TreeTurn]:
        """Returns the turns by their ids, each behind its predecessor; free of cycles.

        `known` are ids that turns may have been given before their entries had ids; where one of
        them is a turn's, the turn keeps it. Costs CPU by the entries if any came since.
        """
        kept = {
            name: old
            for name, old in self._old_ids.items()
            if old in known and self._own_ids[name] not in known
        }
        state = (len(self._nodes), self.session, kept)
        if self._made is None or self._made[0] != state:
            self._made = (state, self._collapse({**self._own_ids, **kept}))
        return self._made[1]

    def head(self) -> str | None:
        """Returns the turn at which the leaf stands, None if there is none; after `turns`."""
        found = self._above.get(self.leaf or "")
        return found.turn if found is not None else None

    def candidates(self) -> set[str]:
        """Returns all ids that its turns may have, those from before ids were given included."""
        return {*self._own_ids.values(), *self._old_ids.values()}

    def _collapse(self, names: Mapping[str, str]) -> dict[str, TreeTurn]:
        parents, lost = self._resolved()
        self._above = {}
        found: dict[str, TreeTurn] = {}
        for node in parents_first(parents):
            parent, entry = parents[node], self._nodes[node]
            above = _Above(None, node in lost) if parent is None else self._above[parent]
            if entry.words is not None:
                found[names[node]] = TreeTurn(
                    id=names[node],
                    entry=entry,
                    words=entry.words,
                    predecessor=above.turn,
                    is_lost=above.is_lost,
                )
                above = _Above(names[node], is_lost=False)
            self._above[node] = above
        return found

    def _resolved(self) -> tuple[dict[str, str | None], set[str]]:
        """Returns each node's parent and the nodes that name one which is not there."""
        parents: dict[str, str | None] = {}
        lost: set[str] = set()
        for name, entry in self._nodes.items():
            parent = entry.parent if entry.is_linked else self._befores[name]
            if parent is not None and parent not in self._nodes:
                if parent != self.session:
                    lost.add(name)
                parent = None
            parents[name] = parent if parent not in (name, entry.id) else None
        cut_cycles(parents, list(parents))
        return parents, lost

    def _name_turn(self, name: str, entry: Entry) -> None:
        """Notes what an entry's turn is called, and what it was before it had an id."""
        if entry.words is None:
            return
        number = self._numbers[entry.fingerprint] = self._numbers.get(entry.fingerprint, 0) + 1
        old = f"t-{entry.fingerprint}" + (f".{number}" if number > 1 else "")
        own = _own_id(entry)
        if own is None or entry.was_given_id:
            own = old
        elif name != entry.id:
            own = f"{own}.{entry.fingerprint}"
        self._own_ids[name], self._old_ids[name] = own, old


def is_plain_id(name: str) -> bool:
    """Returns whether an id can stand as it is, in the store and on a terminal."""
    return _PLAIN_ID.fullmatch(name) is not None


def _own_id(entry: Entry) -> str | None:
    """Returns the turn's id that follows from the entry's own; None without one."""
    if entry.id is None or is_uuid(entry.id.lower()):
        return entry.id
    plain = entry.id if is_plain_id(entry.id) else _hash(entry.id)
    return plain if entry.written_ms is None else f"{plain}.{entry.written_ms}"


def _stands_behind_its_time(record: Mapping[str, Any]) -> bool:
    fields = list(record)
    return "timestamp" in record and fields.index("timestamp") < fields.index("id")


def _fingerprint(record: Mapping[str, Any], written_ms: int | None, said_ms: int | None) -> str:
    """Returns a hash of when an entry was stored and of all that a rewriting leaves as it was."""
    message = mapping_at(record, "message")
    content = message.get("content") if message else record
    if content is record:
        content = {k: v for k, v in record.items() if k not in ("id", "parentId")}
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return _hash(f"{written_ms}\0{said_ms}\0{message.get('role')}\0{text}")


def _hash(text: str) -> str:
    return hash_of(unicodedata.normalize("NFC", text), size_bytes=_HASH_BYTES)
