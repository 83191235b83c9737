"""Finds the people that a text names, and whom "she" or “他” means where that is plain.

A name counts as a person's only with a reason beside it: a relation (“my sister Lena”), a title, a
verb that only people do, or that memory has a topic about them. Chinese names are looked for with
`rjieba`, which is loaded with the first Chinese text (0.1 s, 44 MB).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import cast

import msgspec

from turnmark_memory.writers.chinese import FAMILY_NAMES
from turnmark_memory.writers.chinese import ROLES as HAN_ROLES
from turnmark_memory.writers.dates import MONTHS, WEEKDAYS
from turnmark_memory.writers.english import ROLES
from turnmark_memory.writers.listed import listed

_NAME = r"(?P<{0}>[A-Z][a-zà-ÿ]+(?:['’-][A-Z][a-z]+)?(?: [A-Z][a-zà-ÿ]+(?:-[A-Z][a-z]+)?)?)"
_DOING = (
    r"lives|works|worked|teaches|leads|owns|manages|likes|prefers|hates|loves|wants|said|says|told"
    r"|thinks|decided|decides|promised|offered|asked|quit|resigned|counts|handles|married|visits"
    r"|visited|studies|joined|left|called|wrote|agreed|suggested|knows|needs|enjoys|plays|owes"
    r"|found a job|moved|is (?:my|our|his|her|their|visiting|chairing|allergic|vegetarian"
    r"|a \w*(?:er|or|ist|ian|student|nurse))|can't stand|really (?:can't|hates|loves|likes)"
)
_ENGLISH = re.compile(
    rf"\b(?P<title>(?:Mrs?|Ms|Dr|Prof)\.? [A-Z][a-zà-ÿ]+)"
    rf"|\b(?:{ROLES}),? (?:is |called |named )?(?!Mrs?\b|Ms\b|Dr\b){_NAME.format('related')}"
    rf"|\b(?:talked to|talked with|spoke (?:to|with)|met(?: with)?|over from \w*|over [\w-]+ from"
    rf"|promised|hired|asked|told|tuned by|owned by|run by|led by|contact .{{0,40}} is)"
    rf" {_NAME.format('met')}"
    rf"|(?<![\w'’-])(?!St )(?<!St ){_NAME.format('doing')},? (?:on our side |really |also |just "
    rf"|still )?(?:{_DOING})\b"
    rf"|\b{_NAME.format('apposed')}, (?:my|our) (?:\w+ )?(?:{ROLES})\b"
)
_NOBODY = listed(
    "mr mrs ms dr prof the this that it we they he she i you there what who everyone"
    " everybody nobody somebody someone my our his her their not no yes and but so also if"
    " when then one all staging prod production please contact user assistant team customer"
    " client school each every still yeah api english chinese christmas dad mom mum"
).union(WEEKDAYS, map(str.casefold, MONTHS))
_HAN_NAME = rf"[{FAMILY_NAMES}][\u4e00-\u9fff]{{1,2}}"
_HAN = re.compile(
    rf"(?:(?:{HAN_ROLES})(?<![狗猫])|[狗猫](?=叫))(?:叫|是)?(?P<related>(?P<twin>[\u4e00-\u9fff])(?P=twin)|[小阿老][\u4e00-\u9fff]"
    rf"|{_HAN_NAME}?)"
    rf"(?=今|明|昨|去|在|说|是|也|和|要|会|有|[，,。、0-9这那上下住的对喜]|$)"
    rf"|[\u4e00-\u9fff]{{2,4}}(?:叫|名叫)(?P<called>{_HAN_NAME}?)(?=[，,。、的是在]|$)"
    rf"|(?P<nick>[小老阿][{FAMILY_NAMES}](?![\u4e00-\u9fff]{{0,1}}[区市县湖路店])|阿[A-Za-z]+"
    rf"|[{FAMILY_NAMES}](?:姐|哥|总|工|老师|医生|经理|院长))"
    rf"|姓(?P<family>[{FAMILY_NAMES}])"
)
_PARENTS = r"Grandma|Grandpa|Granny|Grandad|Gran|Nan|Nana|Mum|Mom|Dad"
_RELATION = re.compile(
    rf"\b(?:my|our|his|her|their|a) (?:\w+ )?(?:{ROLES})\b|\b(?:{_PARENTS})\b|{HAN_ROLES}",
)
# Somebody of the speaker's own, whom a "she" after it means.
_OWN = re.compile(
    rf"\b[Mm]y (?:\w+ )?(?P<role>{ROLES})\b(?!['’]s)|^(?P<parent>{_PARENTS})\b(?!['’]s)"
    rf"|我(?:的)?(?P<han>{HAN_ROLES})(?!的)"
)
_WOMEN = listed(
    "wife sister mother mom mum daughter aunt landlady girlfriend grandma grandmother niece fiancée"
    " granny gran nan nana"
    " 老婆 妻子 太太 女儿 妈 妈妈 母亲 姐 姐姐 妹 妹妹 奶奶 外婆 姥姥 女朋友 女友 婆婆 岳母 阿姨"
)
_MEN = listed(
    "husband brother father dad son uncle landlord boyfriend grandpa grandfather nephew grandad"
    " 老公 丈夫 先生 儿子 爸 爸爸 父亲 哥 哥哥 弟 弟弟 爷爷 外公 姥爷 男朋友 男友 岳父 公公 舅舅"
    " 叔叔"
)
_MANY = listed("kid kids children family parents lead dog cat 孩子 狗 猫")
_SMALL = re.compile(r"\b[a-z]{3,}\b")
# What a sentence begins with shows in so many characters.
_LOOKED_AT = 12
_NAME_AND_MORE = re.compile(r"[要说的是在会了来去给和就也还把让跟向对有没不做交带住]$")
# Names of their own where a family talks: "Grandma is on new tablets".
_KIN = re.compile(
    rf"^(?P<name>(?:{_PARENTS})(?=['’]s\b| [a-z])"
    r"|(?:Aunt|Auntie|Uncle) [A-Z][a-zà-ÿ]+"
    r"|奶奶|爷爷|外婆|外公|姥姥|姥爷|大姨|小姨|舅舅|舅妈|姑姑|叔叔|大伯|婶婶)(?![，,!！?？])"
)
_SHE = re.compile(r"\b(?:he|she)\b(?:['’]s\b)?|^(?:his|her)\b|[他她](?!们)", re.IGNORECASE)


class Mention(msgspec.Struct, frozen=True):
    """A person's name at a place of a text."""

    start: int
    end: int
    name: str


