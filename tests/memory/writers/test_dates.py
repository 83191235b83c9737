"""Relative dates, read against the moment they were said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.writers.dates import with_dates

MONDAY = datetime(2026, 10, 5, 9, tzinfo=UTC)
SATURDAY = datetime(2026, 10, 10, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("today", "today (2026-10-05)"),
        ("I met her yesterday.", "I met her yesterday (2026-10-04)."),
        ("the day after tomorrow", "the day after tomorrow (2026-10-07)"),
        ("last month", "last month (September 2026)"),
        ("next year", "next year (2027)"),
        ("next week", "next week (the week of 2026-10-12)"),
        ("two weeks ago", "two weeks ago (2026-09-21)"),
        ("in 3 months", "in 3 months (January 2027)"),
        ("this Friday", "this Friday (2026-10-09)"),
        ("next Friday", "next Friday (2026-10-09 or 2026-10-16)"),
        ("last Friday", "last Friday (2026-10-02)"),
        ("by Friday", "by Friday (2026-10-09)"),
        ("今天", "今天（2026-10-05）"),
        ("昨天开会了", "昨天（2026-10-04）开会了"),
        ("上周五", "上周五（2026-10-02）"),
        ("下个月", "下个月（2026年11月）"),
        ("这个月底", "这个月底（2026年10月底）"),
        ("下下", "下下"),
        ("三天前", "三天前（2026-10-02）"),
        ("两个月后", "两个月后（2026年12月）"),
        ("去年", "去年（2025年）"),
        ("下周", "下周（2026-10-12 那一周）"),
        ("周五之前", "周五（2026-10-09）之前"),
        ("I leave at the end of the month", "I leave at the end of the month (October 2026)"),
        ("月底走", "月底（2026年10月底）走"),
        ("年底前搬", "年底（2026年底）前搬"),
        ("周日早上六点集合", "周日（2026-10-11）早上六点集合"),
    ],
)
def test_adds_the_date(said: str, dated: str) -> None:
    """The words stay, the date follows in parentheses."""
    assert with_dates(said, MONDAY) == dated


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("last Friday", "last Friday (2026-10-02 or 2026-10-09)"),
        ("next Monday", "next Monday (2026-10-12)"),
        ("this Friday", "this Friday"),
    ],
)
def test_gives_both_readings_where_there_are_two(said: str, dated: str) -> None:
    """On a Saturday the weekdays of this week are behind."""
    assert with_dates(said, SATURDAY) == dated


@pytest.mark.parametrize(
    "said",
    [
        "tomorrow (2026-10-06)",
        "by Friday, 16 October",
        "今天（周一）",
        "today's build",
        "twenty-one days ago",
        "十五天前",
        "第三天后",
        "三天之前天气很好".replace("三天之前", "之前"),
        "然后天黑了",
        "on Friday",
        "the end of the road",
        "每月底结算",
        "11月底交",
        "每周日早上六点集合",
        "周二周四晚上七点排练",
        "周日早上六点就到了",
        "3 月 28 号周六下午两点",
        "我周日早上六点起，都这样",
    ],
)
def test_leaves_alone_what_it_cannot_be_sure_of(said: str) -> None:
    """A date that is there, or that could mean several things, is not touched."""
    assert with_dates(said, MONDAY) == said


@given(st.text(), st.datetimes(timezones=st.just(UTC)))
def test_never_raises(text: str, said_at: datetime) -> None:
    """Any text at any time gives a text that is no shorter."""
    assert len(with_dates(text, said_at)) >= len(text)


@pytest.mark.parametrize(
    "said_at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_gives_no_date_outside_the_calendar(said_at: datetime) -> None:
    """Where the date would leave the calendar, the words stay as they are."""
    for said in ("900 years ago", "in 900 months", "900天前", "900年后", "last week", "next month"):
        assert said in with_dates(said, said_at)
