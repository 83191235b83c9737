"""How the signs of a sentence are weighed."""

from __future__ import annotations

from turnmark_memory.writers.chinese import CHINESE
from turnmark_memory.writers.english import ENGLISH
from turnmark_memory.writers.keeping import WEIGHTS, odds_of
from turnmark_memory.writers.signs import SIGNS, Around, signs_of


def test_weighs_every_sign_that_there_is() -> None:
    """`benchmarks/writing/learn.py` prints a weight for each; none is missing, none too many."""
    assert tuple(WEIGHTS) == SIGNS
    for text, cues in (("I live in Oslo.", ENGLISH), ("我住在杭州。", CHINESE)):
        assert set(signs_of(text, text, cues, 0, Around())) == set(SIGNS)


def test_takes_specifics_for_keeping_and_reserves_against_it() -> None:
    """The weights agree with what a reader would say of each sign."""
    assert all(WEIGHTS[name] > 0 for name in ("words", "numbers", "standing", "change"))
    assert all(WEIGHTS[name] < 0 for name in ("hedges", "supposes", "praises", "reports_an_error"))


def test_counts_no_more_numbers_than_a_person_reads() -> None:
    """A row of figures is not worth more than three of them."""
    few, many = (
        signs_of(text, text, ENGLISH, 0, Around())["numbers"] for text in ("1 2 3 4", "1 2 3 4 5 6")
    )
    assert few == many


def test_looks_for_insisting_in_the_whole_sentence() -> None:
    """What a sentence opens with is cut off, and says that it is to be remembered."""
    without = signs_of("The key is in the shed.", "The key is in the shed.", ENGLISH, 0, Around())
    whole = "Remember, the key is in the shed."
    asked = signs_of("The key is in the shed.", whole, ENGLISH, 0, Around())
    assert odds_of(asked) > odds_of(without)
