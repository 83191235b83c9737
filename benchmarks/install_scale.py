"""One edit's install in a small and in a large memory: the time must not grow with the memory.

Run: python benchmarks/install_scale.py [--blocks 100,100000] [--installs 15]

Topics hold a hundred blocks each, said on one day; the edited topic is one of them. The archive has
a line for each block. Prints the median time of an install, and the ratio of the largest memory's
to the smallest's.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import structlog
from at_memory import memory_at_work, words

from turnmark_memory.archive import Archive
from turnmark_memory.compose import Work
from turnmark_memory.file_names import is_topic_name
from turnmark_memory.labels import block_id_of, label_of
from turnmark_memory.model import Add, Evidence
from turnmark_memory.workspace import Workspace

_PER_TOPIC = 100


def furnish(root: Path, blocks: int) -> None:
    """Makes a workspace of so many blocks, each with its source."""
    with Workspace.open(root) as workspace:
        archive = Archive(workspace)
        for topic in range(blocks // _PER_TOPIC):
            name = f"t{topic:05}"
            assert is_topic_name(name)
            turns = [_turn(topic, number) for number in range(_PER_TOPIC)]
            archive.append(turns)
            lines = [f"# {name}", ""]
            for number, turn in enumerate(turns):
                block = block_id_of(name, str(number))
                lines += [f"{turn.text}[^{turn.label}] ^{block}", ""]
            file = root / workspace.topic_file(f"subjects/{name}")
            file.write_text("\n".join(lines), encoding="utf-8")
        archive.close()


def _turn(topic: int, number: int) -> Evidence:
    name = f"turn-{topic}-{number}"
    text = f"Thing {number} of topic {topic} is on shelf {number * 7 % 13}."
    return Evidence(
        key=topic * _PER_TOPIC + number + 1,
        namespace="family:bench",
        id=name,
        label=label_of("family:bench", name),
        session=f"bench-{topic}",
        agent="bench",
        project=None,
        role="user",
        speaker_id=None,
        speaker_name="Dana",
        time=datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=topic),
        text=text,
        tokens=words(text),
    )


async def measure(blocks: int, installs: int) -> tuple[float, float]:
    """Returns the median seconds of an install of one new block: by the clock, and of CPU."""
    with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as made:
        place = Path(made)
        furnish(place / "memory", blocks)
        async with memory_at_work(place=place) as (_, memory):
            taken: list[tuple[float, float]] = []
            for number in range(installs + 3):
                label = label_of("family:bench", f"turn-0-{number}")
                topic = f"subjects/t{number % (blocks // _PER_TOPIC):05}"
                add = Add(topic=topic, text=f"News {number} of it.", cites=(label,))
                began, cpu = time.perf_counter(), time.process_time()
                await memory.installer.install(
                    [], cause="bench", works=[Work(name=f"w{number}", edits=(add,))]
                )
                taken.append((time.perf_counter() - began, time.process_time() - cpu))
            clock, busy = zip(*taken[3:], strict=True)
            return statistics.median(clock), statistics.median(busy)


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", default="100,100000")
    parser.add_argument("--installs", type=int, default=15)
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    found: list[tuple[float, float]] = []
    for blocks in map(int, asked.blocks.split(",")):
        found.append(anyio.run(partial(measure, blocks, asked.installs)))
        clock, busy = found[-1]
        print(f"{blocks} blocks: {clock * 1e3:.1f} ms an install, {busy * 1e3:.1f} ms of CPU")
    print(f"ratio: {found[-1][0] / found[0][0]:.2f}, of CPU {found[-1][1] / found[0][1]:.2f}")


if __name__ == "__main__":
    main()
