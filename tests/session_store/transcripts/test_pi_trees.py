"""Tests of the reader of pi on families of trees that were drawn, against what was said there."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_store.transcripts.codex_rollouts import edges, texts_of
from session_store.transcripts.pi_sessions import PiRecording, said_in
from session_store.transcripts.spoiling import spoilt
from turnmark_session_store.transcripts.pi.reader import PiReader

PI = PiReader()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    chance=st.randoms(use_true_random=False, note_method_calls=False),
    steps=st.integers(min_value=0, max_value=20),
)
def test_reads_what_was_said_whatever_was_branched_forked_or_rewritten(
    chance: random.Random, steps: int
) -> None:
    """Each turn once, behind the one before it, in the session that said it first."""
    recording = PiRecording(chance)
    recording.play(steps)
    with tempfile.TemporaryDirectory() as place:
        paths = recording.write_to(Path(place))
        chance.shuffle(paths)
        sessions = list(PI.read(paths))
    texts = texts_of(sessions)
    assert edges(*sessions) == recording.before
    turns = [t.turn for one in sessions for t in one.turns]
    assert {str(t.text) for t in turns if t.role == "user" and t.kind == "turn"} == recording.humans
    assert {texts[str(t.turn.id)]: t.session for one in sessions for t in one.turns} == (
        recording.owner
    )
    found = {one.session: one for one in sessions}
    for file in recording.files_open:
        said = {words for record in file.records if (words := said_in(record)) is not None}
        one = found[file.session]
        assert {texts[tip] for tip in one.tips} == said - {recording.before[w] for w in said}
        if file.above(file.shown) is not None:
            assert texts[one.head or ""] == file.above(file.shown)
        assert one.head is not None
    assert not [one.warnings for one in sessions if one.warnings]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    chance=st.randoms(use_true_random=False, note_method_calls=False),
    steps=st.integers(min_value=0, max_value=12),
)
def test_reads_whatever_is_left_of_files_or_was_made_of_them(
    chance: random.Random, steps: int
) -> None:
    """Files that are gone, lines that are lost, doubled or moved, and values that can't be."""
    recording = PiRecording(chance)
    recording.play(steps)
    with tempfile.TemporaryDirectory() as place:
        paths = recording.write_to(Path(place))
        kept = chance.sample(paths, chance.randint(1, len(paths)))
        for path in kept:
            path.write_bytes(spoilt(chance, path.read_bytes()))
        sessions = list(PI.read(kept))
    seen: set[tuple[str | None, str | None]] = set()
    for one in sessions:
        for turn in one.turns:
            key = (one.namespace, turn.turn.id)
            assert key not in seen, "once"
            before = (one.namespace, turn.predecessor)
            assert turn.predecessor is None or before in seen, "behind what it rests on"
            seen.add(key)
        assert {(one.namespace, tip) for tip in one.tips} <= seen
        assert (one.head is None) == (not one.tips)
