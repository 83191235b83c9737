"""The store against its model: random verbs of several sessions, marks and restarts in between."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from session_store.model import Model
from session_store.stage import Stage, scratch, user
from turnmark_session_store.model import TurnIn

T = TypeVar("T")
INDEX = st.integers(min_value=0, max_value=10_000)


class StoreMachine(RuleBasedStateMachine):
    """One family of sessions: `s`, and forks of it."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.runner = self.stack.enter_context(asyncio.Runner())
        self.stage = Stage(self.stack.enter_context(scratch()) / "sessions.db")
        self.model = Model()
        self.made = 0
        self.checked = 0
        self.forks = 0
        self.branch_tip: dict[str, str | None] = {}
        self.session_head: dict[str, str | None] = {}

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs one verb; what came back by it is owed again in the model too."""
        retired = self.model.retired()
        found = self.runner.run(coroutine)
        self._were = retired
        return found

    def teardown(self) -> None:
        """Closes the store."""
        self.runner.run(self.stage.__aexit__())
        self.stack.close()

    @initialize()
    def begin(self) -> None:
        """Opens the store with a first conversation."""
        self.runner.run(self.stage.__aenter__())
        self.run(self.stage.workspace())
        self._append("s", 3, after=None, known=[], move_head=True)

    # Choosing.

    def pick(self, index: int, among: Any) -> Any:
        """Returns one of several, in an order that does not depend on hashing."""
        ordered = sorted(among)
        return ordered[index % len(ordered)]

    def session(self, index: int) -> str:
        """Returns a session that has a head."""
        return str(self.pick(index, self.model.sessions))

    def reach(self, name: str) -> set[str]:
        """Returns what the live branches of a session reach."""
        return self.model.ancestors(*(one.tip for one in self.model.sessions[name].branches))

    def turn(self, key: str) -> TurnIn:
        """Returns a turn by its id: every fifth is a tool's, which memory never holds."""
        if int(key[1:]) % 5 == 4:
            return TurnIn(role="tool", kind="tool", text=key, id=key)
        return user(f"words of {key}", key)

    def new(self) -> str:
        """Returns an id that was not used yet."""
        key = f"t{self.made}"
        self.made += 1
        if self.turn(key).role == "user":
            self.model.recordable.add(key)
        return key

    # Rules.

    def _append(
        self, name: str, count: int, *, after: str | None, known: list[str], move_head: bool
    ) -> None:
        keys = [*known, *(self.new() for _ in range(count))]
        answer = self.run(
            self.stage.append(*map(self.turn, keys), session=name, after=after, move_head=move_head)
        )
        forked = self.model.append(name, keys, after, move_head=move_head)
        self.model.restore_marks(self._were)
        assert answer.forked == forked
        assert answer.new == count
        assert answer.forgotten == [key for key in keys if key in self.model.forgotten]

    @precondition(lambda self: self.model.sessions)
    @rule(index=INDEX, count=st.integers(1, 3))
    def append_after_the_head(self, index: int, count: int) -> None:
        """The usual way."""
        name = self.session(index)
        self._append(name, count, after=self.model.sessions[name].head, known=[], move_head=True)

    @precondition(lambda self: self.model.sessions)
    @rule(index=INDEX, where=INDEX, count=st.integers(1, 2), move_head=st.booleans())
    def append_anywhere(self, index: int, where: int, count: int, move_head: bool) -> None:
        """After any turn of the family: live, retired, forgotten, of another session."""
        after = self.pick(where, self.model.parents)
        self._append(self.session(index), count, after=after, known=[], move_head=move_head)

    @precondition(lambda self: self.model.sessions)
    @rule(index=INDEX, where=INDEX, back=st.integers(1, 4), count=st.integers(0, 1))
    def append_what_is_there(self, index: int, where: int, back: int, count: int) -> None:
        """A line that is known, as a client sends that is not sure what arrived."""
        line = [self.pick(where, self.model.parents)]
        while len(line) < back and self.model.parents[line[0]]:
            line.insert(0, self.model.parents[line[0]][0])
        above = self.model.parents[line[0]]
        self._append(
            self.session(index),
            count,
            after=above[0] if above else None,
            known=line,
            move_head=True,
        )

    @precondition(lambda self: self.model.sessions)
    @rule(index=INDEX, where=INDEX)
    def sync_to(self, index: int, where: int) -> None:
        """The whole line to a turn of the session, and one more."""
        name = self.session(index)
        tip = self.pick(where, self.reach(name))
        line = [tip]
        while self.model.parents[line[0]]:
            line.insert(0, self.model.parents[line[0]][0])
        key = self.new()
        answer = self.run(self.stage.sync(*map(self.turn, line), self.turn(key), session=name))
        forked = self.model.append(name, [key], tip)
        self.model.restore_marks(self._were)
        assert (answer.new, answer.head) == (1, key)
        assert answer.forked_after == (tip if forked else None)

    @precondition(lambda self: self.model.sessions)
    @rule(index=INDEX, where=INDEX)
    def rewind(self, index: int, where: int) -> None:
        """Back to a turn above the head."""
        name = self.session(index)
        head = self.model.sessions[name].head
        assert head is not None
        above = self.model.ancestors(head) - self.model.forgotten
        if not above:
            return
        to = self.pick(where, above)
        retired = self.model.retired()
        answer = self.run(self.stage.rewind(to, name))
        self.model.rewind(name, to)
        assert answer.head == to
        assert answer.retired == len(self.model.retired() - retired)

    @precondition(lambda self: self.model.sessions)
    @rule(index=INDEX, where=INDEX)
    def checkout(self, index: int, where: int) -> None:
        """Any live turn of the session, or a retired one with `restore`."""
        name = self.session(index)
        session = self.model.sessions[name]
        reach = (self.reach(name) | self.model.retired()) - self.model.forgotten
        if not reach:
            return
        turn = self.pick(where, reach)
        self.run(self.stage.checkout(turn, name, restore=turn in self.model.retired()))
        self.model.checkout(name, turn)
        self.model.restore_marks(self._were)
        assert session.head == turn

    @precondition(lambda self: self.model.sessions)
    @rule(index=INDEX, one=INDEX, two=INDEX)
    def merge(self, index: int, one: int, two: int) -> None:
        """Two tips of a session that are not the same turn."""
        name = self.session(index)
        tips = {branch.tip for branch in self.model.sessions[name].branches}
        first = self.pick(one, tips)
        if len(tips) < 2:
            return
        second = self.pick(two, tips - {first})
        key = self.new()
        answer = self.run(self.stage.merge([first, second], self.turn(key), name))
        self.model.merge(name, [first, second], key)
        assert answer.head == key

    @precondition(lambda self: self.forks < 3 and "s" in self.model.sessions)
    @rule(where=INDEX)
    def fork_a_session(self, where: int) -> None:
        """A session of its own at a live turn of the first one."""
        turn = self.pick(where, self.reach("s"))
        self.forks += 1
        name = f"fork{self.forks}"
        self.run(self.stage.open(name, forked_from=("s", turn)))
        self.model.fork(name, "s", turn)

    @precondition(lambda self: len(self.model.sessions) > 1)
    @rule(index=INDEX)
    def delete(self, index: int) -> None:
        """Ends a session and forgets what only it reached."""
        name = self.session(index)
        forgotten = set(self.model.forgotten)
        answer = self.run(self.stage.delete(name))
        self.model.delete(name)
        gone = set(self.stage.ids(answer.turns))
        assert gone == self.model.forgotten - forgotten

    @precondition(lambda self: self.model.sessions)
    @rule(index=INDEX)
    def archive(self, index: int) -> None:
        """Hides everything and ends nothing."""
        self.run(self.stage.archive(session=self.session(index)))

    @precondition(lambda self: self.model.reached())
    @rule(where=INDEX, outcome=st.sampled_from(["kept", "nothing"]))
    def settle(self, where: int, outcome: Any) -> None:
        """Everything that a turn's paths owe, as a batch does."""
        turn = self.pick(where, self.model.reached())
        due = {
            one
            for one in self.model.ancestors(turn)
            if self.model.counts(one) and self.model.marks.get(one) in (None, "parked")
        }
        name = self.pick(0, self.model.sessions)
        before = self.stage.seq
        settled = self.run(self.stage.settle(*sorted(due), session=name, outcome=outcome))
        assert set(settled) == due
        assert self.stage.seq == before
        self.model.marks.update(dict.fromkeys(due, outcome))

    @precondition(lambda self: any(map(self.model.counts, self.model.marks)))
    @rule(where=INDEX, reason=st.sampled_from(["failed", "lost", "rewrite", "removed"]))
    def park(self, where: int, reason: Any) -> None:
        """A settled turn is offered again."""
        turn = self.pick(where, filter(self.model.counts, self.model.marks))
        name = self.pick(0, self.model.sessions)
        self.run(self.stage.park(turn, reason=reason, session=name))
        self.model.marks[turn] = "parked"

    @rule()
    def restart(self) -> None:
        """Closes the store and opens it again."""
        self.run(self.stage.restart())

    # Invariants.

    @invariant()
    def heads_and_tips_are_the_models(self) -> None:
        """Per session: the head, and the tips of the live branches."""
        if not self.made:
            return
        tips: dict[str, list[str]] = defaultdict(list)
        for name, tip in self.stage.sql(
            "SELECT session.name, key FROM branch JOIN session ON session.id = branch.session"
            " JOIN turn ON turn.id = tip WHERE state = 'live'"
        ):
            tips[name].append(tip)
        heads = dict(
            self.stage.sql(
                "SELECT name, key FROM session LEFT JOIN turn ON turn.id = head"
                " WHERE deleted_ms IS NULL"
            )
        )
        expected = self.model.sessions.items()
        assert heads == {name: session.head for name, session in expected}
        assert {name: sorted(found) for name, found in tips.items()} == {
            name: sorted(one.tip for one in session.branches) for name, session in expected
        }

    @invariant()
    def what_is_retired_is_what_nobody_reaches(self) -> None:
        """Law 13, word for word; the forgotten apart."""
        if self.made:
            assert self.stage.retired() - self.model.forgotten == self.model.retired()

    @invariant()
    def what_is_owed_is_exact(self) -> None:
        """Law 1; and the marks are closed (law 7)."""
        if not self.made:
            return
        owed, marks = self.runner.run(self.stage.owes()), self.stage.marks()
        assert {turn: outcome for turn, (outcome, _) in marks.items()} == self.model.marks
        assert self.model.is_closed()
        assert owed == self.model.owed()

    @invariant()
    def events_continue_each_other(self) -> None:
        """Per branch old = the new before, per session head_old = the head_new before."""
        for event in self.stage.moves(self.checked):
            assert event.seq > self.checked
            self.checked = event.seq
            assert event.old == self.branch_tip.get(event.branch)
            self.branch_tip[event.branch] = event.new
        heads: dict[str, list[tuple[str | None, str | None]]] = defaultdict(list)
        for event in self.stage.moves():
            heads[event.session].append((event.head_old, event.head_new))
        self.stage.events.clear()
        for session, pairs in heads.items():
            distinct = list(dict.fromkeys(pairs))
            for old, new in distinct:
                assert old == self.session_head.get(session)
                self.session_head[session] = new


StoreMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestStore = StoreMachine.TestCase
