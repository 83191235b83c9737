"""The round trip of `turnmark recall` from a shell: process, socket, daemon, search, and back.

Run: python benchmarks/recall_round_trip.py [--turns 2000] [--times 20] [--embedder auto|off]

A daemon of its own is started in a directory that goes away, and told turns in two languages; then
the command is run as a shell runs it. `python -c pass` beside it says how much of the time is the
start of any Python here. Milliseconds: median, and the slowest.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from random import Random

from recall.speech import Speech

from turnmark import connect_sync
from turnmark_memory.index_schema import TurnDoc

_GIVE_UP_SECONDS = 60
_SEED = 20260809
_COMMAND = (sys.executable, "-m", "turnmark")


@contextmanager
def daemon(place: Path, embedder: str) -> Generator[dict[str, str]]:
    """Gives the environment of a daemon that serves, with all that it owns under `place`."""
    config = place / "config.toml"
    config.write_text(f'[recall]\nembedder = "{embedder}"\n', encoding="utf-8")
    environment = {
        **os.environ,
        "TURNMARK_STATE": str(place / "state"),
        "TURNMARK_WORKSPACE": str(place / "memory"),
        "TURNMARK_CONFIG": str(config),
    }
    with subprocess.Popen((*_COMMAND, "serve"), env=environment, stdout=subprocess.DEVNULL) as run:
        try:
            _wait_until_it_serves(environment)
            yield environment
        finally:
            run.terminate()


def _wait_until_it_serves(environment: dict[str, str]) -> None:
    until = time.monotonic() + _GIVE_UP_SECONDS
    asked = (*_COMMAND, "status")
    while subprocess.run(asked, env=environment, capture_output=True, check=False).returncode:
        if time.monotonic() > until:
            sys.exit("the daemon does not serve")


def fill(place: Path, turns: Iterator[TurnDoc]) -> None:
    """Tells the daemon turns, and has them written to memory."""
    with connect_sync(state=place / "state") as client:
        for session, said in groupby(turns, key=lambda turn: turn.session):
            given = [{"role": one.role, "text": one.text} for one in said]
            client.append_turns(session, given, key=session)
        client.flush()


def timed(times: int, run: Callable[[int], object]) -> str:
    """Returns the median and the slowest of some runs, the first of which does not count."""
    run(0)
    taken: list[float] = []
    for number in range(1, times + 1):
        began = time.perf_counter()
        run(number)
        taken.append(1_000 * (time.perf_counter() - began))
    return f"{statistics.median(taken):7.1f} {max(taken):7.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--embedder", choices=["auto", "off"], default="off")
    given = parser.parse_args()
    speech, dice = Speech(), Random(_SEED)
    texts = [turn.text for turn in islice(speech.turns(given.turns), 0, None, 37)]
    questions = [speech.question(dice.choice(texts), dice) for _ in range(given.times + 1)]
    with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as passing:
        place = Path(passing)
        with daemon(place, given.embedder) as environment:
            fill(place, speech.turns(given.turns))

            def recall(number: int) -> None:
                asked = (*_COMMAND, "recall", questions[number])
                subprocess.run(asked, env=environment, capture_output=True, check=True)

            print(f"turnmark recall, {given.turns} turns: {timed(given.times, recall)} ms")
            bare = (sys.executable, "-c", "pass")
            alone = timed(given.times, lambda _: subprocess.run(bare, check=True))
            print(f"python -c pass:                {alone} ms")


if __name__ == "__main__":
    main()
