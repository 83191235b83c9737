"""Says what was measured, as a table or for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from writing.judging import MEASURES, Count, Judged
from writing.labelled import Conversation

_NONE = "–"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A measure over a group of conversations."""

    half: str
    group: str
    measure: str
    precision: float | None
    recall: float | None
    given: int
    wanted: int


Result = tuple[Conversation, Judged]


def rows(results: Sequence[Result]) -> Iterator[Row]:
    """Yields the rows of each half: all of it, by language, by kind."""
    for half in dict.fromkeys(conversation.half for conversation, _ in results):
        mine = [one for one in results if one[0].half == half]
        yield from _rows(half, "all", mine)
        yield from _by(half, mine, lambda conversation: conversation.language)
        yield from _by(half, mine, lambda conversation: conversation.kind)


def table(found: Sequence[Row]) -> Iterator[str]:
    """Yields lines: precision / recall (of how many given, wanted) of each measure and group."""
    for half in dict.fromkeys(row.half for row in found):
        mine = [row for row in found if row.half == half]
        groups = list(dict.fromkeys(row.group for row in mine))
        yield f"{half + ': precision / recall':<27}" + "".join(f"{name:>15}" for name in groups)
        for measure in MEASURES:
            cells = [row for row in mine if row.measure == measure]
            shown = "".join(
                f"{_share(row.precision)} / {_share(row.recall)}".rjust(15) for row in cells
            )
            of = cells[0]
            yield f"  {measure:<15}{of.given:>4}/{of.wanted:<5}{shown}"
        yield ""


def _by(half: str, results: Sequence[Result], name: Callable[[Conversation], str]) -> Iterator[Row]:
    for group in sorted({name(conversation) for conversation, _ in results}):
        yield from _rows(half, group, [one for one in results if name(one[0]) == group])


def _rows(half: str, group: str, results: Sequence[Result]) -> Iterator[Row]:
    for measure in MEASURES:
        count = sum((judged.counts[measure] for _, judged in results), Count())
        yield Row(
            half=half,
            group=group,
            measure=measure,
            precision=count.precision,
            recall=count.recall,
            given=count.given,
            wanted=count.wanted,
        )


def _share(share: float | None) -> str:
    return _NONE if share is None else f"{share:.2f}"
