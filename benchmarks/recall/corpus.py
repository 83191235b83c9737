"""A set to measure with: turns that go into one memory, and questions with their evidence."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

Half = Literal["learn", "report"]
Role = Literal["user", "assistant"]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a session; `id` is unique in its corpus."""

    id: str
    session: str
    project: str | None
    time: datetime
    role: Role
    speaker: str | None
    text: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question; `evidence` are the turns that answer it, empty where nothing does.

    `group` is what it is reported under: a language, `cross`, a category of LoCoMo, or the kind of
    unanswerable. Weights and thresholds are chosen on the half `learn` alone.
    """

    id: str
    text: str
    group: str
    half: Half
    evidence: tuple[str, ...] = ()


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into one memory, oldest first, and what is asked of it."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    @property
    def session_of(self) -> dict[str, str]:
        """The session of each turn."""
        return {turn.id: turn.session for turn in self.turns}
