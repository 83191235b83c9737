"""Walks: the unwritten suffix, what only some tips reach, what comes after."""

from __future__ import annotations

import random

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_store.model import Branch, Model, Session
from session_store.stage import Stage
from turnmark_session_store.schema import MIGRATIONS
from turnmark_session_store.walks import (
    ancestors,
    descendants,
    is_ancestor,
    line_of,
    live_tips_after,
    only_reached_from,
    roots_below,
    unwritten,
)


@st.composite
def dags(draw: st.DrawFn) -> Model:
    """A random DAG with forks, merges, several roots, marks, tips, forgotten turns."""
    model = Model()
    size = draw(st.integers(1, 24))
    rng = random.Random(draw(st.integers(0, 2**32)))
    keys: list[str] = []
    for number in range(size):
        key = f"{number + 1:03d}"
        parents: list[str] = []
        if keys and rng.random() < 0.95:
            recent = keys[-6:]
            parents = rng.sample(recent, min(len(recent), rng.choice([1, 1, 1, 2, 3])))
        model.parents[key] = parents
        if rng.random() < 0.75:
            model.recordable.add(key)
        keys.append(key)
    session = model.sessions["s"] = Session()
    for key in rng.sample(keys, min(size, rng.randint(1, 4))):
        session.branches.append(Branch(key, 0))
    model.forgotten = {key for key in keys if rng.random() < 0.1}
    for key in keys:  # a prefix of each path is settled: marks are closed under ancestors
        settled = all(
            above in model.marks or not model.counts(above)
            for above in model.ancestors(key) - {key}
        )
        if settled and key in model.recordable and rng.random() < 0.6:
            model.marks[key] = rng.choice(["kept", "nothing", "parked"])
    return model


def stored(model: Model) -> apsw.Connection:
    """Returns a database in memory that holds the model's DAG; key N is turn N."""
    db = apsw.Connection(":memory:")
    for migration in MIGRATIONS:
        db.execute(migration)
    db.execute(
        "INSERT INTO namespace VALUES (1, 'n');"
        "INSERT INTO workspace (id, name) VALUES (1, 'w-1'), (2, 'w-2');"
        "INSERT INTO session (id, name, agent, created_ms, updated_ms) VALUES (1, 's', 'a', 0, 0)"
    )
    roots: dict[str, str] = {}
    for key, parents in model.parents.items():
        roots[key] = roots[parents[0]] if parents else key
        db.execute(
            "INSERT INTO turn VALUES (?, 1, ?, 1, ?, NULL, NULL, ?, 'user', 'turn', ?, 1, x'00',"
            " 7, 0, 0, 0, 0)",
            (
                int(key),
                key,
                int(parents[0]) if parents else None,
                int(roots[key]),
                key in model.recordable,
            ),
        )
        for parent in parents[1:]:
            db.execute("INSERT INTO merge_parent VALUES (?, ?)", (int(key), int(parent)))
    for key in model.retired():
        db.execute("INSERT INTO retired_turn VALUES (?, 0)", (int(key),))
    for key in model.forgotten:
        db.execute("INSERT INTO forgotten_turn VALUES (?, 0)", (int(key),))
    for key, outcome in model.marks.items():
        db.execute("INSERT INTO mark VALUES (1, ?, ?, NULL, '', 0, 0)", (int(key), outcome))
    for number, branch in enumerate(model.sessions["s"].branches, 1):
        db.execute(
            "INSERT INTO event (at_ms, type, session, branch, new, body)"
            " VALUES (0, 'TipMoved', 1, ?1, ?2, x'');",
            (number, int(branch.tip)),
        )
        db.execute(
            "INSERT INTO branch (id, name, session, title, moved_ms) VALUES (?1, ?1, 1, '', 0)",
            (number,),
        )
        db.execute(
            "UPDATE branch SET tip = ?, move = ? WHERE id = ?", (int(branch.tip), number, number)
        )
    return db


def keys(turns: list[int]) -> list[str]:
    """Returns the model's names of keys."""
    return [f"{turn:03d}" for turn in turns]


def children(model: Model, *turns: str) -> set[str]:
    """Returns the turns and all that come after them."""
    return {key for key in model.parents if not model.ancestors(key).isdisjoint(turns)}