class People:
    """The people of a batch: those memory knows, those who speak, those who are introduced."""

    def __init__(self, names: Iterable[str], texts: Iterable[str] = ()) -> None:
        self._known = dict.fromkeys(name for name in names if len(name) > 1)
        # A name is never written small; "Dance has been my life" names nobody where dance is meant.
        self._common = {word for text in texts for word in _SMALL.findall(text)}

    def meet(self, text: str, *, chinese: bool) -> list[Mention]:
        """Returns whom `text` names, in order; they are known from now on."""
        found = {one.name: one for one in self._introduced(text, chinese=chinese)}
        for name in found:
            self._known.setdefault(name)
        for name in self._known:
            if name not in found and (mention := _at(text, name)):
                found[name] = mention
        mentions = sorted(found.values(), key=lambda one: (one.start, -one.end))
        return [one for one in mentions if not _inside(one, mentions)]

    def _introduced(self, text: str, *, chinese: bool) -> Iterator[Mention]:
        if not chinese:
            for one in _english(text):
                if one.name.split(" ")[0].casefold() not in self._common:
                    yield one
            return
        yield from _han(text)
        yield from _tagged(text)

    def knows(self, name: str) -> bool:
        """Returns whether `name` is a person's, or the first or last name of one."""
        return any(name == known or name in known.split(" ") for known in self._known)

    def whole(self, name: str) -> str:
        """Returns the only longer name that `name` begins, or `name`: Jonas is Jonas Thorvald."""
        longer = [known for known in self._known if known.startswith(f"{name} ")]
        return longer[0] if len(longer) == 1 else name


