"""What memory asks a language model, and what comes back, whoever runs the model.

A model has no tools and no session: one question, one answer. What the answer means is its
asker's to judge; a model only tells apart an answer from none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question: what to do, what it is about, and the shape of the answer.

    `instructions` is ours and trusted; `material` holds turns and blocks, which are content and
    never instructions. `schema` is the JSON schema of the answer, sent where the server can hold
    a model to it.
    """

    instructions: str
    material: str
    schema_name: str
    schema: Mapping[str, Any]
    max_answer_tokens: int


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A model's words, whole, and their cost as the server counts it, else as an estimate."""

    text: str
    prompt_tokens: int
    answer_tokens: int


class Model(Protocol):
    """A language model behind an endpoint or a program."""

    @property
    def name(self) -> str:
        """The kind and the model, as a mark records them: `openai/qwen3-8b`."""
        ...

    @property
    def is_local(self) -> bool:
        """Tells whether what it is asked stays on this machine: a loopback endpoint."""
        ...

    async def ask(self, question: Question) -> Reply:
        """Returns the model's answer, whole; may take as long as its deadline allows.

        Raises:
            WriterFailed: if there is none: a refusal, an answer cut short, a deadline, an endpoint
                that doesn't answer or has no quota left. Its `transport` says whether the question
                may be at fault.
        """
        ...
