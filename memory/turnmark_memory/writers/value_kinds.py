"""The kinds of values and their common forms: what is written differently must compare alike."""

from __future__ import annotations

from typing import Final

DAY: Final = "day"
WEEKDAY: Final = "weekday"
MONTH: Final = "month"
HOUR: Final = "hour"
AMOUNT: Final = "amount"
"""What something costs, and any number that counts nothing."""
PERCENT: Final = "percent"
DURATION: Final = "duration"
FLOOR: Final = "floor"

_SECONDS: Final = {
    "ms": 0.001, "毫秒": 0.001, "s": 1, "sec": 1, "second": 1, "秒": 1, "min": 60, "minute": 60,
    "分钟": 60, "h": 3_600, "hr": 3_600, "hour": 3_600, "小时": 3_600, "钟头": 3_600, "day": 86_400,
    "天": 86_400, "晚": 86_400, "week": 604_800, "周": 604_800, "星期": 604_800, "礼拜": 604_800,
    "sprint": 1_209_600, "month": 2_592_000, "月": 2_592_000, "year": 31_536_000, "年": 31_536_000,
}  # fmt: skip


def seconds(number: str, unit: str) -> str:
    """Returns a duration in seconds; what is no number stays as it is."""
    try:
        return f"{float(number) * _SECONDS[unit]:g}"
    except (ValueError, KeyError):
        return f"{number} {unit}"


def hour(number: str, minutes: str) -> str:
    """Returns an hour on a clock of twelve: 19:00 may be what somebody calls seven."""
    return f"{int(number) % 12 if number.isdecimal() else number}:{minutes}"
