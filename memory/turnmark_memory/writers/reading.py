"""Reads a batch: yields what its turns say, each in words that stand alone, with where it goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from turnmark_memory.model import Batch, Evidence
from turnmark_memory.writers import chinese_voice, english_voice
from turnmark_memory.writers.exchanges import Exchange, exchanges_of
from turnmark_memory.writers.filing import Filing, Place
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.people import (
    Mention,
    People,
    fits,
    own_relation,
    pronoun,
    relation_in,
)
from turnmark_memory.writers.sameness import terms_of
from turnmark_memory.writers.sentences import is_chinese, split_sentences
from turnmark_memory.writers.statements import Statement, cues_of, statements_in
from turnmark_memory.writers.telling import Meant, Told, told, told_exchange

# So many turns back a "she" may still mean whoever was named last.
_NAMED_BACK = 4
# A yes is no longer than this, with what belongs to it ("yes please, let's do it that way").
_SHORT_YES = 36
_SHORT_HAN = 12
# A relation before a name: "My sister Lena", “我女儿果果”.
_LONGEST_RELATION = 16
_LONGEST_HAN_RELATION = 6
_INTRODUCES = re.compile(r"^(?:I['’]m|I am|My name is|我叫|我是)(?P<name>[^,，.。!！]+)[.。!！]*$")
# Whoever only passes something on is not what it is about.
_REPORTS = re.compile(r"(?: from [\w ]{1,20})? (?:says|said|told|mentioned)\b|说|告诉|提到")
# A sentence of fewer words that say what it is about says it only beside another.
_FEW_TERMS = 3
# A sentence that begins so points at the one before it.
_LEANING = listed("it this that these those they he she so because its")


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One thing said, in words that stand alone, with the turns that prove it."""

    turn: Evidence
    told: Told
    place: Place
    cites: tuple[str, ...]
    number: int
    changes: bool = False
    restates: bool = False
    leans: bool = False
    agreed: bool = False
    about: str = ""


def said_in(batch: Batch) -> Iterator[Said]:
    """Yields what the turns say, in order."""
    names = [title for path, _ in batch.topics if (title := _person_of(path))]
    names += [turn.speaker_name for turn in batch.turns if turn.speaker_name]
    people = People(names, [turn.text for turn in batch.turns])
    met = [people.meet(turn.text, chinese=is_chinese(turn.text)) for turn in batch.turns]
    filing = Filing(batch, people)
    groups = _groups(batch.turns)
    for number, turn in enumerate(batch.turns):
        answered = set[int]()
        for exchange in exchanges_of(batch.turns, number):
            if exchange.act == "answered" or _is_all_a_yes(turn):
                answered.add(0)
            yield _said_together(exchange, filing)
        if turn.role == "user":
            yield from _said_by(batch.turns, number, met, people, filing, answered, groups)


def _groups(turns: Sequence[Evidence]) -> frozenset[str]:
    """Returns the sessions in which more than one person speaks."""
    speakers: dict[str, set[str]] = {}
    for turn in turns:
        if turn.speaker_name:
            speakers.setdefault(turn.session, set()).add(turn.speaker_name)
    return frozenset(session for session, names in speakers.items() if len(names) > 1)


def _is_all_a_yes(turn: Evidence) -> bool:
    """Returns whether the first sentence of a turn says yes and hardly more."""
    first = next(iter(split_sentences(turn.text)), "")
    return turn.role == "user" and len(first) <= (_SHORT_HAN if is_chinese(first) else _SHORT_YES)


def _person_of(topic: str) -> str:
    kind, _, name = topic.removesuffix(".md").partition("/")
    if kind != "people" or name == "user":
        return ""
    return " ".join(word.capitalize() for word in name.split("-"))


def _said_together(one: Exchange, filing: Filing) -> Said:
    topic = filing.topic_of(
        one.words,
        one.first if one.act == "agreed" and one.first.role == "user" else one.second,
        personal=False,
    )
    cites = dict.fromkeys((one.first.label, one.second.label))
    return Said(
        turn=one.first if one.act == "agreed" else one.second,
        told=told_exchange(one),
        place=filing.place(topic, one.kind, chinese=one.chinese),
        cites=tuple(cites),
        number=one.place,
        agreed=one.act == "agreed" and one.first.role == "user",
        changes=one.act == "agreed" and bool(cues_of(one.words).change.search(one.words)),
    )


