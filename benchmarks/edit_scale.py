"""One edit in a small and in a large memory: its time must not grow with the memory.

Run: python benchmarks/edit_scale.py [--blocks 100,100000] [--edits 40]

Two edits are timed, from the call to its return: one by a person, a reworded paragraph in a topic's
file that is taken in; and one by `memory.edit`. Topics have 50 blocks each. Both the clock and the
CPU of the process are read: on a busy machine the second says more. A small memory is edited first
without being counted, and the first edits of each are not counted either: no size pays for imports
or cold caches. The last lines are the ratios of the medians, largest to smallest memory: at most
1.5.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

import anyio
from at_memory import memory_at_work

from turnmark_memory import Memory
from turnmark_memory.model import Revise
from turnmark_memory.requests import EditRequest

_PER_TOPIC = 50
_KINDS = ("a person's save", "memory.edit")
_WARM_UP = 8
"""Edits of each memory that are not counted."""
_EDITED = 100
"""Blocks that are edited in every memory: a topic with more of a past costs more to look at."""

Cost = tuple[float, float]
"""Seconds on the clock, and of the process's CPU."""


def fill(root: Path, blocks: int) -> None:
    """Writes topics with so many blocks."""
    for number in range(-(-blocks // _PER_TOPIC)):
        lines = [
            f"Fact {one} is about harbour {one % 97} and 港口 {one % 89}. ^b-{one:08x}"
            for one in range(number * _PER_TOPIC, min(blocks, (number + 1) * _PER_TOPIC))
        ]
        file = root / "memory" / "topics" / "subjects" / f"group-{number // 500}" / f"t{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\nabout: t{number}\n---\n# T\n\n" + "\n\n".join(lines) + "\n")


async def measure(blocks: int, edits: int) -> dict[str, Cost]:
    """Returns the medians of each kind of edit."""
    with tempfile.TemporaryDirectory(prefix="turnmark-edits-") as made:
        root = Path(made)
        fill(root, blocks)
        began = time.perf_counter()
        async with memory_at_work(place=root) as (_, memory):
            opened = time.perf_counter() - began
            costs: dict[str, list[Cost]] = {kind: [] for kind in _KINDS}
            for number in range(_WARM_UP + edits):
                block = number * 37 % min(blocks, _EDITED)
                costs[_KINDS[0]].append(await by_hand(root, memory, block, number))
                costs[_KINDS[1]].append(await by_edit(memory, (block + 1) % blocks, number))
        found = {kind: _median(values[_WARM_UP:]) for kind, values in costs.items()}
        shown = ", ".join(
            f"{kind} {clock * 1e3:.1f} ms ({cpu * 1e3:.1f} of CPU)"
            for kind, (clock, cpu) in found.items()
        )
        print(f"{blocks:>9,} blocks: {shown} (opened in {opened:.1f} s)", flush=True)
        return found


def _median(costs: list[Cost]) -> Cost:
    clock, cpu = zip(*costs, strict=True)
    return statistics.median(clock), statistics.median(cpu)


async def by_hand(root: Path, memory: Memory, block: int, number: int) -> Cost:
    """Rewords one paragraph in its file, and times the intake."""
    topic = block // _PER_TOPIC
    file = root / "memory" / "topics" / "subjects" / f"group-{topic // 500}" / f"t{topic}.md"
    text = file.read_text()
    file.write_text(text.replace(f"Fact {block} ", f"Fact {block} (by hand {number}) "))
    return await _cost(memory.files_changed([str(file)]))


async def by_edit(memory: Memory, block: int, number: int) -> Cost:
    """Revises one block on purpose."""
    edit = Revise(block=f"b-{block:08x}", text=f"Fact {block}, edited {number}.", cites=())
    return await _cost(memory.edit(EditRequest(edits=(edit,))))


async def _cost(call: Awaitable[object]) -> Cost:
    clock, cpu = time.perf_counter(), time.process_time()
    await call
    return time.perf_counter() - clock, time.process_time() - cpu


def main() -> None:
    """Prints the medians and their ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--blocks", default="100,100000")
    parser.add_argument("--edits", type=int, default=40)
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.blocks.split(",")]
    print("warm-up, not counted:", flush=True)
    anyio.run(measure, min(sizes), asked.edits)
    found = [anyio.run(measure, size, asked.edits) for size in sizes]
    for kind in _KINDS:
        (clock, cpu), (first_clock, first_cpu) = found[-1][kind], found[0][kind]
        print(f"{kind}: {clock / first_clock:.2f} times as long, {cpu / first_cpu:.2f} of CPU")


if __name__ == "__main__":
    main()
