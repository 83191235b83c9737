"""Finds the statements in a turn: what is worth keeping, and of which kind.

The rules are cues (`english.py`, `chinese.py`) in a fixed order; nothing is learnt or looked up, so
the same words always give the same statements. Kept: who somebody is, names, preferences,
decisions and reasons, facts with an anchor (a name, number, place or date), plans, corrections and
standing instructions. Left out: questions, small talk, one-off commands.
"""

from __future__ import annotations

import re

import msgspec

from turnmark_memory.writers.chinese import CHINESE
from turnmark_memory.writers.chinese_voice import has_subject
from turnmark_memory.writers.cues import Cues, Kind
from turnmark_memory.writers.english import ENGLISH
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.sameness import terms_of
from turnmark_memory.writers.sentences import is_chinese, split_sentences

# A turn with more statements than this is a document, not something said: it stays a source, which
# recall finds, and only its beginning becomes blocks.
_MOST_STATEMENTS = 40

# "I'll ask" plans nothing that anybody could look up; "I can do sound" says enough.
_SLIGHT = 2

_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE = re.compile(r"[，,;；]\s*")
_LAST_CLAUSE = re.compile(r"[，,;；](?=[^，,;；]*$)")
# A clause that says when keeps its place: what follows is not to be read without it.
_TIMED = re.compile(
    r"今[天晚早日]|昨[天晚日]|前天|明[天早晚日]|后天|[上这本下]个?(?:周|星期|礼拜|月)|\d\s?[号日点]"
)
_LOWER = re.compile(r"[a-z]+(?=[ ,'’]|$)")
# What leads up to a question is no reason for anything once the question is gone.
_REASON = re.compile(r"^(?:since|as|because)\s+", re.IGNORECASE)
_ASIDE = re.compile(
    r",?\s+(?:by the way|btw|haha+|lol|tho|though)\b(?=[\s,.!;)]*(?:$|[,.;]))"
    r"|(?<=[\u3400-\u9fff])(?:哈哈+|嘿嘿|呵呵)|[\U0001f300-\U0001faff]+\s*$",
    re.IGNORECASE,
)
_CALLED = re.compile(r",\s+[A-Z][a-z]+\s*(?=[!.?…]*$)|^[A-Z][a-z]+,\s+")
_POINTS_BACK = re.compile(
    r"^(?:it|that|this(?! (?:repo|project|app|service|tool|site|package)\b)|they|those|these"
    r"|there)\b"
    r"|^(?:它|[这那](?!个?(?:仓库|项目|系统|服务|程序|工具|网站|应用)))",
    re.IGNORECASE,
)
# How somebody wants to be spoken to is theirs, wherever they work.
_MANNERS = re.compile(
    r"\b(?:answers?|reply|replies|respond|call me|talk|speak|explain|tone|emojis?|apologi\w+"
    r"|explanations?"
    r"|draft messages)\b|回答|回复|跟我说|叫我|称呼|解释|说话|“您”",
    re.IGNORECASE,
)
# "…, ok?" asks for a nod, and states.
_TAG = re.compile(
    r",?\s*\b(?:ok|okay|right|agreed|yeah|fine|good)\s*[?]+$|[，,](?:好吗|行吗|可以吗|对吧"
    r"|好不好|行不行)[?？]*$",
    re.IGNORECASE,
)
# Words that somebody begins a sentence with; a command or a program's name keeps its case.
_BEGINNINGS = listed(
    "the a an i my we our he she they his her their it there this that these those in on at"
    " for from since until after before when if because all every each no nothing some two"
    " three today yesterday tomorrow last next"
)


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What a sentence says, without what it begins with; `place` is its number in the turn.

    `personal` says that it is about the speaker alone; `changes`, that something holds no longer;
    `restates`, that the speaker says it again.
    """

    text: str
    kind: Kind
    chinese: bool
    place: int
    personal: bool
    changes: bool = False
    restates: bool = False
    private: bool = False


def statements_in(text: str, *, in_project: bool = False) -> list[Statement]:
    """Returns the statements of a turn in order, at most 40; in a project things count too."""
    found: list[Statement] = []
    before = ""
    for place, sentence in enumerate(split_sentences(text)):
        said_before = bool(found) and found[-1].place == place - 1
        one = _statement(sentence, place, in_project=in_project, said_before=said_before)
        if one is not None:
            found.append(_of_same(one, before))
        before = sentence
    return found[:_MOST_STATEMENTS]


def _of_same(one: Statement, before: str) -> Statement:
    """Returns a Chinese statement without a subject as one of the speaker, if `before` was so."""
    if not one.chinese or one.personal or not CHINESE.alone.search(before):
        return one
    goes_on = not has_subject(one.text) and not CHINESE.shared.search(one.text)
    return msgspec.structs.replace(one, personal=True) if goes_on else one


def cues_of(sentence: str) -> Cues:
    """Returns the cues of the sentence's language."""
    return CHINESE if is_chinese(sentence) else ENGLISH


def is_question(sentence: str) -> bool:
    """Returns whether a sentence asks."""
    return bool(cues_of(sentence).question.search(sentence))


def said_something(text: str) -> str:
    """Returns a sentence without what it only begins with, "" where that is all."""
    body = cues_of(text).opener.sub("", text)
    return _ASIDE.sub("", _recased(body)).strip()


def _recased(words: str) -> str:
    """Returns words that begin a sentence with a capital, where that changes no name."""
    first = _LOWER.match(words)
    if first and first.group() in _BEGINNINGS:
        return words[0].upper() + words[1:]
    return words


