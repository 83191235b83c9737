"""The learned weights of the ranking, in the order of `features.FEATURES`.

Learned by `python benchmarks/recall/learn.py` on LoCoMo's first three conversations and the half
`learn` of the bilingual set; that script says how, and prints this module's numbers. The bias
makes of the weighed sum the logarithm of the odds that a candidate answers.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from turnmark_memory.features import FEATURES


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """One weight for each feature."""

    values: tuple[float, ...]
    bias: float


def _weights(bias: float, of: Mapping[str, float]) -> Weights:
    if unknown := of.keys() - set(FEATURES):
        raise LookupError(f"no such features: {sorted(unknown)}")
    return Weights(values=tuple(of.get(name, 0.0) for name in FEATURES), bias=bias)


BY_WORDS = _weights(
    -9.258,
    {
        "words": 2.325,
        "share": -0.911,
        "share_with_before": 1.730,
        "share_around": 2.367,
        "words_before": -0.238,
        "words_after": -0.094,
        "words_before_that": 0.536,
        "follows_question": -0.257,
        "answers": 1.244,
        "is_question": -0.660,
        "session_words": 0.484,
        "session_best": 0.917,
        "session_share": 0.302,
        "speaker": 1.635,
        "speaker_answers": 0.333,
        "speaker_words": -0.446,
        "speaker_of_self": 0.909,
        "names_speaker": 0.070,
        "of_self": -0.334,
        "time": 1.755,
        "number": 1.401,
        "name": 1.831,
        "date": 1.101,
        "question_of_time": 0.555,
        "opens": -0.015,
        "phrase": 0.526,
    },
)

# Nearness is weighed by hand, not yet learned.
WITH_MEANING = _weights(
    -9.258,
    {
        "words": 2.325,
        "share": -0.911,
        "share_with_before": 1.730,
        "share_around": 2.367,
        "words_before": -0.238,
        "words_after": -0.094,
        "words_before_that": 0.536,
        "follows_question": -0.257,
        "answers": 1.244,
        "is_question": -0.660,
        "session_words": 0.484,
        "session_best": 0.917,
        "session_share": 0.302,
        "speaker": 1.635,
        "speaker_answers": 0.333,
        "speaker_words": -0.446,
        "speaker_of_self": 0.909,
        "names_speaker": 0.070,
        "of_self": -0.334,
        "time": 1.755,
        "number": 1.401,
        "name": 1.831,
        "date": 1.101,
        "question_of_time": 0.555,
        "opens": -0.015,
        "phrase": 0.526,
        "near": 3.0,
        "near_before": 0.5,
        "near_after": 0.5,
        "near_session": 0.8,
    },
)