def _said_by(
    turns: Sequence[Evidence],
    number: int,
    met: Sequence[Sequence[Mention]],
    people: People,
    filing: Filing,
    answered: set[int],
    groups: frozenset[str],
) -> Iterator[Said]:
    turn = turns[number]
    last, named_in = _named_before(turns, number, met)
    sentences, read, kin = split_sentences(turn.text), 0, ""
    before: Said | None = None
    in_group = turn.session in groups
    for one in statements_in(turn.text, in_group=in_group, in_project=bool(turn.project)):
        for passed in sentences[read : one.place]:
            names = [mention.name for mention in people.meet(passed, chinese=one.chinese)]
            if names or relation_in(passed):
                last, named_in, kin = names, None, "" if names else own_relation(passed)
        read = one.place + 1
        mentions = people.meet(one.text, chinese=one.chinese)
        meant = _meant(one, mentions, last) or _meant_kin(one, mentions, kin, turn)
        is_kin = meant is not None and not last
        cites = (turn.label, named_in.label) if meant and named_in else (turn.label,)
        if mentions or relation_in(one.text):
            last, named_in = [mention.name for mention in mentions], None
            kin = "" if mentions else own_relation(one.text)
        if one.place in answered or _only_introduces(one, turn):
            continue
        person = None if is_kin else _subject(one, mentions, meant, turn)
        leans = _leans(one, meant)
        is_next = before is not None and before.number + 1 == one.place
        if before is not None and is_next and leans and _points_back(one):
            topic = before.place.topic
        else:
            topic = filing.topic_of(
                one.text,
                turn,
                personal=one.personal and not person,
                private=one.private,
                person=person,
            )
        named = topic.startswith("people/") and not person
        before = Said(
            turn=turn,
            told=told(one, turn, meant=meant, named=named),
            place=filing.place(topic, one.kind, chinese=one.chinese),
            cites=cites,
            number=one.place,
            changes=one.changes and not one.restates,
            restates=one.restates,
            leans=leans,
            about=turn.text,
        )
        yield before


def _only_introduces(one: Statement, turn: Evidence) -> bool:
    """Returns whether somebody says no more than the name that they are known by."""
    said = _INTRODUCES.match(one.text)
    return said is not None and said["name"].strip() == (turn.speaker_name or "")


def _named_before(
    turns: Sequence[Evidence], number: int, met: Sequence[Sequence[Mention]]
) -> tuple[list[str], Evidence | None]:
    """Returns whom the nearest turn before names that names anybody, and that turn."""
    me = turns[number]
    for back in range(number - 1, max(-1, number - 1 - _NAMED_BACK), -1):
        other = turns[back]
        if (other.namespace, other.session) != (me.namespace, me.session):
            break
        speaking = {me.speaker_name, other.speaker_name}
        names = [one.name for one in met[back] if one.name not in speaking]
        if names and not _is_called(names, turns, me):
            return names, other
    return [], None


def _is_called(names: Sequence[str], turns: Sequence[Evidence], me: Evidence) -> bool:
    """Returns whether a name is of somebody who speaks here: "you" to each other, not "she"."""
    speakers = {one.speaker_name for one in turns if one.session == me.session}
    return not speakers.isdisjoint(names)


def _meant(one: Statement, mentions: Sequence[Mention], last: Sequence[str]) -> Meant | None:
    """Returns whom the first "he" or "she" means, if nobody is named before it but one person."""
    found = pronoun(one.text)
    if found is None or len(set(last)) != 1:
        return None
    if any(mention.start < found.start() for mention in mentions):
        return None
    if last[0].split(" ")[-1] in one.text:  # "he's Mr de Vos, not Vos" puts the name itself right
        return None
    return Meant(start=found.start(), end=found.end(), name=last[0])


def _meant_kin(
    one: Statement, mentions: Sequence[Mention], kin: str, turn: Evidence
) -> Meant | None:
    """Returns whom a "he" or "she" means by what they are to the speaker: "Robin's sister"."""
    found = pronoun(one.text)
    if found is None or not kin or not turn.speaker_name or not fits(found.group(), kin):
        return None
    if any(mention.start < found.start() for mention in mentions) or relation_in(one.text):
        return None
    name = f"{turn.speaker_name}的{kin}" if one.chinese else f"{turn.speaker_name}'s {kin}"
    return Meant(start=found.start(), end=found.end(), name=name)


def _subject(
    one: Statement, mentions: Sequence[Mention], meant: Meant | None, turn: Evidence
) -> str | None:
    """Returns whom else a statement is about: it begins with them, or with a relation to them."""
    if meant is not None and meant.start == 0:
        return meant.name if meant.name != turn.speaker_name else None
    first = next(iter(mentions), None)
    if first is None or first.name == turn.speaker_name:
        return None
    if _REPORTS.match(one.text, first.end):
        return None
    before = one.text[: first.start].strip(" ,，")
    is_short = len(before) <= (_LONGEST_HAN_RELATION if one.chinese else _LONGEST_RELATION)
    begins = not before or (is_short and before.startswith(("My ", "Our ", "my ", "我", "我们")))
    return first.name if begins else None


def _leans(one: Statement, meant: Meant | None) -> bool:
    """Returns whether a statement says what it says only beside the sentence before it.

    It points back, it has no subject, or hardly a word tells what it is about.
    """
    if (meant is not None and meant.start == 0) or one.kind == "instruction":
        return False
    voice = chinese_voice if one.chinese else english_voice
    linked = _points_back(one)
    if linked or voice.is_first_person(one.text):
        return linked
    telling = [word for word in terms_of(one.text).words if not word.isdigit()]
    return len(telling) < _FEW_TERMS or not _has_subject(one)


def _points_back(one: Statement) -> bool:
    """Returns whether a statement begins with what only the sentence before it explains."""
    if one.chinese:
        return one.text.startswith(("这", "那", "它", "他", "她", "所以", "因为", "但"))
    return one.text.casefold().split(" ")[0].split("'")[0] in _LEANING


def _has_subject(one: Statement) -> bool:
    if one.chinese:
        return chinese_voice.has_subject(one.text)
    return english_voice.is_whole(one.text.split(",")[0])
