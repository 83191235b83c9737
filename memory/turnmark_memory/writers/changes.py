"""Hears in a sentence that something is not as it was: how surely, by the words that say so."""

from __future__ import annotations

import re

_SURE = re.compile(
    r"\b(?:no longer|any ?more|any longer|after all|instead(?! of)|in the end|turn(?:s|ed) out"
    r"|switch(?:ed|ing) (?:to|from|over)|swapped|replac(?:ed|ing)|t(?:ook|aking|akes) over"
    r"|went with|postponed|pushed (?:back|to|out)|slip(?:s|ped)|delayed|brought .{0,20}forward"
    r"|rescheduled|from now on|migrated|moved (?:to|from)|scratch that|correction|was wrong"
    r"|i meant|(?:is|are|it's) now|back to|change of plans?|chang(?:ed|es) (?:to|from)"
    r"|cancel\w*|(?:is|are|called) off|off the table|died|dead|broke|broken|sold|sells|quit|left"
    r"|leav(?:es?|ing)|retir\w+|resign\w+|notice|clos(?:ed|ing) down|shut(?:s|ting)? down|gone"
    r"|g(?:ave|iven|iving|ives) up|lost|stolen|nicked|stop(?:s|ped)|finished|ended|over|done with"
    r"|got rid|threw|(?:split|broke) up|fell through|ruled out|withdrew|pulled out"
    r"|backed (?:out|down)|drop(?:s|ped)|scrapped|expired"
    r"|too (?:old|slow|short|long|small|big|expensive|hard|late)"
    r"|no more|wait|abandoned|removed|deleted|killed"
    r"|skip(?:ped|ping)?|returned|paid|booked)\b",
    re.IGNORECASE,
)
_PERHAPS = re.compile(
    r"\b(?:actually|mov(?:ed|es|ing)|switch\w*|swap\w*|chang(?:ed?|es|ing)|replac\w+"
    r"|handed (?:over|it)|go(?:ing|es)? with|pushed|reschedule|shifted|bump(?:ed|s)"
    r"|rais(?:ed|es)|lowered|dropping|cut|reduced|(?:up|down) (?:to|from|again)"
    r"|(?:went|gone|goes|going) (?:up|down)|as of|these days|nowadays|now|new|rewr\w+|voted"
    r"|upgraded|updated|migrat\w+|ported|renamed|rather than|not the|better|again|gets?|got"
    r"|since|(?:could|ca|wo|does|has|is|are)n['’]t)\b",
    re.IGNORECASE,
)
_SURE_HAN = re.compile(
    "改[成为到去在用由吃喝走坐签期]|换[成到为用了给]|不再|搬[到去了]|推迟|推到|拖到|提前|延期|延到"
    "|调到|迁到|切到|挪到|作废|涨[到价]|降[到价]|升级?到|交给|接手|重写|其实|说错|变成|还是.{1,12}吧"
    "|最后.{0,6}[定用选接]|取消|黄了|泡汤|坏[了掉]|丢了|被偷|卖[掉了]|辞职|离职|退休|走了|不干|退[了掉]"
    "|停[了用掉]|关门|倒闭|拆|没了|分手|离婚|下线|砍掉|删[掉了]|搞不定|太[旧老慢短长贵小大乱]|没时间"
    "|不[行用去来在做了]|没空|报废|放弃|先不|退出|结束|死了|断了|烧了|伤了|要收钱|完成|交了|付了|买好|订好"
)
_PERHAPS_HAN = re.compile(
    "[改换搬调迁切挪涨降变又才新归]|更正|还是|最后|结果|原来|以后|现在|接替|重新|转[到成]|已经|了$"
)
SURE, PERHAPS, NO = 1.0, 0.5, 0.0
# What is left stands this near behind the words that say so.
_NEAR = 24


def change_in(text: str, *, chinese: bool) -> float:
    """Returns how surely a sentence tells of a change or an end: `SURE`, `PERHAPS` or `NO`."""
    if (_SURE_HAN if chinese else _SURE).search(text):
        return SURE
    return PERHAPS if (_PERHAPS_HAN if chinese else _PERHAPS).search(text) else NO


# "On Thursday instead of Tuesday", “不是 5200”: what is named so holds no longer.
_NAMED_AS_LEFT = re.compile(
    r"\b(?:instead of|rather than|no longer|not (?:on|at|in|by)?|(?:up|down) from"
    r"|from(?= \S+ to\b))"
    r" ?(?:the )?(?P<english>[^\s,.;]+(?: (?:of )?[A-Z]\w+)?)"
    r"|(?:不是|不再是?|原来是?|而不是|从(?=[^，,。]{1,12}(?:[改提推涨降换调升]|到)))"
    r"(?P<chinese>[^，,。；改提推涨降换调升到]{1,12})",
)


def named_as_left(text: str) -> tuple[str, str]:
    """Returns what a text names only to say that it holds no longer, and the text without it."""
    left = [found.group() for found in _NAMED_AS_LEFT.finditer(text)]
    return " ".join(left), _NAMED_AS_LEFT.sub(" ", text) if left else text


_LEAVING = re.compile(
    r"(?:\b(?:from|off|no longer(?: \w+){0,2}|not|without|left|leav(?:e|es|ing)|quit|dropp?\w*"
    r"|instead of|rather than|(?:g(?:ave|iven|iving) up|got rid of|sold|lost|cancell?ed"
    r"|stopp?(?:ed|ing)?|replac\w+|swapp\w+|out of|retired|scrapped)(?: on)?|isn['’]t|aren['’]t"
    r"|don['’]t|doesn['’]t|won['’]t|can['’]t)(?: (?:the|my|our|a|an|his|her|their|any|do|use|go"
    r"|take|eat|drink|in|at|to))*\s+"
    r"|(?:从|不再|不[用吃喝去要在做]?|停|退|取消|放弃|替|离开|卖|把|没)(?:了|掉)?)$",
    re.IGNORECASE,
)
_LEFT = re.compile(
    r"[\w'’]*\s+(?:is|are|was|were|has|have|got|gets)?\s*(?:\w+ )?(?:gone|off|dead|over|cancel\w*"
    r"|closed|closing|broken|sold|dropped|scrapped|out|stopped|retired|died|broke|fell through"
    r"|left|quit|refused|vetoed|removed|called off|too)\b"
    r"|[^，,。]{0,4}?(?:取消|停|没[了有]|退|坏|卖|丢|黄|不[行用去来在要做]|换|改|拆|离[开职]|作废|关[了门]|断"
    r"|太|辞|走了|不干)",
    re.IGNORECASE,
)


def leaves(text: str, word: str) -> bool:
    """Returns whether a text says of `word`, a part of it, that it is left, ended or done with."""
    at = text.find(word)
    return at >= 0 and bool(
        _LEAVING.search(text, max(0, at - _NEAR), at) or _LEFT.match(text, at + len(word))
    )
