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
BIAS: Final = -5.366
WEIGHTS: Final[Mapping[str, float]] = {
    "words": 0.717,
    "clauses": 0.922,
    "numbers": 0.354,
    "numbered": 0.648,
    "names": 0.356,
    "named": 0.577,
    "words_of_turn": 1.217,
    "not_first": 0.295,
    "in_group": -0.282,
    "a_time": 0.253,
    "hedges": -1.598,
    "supposes": -1.725,
    "feels": -0.827,
    "praises": -1.151,
    "vague": -0.755,
    "of_the_moment": -0.428,
    "commits": 0.398,
    "as_a_rule": 0.170,
    "is_something": 0.441,
    "points_back": -0.099,
    "looks_ahead": -0.069,
    "orders": 0.040,
    "goes_on": 0.362,
    "standing": 1.384,
    "decision": 0.286,
    "preference": 0.980,
    "who": 0.283,
    "plan": 0.525,
    "change": 0.339,
    "strong": 0.501,
    "anchor": 0.317,
    "reports_an_error": -0.332,
    "insists": 0.161,
    "plain_act": 1.132,
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
