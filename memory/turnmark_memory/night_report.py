"""What a night did, for a person: a page under `.turnmark/nights/`, and the same lines on request.

It names topics, blocks and revisions and repeats none of their words: when words are forgotten,
only the name of a topic that went with them has to be taken out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Final

import msgspec

from turnmark_memory.holding import Held
from turnmark_memory.rooted import Rooted, names_in
from turnmark_memory.workspace import PRIVATE, STAGING

NIGHTS: Final = f"{PRIVATE}/nights"

_KEPT: Final = 400
"""Reports that are kept: a year and a little."""

_NAMED: Final = 20
"""Blocks and topics that a line names at most."""

_DID: Final[Mapping[str, tuple[str, str]]] = {
    "merge": ("merge of blocks", "merges of blocks"),
    "split": ("split of a block", "splits of blocks"),
    "move": ("move of a block", "moves of blocks"),
    "retire": ("block superseded", "blocks superseded"),
}


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """A revision that the night made: what for, the edits by kind, the topics, the blocks."""

    revision: int
    cause: str
    edits: dict[str, int]
    topics: tuple[str, ...]
    blocks: tuple[str, ...]


class NightReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one night did. `asked` questions of a model, `failed` of them without a usable answer.

    `waiting` parts of topics were left for later nights. `left_out` are blocks for which the core
    page had no room.
    """

    date: date
    carried: tuple[Carried, ...]
    model: str | None
    asked: int
    failed: int
    rejected: int
    waiting: int
    problems: tuple[str, ...]
    core_tokens: int
    core_blocks: int
    left_out: tuple[str, ...]
    owed: int
    held: tuple[Held, ...]

    @property
    def changed(self) -> int:
        """The number of blocks that the night changed."""
        return len({block for one in self.carried for block in one.blocks})


def lines(report: NightReport) -> list[str]:
    """Returns the report, a sentence a line."""
    return [
        *_changes(report),
        *_tidying(report),
        f"The core page shows {_count(report.core_blocks, 'block')} in "
        f"{_count(report.core_tokens, 'token')}."
        + (f" No room for {_named(report.left_out)}." if report.left_out else ""),
        f"{_count(report.owed, 'turn')} still owed." if report.owed else "Nothing is owed.",
        *(_of_held(one) for one in report.held),
        *report.problems,
    ]


def page(report: NightReport) -> str:
    """Returns the report as a page of Markdown."""
    return f"# Night of {report.date.isoformat()}\n\n" + "".join(
        f"- {line}\n" for line in lines(report)
    )


def write_report(tree: Rooted, report: NightReport) -> str:
    """Writes the page of a night, durably, and drops old ones; returns its path in the workspace.

    Raises:
        Unavailable: if the disk fails.
    """
    path = f"{NIGHTS}/{report.date.isoformat()}.md"
    tree.replace(path, page(report).encode(), staging=STAGING)
    for name in _pages(tree)[:-_KEPT]:
        tree.remove(f"{NIGHTS}/{name}")
    return path


def newest_report(tree: Rooted) -> str | None:
    """Returns the path of the newest page in the workspace, None where there is none."""
    pages = _pages(tree)
    return f"{NIGHTS}/{pages[-1]}" if pages else None


def hide_in_reports(tree: Rooted, topics: Collection[str], name: str) -> None:
    """Puts `name` in place of those topics in every page.

    Raises:
        Unavailable: if the disk fails.
    """
    longest_first = sorted(topics, key=len, reverse=True)
    named = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?=[,.;:)\\s]|$)")
    for file in _pages(tree):
        path = f"{NIGHTS}/{file}"
        text = (tree.read(path) or b"").decode("utf-8", "surrogateescape")
        hidden = named.sub(name, text)
        if hidden != text:
            tree.replace(path, hidden.encode("utf-8", "surrogateescape"), staging=STAGING)


def _pages(tree: Rooted) -> list[str]:
    with tree.directory(NIGHTS, create=True) as fd:
        return sorted(name for name in names_in(fd) if name.endswith(".md"))


def _changes(report: NightReport) -> Iterator[str]:
    if not report.carried:
        yield "Nothing was changed."
    for one in report.carried:
        did = ", ".join(
            f"{number} {_DID[kind][number != 1]}"
            for kind, number in sorted(one.edits.items())
            if kind in _DID
        )
        yield (
            f"Revision {one.revision}, {one.cause}{': ' if did else ''}{did}; "
            f"topics {_named(one.topics)}. `turnmark undo {one.revision}` takes it back."
        )


def _tidying(report: NightReport) -> Iterator[str]:
    if report.model is None:
        return
    if not report.asked:
        yield f"{report.model} was not asked: nothing changed that it has not tidied."
        return
    yield f"{report.model} was asked {_count(report.asked, 'question')}." + (
        f" {_count(report.failed, 'question')} brought no usable answer and will be asked again."
        if report.failed
        else ""
    )
    if report.rejected:
        yield f"{_count(report.rejected, 'edit')} of its answers could not be accepted."
    if report.waiting:
        yield f"{_count(report.waiting, 'part')} of topics wait for the next nights."


def _of_held(one: Held) -> str:
    return (
        f"Held: {one.name} would remove {one.removes} of {one.blocks} blocks. "
        f"`turnmark organize --approve {one.name}` does it, `--discard {one.name}` drops it."
    )


def _named(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
