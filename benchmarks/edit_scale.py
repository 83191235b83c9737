"""One edit in a small and in a large memory: its time must not grow with the memory.

Run: python benchmarks/edit_scale.py [--blocks 100,100000] [--edits 40]

Two edits are timed, from the call to its return: one by a person, a reworded paragraph in a topic's
file that is taken in; and one by `memory.edit`. Topics have 50 blocks each. The last lines are the
ratios of the medians, largest to smallest memory: at most 1.5.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import anyio
from at_memory import memory_at_work

from turnmark_memory import Memory
from turnmark_memory.model import Revise
from turnmark_memory.requests import EditRequest

_PER_TOPIC = 50
_KINDS = ("a person's save", "memory.edit")


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


async def measure(blocks: int, edits: int) -> dict[str, float]:
    """Returns the median seconds of each kind of edit."""
    with tempfile.TemporaryDirectory(prefix="turnmark-edits-") as made:
        root = Path(made)
        fill(root, blocks)
        began = time.perf_counter()
        async with memory_at_work(place=root) as (_, memory):
            opened = time.perf_counter() - began
            times: dict[str, list[float]] = {kind: [] for kind in _KINDS}
            for number in range(edits):
                block = number * 37 % min(blocks, 5_000)
                times[_KINDS[0]].append(await by_hand(root, memory, block, number))
                times[_KINDS[1]].append(await by_edit(memory, (block + 1) % blocks, number))
        found = {kind: statistics.median(values) for kind, values in times.items()}
        shown = ", ".join(f"{kind} {seconds * 1e3:.1f} ms" for kind, seconds in found.items())
        print(f"{blocks:>9,} blocks: {shown} (opened in {opened:.1f} s)", flush=True)
        return found


async def by_hand(root: Path, memory: Memory, block: int, number: int) -> float:
    """Rewords one paragraph in its file, and times the intake."""
    topic = block // _PER_TOPIC
    file = root / "memory" / "topics" / "subjects" / f"group-{topic // 500}" / f"t{topic}.md"
    text = file.read_text()
    file.write_text(text.replace(f"Fact {block} ", f"Fact {block} (by hand {number}) "))
    began = time.perf_counter()
    await memory.files_changed([str(file)])
    return time.perf_counter() - began


async def by_edit(memory: Memory, block: int, number: int) -> float:
    """Revises one block on purpose."""
    edit = Revise(block=f"b-{block:08x}", text=f"Fact {block}, edited {number}.", cites=())
    began = time.perf_counter()
    await memory.edit(EditRequest(edits=(edit,)))
    return time.perf_counter() - began


def main() -> None:
    """Prints the medians and their ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--blocks", default="100,100000")
    parser.add_argument("--edits", type=int, default=40)
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.blocks.split(",")]
    found = [anyio.run(measure, size, asked.edits) for size in sizes]
    for kind in _KINDS:
        print(f"{kind}: {found[-1][kind] / found[0][kind]:.2f} times as long")


if __name__ == "__main__":
    main()
