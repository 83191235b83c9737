"""Tests of readers of files on conversations that were drawn, against what was said there."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_store.transcripts.agents import FILE_AGENTS, FileAgent
from session_store.transcripts.codex_rollouts import edges, texts_of
from session_store.transcripts.codex_sessions import CodexRecording
from session_store.transcripts.pi_sessions import PiRecording, said_in
from session_store.transcripts.spoiling import spoilt
from turnmark_session_store.transcripts.codex.reader import CodexReader
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.pi.reader import PiReader
from turnmark_session_store.transcripts.reader import Reader, ReadSession, ReadTurn

CHANCES = st.randoms(use_true_random=False, note_method_calls=False)
# What such a generator draws is not kept in memory: long recordings draw thousands of numbers.
SEEDS = st.integers(min_value=0, max_value=2**32)
SLOW = [HealthCheck.too_slow]
LATE = 10.0**10


def read_back(
    reader: Reader, recording: CodexRecording | PiRecording, chance: random.Random
) -> list[ReadSession]:
    """What a reader makes of the files: each turn once, behind the one before it."""
    with tempfile.TemporaryDirectory() as place:
        paths = recording.write_to(Path(place))
        chance.shuffle(paths)
        sessions = list(reader.read(paths))
    assert edges(*sessions) == recording.before
    turns = [t.turn for one in sessions for t in one.turns]
    assert {t.text for t in turns if t.role == "user" and t.kind == "turn"} == recording.humans
    texts = texts_of(sessions)
    owners = {texts[str(t.turn.id)]: one.session for one in sessions for t in one.turns}
    assert owners == recording.owner
    assert all(t.session == one.session for one in sessions for t in one.turns)
    assert not [one.warnings for one in sessions if one.warnings]
    return sessions


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(chance=CHANCES, steps=st.integers(min_value=0, max_value=14))
def test_reads_what_was_said_in_codex_whatever_was_forked_reverted_or_rolled_back(
    chance: random.Random, steps: int
) -> None:
    """The ends of all files, and what was taken back."""
    recording = CodexRecording(chance)
    recording.play(steps)
    sessions = read_back(CodexReader(), recording, chance)
    texts = texts_of(sessions)
    taken_back = {texts[turn] for one in sessions for turn in one.taken_back}
    assert taken_back == recording.rolled_back - recording.live
    ends = {file.stack[-1] for file in recording.files_all if file.stack}
    tips = {texts[tip] for one in sessions for tip in one.tips}
    inner = {recording.before[words] for words in recording.live}
    assert ends - inner <= tips <= ends
    for one in sessions:
        assert one.head in one.tips or not one.tips
        assert not set(one.tips) & set(one.taken_back)
    agents = {file.thread for file in recording.files_all if file.is_agent}
    assert all(one.caller is not None for one in sessions if one.session in agents)


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(chance=CHANCES, steps=st.integers(min_value=0, max_value=20))
def test_reads_what_was_said_in_pi_whatever_was_branched_forked_or_rewritten(
    chance: random.Random, steps: int
) -> None:
    """The leaves of each session, and where it is."""
    recording = PiRecording(chance)
    recording.play(steps)
    sessions = read_back(PiReader(), recording, chance)
    texts = texts_of(sessions)
    found = {one.session: one for one in sessions}
    for file in recording.files_open:
        said = {words for record in file.records if (words := said_in(record)) is not None}
        one = found[file.session]
        assert {texts[tip] for tip in one.tips} == said - {recording.before[w] for w in said}
        if file.above(file.shown) is not None:
            assert texts[one.head or ""] == file.above(file.shown)
        assert one.head is not None


@pytest.mark.parametrize("agent", FILE_AGENTS, ids=str)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, steps=st.integers(min_value=0, max_value=8))
def test_reads_whatever_is_left_of_files_or_was_made_of_them(
    agent: FileAgent, seed: int, steps: int
) -> None:
    """Files that are gone, lines that are lost, doubled or moved, and values that can't be.

    One that follows the files says the same as one that imports them.
    """
    chance = random.Random(seed)
    recording = agent.played(chance, steps)
    with tempfile.TemporaryDirectory() as place:
        paths = recording.write_to(Path(place))
        kept = chance.sample(paths, chance.randint(1, len(paths)))
        for path in kept:
            path.write_bytes(spoilt(chance, path.read_bytes()))
        sessions = list(agent.reader.read(kept))
        followed = Growing(agent, Patience())
        followed.tell(*kept)
        standing = followed.stand((), now=LATE)
        whole = list(agent.reader.read(sorted(followed.files)))
    seen: set[tuple[str | None, str | None]] = set()
    for one in sessions:
        for turn in one.turns:
            key = (one.namespace, turn.turn.id)
            assert key not in seen, "once"
            before = (one.namespace, turn.predecessor)
            assert turn.predecessor is None or before in seen, "behind what it rests on"
            seen.add(key)
        assert {(one.namespace, turn) for turn in (*one.tips, *one.taken_back)} <= seen
        assert (one.head is None) == (not one.tips)
        assert one.caller is None or (one.namespace, one.caller.turn) in seen
    assert turns_of(standing.sessions) == turns_of(whole)


@pytest.mark.parametrize("agent", FILE_AGENTS, ids=str)
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, steps=st.integers(min_value=0, max_value=8), mixed=st.booleans())
def test_what_is_given_of_files_that_grow_stands_and_is_all_in_the_end(
    agent: FileAgent, seed: int, steps: int, *, mixed: bool
) -> None:
    """Looked at after any write, cut anywhere: no turn changes once it is given."""
    chance = random.Random(seed)
    recording = agent.played(chance, steps)
    given_before: dict[str, ReadTurn] = {}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        growing = Growing(agent, Patience(quiet_seconds=10.0**6, orphan_seconds=10.0**6))
        for piece in recording.pieces(chance, mixed=mixed):
            growing.tell(piece.to(root))
            if chance.random() < 0.3:
                standing = growing.stand(given_before.keys(), now=10.0**9)
                found = {str(turn.turn.id): turn for turn in turns_of(standing.sessions)}
                for key, turn in given_before.items():
                    assert key in standing.replaced or found[key].turn.text == turn.turn.text
                    assert key in standing.replaced or found[key].predecessor == turn.predecessor
                given_before |= found
        standing = growing.stand(given_before.keys(), now=LATE)
        sessions = list(agent.reader.read(sorted(growing.files)))
    assert turns_of(standing.sessions) == turns_of(sessions)
    assert given_before.keys() <= {
        *(str(turn.turn.id) for turn in turns_of(sessions)),
        *standing.replaced,
    }


class Growing:
    """Files that are followed, without a store: all of them are resolved together."""

    def __init__(self, agent: FileAgent, patience: Patience) -> None:
        self.files: set[Path] = set()
        self._reader = agent.live(patience)
        self._live = self._reader.live_set()

    def tell(self, *paths: Path) -> None:
        """Tells of files; those that are no transcripts, or not yet, are left alone."""
        for path in paths:
            session = self._reader.session_of(path)
            if session is not None:
                self.files.add(path)
                self._live.add(session, [path], {})

    def stand(self, placed: Collection[str], now: float) -> Standing:
        """Reads on and says what is so now."""
        self._live.read_on(now)
        self._live.sessions_named()  # as a tail asks: what the files are called is settled by it
        return self._live.stand(placed, now)


def turns_of(sessions: Iterable[ReadSession]) -> list[ReadTurn]:
    """All turns, sorted by session and id."""
    found = [turn for one in sessions for turn in one.turns]
    return sorted(found, key=lambda turn: (turn.session, str(turn.turn.id)))