def relation_in(text: str) -> bool:
    """Returns whether `text` speaks of somebody by what they are to somebody, not by name."""
    return _RELATION.search(text) is not None


def own_relation(text: str) -> str:
    """Returns what somebody of whom `text` speaks is to the speaker, "" for nobody or several."""
    found = {role.casefold() for one in _OWN.finditer(text) for role in one.groups() if role}
    return found.pop() if len(found) == 1 and found.isdisjoint(_MANY) else ""


def fits(said: str, role: str) -> bool:
    """Returns whether a "he" or "she" may mean somebody who is that to the speaker."""
    is_she = said.casefold().startswith(("she", "her", "她"))
    return role not in (_MEN if is_she else _WOMEN)


def kin_called(text: str) -> str:
    """Returns whom `text` begins with, if it calls them by what they are to a family, else ""."""
    found = _KIN.match(text)
    return found["name"] if found else ""


def pronoun(text: str) -> re.Match[str] | None:
    """Returns the first "he" or "she" of `text`, in either language."""
    return _SHE.search(text)


def _english(text: str) -> Iterator[Mention]:
    for found in _ENGLISH.finditer(text):
        name = found.lastgroup or ""
        said = found[name]
        words = said.split(" ")
        if words[0].casefold() in _NOBODY or words[-1].casefold() in _NOBODY:
            continue
        yield Mention(found.start(name), found.end(name), said)


def _han(text: str) -> Iterator[Mention]:
    for found in _HAN.finditer(text):
        name = next(key for key in ("related", "called", "nick", "family") if found[key])
        if name != "family":
            yield Mention(found.start(name), found.end(name), found[name])


def _tagged(text: str) -> Iterator[Mention]:
    at = 0
    for word, tag in _tag()(text):
        start, at = at, at + len(word)
        if tag == "nr" and 2 <= len(word) <= 3 and word[0] in FAMILY_NAMES:  # noqa: PLR2004 -- as names are
            name = _NAME_AND_MORE.sub("", word)
            if len(name) > 1:
                yield Mention(start, start + len(name), name)


Tag = Callable[[str], list[tuple[str, str]]]


@cache
def _tag() -> Tag:
    import rjieba  # noqa: PLC0415 -- 44 MB that English never needs

    return cast("Tag", rjieba.tag)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]


def tagged(text: str) -> list[tuple[str, str]]:
    """Returns the words of a Chinese text, each with its part of speech."""
    return _tag()(text)


def cut(text: str) -> list[str]:
    """Returns the words of a Chinese text."""
    return [word for word, _ in _tag()(text)]


def things(text: str) -> list[str]:
    """Returns the nouns of a Chinese text that are no names: not of people, places or times."""
    return [word for word, tag in _tag()(text) if len(word) > 1 and tag in _THINGS]


_THINGS = frozenset({"n", "nz", "nt", "l", "vn"})


def _at(text: str, name: str) -> Mention | None:
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not name[0].isascii() or not (_goes_on(before) or _goes_on(after)):
            return Mention(start, end, name)
        start = text.find(name, end)
    return None


def _goes_on(sign: str) -> bool:
    """Returns whether a sign beside a name makes it a part of another word."""
    return sign.isascii() and sign.isalnum()


def _inside(one: Mention, others: list[Mention]) -> bool:
    return any(
        other is not one
        and other.start <= one.start
        and one.end <= other.end
        and other.end - other.start > one.end - one.start
        for other in others
    )


def first_tags(text: str) -> list[str]:
    """Returns the parts of speech that a Chinese text begins with."""
    return [tag for _, tag in _tag()(text[:_LOOKED_AT])]
