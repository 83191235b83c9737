"""The transcripts of one family of OpenClaw, resolved against each other.

A window that goes on after a rewind or a compaction, and a fork, hold again what stood before,
under the same ids; each entry is taken where it stands first. Where the program shortens what a
tool gave back, it writes all that follows again beside it, under other ids: those are the same
words, said at the same moment, and the same turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from turnmark_session_store.transcripts.openclaw.entries import (
    Copied,
    Entry,
    Header,
    read_entry,
    read_header,
)
from turnmark_session_store.transcripts.openclaw.windows import Facts, Windows
from turnmark_session_store.transcripts.openclaw.words import Words
from turnmark_session_store.transcripts.ordering import cut_cycles, in_order, parents_first, upward
from turnmark_session_store.transcripts.reader import ReadWarning

# An answer is sent in parts, and each leaves a mirror; further up no answer is looked for.
_MIRROR_REACH = 32


@dataclass(kw_only=True, eq=False)
class Transcript:
    """One transcript as far as it is read; `file` is the name of what it was read from."""

    facts: Facts
    file: str
    header: Header | None = None
    entries: list[Entry] = field(default_factory=list[Entry])
    warnings: list[ReadWarning] = field(default_factory=list[ReadWarning])

    def take(self, line: int, record: Mapping[str, Any]) -> None:
        """Adds the next record; a second header is none."""
        header = read_header(record)
        if header is not None:
            self.header = self.header or header
            return
        before = self.entries[-1].id if self.entries else None
        entry = read_entry(record, line=line, session=self.facts.session, before=before)
        if entry is not None:
            self.entries.append(entry)

    def warn(self, line: int, reason: str) -> None:
        """Notes that a record can't be read."""
        self.warnings.append(ReadWarning(file=self.file, line=line, reason=reason))


@dataclass(kw_only=True, eq=False, slots=True)
class Turn:
    """A turn: the entry that says it first, and the transcript in which it does.

    `predecessor` is the turn before it; `is_lost` says that the chain above leads to an entry that
    is nowhere.
    """

    id: str
    entry: Entry
    words: Words
    transcript: Transcript
    predecessor: str | None
    is_lost: bool


