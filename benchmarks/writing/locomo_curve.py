"""LoCoMo: the share of questions whose evidence some block cites, against blocks per turn.

Both speakers are people, so both speak as users here. The curve drops short blocks, then longer
ones; beside it is what a writer would get that keeps each turn of so many letters whole.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import anyio
import msgspec
from recall import locomo
from recall.corpus import Corpus, Question

from writing.judging import letters
from writing.labelled import Turn, Who
from writing.written import Written, write

SHORTEST = (0, 30, 60, 90, 120, 180)


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One point: of blocks (or turns) with at least `shortest` letters.

    `any` is the share of questions with at least one evidence turn cited, `all` with every one.
    """

    name: str
    shortest: int
    blocks_per_turn: float
    any: float
    all: float


def points(path: Path, conversations: int | None = None) -> Iterator[Point]:
    """Yields the curve over all conversations, then one point for each of them."""
    corpora = locomo.read(path)[:conversations]
    written = [anyio.run(_write, corpus) for corpus in corpora]
    for shortest in SHORTEST:
        yield _point("blocks", shortest, corpora, [_cites(one, shortest) for one in written])
    for shortest in SHORTEST:
        whole = [_turns(corpus, shortest) for corpus in corpora]
        yield _point("turns kept whole", shortest, corpora, whole)
    for corpus, one in zip(corpora, written, strict=True):
        yield _point(corpus.name, 0, [corpus], [_cites(one, 0)])


async def _write(corpus: Corpus) -> Written:
    with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as made:
        return await write([_as_user(corpus, turn.id) for turn in corpus.turns], Path(made))


def _as_user(corpus: Corpus, name: str) -> Turn:
    turn = next(one for one in corpus.turns if one.id == name)
    who = turn.speaker or "somebody"
    return Turn(
        id=turn.id,
        conversation=corpus.name,
        kind="group",
        language="en",
        session=turn.session,
        agent="bench",
        project=None,
        role="user",
        speaker=Who(id=who, name=who),
        time=turn.time.isoformat(),
        text=turn.text or "…",
    )


def _cites(written: Written, shortest: int) -> list[frozenset[str]]:
    return [
        block.cites
        for block in written.blocks
        if not block.superseded and len(letters(block.text)) >= shortest
    ]


def _turns(corpus: Corpus, shortest: int) -> list[frozenset[str]]:
    return [frozenset((turn.id,)) for turn in corpus.turns if len(letters(turn.text)) >= shortest]


def _point(
    name: str, shortest: int, corpora: Sequence[Corpus], cites: Sequence[list[frozenset[str]]]
) -> Point:
    some = every = asked = 0
    for corpus, blocks in zip(corpora, cites, strict=True):
        cited = frozenset[str]().union(*blocks)
        for question in _scored(corpus.questions):
            asked += 1
            some += not cited.isdisjoint(question.evidence)
            every += cited.issuperset(question.evidence)
    turns = sum(len(corpus.turns) for corpus in corpora)
    return Point(
        name=name,
        shortest=shortest,
        blocks_per_turn=sum(map(len, cites)) / turns,
        any=some / asked,
        all=every / asked,
    )


def _scored(questions: Iterable[Question]) -> Iterator[Question]:
    return (one for one in questions if one.evidence and one.group in locomo.HEADLINE)
