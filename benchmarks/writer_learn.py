"""Learns what counts how much for a fact being replaced, and prints it as the product has it.

Run: python benchmarks/writer_learn.py   (needs numpy)

Prints `POINTS` of memory/turnmark_memory/writers/replacing.py. Every conversation of
`writer_corpus/learn/` and `writer_corpus/replaced/` goes through a real memory that ends nothing;
whatever the writer says and what its memory holds then are a pair, right if the labels say that
one replaces the other. A logistic fit with a penalty on large points tells the right pairs from the
others. Said beside it: how often the best old fact with enough points is right, and how many of
those to be replaced it finds, for conversations left out of the fit.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec
import numpy as np
import structlog
from writing.judging import letters
from writing.labelled import Conversation, Gold, Turn, read
from writing.replaced import read_replaced
from writing.written import Timed, write

from turnmark_memory.model import Answer, Batch
from turnmark_memory.writers.replacing import ENOUGH, POINTS, Fact, Pile

_PENALTY = 10.0
_RIGHT_TIMES = 2.0
"""Few pairs are right: each counts twice."""

_UNLABELLED = 0.6
"""A pair whose old fact nobody labelled may be right all the same: it counts less."""

_MADE_UP = 0.7
"""The short conversations are plainer than talk is: they count less."""

_FOLDS = 12
_STEPS = 25


class Pair(msgspec.Struct, frozen=True):
    """What two facts have in common, and whether one replaces the other; None: nobody knows."""

    traits: tuple[float, ...]
    right: bool | None


class Said(msgspec.Struct, frozen=True):
    """A new fact with all that it could replace; `wanted` if the labels say that it does."""

    pairs: tuple[Pair, ...]
    wanted: bool


class _Watching(Timed):
    """A writer that replaces nothing, and keeps what it could have replaced."""

    def __init__(self, turns: Sequence[Turn], *, is_made_up: bool) -> None:
        super().__init__()
        self._turns = {turn.id: turn for turn in turns}
        self._gold = {one.id: (turn.id, one) for turn in turns for one in turn.keep}
        self._is_made_up = is_made_up
        self._ids: dict[str, str] = {}
        self._cites: dict[str, frozenset[str]] = {}
        self.said: list[Said] = []

    def distil(self, batch: Batch) -> Answer:
        self._ids |= {turn.label: turn.id for turn in batch.turns}
        self._cites = {
            block.block: frozenset(self._ids[cite] for cite in block.cites)
            for block in batch.blocks
        }
        original = Pile.replaced_by
        Pile.replaced_by = self._watch()  # type: ignore[method-assign, assignment]
        try:
            return super().distil(batch)
        finally:
            Pile.replaced_by = original  # type: ignore[method-assign]

    def _watch(self) -> Callable[[Pile, Fact], None]:
        def replaced_by(pile: Pile, new: Fact) -> None:
            golds = [
                one
                for one in self._turns[self._ids[new.label]].keep
                if one.supersedes and self._holds(new, one)
            ]
            wanted = [self._gold[one.supersedes] for one in golds if one.supersedes]
            pairs = tuple(
                Pair(tuple(traits[name] for name in POINTS), self._is_right(old, wanted))
                for old, traits in pile.rated(new)
            )
            self.said.append(Said(pairs, bool(wanted)))

        return replaced_by

    def _is_right(self, old: Fact, wanted: Sequence[tuple[str, Gold]]) -> bool | None:
        said = {self._ids[old.label]} if old.label else self._cites[old.key.block]  # type: ignore[attr-defined]
        if any(turn in said and self._holds(old, one) for turn, one in wanted):
            return True
        known = any(turn in said and self._holds(old, one) for turn, one in self._gold.values())
        return False if known or self._is_made_up else None

    def _holds(self, fact: Fact, one: Gold) -> bool:
        text = letters(fact.gist.text)
        found = any(letters(quote) in text or text in letters(quote) for quote in one.quotes)
        return found or self._is_made_up


async def said_in(conversation: Conversation, *, is_made_up: bool) -> list[Said]:
    """Returns what a conversation says, with what each could replace."""
    writer = _Watching(conversation.turns, is_made_up=is_made_up)
    with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as made:
        await write(conversation.turns, Path(made), writer)
    return writer.said


class Learnt(msgspec.Struct, frozen=True):
    """The conversations, and which of them are made up for this."""

    said: list[list[Said]]
    made_up: list[bool]

    def points(self, without: int | None = None) -> np.ndarray:
        """Returns the points that all conversations but those of a fold give."""
        rows, right, weights = [], [], []
        for number, (conversation, made_up) in enumerate(zip(self.said, self.made_up, strict=True)):
            if number % _FOLDS == without:
                continue
            for pair in (pair for one in conversation for pair in one.pairs):
                rows.append(pair.traits)
                right.append(bool(pair.right))
                times = _RIGHT_TIMES if pair.right else _UNLABELLED if pair.right is None else 1.0
                weights.append(times * (_MADE_UP if made_up else 1.0))
        return _fit(np.array(rows), np.array(right, float), np.array(weights))

    def left_out(self) -> Iterator[str]:
        """Yields how good the points are for conversations that they were not learnt from."""
        for made_up, name in ((False, "labelled"), (True, "made up")):
            right = given = wanted = 0
            for number, conversation in enumerate(self.said):
                if self.made_up[number] != made_up:
                    continue
                points = self.points(without=number % _FOLDS)
                for one in conversation:
                    wanted += one.wanted
                    best = max(
                        one.pairs, key=lambda pair: np.dot(pair.traits, points), default=None
                    )
                    if best is not None and np.dot(best.traits, points) >= ENOUGH:
                        given += best.right is not None
                        right += best.right is True
            yield f"{name}: {right / given:.2f} / {right / wanted:.2f} ({given}, {wanted})"


def _fit(rows: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the points by Newton's method; the first, the bias, is not penalised."""
    points = np.zeros(rows.shape[1])
    penalty = np.full(rows.shape[1], _PENALTY)
    penalty[0] = 1e-3
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-rows @ points))
        slope = rows.T @ (weights * (likely - right)) + penalty * points
        curve = (rows * (weights * likely * (1 - likely))[:, None]).T @ rows + np.diag(penalty)
        points -= np.linalg.solve(curve, slope)
    return points


def main() -> None:
    quiet = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=quiet)
    learnt = Learnt([], [])
    for made_up, conversations in ((False, read("learn")), (True, read_replaced())):
        for conversation in conversations:
            found = anyio.run(partial(said_in, conversation, is_made_up=made_up))
            learnt.said.append(found)
            learnt.made_up.append(made_up)
    print("\n".join(learnt.left_out()))
    for name, value in zip(POINTS, learnt.points(), strict=True):
        print(f'    "{name}": {value:.2f},')


if __name__ == "__main__":
    main()
