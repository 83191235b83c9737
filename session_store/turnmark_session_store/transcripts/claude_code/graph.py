"""From the chain of Claude Code's records to the DAG of turns.

Most records say nothing: tool calls, tool results, hook output and progress only carry the chain.
They are collapsed, so that a turn's predecessor is the nearest turn above it. Two shapes need more
than that, because the program hangs records of *one* course of events beside each other:

- a tool call forks: the next fragment of a response and the result of its first call are siblings;
- the summary of a hook can become a sibling of the answer that was delivered before it, and the
  next prompt hangs from the summary.

The rule for both: a row that is reached only through the harness (tool results, hooks, progress,
notices) comes after everything that had been delivered by then beside that harness, up to the next
prompt there. It can't misread a rewind: a rewind hangs a prompt from where another prompt hung, and
the rule never crosses a prompt.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import NamedTuple

from turnmark_session_store.transcripts.claude_code.records import Row, Words
from turnmark_session_store.transcripts.ordering import cut_cycles
from turnmark_session_store.transcripts.reader import ReadWarning

# Crossings that are tried for one turn; honest transcripts need one or two.
_MAX_CROSSINGS = 64

Moment = tuple[str, int]


class Parents(NamedTuple):
    """The resolved parents: None for a root, `lost` where the named parent is nowhere."""

    of: dict[str, str | None]
    lost: frozenset[str]
    warnings: list[ReadWarning]


class _Crossing(NamedTuple):
    """A row above another at which the way up can turn aside, and how it is reached."""

    at: str
    child: str
    harness: bool


def resolve_parents(rows: Mapping[str, Row], canonical: Callable[[str], str]) -> Parents:
    """Resolves each row's parent in the whole set; `rows` stand in the order of their position.

    A parent that is missing or is the row itself makes a root. A cycle is cut at the record that
    closes it, which is the last one by position.
    """
    parents: dict[str, str | None] = {}
    lost: set[str] = set()
    for row_id, row in rows.items():
        parent = canonical(row.parent) if row.parent is not None else None
        if parent is not None and parent not in rows:
            lost.add(row_id)
            parent = None
        parents[row_id] = parent if parent != row_id else None
    warnings = [
        ReadWarning(file=rows[row_id].file, line=rows[row_id].line, reason="closes a cycle")
        for row_id in cut_cycles(parents, list(rows))
    ]
    return Parents(parents, frozenset(lost), warnings)


class TurnChain:
    """Answers what the turns of a set are and which turn each row stands behind.

    `replaced` maps rows that are no turns because another fragment of their response says the same
    to that fragment. `reached(row, turn)` says whether the session in which a row was said also
    holds a turn: a fork never comes after what only its origin went on to say.
    """

    def __init__(
        self,
        rows: Mapping[str, Row],
        parents: Mapping[str, str | None],
        taken_back: frozenset[str],
        reached: Callable[[str, str], bool],
    ) -> None:
        self._rows = rows
        self._parents = parents
        self._taken_back = taken_back
        self._reached = reached
        self._moments: dict[str, Moment] = {
            row_id: (row.time, index) for index, (row_id, row) in enumerate(rows.items())
        }
        self.children = self._children()
        self._topological = self._parents_first()
        self.replaced = self._repeated_fragments()
        self.turns: dict[str, Words] = {
            row_id: row.words
            for row_id, row in rows.items()
            if row.words is not None and row_id not in self.replaced
        }
        self._delivered = self._delivered_beside()
        self._nearest: dict[str, str | None] = {}
        self._crossings = self._crossings_above()

    def predecessors(self) -> dict[str, str | None]:
        """Returns the predecessor of each turn, None for a root; free of cycles."""
        found = {row_id: self.turn_above(row_id) for row_id in self.turns}
        ordered = sorted(found, key=self._moments.__getitem__)
        # Only clocks that run backwards in several places at once can make one.
        for row_id in cut_cycles(found, ordered):
            found[row_id] = self._nearest[row_id]
        cut_cycles(found, ordered)
        return found

    def turn_at(self, row_id: str) -> str | None:
        """Returns the turn that was the last one when this row was written; itself if a turn."""
        return row_id if self._is_live(row_id) else self.turn_above(row_id)

    def turn_above(self, row_id: str) -> str | None:
        """Returns the turn that a row stands behind, itself never counted."""
        harness = False
        at = row_id
        for _ in range(_MAX_CROSSINGS):
            crossing = self._crossings.get(at)
            if crossing is None:
                return None
            harness = harness or crossing.harness
            beside = self._beside(row_id, crossing) if harness else None
            if beside is not None:
                return beside
            if self._is_live(crossing.at):
                return crossing.at
            at = crossing.at
        return self._nearest[row_id]

    def moment(self, row_id: str) -> Moment:
        """Returns when a row was written: its time, then its position."""
        return self._moments[row_id]

    def _is_live(self, row_id: str) -> bool:
        return row_id in self.turns and row_id not in self._taken_back

    def _children(self) -> dict[str, list[str]]:
        children: dict[str, list[str]] = {row_id: [] for row_id in self._rows}
        for row_id, parent in self._parents.items():
            if parent is not None:
                children[parent].append(row_id)
        return children

    def _parents_first(self) -> list[str]:
        order = [row_id for row_id, parent in self._parents.items() if parent is None]
        for row_id in order:  # grows while it is walked
            order.extend(self.children[row_id])
        return order

    def _repeated_fragments(self) -> dict[str, str]:
        """Maps the rows whose text another fragment of the same response says again to that one.

        Some endpoints write a response as snapshots that grow. Fragments are compared only between
        two prompts, because a proxy may give every response one id.
        """
        stretch: dict[str, str] = {}
        fragments: dict[tuple[str, str], list[str]] = {}
        for row_id in self._topological:
            row, parent = self._rows[row_id], self._parents[row_id]
            stretch[row_id] = row_id if row.opens or parent is None else stretch[parent]
            if row.response is not None and row.words is not None:
                fragments.setdefault((stretch[row_id], row.response), []).append(row_id)
        repeated: dict[str, str] = {}
        for group in fragments.values():
            group.sort(key=lambda row_id: (self._is_copy_alone(row_id), self._moments[row_id]))
            last = group[0]
            for row_id in group[1:]:
                if self._text(row_id) == self._text(last):
                    repeated[row_id] = last
                elif self._text(row_id).startswith(self._text(last)):
                    repeated[last] = row_id
                    last = row_id
                else:
                    last = row_id
        return repeated

    def _is_copy_alone(self, row_id: str) -> bool:
        """Returns whether a copy's origin is not there: it takes nobody's place."""
        row = self._rows[row_id]
        return row.copy_of is not None and row.uuid != row_id

    def _text(self, row_id: str) -> str:
        words = self._rows[row_id].words
        return words.text if words is not None else ""

    def _delivered_beside(self) -> dict[str, list[tuple[Moment, str, str]]]:
        """Maps a row to its children that lead to a turn before the next prompt.

        Each as (moment of the last such turn, the turn, the child), sorted.
        """
        last: dict[str, str] = {}
        beside: dict[str, list[tuple[Moment, str, str]]] = {}
        for row_id in reversed(self._topological):
            led = sorted(
                (self._moments[last[child]], last[child], child)
                for child in self.children[row_id]
                if child in last and not self._rows[child].opens
            )
            if led:
                beside[row_id] = led
            own = [(self._moments[row_id], row_id)] if self._is_live(row_id) else []
            latest = max(own + [(moment, turn) for moment, turn, _ in led[-1:]], default=None)
            if latest is not None:
                last[row_id] = latest[1]
        return beside

    def _crossings_above(self) -> dict[str, _Crossing]:
        """Maps a row to the first row above it that is a turn or leads aside."""
        above: dict[str, _Crossing] = {}
        for row_id in self._topological:
            parent, harness = self._parents[row_id], self._rows[row_id].harness
            if parent is None:
                self._nearest[row_id] = None
                continue
            is_turn = self._is_live(parent)
            self._nearest[row_id] = parent if is_turn else self._nearest[parent]
            if is_turn or any(child != row_id for *_, child in self._delivered.get(parent, ())[:2]):
                above[row_id] = _Crossing(parent, row_id, harness)
            elif (further := above.get(parent)) is not None:
                above[row_id] = further._replace(harness=harness or further.harness)
        return above

    def _beside(self, row_id: str, crossing: _Crossing) -> str | None:
        """Returns the last turn delivered beside the way up to `crossing`, before this row."""
        led = self._delivered.get(crossing.at, [])
        index = bisect_left(led, (self._moments[row_id], "", ""))
        for _, turn, child in reversed(led[max(0, index - _MAX_CROSSINGS) : index]):
            if child != crossing.child and self._reached(row_id, turn):
                return turn
        return None
