"""The kinds of writers there are."""

from __future__ import annotations

from collections.abc import Callable

from turnmark_events.errors import Refused
from turnmark_memory.models.model import Model
from turnmark_memory.token_estimate import Estimate
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_memory.writers.model_writer import PART_TOKENS, ModelWriter
from turnmark_memory.writers.writer import Writer

_BUILTIN = "builtin"
_OF_MODELS = ("openai", "anthropic", "command")

WRITER_KINDS: tuple[str, ...] = (_BUILTIN, *_OF_MODELS)


def make_writer(
    kind: str,
    model: Model | None = None,
    *,
    count: Callable[[str], int] | None = None,
    trigger_tokens: int | None = None,
) -> Writer:
    """Returns a new writer of `kind`, one of `WRITER_KINDS`; all but `builtin` ask `model`.

    `count` gives the tokens of a text; without it they are estimated. `trigger_tokens` make a full
    batch: what is much longer is asked about in parts.

    Raises:
        Refused: if this version has no writer of that kind, or it has no model to ask.
    """
    if kind == _BUILTIN:
        return BuiltinWriter()
    if kind not in _OF_MODELS:
        message = f"There is no writer {kind!r}; set writer.kind to one of: "
        raise Refused(message + f"{', '.join(WRITER_KINDS)}.", writer=kind)
    if model is None:
        raise Refused(f"The writer {kind!r} needs a model; set writer.model.", writer=kind)
    part_tokens = PART_TOKENS if trigger_tokens is None else trigger_tokens * 5 // 4
    return ModelWriter(model, count or Estimate().count, part_tokens=part_tokens)
