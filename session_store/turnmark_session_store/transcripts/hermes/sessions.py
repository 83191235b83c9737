"""From Hermes' resolved sessions to `ReadSession`s."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from turnmark_session_store.model import Speaker, TurnIn
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.hermes.graph import GraphTurn, HermesGraph, Talk
from turnmark_session_store.transcripts.ordering import upward
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn

AGENT: Final = "hermes"


def sessions_of(
    graph: HermesGraph,
    *,
    files: Mapping[str, str],
    projects: Mapping[str, str | None],
    held: Collection[str] = (),
) -> Iterator[ReadSession]:
    """Yields each session that has turns, behind what it rests on; none of those `held`.

    `files` and `projects` tell of each session where it stands, and where it began.
    """
    for name, talk in graph.talks.items():
        if name not in held and talk.line:
            yield _session(graph, talk, files[name], projects.get(name))


def _session(graph: HermesGraph, talk: Talk, file: str, project: str | None) -> ReadSession:
    turns = graph.turns[talk.family]
    own = {key: turn for key, turn in turns.items() if turn.session == talk.session.id}
    return ReadSession(
        session=talk.session.id,
        agent=AGENT,
        title=talk.session.title,
        project=project,
        forked_from=_forked_from(turns, talk),
        caller=talk.caller,
        turns=tuple(_turn(key, turn, talk, file) for key, turn in own.items()),
        tips=graph.tips_of(talk),
        head=talk.end,
        taken_back=tuple(key for key in own if key not in graph.standing[talk.family]),
    )


def _forked_from(turns: Mapping[str, GraphTurn], talk: Talk) -> ForkPoint | None:
    """Returns the last turn above the end that another session said first."""
    for at in upward((talk.end,), lambda turn: turns[turn].predecessor):
        if turns[at].session != talk.session.id:
            return ForkPoint(session=turns[at].session, turn=at)
    return None


def _turn(key: str, turn: GraphTurn, talk: Talk, file: str) -> ReadTurn:
    row, words = turn.said.row, turn.said.words
    metadata: dict[str, Any] = {"origin": {"file": file, "line": row.number}}
    if row.is_observed:
        metadata["observed"] = True
    return ReadTurn(
        turn=TurnIn(
            id=key,
            role=words.role,
            kind=words.kind,
            text=words.text,
            speaker=_speaker(turn, talk),
            time=row.time,
            caller=talk.caller if turn.predecessor is None else None,
            metadata=metadata,
        ),
        predecessor=turn.predecessor,
        session=talk.session.id,
    )


def _speaker(turn: GraphTurn, talk: Talk) -> Speaker | None:
    """Returns who spoke where one person talks; a name at the head of a text is not looked at."""
    words, session = turn.said.words, talk.session
    is_theirs = words.role == "user" and words.kind == "turn" and not turn.said.row.is_observed
    if session.speaker is None or not is_theirs:
        return None
    return Speaker(id=session.speaker, name=session.speaker_name)
