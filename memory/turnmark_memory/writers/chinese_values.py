"""The values that a Chinese text gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from turnmark_memory.writers.value_kinds import (
    AMOUNT,
    DAY,
    DURATION,
    FLOOR,
    HOUR,
    MONTH,
    PERCENT,
    WEEKDAY,
    hour,
    seconds,
)

_DIGITS = {sign: number for number, sign in enumerate("零一二三四五六七八九十")} | {"两": 2}
_TENS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000}
_SMALL = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_NUMBER = r"(?:\d[\d,.]*\s?[十百千万]?|[一二两三四五六七八九十百千万]+)"
_MEASURE = (
    "个|台|家|条|张|件|次|人|位|只|本|瓶|袋|片|顶|把|辆|套|间|首|门|节|场|页|行|份|名|岁|倍|遍|罐|口|步|单|期"
    "|轮|组|桌|杯|箱|号线|号"
)
_MINUTES = {"半": "30", "一刻": "15", "三刻": "45"}
_VALUE = re.compile(
    r"(?P<iso>\d{4}-(?P<iso_month>\d\d)-(?P<iso_day>\d\d))"
    r"|(?P<floor>(?P<level>\d+|[一二三四五六七八九十底顶])\s?[楼层](?![梯上下道房]))"
    rf"|(?P<date>(?:(?P<its_month>{_SMALL})\s?月\s?)?(?P<day>{_SMALL})\s?[号日]"
    r"(?![楼线店院馆厅房机门]))"
    r"|(?P<lunar>初(?P<lunar_day>[一二三四五六七八九十])|(?P<feast>除夕|元旦|元宵|中秋|国庆|五一))"
    rf"|(?P<in_month>(?<![个上下几\d])(?P<month>{_SMALL})\s?月(?![亮饼]))"
    r"|(?P<weekday>(?:周|星期|礼拜)(?P<names>[一二三四五六日天末]"
    r"(?:[、和]?[一二三四五六日天](?![个次点]))*))"
    rf"|(?P<clock>(?P<hour>{_SMALL}|两)\s?点(?![餐菜赞击名头评单点])"
    r"(?P<minutes>半|一刻|三刻|\d{1,2}分?)?)"
    r"|(?P<digital>(?P<digital_hour>\d{1,2})[:：](?P<digital_minutes>[0-5]\d))"
    rf"|(?P<money>(?P<sum>{_NUMBER})\s?(?:块|元|欧|美金|刀|日元))"
    r"|(?P<price>[¥￥$€]\s?(?P<price_sum>\d[\d,.]*))"
    r"|(?P<percent>(?P<share>\d[\d.]*)\s?%|百分之(?P<spelt>[一二三四五六七八九十\d]+))"
    # "一个月 4800" says for how long, not how long.
    rf"|(?P<lasting>(?!一\s?个?[天周月年晚])(?P<long>{_NUMBER}|半)\s?个?(?P<unit>秒|分钟|小时|钟头|天"
    r"|周|星期|礼拜|月|年|晚)(?!以?前|之前|之?后|[级轻龄会货底初]|中旬))"
    r"|(?P<size>(?P<extent>\d[\d.,]*)\s?(?P<measure>[kmgt]i?b|px|像素|公里|千米|米|厘米|公斤|斤|克|升|瓦"
    r"|度|平米?|ms|毫秒)(?![A-Za-z]))"
    r"|(?P<release>(?P<product>[A-Za-z][A-Za-z+#.]*[A-Za-z+#]|[A-Z])\s?v?(?P<version>\d+(?:\.\d+)*)"
    r"(?![:\d号日月]))"
    # "一个" is hardly ever a number, “只要一个” is.
    rf"|(?P<only>(?<=[只要就剩仅成到])一\s?(?P<only_of>{_MEASURE}))"
    rf"|(?P<count>(?P<number>{_NUMBER})\s?(?P<of>{_MEASURE})?)",
    re.IGNORECASE,
)
Part = Mapping[str, str]
Value = tuple[str, str]


def chinese_values(text: str) -> Iterator[Value]:
    """Yields the values that a Chinese text gives, each with its kind."""
    for found in _VALUE.finditer(text):
        part = {name: given.casefold() for name, given in found.groupdict().items() if given}
        read = _READ.get(found.lastgroup or "")
        yield from read(part) if read else ()


def _digits(text: str) -> str:
    """Returns a number in digits; what is no number stays as it is."""
    text = text.strip().replace(",", "").rstrip(".")
    digits = re.fullmatch(r"(\d+(?:\.\d+)?)\s?([十百千万]?)", text)
    if digits:
        return f"{float(digits[1]) * _TENS.get(digits[2], 1):.12g}"
    total, last = 0, 0
    for sign in text:
        if sign in _TENS:
            total += max(last, 1) * _TENS[sign]
            last = 0
        elif sign in _DIGITS:
            last = _DIGITS[sign]
        else:
            return text
    return str(total + last)


def _date(part: Part) -> list[Value]:
    month = part.get("its_month")
    return [(DAY, f"{_digits(month) if month else ''}/{_digits(part['day'])}")]


def _weekdays(part: Part) -> list[Value]:
    signs = part["names"].replace("天", "日")
    return [(WEEKDAY, sign) for sign in signs if sign not in "、和"]


def _clock(part: Part) -> list[Value]:
    minutes = part.get("minutes", "00").rstrip("分")
    return [(HOUR, hour(_digits(part["hour"]), _MINUTES.get(minutes, minutes)))]


def _count(part: Part) -> list[Value]:
    """Returns a number of what is counted; spelt out and of nothing, it may be any word."""
    of, number = part.get("of"), part["number"]
    if number == "一" or (of is None and not number[0].isdigit()):
        return []
    return [(f"number of {of}" if of else AMOUNT, _digits(number))]


_READ: Mapping[str, Callable[[Part], list[Value]]] = {
    "iso": lambda part: [(DAY, f"{int(part['iso_month'])}/{int(part['iso_day'])}")],
    "floor": lambda part: [(FLOOR, _digits(part["level"]))],
    "date": _date,
    "lunar": lambda part: [(DAY, f"{part.get('feast', '正月')}/{part.get('lunar_day', '')}")],
    "in_month": lambda part: [(MONTH, _digits(part["month"]))],
    "weekday": _weekdays,
    "clock": _clock,
    "digital": lambda part: [(HOUR, hour(part["digital_hour"], part["digital_minutes"]))],
    "money": lambda part: [(AMOUNT, _digits(part["sum"]))],
    "price": lambda part: [(AMOUNT, _digits(part["price_sum"]))],
    "percent": lambda part: [(PERCENT, _digits(part.get("share") or part["spelt"]))],
    "lasting": lambda part: [(DURATION, seconds(_digits(part["long"]), part["unit"]))],
    "size": lambda part: [(f"size in {part['measure']}", _digits(part["extent"]))],
    "release": lambda part: [(f"version of {part['product']}", part["version"])],
    "only": lambda part: [(f"number of {part['only_of']}", "1")],
    "count": _count,
}
