"""Tests of the reader of Codex on trees of threads that were drawn, against what was said there."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_store.transcripts.codex_rollouts import edges, read, texts_of
from session_store.transcripts.codex_sessions import CodexRecording
from session_store.transcripts.spoiling import spoilt
from turnmark_session_store.transcripts.codex.live import CodexLiveReader


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    chance=st.randoms(use_true_random=False, note_method_calls=False),
    steps=st.integers(min_value=0, max_value=14),
)
def test_reads_what_was_said_whatever_was_forked_reverted_or_rolled_back(
    chance: random.Random, steps: int
) -> None:
    """Each turn once, behind the one before it; the ends of all files, and what was taken back."""
    recording = CodexRecording(chance)
    recording.play(steps)
    with tempfile.TemporaryDirectory() as place:
        paths = recording.write_to(Path(place))
        chance.shuffle(paths)
        sessions = read(*paths)
    texts = texts_of(sessions)
    assert edges(*sessions) == recording.before
    turns = [t.turn for one in sessions for t in one.turns]
    assert {t.text for t in turns if t.role == "user" and t.kind == "turn"} == recording.humans
    assert {texts[str(t.turn.id)]: one.session for one in sessions for t in one.turns} == (
        recording.owner
    )
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
    assert not [one.warnings for one in sessions if one.warnings]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    chance=st.randoms(use_true_random=False, note_method_calls=False),
    steps=st.integers(min_value=0, max_value=8),
)
def test_reads_whatever_is_left_of_files_or_was_made_of_them(
    chance: random.Random, steps: int
) -> None:
    """Files that are gone, lines that are lost, doubled or moved, and values that can't be."""
    recording = CodexRecording(chance)
    recording.play(steps)
    with tempfile.TemporaryDirectory() as place:
        paths = recording.write_to(Path(place))
        kept = chance.sample(paths, chance.randint(1, len(paths)))
        for path in kept:
            path.write_bytes(spoilt(chance, path.read_bytes()))
        sessions = read(*kept)
        live = CodexLiveReader().live_set()
        live.add("all", kept, {})
        live.read_on(now=10.0**9)
        standing = live.stand((), now=10.0**10)
    seen: set[str] = set()
    for one in sessions:
        for turn in one.turns:
            assert turn.turn.id not in seen, "once"
            assert turn.predecessor is None or turn.predecessor in seen, "behind what it rests on"
            seen.add(str(turn.turn.id))
        assert {*one.tips, *one.taken_back} <= seen
        assert one.head in one.tips or not one.tips
        assert one.caller is None or one.caller.turn in seen
    assert [turn for one in standing.sessions for turn in one.turns] == [
        turn for one in sessions for turn in one.turns
    ]
