"""Finds the statements in a turn: what is worth keeping, and of which kind.

The rules are cues (`english.py`, `chinese.py`) in a fixed order; nothing is learnt or looked up, so
the same words always give the same statements. Kept: who somebody is, names, preferences, decisions
and reasons, facts with an anchor (a name, number, place or date), plans, corrections and standing
instructions. Left out: questions, small talk, one-off commands.
"""

from __future__ import annotations

import itertools
import re

import msgspec

from turnmark_memory.writers.chinese import CHINESE
from turnmark_memory.writers.cues import Cues, Kind
from turnmark_memory.writers.english import ENGLISH
from turnmark_memory.writers.sentences import is_chinese, split_sentences

# A turn with more statements than this is a document, not something said: it stays a source, which
# recall finds, and only its beginning becomes blocks.
_MOST_STATEMENTS = 40

_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+")
_LAST_CLAUSE = re.compile(r"[，,;；](?=[^，,;；]*$)")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence worth keeping, as it was said; `place` is its number among the turn's sentences.

    `personal` says that it is about the speaker alone, `person` whom else it is about, if anybody.
    """

    text: str
    kind: Kind
    chinese: bool
    place: int
    personal: bool
    person: str | None


def statements_in(text: str) -> list[Statement]:
    """Returns the statements of a turn in order, at most 40."""
    found = (_statement(sentence, place) for place, sentence in enumerate(split_sentences(text)))
    kept = (statement for statement in found if statement)
    return list(itertools.islice(kept, _MOST_STATEMENTS))


def is_confirmation(text: str) -> bool:
    """Returns whether a turn begins by saying yes to the turn before it."""
    sentences = split_sentences(text)
    if not sentences or sentences[0].endswith(("?", "？")):
        return False
    return bool(_cues_of(sentences[0]).confirmation.search(sentences[0]))


def _cues_of(sentence: str) -> Cues:
    return CHINESE if is_chinese(sentence) else ENGLISH


def _statement(sentence: str, place: int) -> Statement | None:
    cues = _cues_of(sentence)
    if _is_too_short(sentence, cues) or cues.small_talk.search(sentence):
        return None
    text = sentence
    if cues.question.search(sentence):
        text = _clause_before_question(sentence, cues)
    kind = _kind_of(text, cues) if text else None
    if kind is None:
        return None
    person = cues.person.search(text)
    return Statement(
        text=text,
        kind=kind,
        chinese=cues is CHINESE,
        place=place,
        personal=_is_personal(text, kind, cues),
        person=person["name"] if person else None,
    )


def _is_too_short(sentence: str, cues: Cues) -> bool:
    signs = len(_HAN.findall(sentence)) + len(_WORD.findall(_HAN.sub(" ", sentence)))
    return signs < cues.shortest


def _clause_before_question(sentence: str, cues: Cues) -> str:
    """Returns the statement that leads up to a question ("I moved to Porto, where …?"), or ""."""
    last = _LAST_CLAUSE.search(sentence)
    clause = sentence[: last.start()].strip() if last else ""
    return clause if cues.strong.search(clause) else ""


def _kind_of(text: str, cues: Cues) -> Kind | None:
    """Returns what kind of statement `text` makes, None if it makes none; the order matters."""
    if cues.standing.search(text):
        return "preference" if not cues.decision.search(text) else "decision"
    if cues.remember.search(text):
        return _content_kind(text, cues)
    if cues.decision.search(text) and not cues.hollow.search(text):
        return "decision"
    if cues.command.search(text) or cues.hollow.search(text):
        return None
    if cues.plan.search(text) or cues.preference.search(text) or cues.personal.search(text):
        return _content_kind(text, cues)
    if cues.claim.search(text) and cues.anchor.search(text):
        return "fact"
    return None


def _content_kind(text: str, cues: Cues) -> Kind:
    if cues.decision.search(text):
        return "decision"
    if cues.plan.search(text):
        return "plan"
    return "preference" if cues.preference.search(text) else "fact"


def _is_personal(text: str, kind: Kind, cues: Cues) -> bool:
    if cues.alone.search(text):
        return True
    # An instruction without "I" or "we" is still the speaker's wish.
    return kind == "preference" and not cues.shared.search(text)
