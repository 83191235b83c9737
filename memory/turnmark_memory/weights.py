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
    -9.432,
    {
        "words": 2.220,
        "share": -0.887,
        "share_with_before": 1.567,
        "share_around": 2.469,
        "words_before": -0.086,
        "words_after": 0.149,
        "words_before_that": 0.660,
        "follows_question": -0.284,
        "answers": 1.307,
        "is_question": -0.409,
        "is_question_unnamed": -0.690,
        "session_words": 0.345,
        "session_best": 1.198,
        "session_share": 0.455,
        "speaker": 1.159,
        "speaker_answers": 0.430,
        "speaker_words": 0.040,
        "speaker_of_self": 0.714,
        "names_speaker": -0.305,
        "of_self": -0.144,
        "time": 1.560,
        "number": 1.173,
        "name": 1.581,
        "date": 1.306,
        "question_of_time": 0.557,
        "opens": -0.086,
        "opens_named": 0.765,
        "phrase": 0.533,
    },
)

WITH_MEANING = _weights(
    -11.491,
    {
        "words": 0.555,
        "share": -0.605,
        "share_with_before": 1.614,
        "share_around": 2.223,
        "words_before": -0.330,
        "words_after": -0.206,
        "words_before_that": 0.458,
        "follows_question": -0.041,
        "answers": 1.132,
        "is_question": -0.374,
        "is_question_unnamed": -1.493,
        "session_words": -0.534,
        "session_best": 0.632,
        "session_share": 0.656,
        "speaker": 1.463,
        "speaker_answers": -0.009,
        "speaker_words": 0.568,
        "speaker_of_self": 0.626,
        "names_speaker": -0.032,
        "of_self": -0.117,
        "time": 1.425,
        "number": 0.848,
        "name": 0.796,
        "date": 2.273,
        "question_of_time": 0.403,
        "opens": -0.133,
        "opens_named": 0.758,
        "phrase": 0.211,
        "near": 1.899,
        "near_named": -3.015,
        "near_of_nearest": 2.573,
        "near_before": 0.630,
        "near_after": 0.162,
        "near_session": 3.661,
    },
)
