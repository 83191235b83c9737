"""Joins what somebody said with what it answers, where the dialogue act is plain.

"Yes, let's do that" says nothing alone: what was agreed to is the proposal before it, in the words
of whoever made it. A short answer needs its question. A cause that the assistant found in a
project needs nobody's yes. Everything else that an assistant says is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from turnmark_memory.model import Evidence
from turnmark_memory.writers.cues import Kind
from turnmark_memory.writers.sentences import is_chinese, split_sentences
from turnmark_memory.writers.statements import (
    cues_of,
    is_question,
    said_something,
    statements_in,
)

# An assistant's turn that was agreed to is cited for its gist, not copied out.
_MOST_AGREED = 2
# In a group the yes comes after others have had their say.
_TURNS_BACK = 4
# A longer answer says what it is about itself.
_LONGEST_ANSWER_WORDS = 7
_LONGEST_HAN_ANSWER = 12
_LONGEST_QUESTION = 160
_SHORTEST_ANSWER = 6
# So many words say something without a number or a name: "an upright, bit out of tune".
_WORDS_THAT_SAY = 4

_PLAIN_YES = re.compile(
    r"^(?:(?:yes|yep|exactly|correct|agreed|approved|confirmed|that's (?:right|correct))[\s,.!]*)+$"
    r"|^(?:(?:是的|对的?|没错|同意|确认|好的?)[，。！\s]*)+(?:就这[样么]|我们?|$)",
    re.IGNORECASE,
)
_REMIND = re.compile(r"remind|提醒", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"^(?:yes|no|nah|nope|yeah|sure|not (?:me|yet|really|sure)|maybe|idk|don't know|ok|lol|还没定?"
    r"|不知道|不用|没有|随便|没|不|先不用|好|行|可以|嗯|够|对|是|有)",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:is fine|is enough|works|it is|then|i'd say|go with|sounds good)\b|吧|^就", re.IGNORECASE
)
_LONG_WORD = re.compile(r"[A-Za-z]{4,}|[\u3400-\u9fff]{2}")
_CHOSEN = re.compile(r"(\d[\d.,]*) it is\b|^那?就?\s?(\d+)\s?吧")
_ASKS_WHAT = re.compile(
    r"\b(?:what|which|when|where|who|whose|how (?:much|many|long|often|old)|or|does|do|is|are)\b"
    r"|什么|啥|哪|几|谁|多少|还是|怎么|吗",
    re.IGNORECASE,
)
_ASKS_BACK = re.compile(r"[吧呗][。.!！]*$")
_OR = re.compile(r"\bor\b|还是|或", re.IGNORECASE)
_VALUE = re.compile(r"\d|[一二三四五六七八九十百千万]|[A-Z][\w'’-]+ [A-Z]")
_WORDS = re.compile(r"[A-Za-z0-9'’]+")
_HAN = re.compile(r"[\u3400-\u9fff]")


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """Words of two turns that only together say something.

    `act` is what the second one does with the first one's words: `agreed` to them, `answered` them
    with `answer`; `found` has no second turn.
    """

    act: str
    first: Evidence
    words: str
    second: Evidence
    answer: str = ""
    chinese: bool
    kind: Kind
    place: int = 0


def exchanges_of(turns: Sequence[Evidence], number: int) -> Iterator[Exchange]:
    """Yields what the turn at `number` joins with turns before it, or found itself."""
    turn = turns[number]
    if turn.role == "assistant":
        yield from _found(turn)
        return
    sentences = split_sentences(turn.text)
    if not sentences or is_question(sentences[0]):
        return
    before = list(_before(turns, number))
    if _accepts(sentences[0]):
        yield from _agreed(turn, sentences[0], before)
    elif (
        before
        and _who(turns[number - 1]) != _who(turn)
        and (answer := _answer(turn, sentences, before[0]))
    ):
        yield answer


def _before(turns: Sequence[Evidence], number: int) -> Iterator[Evidence]:
    """Yields the turns of others in this session before this one, the nearest first."""
    me = turns[number]
    for other in reversed(turns[max(0, number - _TURNS_BACK) : number]):
        same = (other.namespace, other.session) == (me.namespace, me.session)
        if same and _who(other) != _who(me):
            yield other


def _who(turn: Evidence) -> tuple[str, str | None, str | None]:
    return turn.role, turn.speaker_id, turn.speaker_name


def _accepts(sentence: str) -> bool:
    return bool(cues_of(sentence).accepting.search(sentence))


def _agreed(turn: Evidence, yes: str, before: Sequence[Evidence]) -> Iterator[Exchange]:
    for other in before:
        sentences = split_sentences(other.text)
        if other.role == "user" and sentences and _accepts(sentences[0]):
            continue
        found = [(place, one) for place, one in enumerate(sentences) if _is_proposal(one)]
        if not found and other.role == "assistant" and _PLAIN_YES.search(yes):
            found = [
                (one.place, one.text)
                for one in statements_in(other.text)
                if one.kind in {"decision", "plan"} or (one.kind == "fact" and not one.personal)
            ]
        for place, words in found[-_MOST_AGREED:]:
            yield Exchange(
                act="agreed",
                first=other,
                words=words,
                second=turn,
                chinese=is_chinese(words),
                kind="plan" if _REMIND.search(words) else "decision",
                place=place,
            )
        if found or other.role == "assistant":
            return


def _is_proposal(sentence: str) -> bool:
    cues = cues_of(sentence)
    if sentence[0] in "\"“‘'":  # a draft of somebody's words proposes nothing
        return False
    if cues.offer.search(sentence):
        return bool(_REMIND.search(sentence) and cues.anchor.search(sentence))
    return bool(cues.proposal.search(sentence)) and not cues.small_talk.search(sentence)


def _answer(turn: Evidence, sentences: Sequence[str], asked: Evidence) -> Exchange | None:
    first = sentences[0]
    questions = split_sentences(asked.text)
    chosen = _CHOSEN.search(first)
    if chosen:
        number = chosen.group(1) or chosen.group(2)
        question = next((one for one in reversed(questions) if number in one), "")
    elif _CHOICE.search(first) and _is_short(first) and not _speaks_of_self(first):
        chosen = _CHOICE.search(first)
        words = set(map(str.casefold, _LONG_WORD.findall(first)))
        shared = (
            one
            for one in reversed(questions)
            if words & set(map(str.casefold, _LONG_WORD.findall(one))) and _leaves_a_choice(one)
        )
        question = next(shared, "")
    elif questions and is_question(questions[-1]) and _is_short(first):
        offers = cues_of(questions[-1]).offer.search(questions[-1])
        plain = not offers and not _NO_ANSWER.search(first) and not _speaks_of_self(first)
        question = questions[-1] if plain and _ASKS_WHAT.search(questions[-1]) else ""
    else:
        question = ""
    said = said_something(first)
    if not said or not question or len(question) > _LONGEST_QUESTION:
        return None
    cues = cues_of(said)
    if any(cue.search(said) for cue in (cues.small_talk, cues.hollow, cues.command, cues.question)):
        return None
    if not chosen and not _says_what(said):
        return None
    return Exchange(
        act="answered",
        first=asked,
        words=question,
        second=turn,
        answer=said,
        chinese=is_chinese(first),
        kind="decision" if chosen else "fact",
    )


def _leaves_a_choice(sentence: str) -> bool:
    """Returns whether a sentence asks, proposes, or names more than one thing to take."""
    if is_question(sentence) or _OR.search(sentence):
        return True
    return bool(cues_of(sentence).proposal.search(sentence))


def _says_what(answer: str) -> bool:
    """Returns whether an answer holds a number, a name, or words enough to say what was asked."""
    if len(answer) < _SHORTEST_ANSWER or _ASKS_BACK.search(answer):
        return False
    words = len(_WORDS.findall(answer)) + len(_HAN.findall(answer)) / 2
    return words >= _WORDS_THAT_SAY or _VALUE.search(answer) is not None


def _speaks_of_self(sentence: str) -> bool:
    cues = cues_of(sentence)
    return bool(cues.personal.search(sentence) or "帮我" in sentence)


def _is_short(sentence: str) -> bool:
    if is_chinese(sentence):
        return len(_HAN.findall(sentence)) <= _LONGEST_HAN_ANSWER
    return len(_WORDS.findall(sentence)) <= _LONGEST_ANSWER_WORDS


def _found(turn: Evidence) -> Iterator[Exchange]:
    if not turn.project:
        return
    for place, words in enumerate(split_sentences(turn.text)):
        cues = cues_of(words)
        asks = is_question(words) or cues.offer.search(words) or cues.addressed.search(words)
        if not asks and cues.finding.search(words):
            yield Exchange(
                act="found",
                first=turn,
                words=words,
                second=turn,
                chinese=is_chinese(words),
                kind="fact",
                place=place,
            )
            return
