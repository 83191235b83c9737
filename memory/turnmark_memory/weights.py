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
        "share_with_before": 1.566,
        "share_around": 2.470,
        "words_before": -0.087,
        "words_after": 0.148,
        "words_before_that": 0.660,
        "follows_question": -0.285,
        "answers": 1.306,
        "is_question": -0.409,
        "is_question_unnamed": -0.691,
        "session_words": 0.346,
        "session_best": 1.199,
        "session_share": 0.455,
        "speaker": 1.159,
        "speaker_answers": 0.431,
        "speaker_words": 0.040,
        "speaker_of_self": 0.713,
        "names_speaker": -0.305,
        "of_self": -0.143,
        "time": 1.561,
        "number": 1.172,
        "name": 1.580,
        "date": 1.306,
        "question_of_time": 0.557,
        "opens": -0.086,
        "opens_named": 0.766,
        "phrase": 0.533,
    },
)

WITH_MEANING = _weights(
    -11.490,
    {
        "words": 0.557,
        "share": -0.600,
        "share_with_before": 1.597,
        "share_around": 2.232,
        "words_before": -0.333,
        "words_after": -0.203,
        "words_before_that": 0.453,
        "follows_question": -0.046,
        "answers": 1.140,
        "is_question": -0.374,
        "is_question_unnamed": -1.492,
        "session_words": -0.529,
        "session_best": 0.627,
        "session_share": 0.654,
        "speaker": 1.461,
        "speaker_answers": -0.006,
        "speaker_words": 0.568,
        "speaker_of_self": 0.625,
        "names_speaker": -0.033,
        "of_self": -0.117,
        "time": 1.425,
        "number": 0.849,
        "name": 0.796,
        "date": 2.272,
        "question_of_time": 0.403,
        "opens": -0.134,
        "opens_named": 0.759,
        "phrase": 0.212,
        "near": 1.893,
        "near_named": -3.009,
        "near_of_nearest": 2.572,
        "near_before": 0.631,
        "near_after": 0.149,
        "near_session": 3.673,
    },
)