class Family:
    """Resolves transcripts that belong together, once; read-only afterwards.

    `turns` are those that memory may see, each behind its predecessor, `owners` the sessions that
    said them first. `reached` maps each session to its turns, those that it only copied included.
    `withdrawn` are the turns of each session that stand only in transcripts that the user took out
    of memory.
    """

    def __init__(self, windows: Windows, transcripts: Iterable[Transcript]) -> None:
        self.windows = windows
        self._by_name = {one.facts.session: one for one in transcripts}
        names = sorted(self._by_name, key=windows.place)
        rests_on = {name: windows.rests_on(name) for name in names}
        self.transcripts = [self._by_name[name] for name in in_order(names, rests_on)]
        self._by_session: dict[str, list[Transcript]] = {}
        for one in self.transcripts:
            self._by_session.setdefault(self.session_of(one), []).append(one)
        self._rows: dict[str, tuple[Entry, Transcript]] = {}
        self._keys: dict[str, dict[str, str]] = {}
        self._anywhere: dict[str, str] = {}
        copies: dict[Copied, str] = {}
        for transcript in self.transcripts:
            self._take(transcript, copies)
        self._lost: set[str] = set()
        parents = {key: self._parent(key) for key in self._rows}
        cut_cycles(parents, list(parents))
        self._above: dict[str, str | None] = {}
        self.owners: dict[str, str] = {}
        self._tellers: dict[str, Transcript] = {}
        self.reached: dict[str, list[str]] = {}
        self.withdrawn: dict[str, list[str]] = {}
        self._share_out()
        self.turns: dict[str, Turn] = {}
        self._collapse(parents)
        for session, reached in self.reached.items():
            self.reached[session] = [key for key in reached if key in self.turns]

    def session_of(self, transcript: Transcript) -> str:
        """Returns the session that a transcript belongs to."""
        return self.windows.sessions[transcript.facts.session]

    def transcript(self, name: str) -> Transcript | None:
        """Returns the transcript of a name, None if it is not of the family."""
        return self._by_name.get(name)

    def of_session(self, session: str) -> list[Transcript]:
        """Returns the transcripts of a session, the oldest first."""
        return self._by_session[session]

    def turn_at(self, transcript: Transcript, entry: str | None) -> str | None:
        """Returns the turn that an entry of a transcript says or stands behind."""
        key = self._keys[transcript.facts.session].get(entry or "")
        return self._above.get(key) if key is not None else None

    def end_of(self, transcript: Transcript, stop: int | None = None) -> str | None:
        """Returns the entry at which a transcript stands, or stood before its entry `stop`."""
        keys = self._keys[transcript.facts.session]
        at: str | None = None
        for entry in transcript.entries[:stop]:
            if entry.leaf is None:
                at = entry.id
            elif entry.leaf.target is None or entry.leaf.target in keys:
                at = entry.leaf.target
        return at

    def upward(self, *turns: str | None) -> Iterator[str]:
        """Yields a turn and those before it, then so for the next: each once."""
        return upward(turns, lambda turn: self.turns[turn].predecessor)

    def _take(self, transcript: Transcript, copies: dict[Copied, str]) -> None:
        keys: dict[str, str] = {}
        self._keys[transcript.facts.session] = keys
        for entry in transcript.entries:
            if entry.id in keys:
                continue
            key = entry.key
            if key not in self._rows:
                key = copies.get(entry.copied, key) if entry.copied is not None else key
            if key not in self._rows:
                self._rows[key] = (entry, transcript)
                if entry.copied is not None:
                    copies[entry.copied] = key
            keys[entry.id] = key
            self._anywhere.setdefault(entry.id, key)

    def _parent(self, key: str) -> str | None:
        """Returns the row that another hangs from; what stands behind a leaf, from its target."""
        entry, transcript = self._rows[key]
        keys = self._keys[transcript.facts.session]
        named = entry.parent
        if entry.leaf is not None and (entry.leaf.target is None or entry.leaf.target in keys):
            named = entry.leaf.target
        if named is None or named == entry.id:
            return None
        found = keys.get(named) or self._anywhere.get(named)
        if found is None and named != transcript.facts.session:
            self._lost.add(key)
        return found if found != key else None

    def _share_out(self) -> None:
        """Says whose each row is: the first session's that holds it and is not withdrawn."""
        reached: dict[str, dict[str, None]] = {}
        for transcript in self.transcripts:
            session = self.session_of(transcript)
            keys = self._keys[transcript.facts.session].values()
            if not transcript.facts.withdrawn:
                for key in keys:
                    self.owners.setdefault(key, session)
                    self._tellers.setdefault(key, transcript)
                held = (key for key in keys if self._is_reached(key, transcript))
                reached.setdefault(session, {}).update(dict.fromkeys(held))
        self.reached = {session: list(keys) for session, keys in reached.items()}
        for transcript in self.transcripts:
            if transcript.facts.withdrawn:
                gone = self.withdrawn.setdefault(self.session_of(transcript), [])
                gone += [
                    key
                    for key in self._keys[transcript.facts.session].values()
                    if key not in self.owners and self._rows[key][0].words is not None
                ]

    def _is_reached(self, key: str, transcript: Transcript) -> bool:
        """Returns whether a session reaches a row: a sub-agent not what it was only given."""
        return not transcript.facts.is_agent or self.owners[key] == self.session_of(transcript)

    def _collapse(self, parents: dict[str, str | None]) -> None:
        """Makes turns of the rows with words; all others only carry the chain."""
        lost_above: dict[str, bool] = {}
        for key in parents_first(parents):
            parent = parents[key]
            before = self._above[parent] if parent is not None else None
            is_lost = key in self._lost or (parent is not None and lost_above[parent])
            entry, transcript = self._rows[key]
            words = entry.words
            if words is None or key not in self.owners or self._repeats(words, before):
                self._above[key], lost_above[key] = before, is_lost
                continue
            if before is not None and not self._is_reached(before, self._tellers[key]):
                before = None
            self._above[key], lost_above[key] = key, False
            self.turns[key] = Turn(
                id=key,
                entry=entry,
                words=words,
                transcript=transcript,
                predecessor=before,
                is_lost=is_lost and before is None,
            )

    def _repeats(self, words: Words, before: str | None) -> bool:
        """Returns whether words are the mirror of an answer that stands just before."""
        if not words.mirrored:
            return False
        for turn in islice(self.upward(before), _MIRROR_REACH):
            other = self.turns[turn].words
            if other.role != "assistant":
                return False
            if other.text == words.text:
                return True
        return False


def rewound(family: Family) -> set[str]:
    """Returns the turns that were taken back by a rewind, also those that others go on from."""
    found: set[str] = set()
    for transcript in family.transcripts:
        cut = _cut_of(transcript)
        if cut is None:
            continue
        left = family.turn_at(transcript, family.end_of(transcript, cut))
        leaf = transcript.entries[cut].leaf
        target = family.turn_at(transcript, leaf.target if leaf is not None else None)
        kept = set(family.upward(target))
        line = list(family.upward(left))
        if target is None or target in line:
            found.update(turn for turn in line if turn not in kept)
    return found


def _cut_of(transcript: Transcript) -> int | None:
    """Returns the place of the record with which a rewind begins its window.

    What stands before it was copied, with older such records in it.
    """
    began = transcript.header.started_ms if transcript.header is not None else None
    if not transcript.facts.is_rewind or began is None:
        return None
    places = (
        place
        for place, entry in enumerate(transcript.entries)
        if entry.leaf is not None and (entry.written_ms or 0) >= began
    )
    return next(places, None)
