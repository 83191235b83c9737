"""Reads LoCoMo from the reader's own copy: one corpus, and so one memory, per conversation.

LoCoMo (snap-research/locomo, `data/locomo10.json`) is CC BY-NC 4.0 and no part of this repository.
A document is one turn with the caption of its picture. A question counts where at least one of its
evidence ids names a turn, after `D8:6; D9:17` is split and `D:11:26` and `D30:05` are mended.
Categories 1 to 4 make the headline; 5 asks about the wrong person and is reported apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from recall.corpus import Corpus, Question, Turn

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
HEADLINE = frozenset(CATEGORIES[number] for number in (1, 2, 3, 4))

LEARN_CONVERSATIONS = 3
"""The first three are for learning, whatever the copy has more is for reporting."""

_DATE_FORMAT = "%I:%M %p on %d %B, %Y"
_BETWEEN_TURNS = timedelta(minutes=1)


def read(path: Path) -> list[Corpus]:
    """Returns a corpus for each conversation, in the order of the file."""
    samples: list[dict[str, Any]] = msgspec.json.decode(path.read_bytes())
    return [_corpus(sample, number) for number, sample in enumerate(samples)]


def clean_evidence(raw: Iterable[object], known: Iterable[str]) -> tuple[str, ...]:
    """Returns the ids of known turns that `raw` names, each once, in its order."""
    turns, found = set(known), dict[str, None]()
    for item in raw:
        for part in re.split(r"[;,\s]+", str(item)):
            if named := re.fullmatch(r"D:?(\d+):(\d+)", part):
                turn = f"D{int(named[1])}:{int(named[2])}"
                if turn in turns:
                    found[turn] = None
    return tuple(found)


def _corpus(sample: dict[str, Any], number: int) -> Corpus:
    name = str(sample["sample_id"])
    turns = tuple(_turns(name, sample["conversation"]))
    known = [turn.id for turn in turns]
    questions = tuple(
        Question(
            id=f"{name}#{place}",
            text=asked["question"],
            group=CATEGORIES[int(asked["category"])],
            half="learn" if number < LEARN_CONVERSATIONS else "report",
            evidence=evidence,
        )
        for place, asked in enumerate(sample["qa"])
        if (evidence := clean_evidence(asked.get("evidence") or (), known))
    )
    return Corpus(name=name, turns=turns, questions=questions)


def _turns(name: str, conversation: dict[str, Any]) -> Iterator[Turn]:
    numbers = sorted(
        int(found[1]) for key in conversation if (found := re.fullmatch(r"session_(\d+)", key))
    )
    for number in numbers:
        said = conversation[f"session_{number}_date_time"]
        time = datetime.strptime(said, _DATE_FORMAT).replace(tzinfo=UTC)
        for turn in conversation[f"session_{number}"] or ():
            time += _BETWEEN_TURNS
            caption = turn.get("blip_caption")
            text = turn.get("text") or ""
            yield Turn(
                id=turn["dia_id"],
                session=f"{name}/session-{number}",
                project=None,
                time=time,
                role="user" if turn["speaker"] == conversation["speaker_a"] else "assistant",
                speaker=turn["speaker"],
                text=f"{text} [shares {caption}]" if caption else text,
            )
