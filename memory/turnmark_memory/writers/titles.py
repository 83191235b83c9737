"""Reads what a group's conversation is called: the best name of its matter, where it is a name.

A program that has no name gives the first words of the first message, a number, a path or the names
of those who speak. None of them says what a group talks about.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from turnmark_memory.writers.listed import listed

_LONGEST_NAME_WORDS = 5
_LONGEST_HAN_NAME = 14
_LONGEST_NAME = 48
# Whoever opens a group says at once what it is for.
_OPENING_LENGTH = 400
# So many words at the start of a message are no name of a group that came first.
_CUT_OFF_WORDS = 3
_CUT_OFF_HAN = 8

# Ids, addresses, paths, questions, and what was cut off.
_NO_NAME = re.compile(
    r"[\\@?？!！;；=<>{}|]|://|(?:^|\s)[~.]*/|/\S*/|^\S*/\S*$|\d{5}"
    r"|\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{8,}\b|…|\.{3}|\w\.\w"
)
_BRACKETS = re.compile(r"[(（\[【][^()（）\[\]【】]*[)）\]】]")
_MARKS = re.compile(r"[\W_]+")
# What a group's name says of itself and not of its matter.
_GROUP_WORDS = listed(
    "group groups chat chats groupchat channel room thread whatsapp telegram wechat signal discord"
    " slack the our new official main general random misc untitled conversation session topic"
    " discussion everyone all team issue bug question hello hi test testing default"
)
_HAN_GROUP = re.compile(
    r"(?:(?:微信|内部|临时|官方|正式|大家庭|交流|讨论|聊天|通知|工作|互助|沟通|联络|分享|小组|大|小|总)*"
    r"(?:群聊|群组|群|频道|话题))$"
)
_NO_HAN_NAME = listed(
    "新对话 新会话 未命名 无标题 默认 测试 闲聊 聊天 对话 会话 讨论 大家 一家人 相亲相爱一家人"
    " 群聊 综合 公告 通知"
)
_HAN = re.compile(r"[\u3400-\u9fff]+")
# Whoever opens a group says what it is for: "this group is for the spring trip".
_FOR = r"(?:group|chat|channel|thread|room)(?: is| was)? (?:for|about|to plan|to organi[sz]e)"
_NAME = (
    r"(?!to\b|my\b|a\b|all\b|you|me\b|every|it\b)[\w’'-]+"
    r"(?: (?!in\b|at\b|on\b|so\b|and\b|this\b|next\b|of\b|to\b)[\w’'-]+){0,2}"
)
_OPENED = re.compile(
    rf"\b{_FOR} (?:planning |organi[sz]ing )?(?:the |our |this |your )?(?P<purpose>{_NAME})"
    rf"|\b[Ww]elcome to (?:the |our )?(?P<welcome>{_NAME})"
    r"|(?P<name>\b[A-Z][\w’'-]+(?: [A-Z][\w’'-]+){1,4})(?: [a-z]+)? (?:chat|group|thread|round)\b"
    r"|群.{0,3}?(?:商量|讨论|筹备|安排|专门[聊说]|专门为了)(?:一下)?"
    r"(?P<matter>[\u3400-\u9fff]{2,8}?)(?:的?事|吧|[，。！,!\s]|$)"
    r"|欢迎(?:大家)?(?:来到|加入|进)(?:咱们?|我们)?(?P<joined>[\u3400-\u9fffA-Za-z0-9]{2,10}?群)"
)
_AND = re.compile(r"\s*(?:[,，、&+/和与]|\band\b)\s*")


def matter_of(title: str | None, *, speakers: Iterable[str], first: str, chinese: bool) -> str:
    """Returns the name of the matter that a conversation's title gives, "" where it gives none.

    `first` is the first message, which a title may only repeat; of a title in two languages the
    part that is `chinese` or is not is taken.
    """
    folded = unicodedata.normalize("NFKC", (title or "")[: 4 * _LONGEST_NAME]).strip()
    if not folded or len(folded) > 2 * _LONGEST_NAME or _NO_NAME.search(_plain(folded)):
        return ""
    name = _one_language(_bare(_plain(folded)), chinese=chinese)
    if not name or _is_long(name) or _is_cut_off(name, first) or _is_of_speakers(name, speakers):
        return ""
    return name


def name_given(text: str) -> str:
    """Returns what a message that opens a group says that it is for, as it says it, or ""."""
    found = _OPENED.search(text[:_OPENING_LENGTH])
    if not found:
        return ""
    return next(value for value in found.groupdict().values() if value)


def _plain(title: str) -> str:
    return _BRACKETS.sub(" ", title).strip(" #*\"'“”‘’《》「」-–—·.。:：")


def _bare(title: str) -> str:
    """Returns a title without signs, and without words that only say that it is a group."""
    words = _MARKS.sub(" ", title.replace("'", "’").replace("’", "")).split()
    while words and words[-1].casefold() in _GROUP_WORDS:
        words.pop()
    while words and words[0].casefold() in _GROUP_WORDS:
        words.pop(0)
    if not words:
        return ""
    words[-1] = _HAN_GROUP.sub("", words[-1])
    name = " ".join(word for word in words if word)
    is_none = name in _NO_HAN_NAME or not any(sign.isalpha() for sign in name)
    return "" if is_none else name


def _one_language(name: str, *, chinese: bool) -> str:
    han = " ".join(_HAN.findall(name))
    rest = " ".join(_HAN.sub(" ", name).split())
    if len(han) < 2 or not re.search(r"[^\W\d_]{3}", rest) or not re.search(r"\s", name):  # noqa: PLR2004 -- no word is shorter
        return name
    return han if chinese else rest


def _is_long(name: str) -> bool:
    han = sum(len(found) for found in _HAN.findall(name))
    too_many = len(name.split()) > _LONGEST_NAME_WORDS
    return han > _LONGEST_HAN_NAME or too_many or len(name) > _LONGEST_NAME


def _is_cut_off(name: str, first: str) -> bool:
    begins = _MARKS.sub("", first.casefold()).startswith(_MARKS.sub("", name.casefold()))
    is_more = len(name.split()) >= _CUT_OFF_WORDS or len(name) >= _CUT_OFF_HAN
    return begins and (is_more if not _HAN.search(name) else len(name) >= _CUT_OFF_HAN)


def _is_of_speakers(name: str, speakers: Iterable[str]) -> bool:
    known = {word for one in speakers for word in (one.casefold(), *one.casefold().split())}
    parts = [part for part in _AND.split(name.casefold()) if part]
    words = (word for word in name.casefold().split() if word != "and")
    return all(part in known for part in parts) or all(word in known for word in words)
