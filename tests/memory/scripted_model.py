"""A model that answers by a script: what it says follows from what it is shown, and nothing else.

It reads a question's material as a model would: turns by `ref`, blocks by id. A card tells what to
make of words in a turn. What a card wants to change and is not shown is `missed`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from turnmark_memory.models.model import Question, Reply


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """When a turn holds `says`: write `text`, in place of the block that holds `about` if given.

    `goes` is the reason to take that block out instead.
    """

    says: str
    text: str = ""
    topic: str = "subjects/facts"
    heading: str | None = None
    about: str | None = None
    goes: str | None = None
    keeps_cites: bool = False


class ScriptedModel:
    """Answers each question by its cards; keeps what it was asked."""

    name = "script/week"
    is_local = True

    def __init__(self, cards: Sequence[Card]) -> None:
        self.cards = cards
        self.questions: list[Question] = []
        self.missed: list[str] = []
        self.played: list[str] = []

    async def ask(self, question: Question) -> Reply:
        """Returns the edits of all cards whose words are in a turn, or an honest nothing."""
        self.questions.append(question)
        lines = [json.loads(line) for line in question.material.splitlines()]
        turns = [line for line in lines if "ref" in line]
        blocks = [line for line in lines if "block" in line]
        edits = [
            self._edit(card, turn["ref"], blocks)
            for turn in turns
            for card in self.cards
            if card.says in turn["text"]
        ]
        answer = {"edits": edits, "nothing": None if edits else "nothing to keep"}
        text = json.dumps(answer, ensure_ascii=False)
        return Reply(text=text, prompt_tokens=len(question.material), answer_tokens=len(text))

    def _edit(self, card: Card, ref: str, blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
        self.played.append(card.says)
        block = next((one for one in blocks if card.about and card.about in one["text"]), None)
        if block is None and card.about is not None:
            self.missed.append(card.about)
        if block is None:
            heading = card.heading
            return _add(card, heading, ref)
        if card.goes is not None:
            return {"op": "retire", "block": block["block"], "reason": card.goes, "successor": None}
        cites = [*block["cites"], ref] if card.keeps_cites else [ref]
        return {"op": "revise", "block": block["block"], "text": card.text, "cites": cites}


def _add(card: Card, heading: str | None, ref: str) -> dict[str, Any]:
    return {"op": "add", "topic": card.topic, "heading": heading, "text": card.text, "cites": [ref]}
