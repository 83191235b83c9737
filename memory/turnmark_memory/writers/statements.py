"""Finds the statements in a turn: what is worth keeping, and of which kind.

The rules are cues (`english.py`, `chinese.py`) in a fixed order; nothing is learnt or looked up, so
the same words always give the same statements. Kept: who somebody is, names, preferences,
decisions and reasons, facts with an anchor (a name, number, place or date), plans, corrections and
standing instructions. Left out: questions, small talk, one-off commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from turnmark_memory.writers.chinese import CHINESE
from turnmark_memory.writers.chinese_voice import has_subject
from turnmark_memory.writers.cues import Cues, Kind
from turnmark_memory.writers.english import ENGLISH
from turnmark_memory.writers.keeping import is_bare_order, is_worth_keeping
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.sentences import is_chinese, split_sentences
from turnmark_memory.writers.signs import Around, signs_of

# A turn with more statements than this is a document, not something said: it stays a source, which
# recall finds, and only its beginning becomes blocks.
_MOST_STATEMENTS = 40

_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE = re.compile(r"[，,;；]\s*")
_LAST_CLAUSE = re.compile(r"[，,;；](?=[^，,;；]*$)")
# A clause that says when keeps its place: what follows is not to be read without it.
_TIMED = re.compile(
    r"今[天晚早日]|昨[天晚日]|前天|明[天早晚日]|后天|[上这本下]个?(?:周|星期|礼拜|月)|\d\s?[号日点]"
)
_LOWER = re.compile(r"[a-z]+(?=[ ,'’]|$)")
# A last clause that asks without a mark; "who", "which" and "where" may only go on.
_ASKS_ON = re.compile(
    r"^(?:what|how|why|(?:can|could|do|does|did|is|are|should|shall|will|would)"
    r" (?:you|i|we|it|they|he|she|there|any\w+|some\w+))\b",
    re.IGNORECASE,
)
# What a thing is to be like, right after it was ordered: "It should print JSON."
_SPECIFIES = re.compile(
    r"^(?!(?:i|we)\b)[\w '’-]{1,40}\b(?:should|must|needs? to|has to)\b"
    r"|^(?!我)[^，,]{0,8}(?:应该|需要|必须|要)",
    re.IGNORECASE,
)
# What a program printed, wherever it stands.
_REPORT = re.compile(r"\w(?:Error|Exception): \w")
# What leads up to a question is no reason for anything once the question is gone.
_REASON = re.compile(r"^(?:since|as|because)\s+", re.IGNORECASE)
_ASIDE = re.compile(
    r",?\s+(?:by the way|btw|haha+|lol|tho|though)\b(?=[\s,.!;)]*(?:$|[,.;]))"
    r"|(?<=[\u3400-\u9fff])(?:哈哈+|嘿嘿|呵呵)|[\U0001f300-\U0001faff]+\s*$",
    re.IGNORECASE,
)
_CALLED = re.compile(r",\s+[A-Z][a-z]+\s*(?=[!.?…]*$)|^[A-Z][a-z]+,\s+")
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


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """What a sentence states, before it is known whether that is worth keeping."""

    sentence: str
    text: str
    place: int
    signs: dict[str, float]


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


def statements_in(
    text: str, *, in_group: bool = False, in_project: bool = False
) -> list[Statement]:
    """Returns the statements of a turn that are worth keeping, in order, at most 40."""
    found: list[Statement] = []
    sentences = split_sentences(text)
    ordered = -2
    for one in candidates_in(text, in_group=in_group, in_project=in_project, cut=sentences):
        if is_bare_order(one.signs) or (one.place == ordered + 1 and _goes_on_ordering(one)):
            ordered = one.place
        elif is_worth_keeping(one.signs):
            before = sentences[one.place - 1] if one.place else ""
            found.append(_of_same(_statement(one), before))
    return found[:_MOST_STATEMENTS]


def _goes_on_ordering(one: Candidate) -> bool:
    """Returns whether a sentence after an order says how what was ordered is to be."""
    ruled = one.signs["standing"] or one.signs["insists"]
    return not ruled and _SPECIFIES.search(one.text) is not None


def candidates_in(
    text: str,
    *,
    in_group: bool = False,
    in_project: bool = False,
    cut: Sequence[str] | None = None,
) -> Iterator[Candidate]:
    """Yields what of a turn's sentences states anything, with the signs that it is worth keeping.

    `cut` are the turn's sentences, where they are known.
    """
    sentences = split_sentences(text) if cut is None else cut
    around = Around(length=sum(map(len, sentences)), in_group=in_group, in_project=in_project)
    for place, sentence in enumerate(sentences):
        cues = cues_of(sentence)
        if words := _stated(_TAG.sub("", sentence), cues):
            signs = signs_of(words, sentence, cues, place, around)
            yield Candidate(sentence=sentence, text=words, place=place, signs=signs)


def _stated(sentence: str, cues: Cues) -> str:
    """Returns what a sentence states, without what it opens and ends with, or ""."""
    if cues.small_talk.search(_CALLED.sub("", sentence)) or _REPORT.search(sentence):
        return ""
    text = said_something(sentence)
    if not text or cues.small_talk.search(_CALLED.sub("", text)):
        return ""
    text = _without_chatter(text, cues) if cues is CHINESE else _before_question(text, cues)
    return "" if _is_too_short(text, cues) else text


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


def _statement(one: Candidate) -> Statement:
    cues = cues_of(one.sentence)
    kind = _kind_of(one.text, cues)
    return Statement(
        text=one.text,
        kind=kind,
        chinese=cues is CHINESE,
        place=one.place,
        personal=_is_personal(one.text, kind, cues),
        changes=bool(cues.change.search(one.sentence) or cues.correction.search(one.sentence)),
        restates=bool(
            cues.restating.search(one.sentence) or _repeats_by_agreeing(one.sentence, cues)
        ),
        private=_is_private(one.text, kind, cues),
    )


def _repeats_by_agreeing(sentence: str, cues: Cues) -> bool:
    return bool(cues.accepting.search(sentence)) and _is_too_short(sentence, cues, 3)


def _is_too_short(sentence: str, cues: Cues, times: int = 1) -> bool:
    signs = len(_HAN.findall(sentence)) + len(_WORD.findall(_HAN.sub(" ", sentence)))
    return signs < cues.shortest * times


def _before_question(sentence: str, cues: Cues) -> str:
    """Returns the statement that leads up to a question ("I moved to Porto, where …?"), or ""."""
    last = _LAST_CLAUSE.search(sentence)
    clause = sentence[: last.start()].strip() if last else ""
    if not cues.question.search(sentence):
        return clause if last and _ASKS_ON.search(sentence[last.end() :].lstrip()) else sentence
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
    return bool(cues.command.search(clause))


def _kind_of(text: str, cues: Cues) -> Kind:
    if cues.standing.search(text):
        decided = cues.decision.search(text) and cues.shared.search(text)
        return "decision" if decided else "instruction"
    return _content_kind(text, cues)


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
