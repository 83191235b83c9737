"""Weighs the signs of a sentence: is it worth keeping?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Who asks for something to be remembered, gives a rule or says what they like wants it kept, in
# however few words; where they hedge, wish, or point at what was said, the weights decide.
_WISHES: Final = ("insists", "standing", "preference")
_RESERVES: Final = ("hedges", "supposes", "feels", "of_the_moment", "points_back")

# An order that gives no rule and settles nothing is done and over, whatever names it holds: of 35
# in the half `learn` three are worth keeping.
_RULINGS: Final = ("insists", "standing", "decision")

# As `python benchmarks/writing/learn.py` prints them; the logarithm of the odds is their sum.
BIAS: Final = -5.508
WEIGHTS: Final[Mapping[str, float]] = {
    "words": 0.811,
    "clauses": 0.933,
    "numbers": 0.347,
    "numbered": 0.569,
    "names": 0.300,
    "named": 0.540,
    "words_of_turn": 1.220,
    "not_first": 0.202,
    "in_group": -0.297,
    "a_time": 0.185,
    "hedges": -1.637,
    "supposes": -1.880,
    "feels": -0.882,
    "of_the_moment": -0.462,
    "commits": 0.365,
    "as_a_rule": 0.320,
    "is_something": 0.415,
    "points_back": -0.079,
    "looks_ahead": -0.004,
    "orders": -0.064,
    "goes_on": 0.350,
    "standing": 1.270,
    "decision": 0.203,
    "preference": 0.914,
    "who": 0.137,
    "plan": 0.425,
    "change": 0.496,
    "strong": 0.466,
    "anchor": 0.337,
    "reports_an_error": -0.331,
    "insists": 0.215,
    "plain_act": 1.241,
}


def is_worth_keeping(signs: Mapping[str, float]) -> bool:
    """Returns whether what speaks for keeping outweighs what speaks against it.

    A bare order is worth nothing whatever this says.
    """
    return odds_of(signs) >= 0 or _is_plain_wish(signs)


def is_bare_order(signs: Mapping[str, float]) -> bool:
    """Returns whether a sentence asks for something to be done once."""
    return bool(signs["orders"]) and not any(signs[name] for name in _RULINGS)


def _is_plain_wish(signs: Mapping[str, float]) -> bool:
    wished = any(signs[name] for name in _WISHES)
    return wished and not any(signs[name] for name in _RESERVES)


def odds_of(signs: Mapping[str, float]) -> float:
    """Returns the logarithm of the odds that a sentence with these signs is worth keeping."""
    return BIAS + sum(weight * signs[name] for name, weight in WEIGHTS.items())
