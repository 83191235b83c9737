"""A small model of the store in memory: slow, obvious, and written from the laws alone.

It keeps edges, branches and heads, and derives the rest: what is retired is what no live branch
reaches, what is owed follows from the marks. It knows no SQL and shares no code with the store.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Branch:
    """A line of turns with a live tip; `moved` counts the moves, to tell the last one moved."""

    tip: str
    moved: int


@dataclass
class Session:
    """One session: its live branches and its head."""

    branches: list[Branch] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    said: set[str] = field(default_factory=set)
    head: str | None = None
    on: Branch | None = None


class Model:
    """The DAG of one family of sessions."""

    def __init__(self) -> None:
        self.parents: dict[str, list[str]] = {}
        self.recordable: set[str] = set()
        self.sessions: dict[str, Session] = {}
        self.forgotten: set[str] = set()
        self.marks: dict[str, str] = {}
        self._moves = 0

    # What follows from the edges and the tips.

    def ancestors(self, *turns: str) -> set[str]:
        """Returns the turns and all that they descend from, over all parents."""
        seen: set[str] = set()
        queue = list(turns)
        while queue:
            turn = queue.pop()
            if turn not in seen:
                seen.add(turn)
                queue += self.parents[turn]
        return seen

    def tips(self) -> list[str]:
        """Returns the live tips of all sessions."""
        return [one.tip for session in self.sessions.values() for one in session.branches]

    def reached(self) -> set[str]:
        """Returns what any live branch of any session reaches."""
        return self.ancestors(*self.tips())

    def retired(self) -> set[str]:
        """Retired is what no live branch of any session reaches, unless it was forgotten."""
        return set(self.parents) - self.reached() - self.forgotten

    def counts(self, turn: str) -> bool:
        """Whether memory may hold the turn now."""
        gone = turn in self.forgotten or turn not in self.reached()
        return turn in self.recordable and not gone

    def owed(self) -> set[str]:
        """Owed are the live recordable turns that carry no mark, or a parked one."""
        return {
            turn
            for turn in self.reached()
            if self.counts(turn) and self.marks.get(turn, "parked") == "parked"
        }

    def unwritten(self, *tips: str) -> set[str]:
        """Returns the turns of the paths from `tips` back to their first marked turn."""
        found: set[str] = set()
        queue = list(tips)
        seen: set[str] = set()
        while queue:
            turn = queue.pop()
            if turn in seen or turn in self.marks:
                continue
            seen.add(turn)
            queue += self.parents[turn]
            if self.counts(turn):
                found.add(turn)
        return found

    def is_closed(self) -> bool:
        """Whether no marked turn has an unmarked recordable ancestor that still counts."""
        return not any(
            above not in self.marks and self.counts(above)
            for turn in self.marks
            if self.counts(turn)
            for above in self.ancestors(turn)
        )

    # The verbs.

    def append(
        self, name: str, turns: list[str], after: str | None, *, move_head: bool = True
    ) -> bool:
        """Appends turns (new ones or known ones) after a turn; returns whether that forked."""
        session = self.sessions.setdefault(name, Session())
        previous, known = after, []
        for turn in turns:
            if turn in self.parents:
                known.append(turn)
            else:
                self.parents[turn] = [previous] if previous else []
                session.said.add(turn)
            previous = turn
        reached = next((turn for turn in reversed(known) if self._branch_of(session, turn)), after)
        last = turns[-1]
        branch = self._branch_of(session, last)
        forked = False
        if branch is None:
            branch = self._at(session, reached)
            forked = branch is None and reached is not None
            if branch is None:
                branch = self._begin(session, last)
            self._go(branch, last)
        if move_head:
            session.head, session.on = last, branch
        return forked

    def rewind(self, name: str, to: str) -> None:
        """Takes the head's branch and the head back to a turn."""
        session = self.sessions[name]
        assert session.on is not None
        self._go(session.on, to)
        session.head = to

    def checkout(self, name: str, turn: str) -> None:
        """Puts the head on a turn; a retired one gets a branch of its own."""
        session = self.sessions[name]
        branch = self._branch_of(session, turn)
        session.on = branch or self._begin(session, turn)
        session.head = turn

    def merge(self, name: str, tips: list[str], turn: str) -> None:
        """Joins tips in a new turn; the head's branch goes on, else the first tip's."""
        session = self.sessions[name]
        joined = [one for tip in tips for one in session.branches if one.tip == tip]
        going_on = session.on if session.on in joined else None
        if going_on is None:
            going_on = self._at(session, tips[0])
        assert going_on is not None
        first = going_on.tip
        self.parents[turn] = [first, *(tip for tip in tips if tip != first)]
        session.said.add(turn)
        for one in joined:
            if one is not going_on:
                session.branches.remove(one)
                session.ended.append(turn)
        self._go(going_on, turn)
        session.head, session.on = turn, going_on

    def fork(self, name: str, origin: str, turn: str) -> None:
        """Opens a session at a turn of another."""
        assert turn in self.ancestors(*(one.tip for one in self.sessions[origin].branches))
        session = self.sessions[name] = Session()
        session.on = self._begin(session, turn)
        session.head = turn

    def delete(self, name: str) -> None:
        """Ends a session; forgets what it said or reached and no live branch reaches now."""
        session = self.sessions.pop(name)
        mine = self.ancestors(*(one.tip for one in session.branches), *session.ended)
        mine |= self.ancestors(*session.said)
        self.forgotten |= mine - self.reached()

    def restore_marks(self, were_retired: set[str]) -> None:
        """What came back is owed again: what it had is parked, and what is below a mark too."""
        back = were_retired - self.retired() - self.forgotten
        below = self.ancestors(*self.marks) if self.marks else set()
        for turn in back:
            if turn in self.marks or (turn in below and self.counts(turn)):
                self.marks[turn] = "parked"

    def _branch_of(self, session: Session, turn: str) -> Branch | None:
        found = [one for one in session.branches if turn in self.ancestors(one.tip)]
        if session.on in found:
            return session.on
        return max(found, key=lambda one: (one.tip == turn, one.moved), default=None)

    def _at(self, session: Session, tip: str | None) -> Branch | None:
        found = [one for one in session.branches if one.tip == tip]
        if session.on in found:
            return session.on
        return max(found, key=lambda one: one.moved, default=None)

    def _begin(self, session: Session, tip: str) -> Branch:
        self._moves += 1
        made = Branch(tip, self._moves)
        session.branches.append(made)
        return made

    def _go(self, branch: Branch, tip: str) -> None:
        if branch.tip != tip:
            self._moves += 1
            branch.tip, branch.moved = tip, self._moves
