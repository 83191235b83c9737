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
BIAS: Final = -5.348
WEIGHTS: Final[Mapping[str, float]] = {
    "words": 0.699,
    "clauses": 0.968,
    "numbers": 0.391,
    "numbered": 0.577,
    "names": 0.424,
    "named": 0.439,
    "words_of_turn": 1.185,
    "not_first": 0.334,
    "in_group": -0.243,
    "a_time": 0.297,
    "hedges": -1.528,
    "supposes": -1.687,
    "feels": -0.820,
    "praises": -1.159,
    "vague": -0.738,
    "of_the_moment": -0.419,
    "commits": 0.433,
    "as_a_rule": 0.166,
    "is_something": 0.487,
    "points_back": -0.080,
    "looks_ahead": -0.084,
    "orders": 0.070,
    "goes_on": 0.352,
    "standing": 1.303,
    "decision": 0.318,
    "preference": 1.017,
    "who": 0.312,
    "plan": 0.528,
    "change": 0.354,
    "strong": 0.519,
    "anchor": 0.320,
    "reports_an_error": -0.327,
    "goes_wrong": -1.171,
    "insists": 0.197,
    "plain_act": 1.113,
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
