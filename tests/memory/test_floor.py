"""Whether a memory knows anything of what is asked."""

from __future__ import annotations

import pytest

from turnmark_memory.floor import Signs, known, signs_of
from turnmark_memory.matching import Matching
from turnmark_memory.search_text import query_of

THRESHOLD = 0.5


def signs(**given: float) -> Signs:
    zero = {"coverage": 0.0, "around": 0.0, "unknown_names": 0.0, "unknown_words": 0.0}
    return Signs(**{**zero, **given})


@pytest.mark.parametrize("with_meaning", [False, True])
def test_a_document_about_the_whole_question_is_enough(with_meaning: bool) -> None:
    """What has every word and is near is known; nothing of both is not."""
    whole = signs(coverage=1.0, around=1.0, nearest=0.8, agreeing=0.8)
    assert known(whole, with_meaning=with_meaning) > THRESHOLD
    assert known(signs(), with_meaning=with_meaning) < THRESHOLD


@pytest.mark.parametrize("with_meaning", [False, True])
def test_a_name_that_no_document_has_speaks_against_it(with_meaning: bool) -> None:
    """A question about a stranger is answered less readily."""
    some = signs(coverage=0.4, around=0.4, nearest=0.6, agreeing=0.5)
    stranger = signs(coverage=0.4, around=0.4, nearest=0.6, agreeing=0.5, unknown_names=0.5)
    assert known(stranger, with_meaning=with_meaning) < known(some, with_meaning=with_meaning)


def test_what_no_document_has_is_told_by_name_and_word() -> None:
    """A name is told from other words; what a stand-in says is not unknown."""
    asked = query_of("Where did my mother meet Valentina?")
    matching = Matching(asked, {"mom": 3}, 10)
    assert matching.unknown_names > matching.unknown_words > 0
    everything = Matching(asked, {"mom": 3, "meet": 1, "valentina": 1}, 10)
    assert (everything.unknown_names, everything.unknown_words) == (0.0, 0.0)


def test_words_and_nearness_agree_where_one_candidate_has_both() -> None:
    """The nearest that shares no word agrees with nothing."""
    matching = Matching(query_of("green tea"), {"green": 1, "tea": 1}, 10)
    found = signs_of(matching, {("turn", "s-1"): 0.9}, [(0.5, 0.4), (0.0, 0.9)], 0.5)
    assert (found.coverage, found.nearest) == (0.5, 0.9)
    assert found.agreeing == pytest.approx(0.4)
