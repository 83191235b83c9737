"""The models that the configuration names, by what they are for. Making one connects nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from turnmark_memory.models import anthropic, openai
from turnmark_memory.models.anthropic import AnthropicModel
from turnmark_memory.models.command import CommandModel, check_program
from turnmark_memory.models.keys import api_key
from turnmark_memory.models.model import Model
from turnmark_memory.models.openai import OpenAIModel
from turnmark_memory.models.settings import ModelSettings
from turnmark_memory.writers.writer import WriterFailed


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """A model for each of three tasks, None where there is none.

    `write` distils batches, `tidy` works at night, `select` chooses topics for a question.
    """

    write: Model | None = None
    tidy: Model | None = None
    select: Model | None = None


def make_model(settings: ModelSettings, *, directory: Path, environ: Mapping[str, str]) -> Model:
    """Returns the model that `settings` describe; a wrong key or address shows when it is asked.

    `directory` is where a program runs: sessions that it notes there are never read in (law 15).
    `environ` is where keys are looked up, and what a program inherits.
    """
    match settings.kind:
        case "openai":
            return OpenAIModel(settings, environ)
        case "anthropic":
            return AnthropicModel(settings, environ)
        case "command":
            return CommandModel(settings, directory, environ)


def missing(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Returns what a model lacks that can be seen without asking it, None if nothing is known.

    Looks for its key, or its program; connects nowhere.
    """
    try:
        match settings.kind:
            case "openai":
                api_key(settings, openai.KEY_NAME, environ)
            case "anthropic":
                api_key(settings, anthropic.KEY_NAME, environ)
            case "command":
                check_program(settings, environ)
    except WriterFailed as failure:
        return failure.reason
    return None


def make_models(
    *,
    write: ModelSettings | None,
    tidy: ModelSettings | None,
    select: ModelSettings | None,
    directory: Path,
    environ: Mapping[str, str],
) -> Models:
    """Returns a model for each task that has settings; equal settings share one model."""
    made: dict[ModelSettings, Model] = {}
    for settings in (write, tidy, select):
        if settings is not None and settings not in made:
            made[settings] = make_model(settings, directory=directory, environ=environ)

    def of(settings: ModelSettings | None) -> Model | None:
        return None if settings is None else made[settings]

    return Models(write=of(write), tidy=of(tidy), select=of(select))
