"""What the built-in writer keeps of labelled conversations: precision and recall, and its speed.

Run: python benchmarks/writer_quality.py [--half learn|held_out|all] [--misses [learn|held_out|all]]
     [--titled] [--batches N] [--together] [--locomo FILE] [--json]

Each conversation of `writer_corpus/` goes through a real memory, a batch per session, as sessions
fall silent. Measured: whether the right turns are kept; whether the statements are; whether each
is filed, stands alone, supersedes what it replaces; whether what is said again is cited and not
written again. The goals are 0.85 / 0.80. `--misses` lists what is wrong, of the half `learn` unless
another is named: nobody who works on the rules reads those of `held_out`. With `--titled` the
groups of the half `learn` are called as such groups are; the figures are those without. With
`--batches N` each session is written in N parts, so that most of what a turn replaces was written
before; the last line says how much of it the writer was shown. With `--together` all conversations
of a half go into one memory, as on a machine that is in use. LoCoMo is read from the reader's own
copy (or the variable LOCOMO). Speed is CPU time of one thread, so of one core.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import anyio
import msgspec
import structlog
from writing.judging import judge
from writing.labelled import HALVES, Conversation, Half, Turn, read
from writing.locomo_curve import Point, points
from writing.report import Result, Row, rows, table
from writing.shown import Shown, shown_in
from writing.speed import Speed, speed_of
from writing.written import Block, Written, write


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run measured."""

    rows: tuple[Row, ...]
    shown: Shown
    speed: Speed
    locomo: tuple[Point, ...]


async def written(turns: Sequence[Turn], batches: int) -> Written:
    """Returns what a memory of its own holds of `turns`."""
    with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as made:
        return await write(turns, Path(made), batches=batches)


def results(
    halves: Sequence[Half], *, titled: bool = False, batches: int = 1, together: bool = False
) -> tuple[list[Result], Shown]:
    """Returns how each conversation was judged, and how much the writer was shown."""
    found: list[Result] = []
    shown = Shown()
    for half in halves:
        read_in = read(half, titled=titled)
        turns = in_order(read_in)
        whole = anyio.run(written, turns, batches) if together else None
        for conversation in read_in:
            wrote = whole or anyio.run(written, conversation.turns, batches)
            states = states_of(conversation, wrote)
            found.append((conversation, judge(conversation.turns, states)))
            kept = frozenset(turn for state in states for block in state for turn in block.cites)
            shown += shown_in(conversation.turns, wrote.batches, kept)
    return found, shown


def in_order(conversations: Sequence[Conversation]) -> list[Turn]:
    """Returns the turns of all conversations, session by session as they began."""
    sessions = [
        list(said)
        for conversation in conversations
        for _, said in groupby(conversation.turns, key=lambda turn: turn.session)
    ]
    sessions.sort(key=lambda said: (said[0].time, said[0].session))
    return [turn for said in sessions for turn in said]


def states_of(conversation: Conversation, wrote: Written) -> list[tuple[Block, ...]]:
    """Returns what memory held of a conversation each time that this changed."""
    ids = {turn.id for turn in conversation.turns}
    mine = (
        tuple(block for block in state if not block.cites.isdisjoint(ids)) for state in wrote.states
    )
    return [state for state, _ in groupby(mine)]


def misses(found: Sequence[Result], half: str) -> Iterator[str]:
    """Yields a line for each miss."""
    for conversation, judged in found:
        if half in ("all", conversation.half):
            for miss in judged.misses:
                text = " ".join(miss.text.split())[:160]
                yield f"{miss.measure} | {miss.turn} | {miss.problem} | {text}"


def curve(found: Sequence[Point]) -> Iterator[str]:
    """Yields the curve's lines."""
    title = "LoCoMo, questions of categories 1-4"
    yield f"{title:<42}{'blocks/turn':>12}{'any cited':>11}{'all':>7}"
    for one in found:
        name = f"{one.name}, {one.shortest} letters or more" if one.shortest else one.name
        yield f"  {name:<40}{one.blocks_per_turn:>12.2f}{one.any:>11.3f}{one.all:>7.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="all", choices=(*HALVES, "all"))
    parser.add_argument("--misses", nargs="?", const="learn", choices=(*HALVES, "all"))
    parser.add_argument("--titled", action="store_true")
    parser.add_argument("--batches", type=int, default=1, help="parts that a session is cut into")
    parser.add_argument("--together", action="store_true", help="all in one memory")
    parser.add_argument("--locomo", default=os.environ.get("LOCOMO"))
    parser.add_argument("--json", action="store_true", help="the same for machines")
    given = parser.parse_args()
    quiet = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=quiet)
    halves = HALVES if given.half == "all" else (given.half,)
    judged, shown = results(
        halves, titled=given.titled, batches=max(1, given.batches), together=given.together
    )
    found = Found(
        rows=tuple(rows(judged)),
        shown=shown,
        speed=speed_of([turn for half in halves for one in read(half) for turn in one.turns]),
        locomo=tuple(points(Path(given.locomo))) if given.locomo else (),
    )
    if given.json:
        print(msgspec.json.encode(found).decode())
        return
    if given.misses:
        print("\n".join(misses(judged, given.misses)), end="\n\n")
    print("\n".join(table(found.rows)))
    print(found.shown.line())
    print(found.speed.line())
    if found.locomo:
        print("\n" + "\n".join(curve(found.locomo)))


if __name__ == "__main__":
    main()
