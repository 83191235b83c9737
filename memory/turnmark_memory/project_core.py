"""The core page as readers see it whom a rule keeps to their project."""

from __future__ import annotations

import re
from collections.abc import Iterator

from turnmark_memory.index import Index
from turnmark_memory.topic_format import CITE

_BETWEEN = "\n\n"
_PARAGRAPHS = re.compile(r"\n\s*\n")
_HEADING = re.compile(r"(#{1,6})\s[^\n]*")
_ITEM = re.compile(r"[-*+] |\d+[.)] ")


def core_within(core: str, project: str, index: Index) -> str:
    """Returns the page without what rests on other projects alone; empty if nothing stays.

    What cites nothing stays: a person wrote it there for every reader. A heading stays with a
    paragraph under it. Looks every cited turn up in the index.
    """
    kept: list[str] = []
    headings: list[tuple[int, str]] = []
    for paragraph in filter(str.strip, _PARAGRAPHS.split(core.strip("\n"))):
        if heading := _HEADING.fullmatch(paragraph):
            level = len(heading[1])
            headings = [above for above in headings if above[0] < level]
            headings.append((level, paragraph))
            continue
        lines = [unit for unit in _units(paragraph) if _stays(unit, project, index)]
        if lines:
            kept += [*(text for _, text in headings), "\n".join(lines)]
            headings = []
    return _BETWEEN.join(kept) + "\n" if kept else ""


def _units(paragraph: str) -> Iterator[str]:
    """Yields the items of a list, or the paragraph."""
    lines = paragraph.split("\n")
    if all(_ITEM.match(line) for line in lines):
        yield from lines
    else:
        yield paragraph


def _stays(unit: str, project: str, index: Index) -> bool:
    turns = [index.turn(found[2]) for found in CITE.finditer(unit)]
    return not turns or any(turn is not None and turn.project == project for turn in turns)
