"""Resolves relative dates against the moment they were said, by adding the date in parentheses.

The words stay as they are: "last month" becomes "last month (September 2026)". Where a language
leaves two readings ("next Friday" said on a Monday), both are given; where it leaves more, none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

# Spelled out, because the `calendar` module's names follow the locale of the machine.
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_HAN_WEEKDAYS = "一二三四五六日"
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10,
    "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9,
    "十": 10,
}  # fmt: skip
_STEPS = {"last": -1, "this": 0, "next": 1, "上": -1, "这": 0, "本": 0, "下": 1}
_DAYS = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0,
    "yesterday": -1, "last night": -1, "the day before yesterday": -2,
    "tomorrow": 1, "the day after tomorrow": 2,
    "今天": 0, "今晚": 0, "今早": 0, "今日": 0, "昨天": -1, "昨晚": -1, "昨日": -1, "前天": -2,
    "大前天": -3, "明天": 1, "明早": 1, "明晚": 1, "明日": 1, "后天": 2, "大后天": 3,
}  # fmt: skip
_YEARS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}

_AMOUNT = r"(?P<amount>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_DAY_NAME = r"(?P<weekday>" + "|".join(WEEKDAYS) + ")"
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*\.?"
_ENGLISH = re.compile(
    r"(?<![-,.\d])\b(?:(?P<day>the day before yesterday|the day after tomorrow|today|tonight"
    r"|yesterday|tomorrow|last night|this (?:morning|afternoon|evening))"
    rf"|(?P<step>last|this|next)\s+(?:(?P<unit>week|month|year)|{_DAY_NAME})"
    rf"|(?:by|due(?:\s+on)?|deadline\s+is)\s+(?P<due>{'|'.join(WEEKDAYS)})"
    rf"|{_AMOUNT}\s+(?P<past>day|week|month|year)s?\s+ago"
    r"|(?:the\s+)?end\s+of\s+(?:the|this)\s+(?P<ending>month|year)"
    rf"|in\s+{_AMOUNT.replace('amount', 'ahead')}\s+(?P<future>day|week|month|year)s?(?!\s+of))"
    r"\b(?!['’]s?\b)(?!\s*[(（]|,?\s+(?:the\s+)?(?:\d{1,2}(?:st|nd|rd|th|\s+"
    rf"{_MONTH})|{_MONTH}\s+\d))",
    re.IGNORECASE,
)
_HAN_AMOUNT = r"(?<![第\d.一二两三四五六七八九十百])(?P<amount>\d{1,3}|[一二两三四五六七八九十])"
_CHINESE = re.compile(
    r"(?:(?P<day>大前天|大后天|今[天晚早日]|昨[天晚日]|(?<!之|以|天|目)前天|明[天早晚日]|(?<!之|以|天|然|最|今)后天)"
    r"|(?P<year>前年|去年|今年|明年|后年)"
    r"|(?P<step>[上下这本])个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天末])?"
    r"|(?P<month_step>[上下这本])个?月(?P<month_end>底)?"
    r"|(?<![\d每个各月年到一二三四五六七八九十])(?P<ending>[月年])底"
    r"|(?:(?<=改到)|(?<=改在)|(?<=推迟到)|(?<=提前到)|(?<=定在)|(?<=约在)|(?<=安排在))"
    r"(?:周|星期|礼拜)(?P<fixed>[一二三四五六日天])"
    r"|(?:周|星期|礼拜)(?P<due>[一二三四五六日天])(?=之前|以前|前|截止)"
    rf"|{_HAN_AMOUNT}个?(?P<unit>天|周|星期|月|年)(?:之|以)?(?P<side>前|后))"
    r"(?!\s*[(（])"
)


# A bare “周日” is the coming one where an hour stands behind it, and nothing says that it recurs or
# that it is over.
_HAN_COMING = re.compile(
    r"(?<![周期拜每一二三四五六日天\d月号）)到、])(?:周|星期|礼拜)(?P<coming>[一二三四五六日天])"
    r"(?=(?:凌晨|早上|上午|中午|下午|傍晚|晚上|早|晚)?(?:\d{1,2}|[一二三四五六七八九十两]{1,2})(?:点|[:：]\d))"
)
_HAN_NOT_COMING = re.compile(
    r"每|都|平时|一般|通常|固定|照旧|照常|以后|从|起|老是|总|[了过]|上周|昨|前天|周[一二三四五六日天].*周[一二三四五六日天]"
)
# A bare "Friday" is the coming one where a sentence looks ahead, and only ahead.
_AHEAD = re.compile(
    r"\b(?:will|can|could|should|must|going to|gonna|need to|have to|wants?|let's|\w+'ll|due"
    r"|deadline|comes?"
    r"|arrives?|starts?|leaves?|moved to|pushed (?:back )?to|postponed to|rescheduled to"
    r"|moves? to|is away"
    r"|i'm away|away|i'm out|is out|meet(?:ing)?s?|appointment|flight|tomorrow|plan(?:s"
    r"|ning)? to)\b",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\b(?:was|were|did|had|went|came|got|yesterday|last|ago|every|each|always|usually|met|saw"
    r"|did)\b",
    re.IGNORECASE,
)
_COMING = re.compile(
    rf"\b(?:(?:on|from|to|till|until|comes|since|and)\s+)(?P<coming>{'|'.join(WEEKDAYS)})\b"
    r"(?!['’]|\s*[(（]|s\b|,?\s+(?:the\s+)?\d)(?! (?:mornings|evenings|nights|afternoons))",
    re.IGNORECASE,
)


def with_dates(text: str, said_at: datetime) -> str:
    """Returns `text` with the date behind each relative date, read against `said_at`.

    `said_at` counts as the speaker's own clock: its date is "today".
    """
    today = said_at.date()
    if _AHEAD.search(text) and not _BEHIND.search(text):
        text = _COMING.sub(_adding(_coming_day, today, " ({})"), text)
    if not _HAN_NOT_COMING.search(text):
        text = _HAN_COMING.sub(_adding(_han_coming_day, today, "（{}）"), text)
    text = _ENGLISH.sub(_adding(_english_date, today, " ({})"), text)
    return _CHINESE.sub(_adding(_chinese_date, today, "（{}）"), text)


def _adding(
    resolve: Callable[[re.Match[str], date], str | None], today: date, frame: str
) -> Callable[[re.Match[str]], str]:
    def replacement(found: re.Match[str]) -> str:
        try:
            resolved = resolve(found, today)
        except (OverflowError, ValueError):  # before year 1 or after 9999
            resolved = None
        return found.group() + (frame.format(resolved) if resolved else "")

    return replacement


def _coming_day(found: re.Match[str], today: date) -> str:
    return _iso(today, (WEEKDAYS.index(found["coming"].lower()) - today.weekday()) % 7)


def _han_coming_day(found: re.Match[str], today: date) -> str:
    return _iso(today, (_han_weekday(found["coming"]) - today.weekday()) % 7)


def _english_date(found: re.Match[str], today: date) -> str | None:
    part = {name: value.lower() for name, value in found.groupdict().items() if value}
    if "day" in part:
        return _iso(today, _DAYS[" ".join(part["day"].split())])
    if "due" in part:
        return _iso(today, (WEEKDAYS.index(part["due"]) - today.weekday()) % 7)
    if "past" in part:
        return _distance(today, -_number(part["amount"]), part["past"])
    if "future" in part:
        return _distance(today, _number(part["ahead"]), part["future"])
    if "ending" in part:
        return _distance(today, 0, part["ending"])
    step = _STEPS[part["step"]]
    if "weekday" in part:
        return _spoken_weekday(today, step, WEEKDAYS.index(part["weekday"]))
    if part["unit"] == "week":
        return f"the week of {_monday(today, step).isoformat()}"
    return _distance(today, step, part["unit"])


def _chinese_date(found: re.Match[str], today: date) -> str | None:
    part = {name: value for name, value in found.groupdict().items() if value}
    if "day" in part:
        return _iso(today, _DAYS[part["day"]])
    if "year" in part:
        return f"{today.year + _YEARS[part['year']]}年"
    if "month_step" in part:
        then = _months_later(today, _STEPS[part["month_step"]])
        return f"{then.year}年{then.month}月{part.get('month_end', '')}"
    if "ending" in part:
        return f"{today.year}年{today.month}月底" if part["ending"] == "月" else f"{today.year}年底"
    if day := part.get("due") or part.get("fixed"):
        return _iso(today, (_han_weekday(day) - today.weekday()) % 7)
    if "amount" in part:
        return _han_distance(today, part)
    monday = _monday(today, _STEPS[part["step"]])
    if "weekday" in part:
        return _iso(monday, _han_weekday(part["weekday"]))
    return f"{monday.isoformat()} 那一周"


def _han_distance(today: date, part: dict[str, str]) -> str:
    amount = _number(part["amount"]) * (-1 if part["side"] == "前" else 1)
    if part["unit"] == "年":
        return f"{today.year + amount}年"
    if part["unit"] == "月":
        then = _months_later(today, amount)
        return f"{then.year}年{then.month}月"
    return _iso(today, amount * (1 if part["unit"] == "天" else 7))


def _han_weekday(sign: str) -> int:
    """Returns the weekday from 0 (Monday); 末, the weekend, begins on Saturday."""
    return {"天": 6, "末": 5}.get(sign, _HAN_WEEKDAYS.find(sign))


def _distance(today: date, amount: int, unit: str) -> str:
    if unit == "year":
        return str(today.year + amount)
    if unit == "month":
        then = _months_later(today, amount)
        return f"{MONTHS[then.month - 1]} {then.year}"
    return _iso(today, amount * (7 if unit == "week" else 1))


def _spoken_weekday(today: date, step: int, weekday: int) -> str | None:
    """Returns the day that "last", "this" or "next" Friday means, or both that it may mean."""
    in_week = _monday(today, step) + timedelta(days=weekday)
    if step == 0:
        return in_week.isoformat() if in_week >= today else None
    away = (weekday - today.weekday()) % 7 or 7
    nearest = today + timedelta(days=away if step > 0 else (away - 7 or -7))
    days = sorted({in_week, nearest})
    return " or ".join(day.isoformat() for day in days)


def _monday(today: date, weeks: int) -> date:
    return today - timedelta(days=today.weekday()) + timedelta(weeks=weeks)


def _months_later(today: date, months: int) -> date:
    years, month = divmod(today.month - 1 + months, 12)
    return date(today.year + years, month + 1, 1)


def _iso(start: date, days: int) -> str:
    return (start + timedelta(days=days)).isoformat()


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]
