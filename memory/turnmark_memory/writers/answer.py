"""What a model answers to a batch, as edits: read leniently in form, strictly in content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from turnmark_memory.model import Add, Answer, Edit, Edits, Merge, Move, Nothing, Revise, Split
from turnmark_memory.models.answer_object import BadAnswer, answer_object
from turnmark_memory.models.loose_json import list_in
from turnmark_memory.writers.rules import NAME, WHY_NOTHING, WORDS

# A batch is some hundred turns at most; an answer with more edits is no distillate.
_EDITS_LIMIT: Final = 200

_REASON_LIMIT_CHARACTERS: Final = 300
_AROUND_CITES: Final = " []^()"
"""What models put around a name that they cite."""

FOUND_NOTHING: Final = "the model found nothing worth keeping"
"""What stands for a model's own reason: that may quote what was said, and events keep it."""

_OPS: Final = ("add", "revise", "retire", "move", "merge", "split")


def answer_in(text: str, refs: Mapping[str, str]) -> Answer:
    """Returns the edits, or the honest nothing, that a model's words hold.

    `refs` are the labels by the short names that turns had in the question.

    Raises:
        BadAnswer: if the words hold neither, or something that only looks like it.
    """
    found = answer_object(text)
    if "edits" not in found and "nothing" not in found:
        raise BadAnswer("the object has neither `edits` nor `nothing`")
    nothing = found.get("nothing")
    if nothing is not None and not isinstance(nothing, str):
        raise BadAnswer("`nothing` is neither null nor a sentence")
    edits = _edits(found.get("edits") or [], refs)
    if edits and nothing and nothing.strip():
        raise BadAnswer("the answer gives edits and says that there is nothing; choose one")
    if edits:
        return Edits(edits=edits)
    if not nothing or not nothing.strip():
        raise BadAnswer("the answer has no edits and no reason why there is nothing")
    if " ".join(nothing.split()).strip(" .").casefold() == WHY_NOTHING:
        raise BadAnswer("the reason for nothing is the rules' own; say it of these turns")
    return Nothing(reason=FOUND_NOTHING)


def _edits(found: Any, refs: Mapping[str, str]) -> tuple[Edit, ...]:
    if not isinstance(found, list):
        raise BadAnswer("`edits` is not an array")
    given = list_in(cast("object", found))
    if len(given) > _EDITS_LIMIT:
        raise BadAnswer(f"{len(given)} edits for one batch; give at most {_EDITS_LIMIT}")
    return tuple(_edit(number, one, refs) for number, one in enumerate(given))


def _edit(number: int, found: Any, refs: Mapping[str, str]) -> Edit:
    try:
        edit = msgspec.convert(found, Edit)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        where = f"edits[{number}]{place.rstrip('`')}"
        if where.endswith(".op"):
            problem = f"`op` is none of {', '.join(_OPS)}"
        raise BadAnswer(f"{where}: {problem[:_REASON_LIMIT_CHARACTERS]}") from error
    if _is_of_the_rules(edit):
        raise BadAnswer(f"edits[{number}] gives the rules' own words; write what the turns say")
    return _with_labels(edit, refs)


def _is_of_the_rules(edit: Edit) -> bool:
    """Tells whether an edit gives back what stands for something in the rules."""
    topic = edit.topic if isinstance(edit, Add | Move | Merge) else None
    if topic is not None and topic.endswith(f"/{NAME}"):
        return True
    return isinstance(edit, Add | Revise | Merge) and edit.text.strip(" .") == WORDS


def _with_labels(edit: Edit, refs: Mapping[str, str]) -> Edit:
    if isinstance(edit, Add | Revise):
        return msgspec.structs.replace(edit, cites=_labels(edit.cites, refs))
    if isinstance(edit, Split):
        parts = tuple(
            msgspec.structs.replace(part, cites=_labels(part.cites, refs)) for part in edit.parts
        )
        return msgspec.structs.replace(edit, parts=parts)
    return edit


def _labels(cites: Sequence[str], refs: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(refs.get(cite.strip(_AROUND_CITES), cite) for cite in cites)
