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
    -9.014,
    {
        "words": 1.881,
        "share": -0.890,
        "share_with_before": 1.556,
        "share_around": 2.782,
        "words_before": -0.067,
        "words_after": 0.151,
        "words_before_that": 0.631,
        "follows_question": -0.336,
        "answers": 1.237,
        "is_question": -0.450,
        "is_question_unnamed": -0.636,
        "session_words": 0.510,
        "session_best": 1.090,
        "session_share": -0.164,
        "speaker": 1.082,
        "speaker_answers": 0.529,
        "speaker_words": 0.158,
        "speaker_of_self": 0.711,
        "names_speaker": -0.434,
        "of_self": -0.150,
        "time": 1.684,
        "number": 1.168,
        "name": 1.967,
        "date": 1.360,
        "question_of_time": 0.649,
        "opens": -0.006,
        "opens_named": 0.735,
        "phrase": 0.690,
    },
)

WITH_MEANING = _weights(
    -11.527,
    {
        "words": -0.187,
        "share": -0.358,
        "share_with_before": 1.654,
        "share_around": 2.428,
        "words_before": -0.374,
        "words_after": -0.170,
        "words_before_that": 0.333,
        "follows_question": -0.049,
        "answers": 1.037,
        "is_question": -0.332,
        "is_question_unnamed": -1.440,
        "session_words": -0.415,
        "session_best": 0.475,
        "session_share": 0.148,
        "speaker": 1.551,
        "speaker_answers": 0.056,
        "speaker_words": 0.715,
        "speaker_of_self": 0.563,
        "names_speaker": 0.094,
        "of_self": -0.036,
        "time": 1.409,
        "number": 0.797,
        "name": 0.960,
        "date": 2.521,
        "question_of_time": 0.446,
        "opens": -0.141,
        "opens_named": 0.741,
        "phrase": 0.396,
        "near": 1.881,
        "near_named": -3.676,
        "near_of_nearest": 3.097,
        "near_before": 0.582,
        "near_after": 0.158,
        "near_session": 4.234,
    },
)
