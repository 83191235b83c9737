"""What recall finds, where, and when it says nothing: LoCoMo and the bilingual set.

Run: python benchmarks/recall_quality.py [--locomo FILE] [--set bilingual|locomo]
     [--part life|work|mixed|...] [--view turns|blocks] [--half learn|report|all]
     [--mode lexical|hybrid] [--keep DIR] [--out FILE] [--json]

LoCoMo is read from the reader's own copy (or the variable LOCOMO); without one only the bilingual
set is asked, of which `--part`, any number of them, takes the files of these names alone. `--keep`
leaves the memories in a directory, and a later run asks what is there. Times are of a whole recall
in this process, `peak memory` of this process with both sets in it.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import anyio
import msgspec
import structlog
from recall import bilingual, locomo
from recall.asking import Answered, ask, foreign
from recall.built import View, memory_of
from recall.corpus import Corpus
from recall.report import Summary, lines, summary

from turnmark_memory.embedding.embedder import Embedder, find_embedder
from turnmark_memory.requests import RecallMode

_FOREIGN = 60
"""Questions about other conversations that each conversation's memory is asked."""

_SETS = ("bilingual", "locomo")
_VIEWS: tuple[View, ...] = ("turns", "blocks")


async def measured(
    corpora: Sequence[Corpus],
    view: View,
    mode: RecallMode,
    half: str,
    place: Path,
    embedder: Embedder | None,
) -> list[Answered]:
    """Returns what came of the questions of each corpus, in a memory of its own."""
    answered: list[Answered] = []
    for number, corpus in enumerate(corpora):
        extra = foreign(corpora, number, _FOREIGN) if len(corpora) > 1 else []
        asked = [q for q in (*corpus.questions, *extra) if half in ("all", q.half)]
        if not asked:
            continue
        here = place / f"{corpus.name}-{view}"
        async with memory_of(corpus, view, here, embedder) as (memory, seconds):
            said(f"{corpus.name}: {len(corpus.turns)} turns in {seconds:.1f} s")
            answered += await ask(memory, corpus, view, mode, asked)
    return answered


def said(line: str) -> None:
    """Says how far it is, on standard error."""
    print(line, file=sys.stderr)


def peak_mebibytes() -> float:
    """Returns the most memory that this process ever held."""
    unit = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1_048_576


def sets_of(
    wanted: Sequence[str], path: str | None, parts: Sequence[str]
) -> list[tuple[str, list[Corpus]]]:
    """Returns those of the wanted sets that are there, by name."""
    found: list[tuple[str, list[Corpus]]] = []
    if "bilingual" in wanted:
        found.append(("bilingual", [bilingual.read(only=parts)]))
    if "locomo" in wanted and path:
        found.append(("locomo", locomo.read(Path(path))))
    elif "locomo" in wanted:
        said("LoCoMo is not asked: name your copy of locomo10.json with --locomo or LOCOMO.")
    return found


def embedder_for(mode: RecallMode) -> Embedder | None:
    """Returns what embeds in this mode, the same for all memories; it is loaded once."""
    if mode == "lexical":
        return None
    found = find_embedder("auto")
    if found is None:
        sys.exit("mode hybrid needs an embedder: pip install 'turnmark[e5]'")
    return found


def run(given: argparse.Namespace, place: Path) -> tuple[list[Answered], list[Summary]]:
    """Returns every answer and the summaries, one for each half asked and one for all."""
    everything: list[Answered] = []
    summaries: list[Summary] = []
    embedder = embedder_for(given.mode)
    halves = ["learn", "report", "all"] if given.half == "all" else [given.half]
    for name, corpora in sets_of(given.set, given.locomo, given.part):
        for view in given.view:
            answered = anyio.run(measured, corpora, view, given.mode, given.half, place, embedder)
            everything += answered
            summaries += [summary(answered, name, half) for half in halves]
    return everything, summaries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", default=os.environ.get("LOCOMO"))
    parser.add_argument("--set", action="append", choices=_SETS)
    parser.add_argument("--part", action="append", default=[], choices=bilingual.parts())
    parser.add_argument("--half", default="all", choices=("learn", "report", "all"))
    parser.add_argument("--view", action="append", choices=_VIEWS)
    parser.add_argument("--mode", default="lexical", choices=("lexical", "hybrid"))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path, help="one JSON object per question")
    parser.add_argument("--json", action="store_true", help="the summaries as JSON")
    given = parser.parse_args()
    given.set, given.view = given.set or _SETS, given.view or _VIEWS
    # What memory says of its own work is no result.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with ExitStack() as stack:
        made = given.keep or stack.enter_context(tempfile.TemporaryDirectory())
        answered, summaries = run(given, Path(made))
    if given.out:
        given.out.write_bytes(msgspec.json.Encoder().encode_lines(answered))
    if given.json:
        print(msgspec.json.encode(summaries).decode())
        return
    for found in summaries:
        print("\n".join(lines(found)), end="\n\n")
    print(f"peak memory {peak_mebibytes():.0f} MiB")


if __name__ == "__main__":
    main()
