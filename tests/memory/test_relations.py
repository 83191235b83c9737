"""How blocks lie to a reader, checked against the words of the design on random conversations."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.at_work import AtWork, at_work, user
from turnmark_memory.placing import label_of_places
from turnmark_memory.relations import on_sibling, place_turns
from turnmark_session_store.model import CallerRef
from turnmark_session_store.requests import Checkout, ForkPoint, Merge, OpenSession, Rewind

Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "append", "fork", "spawn", "merge", "rewind", "session", "root"]
        ),
        st.integers(0, 1_000),
        st.integers(0, 1_000),
    ),
    max_size=14,
)


async def act(work: AtWork, steps: Sequence[Step]) -> None:
    """Carries out drawn steps on a session and forks of it; impossible ones are left out."""
    await work.append("s0", [user("root", "t0")])
    sessions = ["s0"]
    for number, (verb, first, second) in enumerate(steps, 1):
        session = sessions[first % len(sessions)]
        turns = await live_turns(work, session)
        pick = turns[second % len(turns)] if turns else None
        new = [user(f"words {number}", f"t{number}")]
        match verb:
            case "append":
                await work.append(session, new)
            case "fork" if pick is not None:
                await work.append(session, new, after=pick)
            case "root":
                await work.append(session, new, after=None)
            case "spawn" if pick is not None:
                spawned = user(
                    f"{number}", f"t{number}", caller=CallerRef(session=session, turn=pick)
                )
                await work.append(session, [spawned], after=None)
            case "merge":
                tips = sorted(set(await tips_of(work, session)))
                if len(tips) > 1:
                    await work.store.merge(Merge(session=session, tips=tips[:2], turn=new[0]))
            case "rewind" if pick is not None:
                await work.store.checkout(Checkout(session=session, tip=pick))
                await work.store.rewind(Rewind(session=session, to=pick))
            case "session" if pick is not None:
                name = f"s{number}"
                fork = ForkPoint(session=session, turn=pick)
                await work.store.open_session(OpenSession(session=name, forked_from=fork))
                sessions.append(name)
            case _:
                pass


async def live_turns(work: AtWork, session: str) -> list[str]:
    """Returns the ids of the turns that a session's live branches reach."""
    model = await work.store.read(Model)
    keys = {
        turn for branch in model.branches if branch[1] == session for turn in model.path(branch[2])
    }
    return [model.names[key][1] for key in sorted(keys)]


async def tips_of(work: AtWork, session: str) -> list[str]:
    model = await work.store.read(Model)
    return [model.names[tip][1] for _, owner, tip in model.branches if owner == session]


class Model:
    """The DAG as plain sets, read from the tables."""

    def __init__(self, db: apsw.Connection) -> None:
        self.parents: dict[int, set[int]] = {}
        self.names: dict[int, tuple[str, str]] = {}
        self.said: dict[int, str] = {}
        rows = db.execute(
            "SELECT turn.id, predecessor, namespace.name, key, session.name FROM turn"
            " JOIN namespace ON namespace.id = turn.namespace"
            " JOIN session ON session.id = turn.session"
        )
        for turn, before, namespace, key, session in rows:
            self.parents[turn] = set() if before is None else {before}
            self.names[turn] = (namespace, key)
            self.said[turn] = session
        for turn, parent in db.execute("SELECT turn, parent FROM merge_parent"):
            self.parents[turn].add(parent)
        self.retired = {turn for (turn,) in db.execute("SELECT turn FROM retired_turn")}
        self.branches: list[tuple[int, str, int]] = list(
            db.execute(
                "SELECT branch.id, session.name, tip FROM branch"
                " JOIN session ON session.id = branch.session"
                " WHERE state = 'live' AND tip IS NOT NULL"
                " ORDER BY branch.id = session.head_branch DESC, branch.id"
            )
        )
        self.heads = dict(db.execute("SELECT name, head FROM session"))

    def path(self, tip: int) -> set[int]:
        """Returns a turn and all that come before it."""
        found: set[int] = set()
        queue = [tip]
        while queue:
            turn = queue.pop()
            if turn not in found:
                found.add(turn)
                queue += self.parents[turn]
        return found

    def roots(self, turn: int) -> set[int]:
        return {one for one in self.path(turn) if not self.parents[one]}

    def label(self, cites: Sequence[int], session: str, at: int) -> str | None:
        """Returns the label of a block by the words of the design, None where it is dropped."""
        standing = [turn for turn in cites if turn not in self.retired]
        if not standing:
            return None
        path = self.path(at)
        own = [branch for branch in self.branches if branch[1] == session]
        here = [branch for branch in own if branch[2] == at] or [
            branch for branch in own if at in self.path(branch[2])
        ]
        others = [branch for branch in self.branches if branch not in here[:1]]
        elsewhere = {turn for _, _, tip in others for turn in self.path(tip)}
        reached = {turn for _, _, tip in own for turn in self.path(tip)} | path
        of_session = [one for one in standing if one in reached or self.said[one] == session]
        if not of_session:
            return "other-session"
        if not path.issuperset(of_session):
            return "other-branch"
        return "own" if set(of_session) - elsewhere else "shared"


@settings(max_examples=60, deadline=None)
@given(
    steps=STEPS, cites=st.lists(st.lists(st.integers(0, 1_000), min_size=1, max_size=3), max_size=6)
)
def test_labels_blocks_as_the_design_says(steps: list[Step], cites: list[list[int]]) -> None:
    """Own, shared, other-branch and other-session, for readers at every live turn."""

    async def run() -> None:
        async with at_work(run=False) as work:
            await act(work, steps)

            def check(db: apsw.Connection) -> None:
                model = Model(db)
                turns = sorted(model.parents)
                for session, head in model.heads.items():
                    readers = {
                        turn
                        for _, owner, tip in model.branches
                        if owner == session
                        for turn in model.path(tip)
                    }
                    for at in sorted(readers):
                        for numbers in cites:
                            chosen = [turns[number % len(turns)] for number in numbers]
                            refs = [model.names[turn] for turn in chosen]
                            tip = None if at == head else model.names[at][1]
                            places = place_turns(db, refs, session, tip)
                            found = label_of_places(places)
                            assert found == model.label(chosen, session, at), (session, at, refs)

            await work.store.read(check)

    anyio.run(run)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_tells_siblings_from_ancestors_and_strangers(steps: list[Step]) -> None:
    """A turn is on a sibling branch if it shares a root with the tip and doesn't come before it."""

    async def run() -> None:
        async with at_work(run=False) as work:
            await act(work, steps)

            def check(db: apsw.Connection) -> None:
                model = Model(db)
                for tip in model.parents:
                    path, roots = model.path(tip), model.roots(tip)
                    for turn in model.parents:
                        expected = turn not in path and bool(roots & model.roots(turn))
                        assert on_sibling(db, tip, [model.names[turn]]) is expected

            await work.store.read(check)

    anyio.run(run)
