"""Reading the values that a text gives, and telling another value from the same."""

from __future__ import annotations

import pytest

from turnmark_memory.writers.values import agreeing, others, values_of


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rehearsal is on Thursdays at 7", {"weekday": {"thurs"}, "hour": {"7:00"}}),
        ("the fair is on 13 June", {"day": {"6/13"}}),
        ("May 4 at noon", {"day": {"5/4"}, "hour": {"0:00"}}),
        ("it's the 20th now, half seven", {"day": {"/20"}, "hour": {"7:30"}}),
        ("19:30 is 7.30 pm", {"hour": {"7:30"}}),
        ("mid November", {"month": {"nov"}}),
        ("a session is 35 euros, or $1,200 in all", {"amount": {"35", "1200"}}),
        ("they want 26 a sack", {"amount": {"26"}}),
        ("a timeout of two hours, not 30 minutes", {"duration": {"7200", "1800"}}),
        ("61 tests", {"number of test": {"61"}}),
        ("on the second floor", {"floor": {"second"}}),
        ("it runs on Node 20", {"version of node": {"20"}}),
        ("80 GB, 5% of it free", {"size in gb": {"80"}, "percent": {"5"}}),
        ("payments go through Mollie", {"choice of payment": {"mollie"}}),
        ("the old one was better", {}),
        ("Jonas lives in Bergen.", {}),
        ("6 月 20 号周六晚上七点半", {"day": {"6/20"}, "weekday": {"六"}, "hour": {"7:30"}}),
        ("改到十一点一刻", {"hour": {"11:15"}}),
        ("周二、周四练", {"weekday": {"二", "四"}}),
        ("初四才回", {"day": {"正月/四"}}),
        ("房租一个月 4800", {"amount": {"4800"}}),
        ("要价 310 万，三千块定金", {"amount": {"3100000", "3000"}}),
        ("会话超时两小时", {"duration": {"7200"}}),
        ("六个床位，在二楼", {"number of 个": {"6"}, "floor": {"2"}}),
        ("JDK 只能用 11", {"amount": {"11"}}),
        ("可以用 JDK 17 了", {"version of jdk": {"17"}}),
        ("部署在阿里云", {"choice of cloud": {"阿里云"}}),
        ("有一个人知道", {}),
        ("我只要一个摊位了", {"number of 个": {"1"}}),
    ],
)
def test_reads_the_values_of_a_text(text: str, values: dict[str, set[str]]) -> None:
    """Each by its kind and in one form, however it is written."""
    assert values_of(text) == values


OTHERS: tuple[tuple[str, str, set[str]], ...] = (
    ("it's the 20th now", "the fair is on 13 June", {"day"}),
    ("it's on 13 June", "the fair is on the 13th", set()),
    ("nine songs", "forty watts", set()),
    ("two hours", "120 minutes", set()),
    ("now 114 conformance tests", "there are 61 tests", {"number of test"}),
    ("改到周五", "定在周三", {"weekday"}),
    ("晚上七点", "19:00", set()),
)


@pytest.mark.parametrize(("new", "old", "kinds"), OTHERS)
def test_tells_another_value_from_the_same(new: str, old: str, kinds: set[str]) -> None:
    """Only of one kind, and only where no value of it is the same."""
    assert others(values_of(new), values_of(old)) == kinds


def test_knows_values_that_agree() -> None:
    """One day in two forms, beside another hour."""
    new, old = values_of("13 June at 8"), values_of("the 13th at 7")
    assert agreeing(new, old) == {"day"}
    assert others(new, old) == {"hour"}
