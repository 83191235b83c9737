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
BIAS: Final = -5.302
WEIGHTS: Final[Mapping[str, float]] = {
    "words": 0.662,
    "clauses": 0.943,
    "numbers": 0.379,
    "numbered": 0.569,
    "names": 0.385,
    "named": 0.540,
    "words_of_turn": 1.226,
    "not_first": 0.305,
    "in_group": -0.264,
    "a_time": 0.281,
    "hedges": -1.535,
    "supposes": -1.711,
    "feels": -0.827,
    "praises": -1.156,
    "vague": -0.745,
    "of_the_moment": -0.417,
    "commits": 0.421,
    "as_a_rule": 0.147,
    "is_something": 0.459,
    "points_back": -0.055,
    "looks_ahead": -0.072,
    "orders": 0.066,
    "goes_on": 0.352,
    "standing": 1.299,
    "decision": 0.302,
    "preference": 1.004,
    "who": 0.306,
    "plan": 0.513,
    "change": 0.347,
    "strong": 0.504,
    "anchor": 0.308,
    "reports_an_error": -0.327,
    "goes_wrong": -1.197,
    "insists": 0.189,
    "plain_act": 1.087,
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
