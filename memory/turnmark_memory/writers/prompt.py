"""The question that a batch is: the rules, what the memory holds that matters, and the turns.

Its size is that of the turns, plus the rules, plus two budgets that don't depend on the memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from turnmark_memory.model import Batch, Evidence, ShownBlock
from turnmark_memory.models.model import Question
from turnmark_memory.topic_path import CORE
from turnmark_memory.writers import edit_schema
from turnmark_memory.writers.json_line import json_line
from turnmark_memory.writers.rules import AGAIN, rules_for

BLOCKS_BUDGET_TOKENS: Final = 5_000
"""For blocks beside a batch: two dozen paragraphs."""

TOPICS_BUDGET_TOKENS: Final = 1_500
"""For topics and what they are about: some sixty lines."""

_ANSWER_LIMIT_TOKENS: Final = 8_000
"""Edits of a full batch take a quarter of it; the rest is for models that reason first, and some
servers allow no more."""

_NAME_LIMIT_CHARACTERS: Final = 80
_TITLE_LIMIT_CHARACTERS: Final = 120
_ABOUT_LIMIT_CHARACTERS: Final = 200
_REJECTED_LIMIT_CHARACTERS: Final = 24_000
_REASONS_SHOWN: Final = 20
_PATH_WORD: Final = re.compile(r"[^/_.\s-]+")

Count = Callable[[str], int]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question about a batch; `refs` gives the label for each short name that a turn has in it.

    Short names are shorter than labels, and no model mistypes them.
    """

    question: Question
    refs: Mapping[str, str]


def question_about(batch: Batch, count: Count, place: tuple[int, int] = (1, 1)) -> Asked:
    """Returns the question that a batch is; `count` gives the tokens of a text.

    `place` says which part of how many it is, where what belongs together was too long.
    """
    refs = {f"t{number}": turn.label for number, turn in enumerate(batch.turns, start=1)}
    names = {label: ref for ref, label in refs.items()}
    blocks = _within(BLOCKS_BUDGET_TOKENS, (_block(one, names) for one in batch.blocks), count)
    topics = _within(TOPICS_BUDGET_TOKENS, map(_topic, _by_relevance(batch)), count)
    speakers = _speakers(batch.turns)
    turns = [
        _turn(ref, turn, speaker)
        for ref, turn, speaker in zip(refs, batch.turns, speakers, strict=True)
    ]
    return Asked(
        question=Question(
            instructions=rules_for(batch.turns),
            material="\n".join([_conversation(batch, place), *topics, *blocks, *turns]),
            schema_name=edit_schema.NAME,
            schema=edit_schema.SCHEMA,
            max_answer_tokens=_ANSWER_LIMIT_TOKENS,
        ),
        refs=refs,
    )


def asked_again(asked: Asked, answer: str, reasons: Sequence[str]) -> Asked:
    """Returns the question once more, with an answer that could not be used and the reasons."""
    names = {label: ref for ref, label in asked.refs.items()}
    last: dict[str, Any] = {
        "answer": _with_names(answer[:_REJECTED_LIMIT_CHARACTERS], names),
        "reasons": [_with_names(reason, names) for reason in reasons[:_REASONS_SHOWN]],
    }
    question = msgspec.structs.replace(
        asked.question,
        instructions=asked.question.instructions + AGAIN,
        material=f"{asked.question.material}\n{json_line(last)}",
    )
    return msgspec.structs.replace(asked, question=question)


def _within(budget_tokens: int, lines: Iterable[str], count: Count) -> list[str]:
    """Returns those of `lines` that fit, in their order: one that doesn't makes room for others."""
    kept: list[str] = []
    left_tokens = budget_tokens
    for line in lines:
        cost_tokens = count(line) + 1
        if cost_tokens <= left_tokens:
            kept.append(line)
            left_tokens -= cost_tokens
    return kept


def _by_relevance(batch: Batch) -> list[tuple[str, str]]:
    """Returns the topics: of the blocks, usual ones, those that the turns name, then all.

    The core page is none of them: what stands there is for people to arrange.
    """
    spoken = "\n".join(turn.text for turn in batch.turns).casefold()
    ranks = {block.topic: rank for rank, block in reversed(list(enumerate(batch.blocks)))}

    for topic, _ in batch.usual:
        ranks.setdefault(topic, len(ranks))
    last = len(ranks)

    def rank(topic: tuple[str, str]) -> tuple[int, int]:
        words = _PATH_WORD.findall(topic[0].partition("/")[2].casefold())
        return ranks.get(topic[0], last), -sum(word in spoken for word in words)

    return sorted((topic for topic in batch.topics if topic[0] != CORE), key=rank)


def _conversation(batch: Batch, place: tuple[int, int]) -> str:
    first = batch.turns[0]
    said: dict[str, Any] = {
        "agent": first.agent,
        "project": PurePosixPath(first.project or "").name or None,
    }
    if title := " ".join((first.title or "").split())[:_TITLE_LIMIT_CHARACTERS]:
        said["title"] = title
    number, of = place
    return json_line({"conversation": said | ({"part": f"{number} of {of}"} if of > 1 else {})})


def _topic(topic: tuple[str, str]) -> str:
    path, about = topic
    return json_line({"topic": path, "about": about[:_ABOUT_LIMIT_CHARACTERS]})


def _block(block: ShownBlock, names: Mapping[str, str]) -> str:
    return json_line(
        {
            "block": block.block,
            "topic": block.topic,
            "heading": block.heading,
            "text": block.text,
            "cites": [names.get(label, label) for label in block.cites],
        }
    )


def _turn(ref: str, turn: Evidence, speaker: str | None) -> str:
    return json_line(
        {
            "ref": ref,
            "role": turn.role,
            "speaker": speaker,
            "time": turn.time.strftime("%Y-%m-%d %H:%M, %a"),
            "text": turn.text,
        }
    )


def _speakers(turns: Sequence[Evidence]) -> list[str | None]:
    """Returns who spoke each turn; two people of one name are told apart by their ids."""
    people = {(turn.speaker_name, turn.speaker_id) for turn in turns if turn.speaker_name}
    namesakes = Counter(name for name, _ in people)

    def shown(turn: Evidence) -> str | None:
        name, id = turn.speaker_name, turn.speaker_id  # noqa: A001  the field's name
        known = name or id
        if name and id and namesakes[name] > 1:
            known = f"{name[:_NAME_LIMIT_CHARACTERS]} ({id})"
        return None if known is None else known[: 2 * _NAME_LIMIT_CHARACTERS]

    return [shown(turn) for turn in turns]


def _with_names(text: str, names: Mapping[str, str]) -> str:
    """Returns `text` with the names that the model knows turns by in place of their labels."""
    if not names:
        return text
    labels = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"\b(?:{labels})\b", lambda found: names[found[0]], text)