def _statement(
    sentence: str, place: int, *, in_project: bool, said_before: bool
) -> Statement | None:
    cues = cues_of(sentence)
    sentence = _TAG.sub("", sentence)
    if cues.small_talk.search(_CALLED.sub("", sentence)):
        return None
    text = said_something(sentence)
    if not text or cues.small_talk.search(_CALLED.sub("", text)):
        return None
    text = _without_chatter(text, cues) if cues is CHINESE else _before_question(text, cues)
    if not text or _is_too_short(text, cues):
        return None
    kind = _kind_of(text, sentence, cues, in_project=in_project)
    if kind is None or (
        _POINTS_BACK.search(text) and not said_before and not _holds_more(text, cues)
    ):
        return None
    return Statement(
        text=text,
        kind=kind,
        chinese=cues is CHINESE,
        place=place,
        personal=_is_personal(text, kind, cues),
        changes=bool(cues.change.search(sentence) or cues.correction.search(sentence)),
        restates=bool(cues.restating.search(sentence) or _repeats_by_agreeing(sentence, cues)),
        private=_is_private(text, kind, cues),
    )


def _repeats_by_agreeing(sentence: str, cues: Cues) -> bool:
    return bool(cues.accepting.search(sentence)) and _is_too_short(sentence, cues, 3)


def _is_too_short(sentence: str, cues: Cues, times: int = 1) -> bool:
    signs = len(_HAN.findall(sentence)) + len(_WORD.findall(_HAN.sub(" ", sentence)))
    return signs < cues.shortest * times


def _before_question(sentence: str, cues: Cues) -> str:
    """Returns the statement that leads up to a question ("I moved to Porto, where …?"), or ""."""
    if not cues.question.search(sentence):
        return sentence
    last = _LAST_CLAUSE.search(sentence)
    clause = sentence[: last.start()].strip() if last else ""
    if not cues.strong.search(clause):
        return ""
    return _recased(_REASON.sub("", clause))


def _without_chatter(sentence: str, cues: Cues) -> str:
    """Returns a Chinese sentence without the clauses at its ends that ask, order or greet."""
    spans = [(0, 0)]
    for comma in _CLAUSE.finditer(sentence):
        spans[-1] = (spans[-1][0], comma.start())
        spans.append((comma.end(), comma.end()))
    spans[-1] = (spans[-1][0], len(sentence))
    while spans and _is_chatter(sentence[slice(*spans[0])], cues):
        spans.pop(0)
    while spans and _is_chatter(sentence[slice(*spans[-1])], cues):
        spans.pop()
    return sentence[spans[0][0] : spans[-1][1]].strip() if spans else ""


def _is_chatter(clause: str, cues: Cues) -> bool:
    if _TIMED.search(clause) and not cues.question.search(clause):
        return False
    if cues.question.search(clause) or cues.small_talk.search(clause):
        return not cues.strong.search(clause) and not cues.who.search(clause)
    if cues.standing.search(clause) or cues.decision.search(clause):
        return False
    return bool(cues.command.search(clause) or cues.hollow.search(clause))


def _holds_more(text: str, cues: Cues) -> bool:
    """Returns whether a statement about "it" or "them" says enough to be kept without them."""
    return bool(
        cues.anchor.search(text[4:]) or cues.decision.search(text) or cues.plan.search(text)
    )


def _kind_of(text: str, sentence: str, cues: Cues, *, in_project: bool) -> Kind | None:
    """Returns what kind of statement `text` makes, None if it makes none; the order matters."""
    if cues.standing.search(text):
        decided = cues.decision.search(text) and cues.shared.search(text)
        return "decision" if decided else "instruction"
    if cues.correction.search(sentence) and cues.anchor.search(text):
        return _content_kind(text, cues)
    if cues.remember.search(sentence):
        return _content_kind(text, cues)
    if cues.passing.search(sentence):
        return None
    if cues.decision.search(text) and not cues.hollow.search(text):
        return "decision"
    if in_project and cues.reason.search(text) and not cues.hollow.search(text):
        return "decision"
    if cues.command.search(text) or cues.hollow.search(text) or _is_reaction(text, cues):
        return None
    if in_project and cues.symptom.search(text):
        return None
    named = _CALLED.sub("", text)
    anchored = cues.anchor.search(named) or (cues is CHINESE and cues.change.search(text))
    if cues.preference.search(text):
        return _content_kind(text, cues)
    if any(cue.search(text) for cue in (cues.plan, cues.who, cues.personal)):
        return _content_kind(text, cues) if anchored or not _is_slight(text) else None
    is_about = anchored or (in_project and cues.thing.search(text))
    return "fact" if is_about else None


def _is_slight(text: str) -> bool:
    """Returns whether a sentence has hardly a word that says what it is about."""
    return len(terms_of(text).words) < (1 if is_chinese(text) else _SLIGHT)


def _is_reaction(text: str, cues: Cues) -> bool:
    """Returns whether a sentence speaks of whom it is said to, and of the speaker nothing."""
    if not cues.addressed.search(text):
        return False
    return not (cues.personal.search(text) and (cues.plan.search(text) or cues.anchor.search(text)))


def _content_kind(text: str, cues: Cues) -> Kind:
    if cues.decision.search(text):
        return "decision"
    if cues.plan.search(text):
        return "plan"
    if cues.preference.search(text):
        return "preference"
    return "who" if cues.who.search(text) else "fact"


def _is_private(text: str, kind: Kind, cues: Cues) -> bool:
    """Returns whether a statement belongs to its speaker's page even where a project is at work."""
    if kind == "instruction":
        return bool(_MANNERS.search(text))
    return kind in {"who", "preference"} and not cues.shared.search(text)


def _is_personal(text: str, kind: Kind, cues: Cues) -> bool:
    if cues.alone.search(text):
        return True
    # An instruction without "I" or "we" is still the speaker's wish.
    return kind == "instruction" and not cues.shared.search(text)
