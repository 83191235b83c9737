"""Weighs the signs of a sentence: is it worth keeping?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Who asks for something to be remembered, gives a rule or says what they like wants it kept, in
# however few words; where they hedge, wish, or point at what was said, the weights decide.
_WISHES: Final = ("insists", "standing", "preference")
_RESERVES: Final = ("hedges", "supposes", "feels", "of_the_moment", "points_back")

# As `python benchmarks/writing/learn.py` prints them; the logarithm of the odds is their sum.
BIAS: Final = -5.515
WEIGHTS: Final[Mapping[str, float]] = {
    "words": 0.784,
    "clauses": 0.991,
    "numbers": 0.312,
    "numbered": 0.576,
    "names": 0.405,
    "named": 0.472,
    "words_of_turn": 1.207,
    "not_first": 0.197,
    "in_group": -0.228,
    "a_time": 0.122,
    "hedges": -1.602,
    "supposes": -1.854,
    "feels": -0.883,
    "of_the_moment": -0.384,
    "commits": 0.395,
    "as_a_rule": 0.331,
    "is_something": 0.450,
    "points_back": -0.096,
    "looks_ahead": 0.056,
    "orders": -1.092,
    "goes_on": 0.310,
    "standing": 1.354,
    "decision": 0.368,
    "preference": 0.920,
    "who": 0.185,
    "plan": 0.273,
    "change": 0.503,
    "strong": 0.460,
    "anchor": 0.369,
    "reports_an_error": -0.314,
    "insists": 0.355,
    "plain_act": 1.282,
}


def is_worth_keeping(signs: Mapping[str, float]) -> bool:
    """Returns whether what speaks for keeping outweighs what speaks against it."""
    return odds_of(signs) >= 0 or _is_plain_wish(signs)


def _is_plain_wish(signs: Mapping[str, float]) -> bool:
    wished = any(signs[name] for name in _WISHES)
    return wished and not any(signs[name] for name in _RESERVES)


def odds_of(signs: Mapping[str, float]) -> float:
    """Returns the logarithm of the odds that a sentence with these signs is worth keeping."""
    return BIAS + sum(weight * signs[name] for name, weight in WEIGHTS.items())
