"""Turns, blocks and questions made from a seed: natural frequencies, English and Chinese."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate, count, islice
from random import Random

from turnmark_memory.index_schema import BlockDoc, TopicDoc, TurnDoc
from turnmark_memory.labels import label_of

_SEED = 20260809
_WORDS = 30_000
_HAN = "".join(chr(0x4E00 + 7 * i) for i in range(2_500))
_NAMES = ("Dana", "Priya", "Tom", "林晓", "陈默")
_START = datetime(2016, 1, 1, tzinfo=UTC)
SESSION_TURNS = 40
_EVERY_FIFTH = 5
TURNS_A_BLOCK = 4
_TOPIC_BLOCKS = 100
_BLOCK_CHARS = 120


class Speech:
    """Makes turns one by one and holds none; words are drawn by Zipf's law."""

    def __init__(self) -> None:
        self._random = Random(_SEED)
        letters = "abcdefghijklmnoprstuvw"
        draw = self._random.choices
        self._words = ["".join(draw(letters, k=draw(range(3, 10))[0])) for _ in range(_WORDS)]
        self._rising = list(accumulate(1 / (rank + 10) for rank in range(_WORDS)))
        self._rising_han = list(accumulate(1 / (rank + 20) for rank in range(len(_HAN))))

    def turns(self, number_of: int) -> Iterator[TurnDoc]:
        """Yields turns in sessions of 40, every fifth in Chinese; the same each time."""
        self._random.seed(_SEED)
        for number in range(number_of):
            session = f"session-{number // SESSION_TURNS}"
            namespace, name = f"family:{session}", str(number)
            yield TurnDoc(
                label=label_of(namespace, name),
                namespace=namespace,
                id=name,
                session=session,
                agent="agent",
                project=None,
                role="assistant" if number % 2 else "user",
                speaker_id=None,
                speaker_name=None if number % 2 else _NAMES[number % len(_NAMES)],
                time=_START + timedelta(minutes=5 * number),
                text=self.text(in_chinese=number % _EVERY_FIFTH == 0),
                path="sources/agent/session.jsonl",
                line=number + 1,
                position=number % SESSION_TURNS,
            )

    def topics(self, turns: int) -> Iterator[TopicDoc]:
        """Yields topics of a hundred blocks, each the beginning of every fourth turn, cited."""
        cited = islice(self.turns(turns), 0, None, TURNS_A_BLOCK)
        for number in count():
            blocks = tuple(
                BlockDoc(
                    block=f"b-{number * _TOPIC_BLOCKS + place:08x}",
                    topic=f"subjects/topic-{number}",
                    text=turn.text[:_BLOCK_CHARS],
                    cites=(turn.label,),
                )
                for place, turn in enumerate(islice(cited, _TOPIC_BLOCKS))
            )
            if not blocks:
                return
            yield TopicDoc(topic=blocks[0].topic, about="", tokens=0, blocks=blocks)

    def question(self, text: str, dice: Random) -> str:
        """Returns a question with a few of the words of `text`."""
        if text[0] >= "\u4e00":
            start = dice.randrange(max(len(text) - 6, 1))
            return text[start : start + 6] + "是什么"
        return "what did Dana say about " + " ".join(dice.sample(text.split(), 4))

    def text(self, *, in_chinese: bool) -> str:
        """Returns 12 to 80 signs or 8 to 60 words."""
        if in_chinese:
            length = self._random.randint(12, 80)
            return "".join(self._random.choices(_HAN, cum_weights=self._rising_han, k=length))
        length = self._random.randint(8, 60)
        return " ".join(self._random.choices(self._words, cum_weights=self._rising, k=length))