@given(model=dags(), choose=st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_walks_are_those_of_the_model(model: Model, choose: random.Random) -> None:
    """Every walk, from one turn or from several, in topological order."""
    db = stored(model)
    names = list(model.parents)
    start = choose.sample(names, choose.randint(1, min(3, len(names))))
    other = choose.sample(names, choose.randint(0, min(3, len(names))))
    one, two = choose.choice(names), choose.choice(names)
    ints = [int(name) for name in start]
    found = unwritten(db, 1, ints)
    assert keys([turn for turn, _ in found]) == sorted(model.unwritten(*start))
    assert {tokens for _, tokens in found} <= {7}
    assert keys(ancestors(db, int(one))) == sorted(model.ancestors(one))
    floor = int(two)
    assert keys(ancestors(db, int(one), floor)) == sorted(
        key for key in model.ancestors(one) if int(key) >= floor or key == one
    )
    assert is_ancestor(db, int(two), int(one)) == (two in model.ancestors(one))
    assert keys(descendants(db, ints)) == sorted(children(model, *start))
    expected = model.ancestors(*start) - model.ancestors(*other)
    assert keys(only_reached_from(db, ints, map(int, other))) == sorted(expected)
    live = {tip for tip in model.tips() if not model.ancestors(tip).isdisjoint(start)}
    assert keys(live_tips_after(db, ints)) == sorted(live)
    roots = {key for key in model.ancestors(one) if not model.parents[key]}
    assert set(keys(sorted(roots_below(db, int(one))))) == roots
    line = [one]
    while model.parents[line[0]]:
        line.insert(0, model.parents[line[0]][0])
    assert keys(line_of(db, int(one))) == line


@given(model=dags())
@settings(max_examples=150, deadline=None)
def test_what_all_tips_owe_is_found_from_the_tips(model: Model) -> None:
    """The unwritten suffixes of all live tips and the parked turns are all that is owed."""
    db = stored(model)
    found = {turn for turn, _ in unwritten(db, 1, map(int, model.tips()))}
    parked = {int(key) for key, outcome in model.marks.items() if outcome == "parked"}
    assert {int(key) for key in model.owed()} == found | {
        turn for turn in parked if model.counts(f"{turn:03d}")
    }


def test_marks_of_another_workspace_do_not_count() -> None:
    """Each workspace walks to its own marks."""
    model = Model()
    model.parents = {"001": [], "002": ["001"]}
    model.recordable = {"001", "002"}
    model.sessions["s"] = Session(branches=[Branch("002", 0)])
    model.marks = {"001": "kept"}
    db = stored(model)
    assert unwritten(db, 1, [2]) == [(2, 7)]
    assert unwritten(db, 2, [2]) == [(1, 7), (2, 7)]


TRUNK = [f"m{number}" for number in range(1, 10)]
FIVE = [f"a{number}" for number in range(5)]
ELEVEN = [f"b{number}" for number in range(11)]


@pytest.mark.anyio
@pytest.mark.parametrize("branches", [(FIVE, ELEVEN), (ELEVEN, FIVE)])
async def test_two_branches_of_a_written_trunk_are_offered_whole(
    stage: Stage, branches: tuple[list[str], list[str]]
) -> None:
    """A trunk of 9 is written; branches of 5 and 11 leave it at its third turn.

    All 5 and all 11 are offered, the trunk not again, whichever tip is looked at first.
    """
    await stage.workspace()
    await stage.append(*TRUNK)
    await stage.settle(*TRUNK)
    for branch in branches:
        await stage.append(*branch, after="m3")
    rows = {row.tip: row for row in (await stage.owed()).tips}
    assert {tip: row.turns for tip, row in rows.items()} == {"a4": FIVE, "b10": ELEVEN}
    assert (await stage.owed()).turns == 16
    first, second = branches
    await stage.settle(*first)
    assert await stage.owes() == set(second)
    await stage.settle(*second)
    assert await stage.owes() == set()


@pytest.mark.anyio
async def test_branches_of_an_unwritten_trunk_offer_it_once(stage: Stage) -> None:
    """Shares overlap; whoever is written first takes the trunk along."""
    await stage.workspace()
    await stage.append(*TRUNK)
    await stage.append(*FIVE, after="m3")
    found = await stage.owed()
    assert (found.turns, sorted(row.n for row in found.tips)) == (14, [8, 9])
    await stage.settle(*TRUNK[:3], *FIVE)
    assert await stage.owes() == set(TRUNK[3:])
