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
    -9.244,
    {
        "words": 2.042,
        "share": -0.559,
        "share_with_before": 1.727,
        "share_around": 2.349,
        "words_before": -0.298,
        "words_after": -0.127,
        "words_before_that": 0.477,
        "follows_question": -0.306,
        "answers": 1.332,
        "is_question": -0.591,
        "session_words": 0.537,
        "session_best": 0.912,
        "session_share": 0.420,
        "speaker": 1.717,
        "speaker_answers": 0.305,
        "speaker_words": -0.458,
        "speaker_of_self": 0.873,
        "names_speaker": 0.129,
        "of_self": -0.357,
        "time": 1.678,
        "number": 1.338,
        "name": 1.788,
        "date": 0.934,
        "question_of_time": 0.559,
        "opens": -0.042,
        "phrase": 0.357,
    },
)

# Nearness is weighed by hand, not yet learned.
WITH_MEANING = _weights(
    -9.244,
    {
        "words": 2.042,
        "share": -0.559,
        "share_with_before": 1.727,
        "share_around": 2.349,
        "words_before": -0.298,
        "words_after": -0.127,
        "words_before_that": 0.477,
        "follows_question": -0.306,
        "answers": 1.332,
        "is_question": -0.591,
        "session_words": 0.537,
        "session_best": 0.912,
        "session_share": 0.420,
        "speaker": 1.717,
        "speaker_answers": 0.305,
        "speaker_words": -0.458,
        "speaker_of_self": 0.873,
        "names_speaker": 0.129,
        "of_self": -0.357,
        "time": 1.678,
        "number": 1.338,
        "name": 1.788,
        "date": 0.934,
        "question_of_time": 0.559,
        "opens": -0.042,
        "phrase": 0.357,
        "near": 3.0,
        "near_before": 0.5,
        "near_after": 0.5,
        "near_session": 0.8,
    },
)
