"""Weighs the signs of a sentence: is it worth keeping?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Who asks for something to be remembered, gives a rule, says what they like or how things are with
# them wants it kept, in however few words; where they hedge, wish, praise, or point at what was
# said, the weights decide.
_PLAIN: Final = ("insists", "standing", "preference", "lasts")
_RESERVES: Final = (
    *("hedges", "supposes", "feels", "praises", "of_the_moment", "points_back"),
    *("reports_an_error", "goes_wrong"),
)

# An order that gives no rule and settles nothing is done and over, whatever names it holds: of 35
# in the half `learn` three are worth keeping.
_RULINGS: Final = ("insists", "standing", "decision")

# As `python benchmarks/writing/learn.py` prints them; the logarithm of the odds is their sum.
BIAS: Final = -5.504
WEIGHTS: Final[Mapping[str, float]] = {
    "words": 0.656,
    "clauses": 1.017,
    "numbers": 0.423,
    "numbered": 0.535,
    "names": 0.462,
    "named": 0.339,
    "words_of_turn": 1.264,
    "not_first": 0.333,
    "in_group": -0.241,
    "lasts": 1.176,
    "a_time": 0.336,
    "hedges": -1.544,
    "supposes": -1.638,
    "feels": -0.786,
    "praises": -1.340,
    "vague": -0.689,
    "of_the_moment": -0.377,
    "commits": 0.506,
    "as_a_rule": 0.121,
    "is_something": 0.444,
    "points_back": -0.030,
    "looks_ahead": -0.091,
    "orders": 0.119,
    "goes_on": 0.372,
    "standing": 1.333,
    "decision": 0.352,
    "preference": 0.993,
    "who": 0.314,
    "plan": 0.487,
    "change": 0.356,
    "strong": 0.212,
    "anchor": 0.237,
    "reports_an_error": -0.316,
    "goes_wrong": -1.167,
    "insists": 0.253,
    "plain_act": 1.081,
}


def is_worth_keeping(signs: Mapping[str, float]) -> bool:
    """Returns whether what speaks for keeping outweighs what speaks against it.

    A bare order is worth nothing whatever this says.
    """
    return odds_of(signs) >= 0 or _is_plain(signs)


def is_bare_order(signs: Mapping[str, float]) -> bool:
    """Returns whether a sentence asks for something to be done once."""
    return bool(signs["orders"]) and not any(signs[name] for name in _RULINGS)


def _is_plain(signs: Mapping[str, float]) -> bool:
    return any(signs[name] for name in _PLAIN) and not any(signs[name] for name in _RESERVES)


def odds_of(signs: Mapping[str, float]) -> float:
    """Returns the logarithm of the odds that a sentence with these signs is worth keeping."""
    return BIAS + sum(weight * signs[name] for name, weight in WEIGHTS.items())
