"""Reads the signs of a sentence that say whether it will matter later; `keeping.py` weighs them.

Three kinds, none of which knows a subject: how much it holds (words, numbers, names, times), how
it is said (`english_signs.py`, `chinese_signs.py`: hedged, supposed, ordered, of the moment, as a
rule) and what it does (the cues of an act: a decision, a preference, a standing instruction).
"""

from __future__ import annotations

import math
import re
from typing import Final

import msgspec

from turnmark_memory.writers import chinese_signs, english_signs
from turnmark_memory.writers.chinese import CHINESE
from turnmark_memory.writers.cues import Cues
from turnmark_memory.writers.people import tagged

# The cues that are signs as well, under their own names.
ACTS: Final = (
    "standing",
    "decision",
    "preference",
    "who",
    "plan",
    "change",
    "strong",
    "anchor",
)
HOW: Final = tuple(english_signs.SIGNS)
MUCH: Final = (
    *("words", "clauses", "numbers", "numbered", "names", "named"),
    *("words_of_turn", "not_first", "in_group"),
)
SIGNS: Final = (*MUCH, *HOW, *ACTS, "reports_an_error", "goes_wrong", "insists", "plain_act")

# One of these, said without a reserve, says more than its words do.
_PLAIN: Final = ("insists", "standing", "preference", "who", "decision", "change")
_RESERVES: Final = ("hedges", "supposes", "feels", "of_the_moment")

# More numbers, names or clauses than this make a sentence no more worth keeping.
_MOST_COUNTED = 3
# Chinese characters that make one word, and signs of a turn that do, on average.
_HAN_A_WORD = 1.4
_LETTERS_A_WORD = 5
# A turn longer than this is no more worth keeping, sentence by sentence.
_LONG_TURN_WORDS = 60

_LATIN = re.compile(r"[A-Za-z0-9'’]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_CLAUSE = re.compile("[,，;；、]")
_DIGITS = re.compile(r"\d+")
_NUMBER_WORD = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    r"|hundred|thousand|dozen|half|twice)\b",
    re.IGNORECASE,
)
_HAN_NUMBER = re.compile(
    "[一二三四五六七八九十两百千万半]+(?=[个人天年月周次块元台点号岁亿条家件倍位斤分只张本])"
)
_ERROR = re.compile(
    r"\w(?:Error|Exception|Warning)\b|\berror:|\bexit (?:code|status)\b|\bERR[_!]"
    r"|\b0x[0-9a-f]{4}|[├└│✕✗✖]|[\w/]\.\w{1,4}:\d+|\bstack ?trace\b"
)
_WRONG = re.compile(
    r"\b(?:crash\w*|fail(?:s|ed|ing|ures?)?|hangs?|hung|freezes?|froze|broken?|breaks?|errors?"
    r"|flickers?|throws|blank|wrong|times? out|timed out|timeouts?|blows? up|keeps? \w+ing"
    r"|(?:not|stopped) \w+ing"
    r"|(?:does|do|ca|wo)n['’]t (?:work|start|build|compile|load|show|open|respond|connect))\b"
    r"|报错|出错|[白黑]屏|[崩挂]了?|卡[住死顿]|卡 ?\d|没反应|闪退|打不开|失败|超时|坏了|起不来"
    r"|不出来",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:because|since|whenever|due to|caused?|reason|turned out|thanks to|so (?:we|i))\b"
    r"|因为|原因|由于|导致|所以",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\S+@\S+|https?://|\w\.(?:com|org|net|io|dev|example)\b")
_NAME = re.compile(r"(?<=[^\s.!?] )(?!I\b|I['’])[A-Z][\w'’-]*")
_NAME_TAGS = frozenset({"nr", "nrt", "ns", "nt", "nz", "eng"})


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What a sentence stands in: a turn of so many signs, and who is there."""

    length: int = 0
    in_group: bool = False
    in_project: bool = False


def signs_of(text: str, sentence: str, cues: Cues, place: int, around: Around) -> dict[str, float]:
    """Returns the signs of `text`, what a sentence says without its opening, by name.

    `place` is the number of the sentence in its turn.
    """
    chinese = cues is CHINESE
    how = chinese_signs.SIGNS if chinese else english_signs.SIGNS
    signs = _amounts(text, chinese=chinese)
    of_turn = around.length / (_HAN_A_WORD if chinese else _LETTERS_A_WORD)
    signs["words_of_turn"] = math.log1p(min(of_turn, _LONG_TURN_WORDS))
    signs["not_first"] = float(place > 0)
    signs["in_group"] = float(around.in_group)
    for name, pattern in how.items():
        signs[name] = float(pattern.search(text) is not None)
    for name in ACTS:
        cue: re.Pattern[str] = getattr(cues, name)
        signs[name] = float(cue.search(text) is not None)
    signs["reports_an_error"] = float(_ERROR.search(text) is not None)
    wrong = around.in_project and _WRONG.search(text) and not _CAUSE.search(text)
    signs["goes_wrong"] = float(bool(wrong))
    signs["insists"] = float(any(cue.search(sentence) for cue in (cues.remember, cues.restating)))
    acts = any(signs[name] for name in _PLAIN) or (signs["plan"] and signs["a_time"])
    reserved = any(signs[name] for name in _RESERVES)
    signs["plain_act"] = float(bool(acts) and not reserved)
    return signs


def _amounts(text: str, *, chinese: bool) -> dict[str, float]:
    words = len(_LATIN.findall(text)) + len(_HAN.findall(text)) / _HAN_A_WORD
    numbers = len(_DIGITS.findall(text))
    numbers += len((_HAN_NUMBER if chinese else _NUMBER_WORD).findall(text))
    if chinese:
        names = sum(tag in _NAME_TAGS for _, tag in tagged(text))
    else:
        names = len(_NAME.findall(text))
    names += len(_ADDRESS.findall(text))
    return {
        "words": math.log1p(words),
        "clauses": float(min(len(_CLAUSE.findall(text)), _MOST_COUNTED)),
        "numbers": float(min(numbers, _MOST_COUNTED)),
        "numbered": float(numbers > 0),
        "names": float(min(names, _MOST_COUNTED)),
        "named": float(names > 0),
    }
