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
    -9.207,
    {
        "words": 2.347,
        "share": -0.948,
        "share_with_before": 1.549,
        "share_around": 2.360,
        "words_before": -0.214,
        "words_after": -0.113,
        "words_before_that": 0.553,
        "follows_question": -0.284,
        "answers": 1.270,
        "is_question": -0.733,
        "session_words": 0.409,
        "session_best": 0.885,
        "session_share": 0.524,
        "speaker": 1.482,
        "speaker_answers": 0.306,
        "speaker_words": -0.259,
        "speaker_of_self": 0.929,
        "names_speaker": 0.042,
        "of_self": -0.395,
        "time": 1.746,
        "number": 1.358,
        "name": 1.772,
        "date": 1.057,
        "question_of_time": 0.742,
        "opens": -0.105,
        "phrase": 0.544,
    },
)

WITH_MEANING = _weights(
    -12.516,
    {
        "words": 0.578,
        "share": -0.580,
        "share_with_before": 1.490,
        "share_around": 2.616,
        "words_before": -0.269,
        "words_after": -0.161,
        "words_before_that": 0.353,
        "follows_question": -0.057,
        "answers": 1.027,
        "is_question": -0.476,
        "session_words": -0.274,
        "session_best": 0.136,
        "session_share": 0.264,
        "speaker": 0.501,
        "speaker_answers": 0.042,
        "speaker_words": 0.269,
        "speaker_of_self": 0.618,
        "names_speaker": -0.870,
        "of_self": -0.190,
        "time": 1.549,
        "number": 0.941,
        "name": 1.430,
        "date": 1.803,
        "question_of_time": 0.346,
        "opens": 0.401,
        "phrase": 0.325,
        "near": -2.188,
        "near_of_nearest": 4.076,
        "near_before": 0.515,
        "near_after": 0.383,
        "near_session": 5.271,
    },
)
