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
    -9.242,
    {
        "words": 2.013,
        "share": -0.844,
        "share_with_before": 1.493,
        "share_around": 2.686,
        "words_before": -0.026,
        "words_after": 0.128,
        "words_before_that": 0.601,
        "follows_question": -0.330,
        "answers": 1.266,
        "is_question": -0.444,
        "is_question_unnamed": -0.761,
        "session_words": 0.485,
        "session_best": 1.072,
        "session_share": -0.039,
        "speaker": 1.231,
        "speaker_answers": 0.485,
        "speaker_words": 0.050,
        "speaker_of_self": 0.713,
        "names_speaker": -0.330,
        "of_self": -0.178,
        "time": 1.694,
        "number": 1.257,
        "name": 1.809,
        "date": 1.387,
        "question_of_time": 0.628,
        "opens": -0.127,
        "opens_named": 0.822,
        "phrase": 0.682,
    },
)

WITH_MEANING = _weights(
    -11.570,
    {
        "words": -0.037,
        "share": -0.294,
        "share_with_before": 1.509,
        "share_around": 2.340,
        "words_before": -0.121,
        "words_after": -0.088,
        "words_before_that": 0.271,
        "follows_question": 0.008,
        "answers": 0.875,
        "is_question": -0.343,
        "is_question_unnamed": -1.146,
        "session_words": -0.528,
        "session_best": 0.357,
        "session_share": 0.346,
        "speaker": 1.415,
        "speaker_answers": 0.095,
        "speaker_words": 0.666,
        "speaker_of_self": 0.563,
        "names_speaker": 0.081,
        "of_self": -0.084,
        "time": 1.347,
        "number": 0.907,
        "name": 0.940,
        "date": 2.211,
        "question_of_time": 0.367,
        "opens": -0.086,
        "opens_named": 0.750,
        "phrase": 0.437,
        "near": 1.878,
        "near_named": -4.121,
        "near_of_nearest": 2.954,
        "near_before": 0.492,
        "near_after": 0.046,
        "near_session": 4.848,
    },
)
