"""Learns what `writers/keeping.py` holds from the labelled half `learn`, and prints it.

Run: python benchmarks/writing/learn.py [--left-out] [--misses]   (needs numpy)

Each sentence that a user says is an example: worth keeping if it holds words that a label quotes,
or is a part of them; none where the words may stay beside a statement, or where it says yes to
something. A logistic fit of the signs (`writers/signs.py`) with a penalty on large weights gives
the odds: convex, solved by Newton's method, so the same labels give the same weights. Sentences
that are one plain statement (`sayings.py`) are added, since conversations hold few of them.

Bare orders are left to their rule (`keeping.is_bare_order`).

`--left-out` says how it does on each conversation when learned on the others; `--misses` lists what
it gets wrong there. Signs that say nothing about sentences left out are not worth having.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from turnmark_memory.writers.keeping import is_bare_order
from turnmark_memory.writers.signs import SIGNS
from turnmark_memory.writers.statements import candidates_in
from writing.judging import letters
from writing.labelled import Conversation, Turn, read
from writing.sayings import CHATTER, PLAIN, SYMPTOMS

_PENALTY = 2.0
"""1 to 4 differ by less than 0.01 of the mean surprise, left out."""

_SAYING_TIMES = 0.25
"""How often a saying counts: they are shorter, and plainer, than what people say."""

_LEAST_LETTERS = 5
"""A sentence of fewer letters is a part of any quotation."""

_STEPS = 30
_STILL = 1e-8
_EVEN = 0.5
_BORDERS = (0.35, 0.4, 0.45, 0.5, 0.55, 0.6)

Array = np.ndarray


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence: its signs, and whether it should be kept."""

    conversation: str
    text: str
    values: tuple[float, ...]
    keep: bool


def examples(conversations: Sequence[Conversation]) -> Iterator[Example]:
    """Yields the sentences of users that are worth keeping, or are not."""
    for conversation in conversations:
        speakers = {turn.speaker.name for turn in conversation.turns if turn.speaker}
        by_turn = _labels(conversation)
        for turn in conversation.turns:
            if turn.role == "user":
                yield from _of_turn(turn, *by_turn[turn.id], in_group=len(speakers) > 1)


def _labels(conversation: Conversation) -> dict[str, tuple[list[str], list[str], bool]]:
    """Returns, of each turn, what to keep, what may stay, and whether it says yes to another."""
    quotes: dict[str, list[str]] = {turn.id: [] for turn in conversation.turns}
    may: dict[str, list[str]] = {turn.id: [] for turn in conversation.turns}
    labels = [(turn.id, one) for turn in conversation.turns for one in turn.keep]
    accepted = {name for _, one in labels for name in one.also}
    for turn, one in labels:
        for name in (turn, *one.also):
            quotes[name].extend(map(letters, one.quotes))
            may[name].extend(map(letters, one.may))
    return {name: (quotes[name], may[name], name in accepted) for name in quotes}


def _of_turn(
    turn: Turn, quotes: Sequence[str], may: Sequence[str], accepts: bool, *, in_group: bool
) -> Iterator[Example]:
    for one in candidates_in(turn.text, in_group=in_group, in_project=bool(turn.project)):
        if is_bare_order(one.signs):
            continue
        said = letters(one.sentence)
        keep = _shares(said, quotes)
        if not keep and (_shares(said, may) or (accepts and one.place == 0)):
            continue
        yield Example(
            conversation=turn.conversation,
            text=one.text,
            values=tuple(one.signs[name] for name in SIGNS),
            keep=keep,
        )


def _shares(said: str, quotes: Sequence[str]) -> bool:
    return any(one in said or (len(said) >= _LEAST_LETTERS and said in one) for one in quotes)


def sayings() -> Iterator[Example]:
    """Yields the plain statements, and what sounds like them, said alone and in a group."""
    for keep, texts, in_group, in_project in (
        (True, PLAIN, False, False),
        (True, PLAIN, True, False),
        (False, CHATTER, False, False),
        (False, CHATTER, True, False),
        (False, SYMPTOMS, False, True),
    ):
        for text in texts:
            for one in candidates_in(text, in_group=in_group, in_project=in_project):
                if not is_bare_order(one.signs):
                    values = tuple(one.signs[name] for name in SIGNS)
                    yield Example(conversation="", text=one.text, values=values, keep=keep)


def learn(given: Sequence[Example]) -> Array:
    """Returns the bias and the weights, in the order of `SIGNS`."""
    values = np.array([(1.0, *one.values) for one in given])
    keep = np.array([one.keep for one in given], float)
    times = np.array([1.0 if one.conversation else _SAYING_TIMES for one in given])
    penalty = np.append(1e-3, np.full(len(SIGNS), _PENALTY))
    fit = np.zeros(len(SIGNS) + 1)
    for _ in range(_STEPS):
        likely = _likely(values @ fit)
        gradient = values.T @ (times * (likely - keep)) + penalty * fit
        weighed = values * (times * likely * (1 - likely))[:, None]
        step = np.linalg.solve(weighed.T @ values + np.diag(penalty), gradient)
        fit = fit - step
        if np.abs(step).max() <= _STILL:
            break
    return fit


def _likely(odds: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-odds)))


def left_out(given: Sequence[Example], added: Sequence[Example]) -> Array:
    """Returns how likely each example is by what was learned on the other conversations."""
    found = np.zeros(len(given))
    for name in dict.fromkeys(one.conversation for one in given):
        fit = learn([*(one for one in given if one.conversation != name), *added])
        for number, one in enumerate(given):
            if one.conversation == name:
                found[number] = _likely(np.array((1.0, *one.values)) @ fit)
    return found


def _say_left_out(given: Sequence[Example], likely: Array, *, misses: bool) -> None:
    keep = np.array([one.keep for one in given])
    surprise = -np.log(np.where(keep, likely, 1 - likely)).mean()
    print(f"# left out: {len(given)} sentences, {keep.sum()} to keep, surprise {surprise:.3f}")
    for border in _BORDERS:
        kept = likely >= border
        right = (kept & keep).sum()
        print(f"# kept from {border:.2f}: {right / kept.sum():.3f} / {right / keep.sum():.3f}")
    if misses:
        for share, one in sorted(
            zip(likely.tolist(), given, strict=True), key=lambda pair: pair[0]
        ):
            if one.keep != (share >= _EVEN):
                problem = "not kept" if one.keep else "kept"
                print(f"# {share:.2f} {problem} | {one.conversation} | {one.text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--left-out", action="store_true")
    parser.add_argument("--misses", action="store_true")
    wanted = parser.parse_args()
    given, added = list(examples(read("learn"))), list(sayings())
    if wanted.left_out or wanted.misses:
        _say_left_out(given, left_out(given, added), misses=wanted.misses)
    fit = learn([*given, *added])
    print(f"BIAS: Final = {fit[0]:.3f}")
    print("WEIGHTS: Final[Mapping[str, float]] = {")
    for name, weight in zip(SIGNS, fit[1:], strict=True):
        print(f'    "{name}": {weight:.3f},')
    print("}")


if __name__ == "__main__":
    main()
