"""What a migration would bring: sessions, turns that are dealt with, blocks; read from files alone.

The order of its parts is that of the laws: sessions first, for blocks cite turns; then blocks; and
only then may turns count as dealt with. Evidence whose turn is in no session any more comes along
where a topic cites it, as a session of its own for each thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Final

import msgspec

from turnmark.openprogram.archive import Frame, anchor_of, read_archive
from turnmark.openprogram.problem import Problem
from turnmark.openprogram.safe_marks import Evidence, is_speech, safe_marks
from turnmark.openprogram.state import State, find_state
from turnmark.openprogram.topic_files import TopicBlock, block_name, read_topics, words_of
from turnmark_memory.labels import block_id_of
from turnmark_memory.requests import AdoptedBlock, SettledTurns
from turnmark_session_store.model import CallerRef, Speaker, TurnIn
from turnmark_session_store.recordable import replace_surrogates
from turnmark_session_store.transcripts.openprogram.reader import (
    AGENT,
    OpenProgramReader,
    sessions_of,
)
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn, ReadWarning

_ARCHIVED: Final = "openprogram:"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that a state directory holds for this memory.

    `settled` are the turns that the topics hold already, each session's oldest first; `speech`
    counts all turns that memory may hold. `sources` counts the turns that blocks cite.
    """

    sessions: tuple[ReadSession, ...]
    settled: tuple[SettledTurns, ...]
    blocks: tuple[AdoptedBlock, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[ReadWarning, ...]
    speech: int

    @property
    def turns(self) -> int:
        """How many turns the sessions hold."""
        return sum(len(session.turns) for session in self.sessions)

    @property
    def dealt_with(self) -> int:
        """How many turns need no writer."""
        return sum(len(one.turns) for one in self.settled)

    @property
    def sources(self) -> int:
        """How many turns blocks cite."""
        return len({ref for block in self.blocks for ref in block.cites})

    @property
    def topics(self) -> int:
        """How many topics blocks go to."""
        return len({block.topic for block in self.blocks})


def read_plan(root: Path, *, skip_directories: Sequence[Path] = ()) -> Plan:
    """Returns what the state directory at `root` holds; holds all of its words in memory.

    Raises:
        NotFound: if there is no such directory.
        Refused: if it is no state directory.
        Unavailable: if something in it can't be read.
    """
    return _Reading(find_state(root), skip_directories).plan()


class _Reading:
    """One state directory, read once."""

    def __init__(self, state: State, skip_directories: Sequence[Path]) -> None:
        self._state = state
        self.problems = [Problem(name=name, reason=reason) for name, reason in state.problems]
        files = OpenProgramReader(skip_directories=skip_directories).files_of(state.files)
        self._files = {one.name: one for one in files}
        self._sessions = list(sessions_of(files))
        self._frames = dict(self._read_frames())
        self._blocks = list(self._told_apart(self._read_blocks()))
        self._refs = self._refs_of_turns()

    def plan(self) -> Plan:
        """Puts the parts together."""
        archived = self._archived_sessions()
        self._count_left()
        settled = [*self._settled(), *map(_all_of, archived)]
        sessions = (*self._sessions, *archived)
        blocks = tuple(self._adopted(sessions))
        return Plan(
            sessions=sessions,
            settled=tuple(one for one in settled if one.turns),
            blocks=blocks,
            problems=tuple(self.problems),
            warnings=tuple(one for session in self._sessions for one in session.warnings),
            speech=sum(is_speech(one) for session in sessions for one in _standing(session)),
        )

    def _read_frames(self) -> Iterator[tuple[str, Frame]]:
        for file in read_archive(self._state.sources):
            if file.problem is not None:
                self._note(file.path, f"{file.problem}; what stands before that was read")
            yield from ((frame.anchor, frame) for frame in file.frames)

    def _read_blocks(self) -> Iterator[TopicBlock]:
        for path, found in read_topics(self._state.topics, self._state.workspace or ""):
            if isinstance(found, str):
                self._note(path, found)
            else:
                yield from found

    def _told_apart(self, blocks: Iterator[TopicBlock]) -> Iterator[TopicBlock]:
        """Yields blocks each under a name of its own: paragraphs are copied with their ids."""
        found: dict[str, TopicBlock] = {}
        for block in blocks:
            first = found.get(block.id)
            if first is None:
                found[block.id] = block
            elif first.claims != block.claims:
                own = block_id_of(AGENT, block.id, block.file, *(one.words for one in block.claims))
                if own not in found:
                    reason = f"{block.id} names a paragraph of {first.file}, too; it is now {own}"
                    self.problems.append(Problem(name=block.file, reason=reason))
                    found[own] = msgspec.structs.replace(block, id=own)
        taken = set(found)
        for block in found.values():
            aliases = tuple(name for name in dict.fromkeys(block.aliases) if name not in taken)
            taken.update(aliases)
            yield msgspec.structs.replace(block, aliases=aliases)

    def _note(self, path: Path, reason: str) -> None:
        name = replace_surrogates(path.relative_to(self._state.root).as_posix())
        self.problems.append(Problem(name=name, reason=reason))

    def _refs_of_turns(self) -> dict[str, CallerRef]:
        """Returns the turn of each anchor that a session's turn can have."""
        return {
            anchor_of(f"{AGENT}/{session.session}/{one.turn.id}"): CallerRef(
                session=session.session, turn=str(one.turn.id)
            )
            for session in self._sessions
            for one in session.turns
        }

    def _archived_sessions(self) -> list[ReadSession]:
        """Returns sessions of the cited evidence that is no session's turn; it is cited by them."""
        cited = dict.fromkeys(anchor for block in self._blocks for anchor in block.anchors)
        threads: dict[str, list[Frame]] = {}
        for anchor, frame in self._frames.items():
            if anchor in cited and anchor not in self._refs and frame.trusted:
                name = f"{_ARCHIVED}{frame.provider}/{frame.thread}"
                threads.setdefault(name, []).append(frame)
                self._refs[anchor] = CallerRef(session=name, turn=frame.message)
        return [_archived_session(name, frames) for name, frames in threads.items()]

    def _count_left(self) -> None:
        """Notes how much evidence stays behind: what nobody vouched for, and what none cites."""
        left = [frame for anchor, frame in self._frames.items() if anchor not in self._refs]
        for trusted, reason in (
            (False, "archived words of people whom nobody vouched for; left out"),
            (True, "archived words of conversations that are gone, cited by no topic; left out"),
        ):
            number = sum(frame.trusted == trusted for frame in left)
            if number:
                name = f"sources, {number:,} record{'' if number == 1 else 's'}"
                self.problems.append(Problem(name=name, reason=reason))

    def _settled(self) -> Iterator[SettledTurns]:
        workspace = self._state.workspace
        if workspace is None:
            if self._frames or self._blocks:
                reason = f"{self._state.distrust}: no mark is believed, all turns are written again"
                self.problems.append(Problem(name="memory", reason=reason))
            return
        cited = {anchor for block in self._blocks for anchor in block.anchors}
        for session in self._sessions:
            graph, name = self._files[session.session].graph, session.session
            anchors = {str(one.turn.id): _anchor(name, one) for one in session.turns}
            evidence = Evidence(
                frames={k: self._frames[a] for k, a in anchors.items() if a in self._frames},
                cited=frozenset(key for key, anchor in anchors.items() if anchor in cited),
            )
            turns = safe_marks(session, graph, workspace, evidence)
            yield SettledTurns(session=name, turns=turns)

    def _adopted(self, sessions: Iterable[ReadSession]) -> Iterator[AdoptedBlock]:
        days = dict(self._days(sessions))
        names = {
            name: (one.topic, one.id) for one in self._blocks for name in (one.id, *one.aliases)
        }
        workspace = self._state.workspace or ""
        for block in self._blocks:
            cites = tuple(self._refs[one] for one in block.anchors if one in self._refs)
            if block.anchors and not cites:
                reason = "its sources are nowhere; it is kept as a person's block"
                self.problems.append(Problem(name=f"{block.file}, {block.id}", reason=reason))
            yield AdoptedBlock(
                id=block.id,
                topic=block.topic,
                text=words_of(block, lambda name: names.get(block_name(name, workspace)), days),
                heading=block.heading,
                title=block.title,
                cites=cites,
                aliases=block.aliases,
            )

    def _days(self, sessions: Iterable[ReadSession]) -> Iterator[tuple[str, date]]:
        said = {
            (session.session, one.turn.id): one.turn.time
            for session in sessions
            for one in session.turns
        }
        for anchor, ref in self._refs.items():
            time = said.get((ref.session, ref.turn))
            if time is not None:
                yield anchor, datetime.fromisoformat(time).date()


def _anchor(session: str, one: ReadTurn) -> str:
    return anchor_of(f"{AGENT}/{session}/{one.turn.id}")


def _standing(session: ReadSession) -> Iterator[ReadTurn]:
    gone = frozenset(session.taken_back)
    return (one for one in session.turns if one.turn.id not in gone)


def _all_of(session: ReadSession) -> SettledTurns:
    """Returns cited evidence as dealt with: it is here because topics hold it."""
    turns = tuple(str(one.turn.id) for one in session.turns if is_speech(one))
    return SettledTurns(session=session.session, turns=turns)


def _archived_session(name: str, frames: Sequence[Frame]) -> ReadSession:
    """Returns the records of one thread as a session: one line, in the order of its file."""
    ids = [frame.message for frame in frames]
    turns = tuple(
        ReadTurn(turn=_archived_turn(frame), predecessor=before, session=name)
        for frame, before in zip(frames, [None, *ids], strict=False)
    )
    return ReadSession(
        session=name,
        agent=AGENT,
        title=f"{frames[0].thread}: what was kept of it",
        namespace=f"family:{name}",
        turns=turns,
        tips=(ids[-1],),
        head=ids[-1],
    )


def _archived_turn(frame: Frame) -> TurnIn:
    speaker = Speaker(id=frame.speaker_id, name=frame.speaker_name)
    return TurnIn(
        id=frame.message,
        role="assistant" if frame.by_agent else "user",
        text=frame.words,
        speaker=speaker if frame.speaker_id or frame.speaker_name else None,
        time=frame.time,
        metadata={"origin": {"file": f"{frame.provider}/{frame.thread}", "line": 0}},
    )
