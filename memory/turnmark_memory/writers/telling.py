"""Puts a statement into words that stand alone: told in the third person, or framed as a quotation.

Telling is preferred, and done only where nothing can go wrong; every other sentence keeps its words
and gets a frame that says whose they are. A "she" or “他” whose person is plain is named: in place
of the pronoun where the sentence is told, in brackets behind it where it is quoted.
"""

from __future__ import annotations

import re

import msgspec

from turnmark_memory.model import Evidence
from turnmark_memory.writers import chinese_voice, english_voice
from turnmark_memory.writers.dates import with_dates
from turnmark_memory.writers.english_voice import Speaker
from turnmark_memory.writers.exchanges import Exchange
from turnmark_memory.writers.quoting import agreed_speaker, plain, quoted, speaker_of, within
from turnmark_memory.writers.statements import Statement

# A block is one paragraph that a person reads at a glance.
LONGEST_BLOCK = 600
# "I am Robin" of Robin says nothing; what follows does.
_INTRODUCTION = re.compile(
    r"^(我)(?:叫|是)(?P<han>[\u4e00-\u9fff]{2,3})[，,]\s*"
    r"|^(?:I['’]m|I am|My name is) (?P<name>[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)?)(?:, | and )(?=I\b)"
)
# Stands where words had to be cut to fit their block.
_CUT = " …"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Words ready for a block: `speaker` frames them, "" where they need no frame.

    `said` is the same as a quotation, for words that are told without one.
    """

    words: str
    speaker: str
    chinese: bool
    said: Told | None = None

    def text(self) -> str:
        """Returns the block's text."""
        if not self.speaker:
            return self.words
        return quoted(self.speaker, self.words, chinese=self.chinese)


class Meant(msgspec.Struct, frozen=True, kw_only=True):
    """A pronoun at a place of a sentence and the person that it means."""

    start: int
    end: int
    name: str


def told(one: Statement, turn: Evidence, *, meant: Meant | None, named: bool) -> Told:
    """Returns a statement in words that stand alone; `named` asks that they name a person."""
    framed = _quoted(one, turn, meant)
    third = _third(one, turn, meant, named=named)
    if third is not None:
        words = _ended(third, chinese=one.chinese)
        if len(words) <= LONGEST_BLOCK:
            return Told(words=words, speaker="", chinese=one.chinese, said=framed)
    return framed


def _quoted(one: Statement, turn: Evidence, meant: Meant | None) -> Told:
    said = _bracketed(one.text, meant, chinese=one.chinese)
    speaker = speaker_of(turn, chinese=one.chinese)
    if one.kind == "instruction" and not _is_first_person(one):
        speaker = f"{speaker}要求" if one.chinese else f"{speaker} asks"
    return _framed(speaker, said, turn, chinese=one.chinese)


def told_exchange(one: Exchange) -> Told:
    """Returns what two turns say together, in the words of both."""
    if one.act == "found":
        speaker = speaker_of(one.first, chinese=one.chinese)
        return _framed(speaker, one.words, one.first, chinese=one.chinese)
    if one.act == "agreed":
        speaker = agreed_speaker(one.first, one.second, chinese=one.chinese)
        return _framed(speaker, one.words, one.first, chinese=one.chinese)
    name = speaker_of(one.second, chinese=one.chinese)
    question = within(plain(one.words))
    asked = one.words.rstrip().endswith(("?", "？"))
    if one.chinese:
        frame = f"{name}（{'被问' if asked else '答'}‘{question}’）"
    else:
        frame = f"{name} ({'asked' if asked else 'to'} ‘{question}’)"
    return _framed(frame, one.answer, one.second, chinese=one.chinese)


def _ended(words: str, *, chinese: bool) -> str:
    """Returns a told sentence with the full stop that chats leave out."""
    if words[-1].isalnum() or words[-1] in ")）%":
        return f"{words}{'。' if chinese else '.'}"
    return words


def _third(one: Statement, turn: Evidence, meant: Meant | None, *, named: bool) -> str | None:
    text = plain(one.text)
    if text != one.text:
        return None
    # Before names come in: “带上我爸” of 周敏 holds no 上周, “带上周敏的爸” would.
    text = with_dates(text, turn.time)
    if meant is not None and meant.start == 0:
        voice = chinese_voice if one.chinese else english_voice
        text = voice.third_person(meant.name, text, meant.start, meant.end)
    elif meant is not None:
        return None
    first = _is_first_person(one)
    if (named and not first and meant is None) or (one.kind == "instruction" and not first):
        return None
    name = speaker_of(turn, chinese=one.chinese)
    in_project = bool(turn.project)
    known = _INTRODUCTION.match(text)
    introduced = (known["han"] or known["name"]) if known else None
    if known and introduced and f"{introduced} ".startswith(f"{turn.speaker_name} "):
        text = f"{known[1] or ''}{text[known.end() :]}"
        name = introduced  # "I'm Lena Brandt" of Lena: the whole name says more
    if one.chinese:
        subject = meant is not None
        return chinese_voice.retold(text, name, in_project=in_project, is_known=subject)
    name = f"the{name[3:]}" if name.startswith("The user") else name
    return english_voice.retold(text, Speaker(name, in_project=in_project))


def _is_first_person(one: Statement) -> bool:
    voice = chinese_voice if one.chinese else english_voice
    return bool(voice.is_first_person(one.text))


def _bracketed(text: str, meant: Meant | None, *, chinese: bool) -> str:
    if meant is None:
        return text
    name = f"（{meant.name}）" if chinese else f" [{meant.name}]"
    return f"{text[: meant.end]}{name}{text[meant.end :]}"


def _framed(speaker: str, words: str, turn: Evidence, *, chinese: bool) -> Told:
    """Returns words under their speaker's name, with their dates, short enough for a block."""
    said = plain(words)
    dated = with_dates(said, turn.time)
    over = len(quoted(speaker, dated, chinese=chinese)) - LONGEST_BLOCK
    if over > 0:
        dated = said
        over = len(quoted(speaker, said, chinese=chinese)) - LONGEST_BLOCK
    if over > 0:
        dated = f"{said[: max(0, len(said) - over - len(_CUT))]}{_CUT}"
    return Told(words=dated, speaker=speaker, chinese=chinese)


def joined(first: Told, second: Told) -> Told | None:
    """Returns two neighbours of one turn as one paragraph, None where they do not belong together.

    Where one of them had to be quoted, both are: half a paragraph in quotation marks reads badly.
    """
    if not first.speaker and second.speaker and first.said is not None:
        first = first.said
    elif first.speaker and not second.speaker and second.said is not None:
        second = second.said
    if (first.speaker, first.chinese) != (second.speaker, second.chinese):
        return None
    space = "" if first.chinese else " "
    gap = (
        space
        if first.words.endswith(tuple('.!?。！？…;；”"'))
        else ("；" if first.chinese else "; ")
    )
    both = msgspec.structs.replace(first, words=f"{first.words}{gap}{second.words}")
    return both if len(both.text()) <= LONGEST_BLOCK else None
