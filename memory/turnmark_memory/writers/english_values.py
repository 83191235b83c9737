"""The values that an English text gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from turnmark_memory.writers.listed import listed
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

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NUMBERS = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15",
    "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "half a": "0.5", "half an": "0.5",
}  # fmt: skip
_SPELT = "|".join(_NUMBERS)
# "At 7" is an hour where nothing is counted.
_HOUR_ENDS = (
    r"(?=\s*(?:$|[,.;!?)\"]|(?:and|on|in|sharp|every|to|instead|now|each|for|the|at|not|with"
    r"|because|until|till|mornings?)\b))"
)
_VALUE = re.compile(
    r"(?P<iso>\d{4}-(?P<iso_month>\d\d)-(?P<iso_day>\d\d))"
    rf"|(?P<date>\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<its_month>{_MONTH})\b)"
    rf"|(?P<us>\b(?P<us_month>{_MONTH}) (?:the )?(?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:))"
    r"|(?P<floor>\b(?P<level>ground|first|second|third|fourth|fifth|top|\d+(?:st|nd|rd|th))"
    r"[ -]floor\b)"
    r"|(?P<nth>\b(?P<nth_day>\d{1,2})(?:st|nd|rd|th)\b(?! (?:time|place|edition|version|grade)))"
    rf"|(?P<in_month>\b(?:in|mid|early|late|until|till|by|from|since|of|this|next|to|for)[ -]"
    rf"(?P<month>{_MONTH})\b)"
    r"|(?P<weekday>\b(?P<name>mon|tues|wednes|thurs|fri|satur|sun)days?\b)"
    r"|(?P<clock>\b(?P<hour>\d{1,2})(?:[:.](?P<minutes>[0-5]\d))?"
    r"\s?(?:[ap]\.?m\b\.?|o['’]?clock))"
    r"|(?P<digital>\b(?P<digital_hour>\d{1,2}):(?P<digital_minutes>[0-5]\d)\b)"
    rf"|(?P<half>\bhalf (?:past )?(?P<half_hour>\d{{1,2}}|{_SPELT})\b)"
    r"|(?P<at>\b(?:at|from|till|until|before|after|by|around|about)"
    rf" (?P<at_hour>\d|1[0-2]|{_SPELT})\b{_HOUR_ENDS})"
    r"|(?P<noon>\b(?:noon|midnight)\b)"
    r"|(?P<price>[£$€¥]\s?(?P<sum>\d[\d,.]*\d|\d)(?P<sum_k>k\b)?)"
    r"|(?P<money>\b(?P<money_sum>\d[\d,.]*\d|\d)\s?(?P<money_k>k)?\s?(?:euros?|pounds?|quid"
    r"|dollars?|bucks|francs|kr|usd|eur|gbp|cents)\b)"
    r"|(?P<percent>\b(?P<share>\d[\d.]*)\s?(?:%|percent\b))"
    rf"|(?P<lasting>\b(?P<long>\d[\d.]*|{_SPELT})[ -](?P<unit>second|minute|min|hour|hr|day|week"
    r"|month|year|sprint)s?\b(?! (?:ago|before|later)\b))"
    r"|(?P<short>\b(?P<brief>\d[\d.]*)\s?(?P<sign>ms|s|sec|min|h)\b)"
    r"|(?P<size>\b(?P<extent>\d[\d.,]*)\s?(?P<measure>[kmgt]i?b|px|pixels|kms?|miles|met(?:re|er)s?"
    r"|cm|mm|kg|grams?|lit(?:re|er)s?|watts?|degrees|mph|[km]bps|dpi|fps|rps|qps)\b)"
    r"|(?P<release>\b(?P<product>(?-i:[A-Z])[A-Za-z+#.]*[A-Za-z+#])[ -]?v?"
    r"(?P<version>\d+(?:\.\d+)*)\b(?!:\d|,\d|\s?(?:st|nd|rd|th|%)\b))"
    rf"|(?P<count>(?<![\d.:/-])\b(?P<number>\d[\d,]*(?:\.\d+)?|{_SPELT})(?P<number_k>k)?\b(?!:\d)"
    r"(?:\s+(?P<of>[a-z][\w-]+)(?:\s+(?P<of_what>[a-z][\w-]+))?)?)",
    re.IGNORECASE,
)
# "7 in the morning" counts nothing.
_COUNTS_NOTHING = listed(
    "a an the of in on at for to and or per each is are was were with from by as but so now not it"
    " if that flat then than when until till because she he they we you instead more less"
)
# Written large at the beginning of a sentence, and followed by a number.
_NO_PRODUCT = listed(
    "at to is of for in on by the from than about around only just takes take has have need needs"
    " over under every and or be are was cost costs with until till after before pay pays paid"
    " number top plus minus like up down max min us next last first past that its it we you he she"
    " they room flat platform gate line track day week year bus tram age aged between within"
    " roughly nearly almost another all these those say says call"
) | frozenset(_MONTHS)

# Most sentences give no value, and looking for one costs most where there is none.
_HINT = re.compile(
    rf"\d|day|\b(?:noon|midnight|floor|half|{_SPELT}|{'|'.join(_MONTHS)})", re.IGNORECASE
)

Part = Mapping[str, str]
Value = tuple[str, str]


def english_values(text: str) -> Iterator[Value]:
    """Yields the values that an English text gives, each with its kind."""
    if not _HINT.search(text):
        return
    for found in _VALUE.finditer(text):
        part = {name: given.casefold() for name, given in found.groupdict().items() if given}
        read = _READ.get(found.lastgroup or "")
        yield from read(part) if read else ()


def _date(day: str, month: str) -> list[Value]:
    number = _MONTHS.index(month[:3]) + 1 if month else ""
    return [(DAY, f"{number}/{int(day)}")]


def _number(text: str, thousands: str | None = None) -> str:
    plain = _NUMBERS.get(text) or text.replace(",", "").rstrip(".")
    return f"{plain}000" if thousands else plain


def _release(part: Part) -> list[Value]:
    product = part["product"]
    if product in _NO_PRODUCT or product[:3] in _MONTHS:
        return [(AMOUNT, part["version"])]
    return [(f"version of {product}", part["version"])]


def _count(part: Part) -> list[Value]:
    """Returns a number of each of the words that follow it: "114 conformance tests"."""
    if part["number"] == "one":  # "the old one"
        return []
    number = _number(part["number"], part.get("number_k"))
    counted: list[str] = []
    for word in (part.get("of", ""), part.get("of_what", "")):
        if not word or word in _COUNTS_NOTHING:
            break
        counted.append(word.rstrip("s"))
    return [(f"number of {one}", number) for one in counted] or [(AMOUNT, number)]


_READ: Mapping[str, Callable[[Part], list[Value]]] = {
    "iso": lambda part: [(DAY, f"{int(part['iso_month'])}/{int(part['iso_day'])}")],
    "date": lambda part: _date(part["day"], part["its_month"]),
    "us": lambda part: _date(part["us_day"], part["us_month"]),
    "nth": lambda part: _date(part["nth_day"], ""),
    "floor": lambda part: [(FLOOR, part["level"])],
    "in_month": lambda part: [(MONTH, part["month"][:3])],
    "weekday": lambda part: [(WEEKDAY, part["name"])],
    "clock": lambda part: [(HOUR, hour(part["hour"], part.get("minutes", "00")))],
    "digital": lambda part: [(HOUR, hour(part["digital_hour"], part["digital_minutes"]))],
    "half": lambda part: [(HOUR, hour(_number(part["half_hour"]), "30"))],
    "at": lambda part: [(HOUR, hour(_number(part["at_hour"]), "00"))],
    "noon": lambda _: [(HOUR, hour("12", "00"))],
    "price": lambda part: [(AMOUNT, _number(part["sum"], part.get("sum_k")))],
    "money": lambda part: [(AMOUNT, _number(part["money_sum"], part.get("money_k")))],
    "percent": lambda part: [(PERCENT, part["share"])],
    "lasting": lambda part: [(DURATION, seconds(_number(part["long"]), part["unit"]))],
    "short": lambda part: [(DURATION, seconds(part["brief"], part["sign"]))],
    "size": lambda part: [(f"size in {part['measure'].rstrip('s')}", _number(part["extent"]))],
    "release": _release,
    "count": _count,
}
