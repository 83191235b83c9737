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
    -9.206,
    {
        "words": 2.007,
        "share": -0.832,
        "share_with_before": 1.493,
        "share_around": 2.671,
        "words_before": -0.043,
        "words_after": 0.133,
        "words_before_that": 0.601,
        "follows_question": -0.337,
        "answers": 1.281,
        "is_question": -0.443,
        "is_question_unnamed": -0.775,
        "session_words": 0.471,
        "session_best": 1.080,
        "session_share": -0.028,
        "speaker": 1.232,
        "speaker_answers": 0.486,
        "speaker_words": 0.039,
        "speaker_of_self": 0.713,
        "names_speaker": -0.329,
        "of_self": -0.179,
        "time": 1.631,
        "number": 1.181,
        "name": 1.803,
        "date": 1.388,
        "question_of_time": 0.646,
        "opens": -0.139,
        "opens_named": 0.833,
        "phrase": 0.676,
    },
)

WITH_MEANING = _weights(
    -10.700,
    {
        "words": 0.330,
        "share": -0.486,
        "share_with_before": 1.369,
        "share_around": 2.150,
        "words_before": -0.206,
        "words_after": -0.105,
        "words_before_that": 0.235,
        "follows_question": -0.028,
        "answers": 0.817,
        "is_question": -0.318,
        "is_question_unnamed": -0.702,
        "session_words": -0.502,
        "session_best": 0.145,
        "session_share": 0.299,
        "speaker": 1.198,
        "speaker_answers": 0.073,
        "speaker_words": 0.044,
        "speaker_of_self": 0.567,
        "names_speaker": -0.117,
        "of_self": -0.097,
        "time": 1.134,
        "number": 0.734,
        "name": 0.747,
        "date": 2.055,
        "question_of_time": 0.299,
        "opens": -0.019,
        "opens_named": 0.548,
        "phrase": 0.270,
        "near": -0.436,
        "near_of_nearest": 2.419,
        "near_before": 0.292,
        "near_after": 0.079,
        "near_session": 4.518,
    },
)
