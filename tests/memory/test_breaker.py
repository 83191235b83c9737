"""The breaker alone: when an endpoint rests, for how long, and what ends it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.breaker import FAILURES_LIMIT, Breaker, Suspects

PAUSE_MS = 1_000


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at_ms = 1_000_000

    def __call__(self) -> int:
        return self.at_ms


@pytest.fixture
def clock() -> Clock:
    """A clock of its own for each test."""
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    """A breaker on that clock."""
    return Breaker(first_pause_ms=PAUSE_MS, clock=clock)


def opened(breaker: Breaker) -> None:
    """Lets it open."""
    for _ in range(FAILURES_LIMIT):
        breaker.failed("nobody answers")


def test_opens_after_a_few_failures_in_a_row(breaker: Breaker, clock: Clock) -> None:
    """An answer in between begins the count anew."""
    for _ in range(FAILURES_LIMIT - 1):
        breaker.failed("nobody answers")
    breaker.answered()
    for _ in range(FAILURES_LIMIT - 1):
        breaker.failed("nobody answers")
    assert not breaker.is_open
    assert breaker.room(clock(), asking=7) is None
    breaker.failed("nobody answers")
    assert breaker.is_open
    assert breaker.reason == "nobody answers"
    assert breaker.room(clock(), asking=0) == 0


def test_lets_one_batch_through_when_the_pause_is_over(breaker: Breaker, clock: Clock) -> None:
    """Not two: while one is asked, the others wait for what comes of it."""
    opened(breaker)
    clock.at_ms = breaker.until_ms
    assert breaker.room(clock(), asking=0) == 1
    assert breaker.room(clock(), asking=1) == 0
    breaker.answered()
    assert breaker.room(clock(), asking=1) is None


def test_pauses_longer_each_time_and_begins_small_after_an_answer(
    breaker: Breaker, clock: Clock
) -> None:
    """Doubled with each try that fails, up to half an hour; an answer forgets it."""
    pauses = []
    opened(breaker)
    for _ in range(20):
        pauses.append(breaker.until_ms - clock())
        clock.at_ms = breaker.until_ms
        breaker.failed("nobody answers")
    assert pauses[0] < pauses[2] < pauses[4] < pauses[6]
    assert max(pauses) <= 1_800_000 * 1.2
    breaker.answered()
    opened(breaker)
    assert breaker.until_ms - clock() <= PAUSE_MS * 1.2


def test_is_not_lengthened_by_what_was_sent_before_the_pause(
    breaker: Breaker, clock: Clock
) -> None:
    """Four batches that fail together are one outage, not four."""
    opened(breaker)
    until_ms = breaker.until_ms
    breaker.failed("nobody answers")
    assert breaker.until_ms == until_ms


def test_a_pause_is_over_where_the_clock_was_set_back(breaker: Breaker, clock: Clock) -> None:
    """To before it began: its end is years away. Whether all is well again one batch tells."""
    breaker.put_off("busy", 90.0)
    assert breaker.room(clock(), asking=0) == 0
    clock.at_ms -= 1
    assert breaker.room(clock(), asking=0) == 1
    breaker.failed("nobody answers")
    assert breaker.room(clock(), asking=0) == 0
    assert breaker.until_ms - clock() <= PAUSE_MS * 1.2
    breaker.put_off("busy", 90.0)
    clock.at_ms -= 1
    breaker.put_off("busy", 9.0)
    assert breaker.until_ms == clock() + 9_000


def test_takes_the_endpoints_own_time_as_no_failure(breaker: Breaker, clock: Clock) -> None:
    """It rests for just that long, and a shorter time said meanwhile takes nothing off."""
    breaker.put_off("too many requests", 90.0)
    assert (breaker.is_open, breaker.is_asked_for) == (True, True)
    assert breaker.until_ms == clock() + 90_000
    breaker.put_off("too many requests", 5.0)
    assert breaker.until_ms == clock() + 90_000
    breaker.put_off("预算用完了", 200.0)
    assert (breaker.until_ms, breaker.reason) == (clock() + 200_000, "预算用完了")


@given(st.lists(st.sampled_from(["answer", "failure", "later", "wait"]), max_size=60))
def test_never_rests_for_good(steps: list[str]) -> None:
    """Whatever happened: when its time has come one batch may try, and an answer opens the door."""
    clock = Clock()
    breaker = Breaker(first_pause_ms=PAUSE_MS, clock=clock)
    for step in steps:
        if step == "answer":
            breaker.answered()
        elif step == "failure":
            breaker.failed("down")
        elif step == "later":
            breaker.put_off("busy", 3.0)
        else:
            clock.at_ms = max(clock.at_ms, breaker.until_ms)
    clock.at_ms = max(clock.at_ms, breaker.until_ms)
    assert breaker.room(clock(), asking=0) in (None, 1)
    breaker.answered()
    assert breaker.room(clock(), asking=3) is None


def test_suspects_a_batch_that_fails_while_others_are_answered() -> None:
    """Only then: an endpoint that answers nobody says nothing about a batch."""
    suspects, roots = Suspects(), frozenset((7, 8))
    assert not any(suspects.failed(roots, answers=5) for _ in range(50))
    assert [suspects.failed(roots, answers=count) for count in (6, 7, 8)] == [False, False, True]
    suspects.cleared(roots)
    assert suspects.roots == frozenset()
    assert not suspects.failed(roots, answers=9)
