"""The labelled corpus: conversations, and what a careful reader would keep of each turn."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

Half = Literal["learn", "held_out"]
HALVES: tuple[Half, ...] = ("learn", "held_out")
CORPUS = Path(__file__).parents[1] / "writer_corpus"


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """The speaker, where the agent says who it is."""

    id: str
    name: str


class Gold(msgspec.Struct, frozen=True, kw_only=True):
    """One thing worth keeping; `../writer_corpus/README.md` explains the fields."""

    id: str
    what: str
    quotes: tuple[str, ...]
    topics: tuple[str, ...]
    needs: tuple[tuple[str, ...], ...] = ()
    also: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    supersedes: str | None = None
    duplicate_of: str | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn with its labels."""

    id: str
    conversation: str
    kind: str
    language: str
    session: str
    agent: str
    project: str | None
    role: Literal["user", "assistant"]
    speaker: Who | None
    time: str
    text: str
    title: str | None = None
    keep: tuple[Gold, ...] = ()


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of one workspace, oldest first."""

    name: str
    half: Half
    turns: tuple[Turn, ...]

    @property
    def language(self) -> str:
        """The language that it is held in."""
        return self.turns[0].language

    @property
    def kind(self) -> str:
        """With whom: `coding`, `assistant` or `group`."""
        return self.turns[0].kind


def read(half: Half, *, titled: bool = False) -> list[Conversation]:
    """Returns the conversations of a half by name; `titled` sessions are called what groups are."""
    decoder = msgspec.json.Decoder(Turn)
    titles = _titles() if titled else {}
    return [
        Conversation(
            name=file.stem,
            half=half,
            turns=tuple(
                msgspec.structs.replace(turn, title=titles.get(turn.session))
                for turn in decoder.decode_lines(file.read_bytes())
            ),
        )
        for file in sorted((CORPUS / half).glob("*.jsonl"))
    ]


def _titles() -> dict[str, str]:
    return msgspec.json.decode((CORPUS / "titles.json").read_bytes(), type=dict[str, str])
