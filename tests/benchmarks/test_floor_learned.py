"""Learning when to say nothing."""

from __future__ import annotations

import re
from itertools import product

from recall.floor_learned import Sample, floor_lines

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
                made.append(Sample(kind=kind, half="learn", signs=signs, found=1.0))
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
