"""Learning when to say nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

import numpy as np
from recall.floor_fit import OddsOf, Sample, left_out
from recall.floor_learned import floor_lines
from recall.floor_thresholds import thresholds

from turnmark_memory.floor import Signs

KINDS = {False: ("locomo", "en"), True: ("zh",)}


def samples(*, hard: int = 0) -> list[Sample]:
    """Returns 50 questions of each kind, of which `hard` answerable ones look like the others."""
    made: list[Sample] = []
    for unspaced, named in product([False, True], repeat=2):
        absent = "zh absent" if unspaced else "en absent"
        for kind in (*KINDS[unspaced], absent):
            for number in range(50):
                known = kind != absent and number >= hard
                signs = Signs(
                    coverage=0.6 + 0.005 * number if known else 0.004 * number,
                    around=0.5 if known else 0.1,
                    about=0.5 if known else 0.1,
                    unknown_names=0.0,
                    unknown_words=0.1 if known else 0.5,
                    named=named,
                    unspaced=unspaced,
                )
                part = f"{kind} {named} {number}"
                made.append(Sample(kind=kind, half="learn", part=part, signs=signs, found=1.0))
    return made


def said(given: list[Sample]) -> dict[str, str]:
    """Returns, by kind, what the floor is said to answer."""
    lines = floor_lines(given, with_meaning=False)
    return {
        found[1]: line for line in lines if (found := re.match(r"# floor, learn, (.+) \(", line))
    }


def test_what_can_be_told_apart_is_told_apart() -> None:
    """Everything answerable is answered, nothing else."""
    told = said(samples())
    for kind in ("locomo", "en", "zh"):
        assert "1.000 answered, 0.000 of recall lost" in told[kind]
    for kind in ("en absent", "zh absent"):
        assert "0.000 answered" in told[kind]


def test_no_more_is_lost_than_may_be() -> None:
    """Answerable questions that look like the others keep the threshold low."""
    told = said(samples(hard=10))
    for kind in ("locomo", "en", "zh"):
        lost = float(told[kind].split("answered, ")[1].split()[0])
        assert lost <= 0.03
    assert "0.000 answered" not in told["en absent"]


def test_a_weighing_is_printed_for_each_kind_of_question() -> None:
    """By whether it is in an unspaced script, and whether it names somebody."""
    printed = [line for line in floor_lines(samples(), with_meaning=False) if line[0] == " "]
    assert [line.split(":")[0].strip() for line in printed] == [
        "(False, False)",
        "(False, True)",
        "(True, False)",
        "(True, True)",
    ]


def test_what_is_left_out_together_is_judged_by_the_others() -> None:
    """No question is judged by what was learned of its own conversation."""
    given = samples()

    def learn(some: Sequence[Sample]) -> OddsOf:
        parts = {one.part for one in some}
        return lambda one: float(one.part in parts)

    assert not left_out(given, learn).any()


def test_what_is_answered_anyway_cannot_be_lost() -> None:
    """What another threshold answers lets this one silence more."""
    given = samples(hard=10)
    odds = np.array([one.signs.coverage for one in given])
    hard = [one.kind in ("locomo", "en", "zh") and one.signs.around < 0.5 for one in given]
    worth, allowed = {"en absent": 1.0, "zh absent": 1.0}, {"locomo": 0.02, "en": 0.02, "zh": 0.02}
    before = thresholds(given, odds, worth, allowed)
    after = thresholds(given, np.where(hard, np.inf, odds), worth, allowed)
    assert all(after[question] > before[question] for question in before)


def test_an_answer_in_another_script_is_weighed_with_meaning_alone() -> None:
    """It gets a weighing of its own, that most of the absent don't reach."""
    across = [
        Sample(
            kind=kind,
            half="learn",
            part=f"{kind} {number}",
            signs=Signs(
                coverage=0.0,
                around=0.0,
                unknown_names=0.0,
                unknown_words=0.9,
                elsewhere=near + 0.002 * number,
                unspaced=bool(number % 2),
            ),
            found=1.0,
        )
        for kind, near in (("cross", 0.6), ("en absent", 0.3))
        for number in range(50)
    ]
    lines = list(floor_lines([*samples(), *across], with_meaning=True))
    assert lines[-1].startswith("_ELSEWHERE = Weighing(of=ELSEWHERE, weights=(")
    crossed = next(line for line in lines if ", cross (" in line)
    assert "1.000 answered, 0.000 of recall lost" in crossed
