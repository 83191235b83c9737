"""The DAG of a session as lines of text: a pure function from turns, branches and head.

Oldest first, a line a turn. The line of turns that leads to the head runs down the left edge;
what forks off is drawn before it goes on, one step to the right, and within that the longest line
again goes straight down. So the drawing is at most 1 + log2(turns) forks deep, and a conversation
of any shape fits a terminal. Sub-agents hang below the turn that called them, on a dotted edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from turnmark.terminal import DEFAULT_COLUMNS, Ink, clip, one_line, pad, width_of

# Longer ids are cut to this in the drawing: enough to tell uuids and hashes apart by eye.
_ID_CELLS = 8
_NAME_CELLS = 24
_MARKS = {"kept": "✓", "nothing": "·", "parked": "!"}
_OWED = "○"
_NOT_RECORDABLE = "-"
_LEGEND = {
    "✓": "kept",
    "·": "nothing worth keeping",
    "!": "parked",
    _OWED: "owed",
    _NOT_RECORDABLE: "not for memory",
}
_ROLE_CELLS = len("assistant")


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that spawned another."""

    session: str
    turn: str


class SpeakerName(msgspec.Struct, frozen=True, kw_only=True):
    """Who spoke."""

    id: str | None = None
    name: str | None = None


class DrawnMark(msgspec.Struct, frozen=True, kw_only=True):
    """What a workspace did with a turn."""

    outcome: str
    reason: str | None = None


class DrawnTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What of an export's turn is drawn."""

    id: str
    role: str
    kind: str = "turn"
    text: str | None = None
    predecessor: str | None = None
    merged: tuple[str, ...] = ()
    speaker: SpeakerName | None = None
    caller: Caller | None = None
    state: str = "live"
    recordable: bool = False
    lost_predecessor: bool = False
    marks: dict[str, DrawnMark] = {}


class DrawnBranch(msgspec.Struct, frozen=True, kw_only=True):
    """What of an export's branch is drawn: a name at its tip."""

    tip: str
    branch: str | None = None
    name: str | None = None
    state: str = "live"


def draw_tree(
    turns: Sequence[DrawnTurn],
    branches: Sequence[DrawnBranch] = (),
    head: str | None = None,
    *,
    workspace: str | None = None,
    whole_ids: bool = False,
    columns: int = DEFAULT_COLUMNS,
    ink: Ink | None = None,
) -> list[str]:
    """Returns the lines of the drawing, each at most `columns` cells wide, and a legend.

    `turns` stand oldest first. `workspace` says whose marks are shown; None shows a turn's first.
    `whole_ids` keeps ids as they are, for copying, however wide. Cost: linear in turns.
    """
    tree = _Tree(turns, head)
    painter = _Painter(
        branches,
        head,
        workspace=workspace,
        whole_ids=whole_ids,
        columns=columns,
        ink=ink or Ink(),
    )
    lines: list[str] = []
    for place, root in enumerate(tree.roots):
        if place:
            lines.append("")
        lines.extend(painter.line(graph, turn) for graph, turn in tree.walk(root))
    if painter.marks_used:
        used = [f"{mark} {word}" for mark, word in _LEGEND.items() if mark in painter.marks_used]
        lines += ["", "   ".join(used)]
    return lines


class _Tree:
    """Who hangs below whom: by predecessor, else by caller, and which child goes straight on."""

    def __init__(self, turns: Sequence[DrawnTurn], head: str | None) -> None:
        self._turns = {turn.id: turn for turn in turns}
        self._next: dict[str, list[str]] = {}
        self._spawned: dict[str, list[str]] = {}
        self.roots: list[str] = []
        for turn in turns:
            self._hang(turn)
        self._sizes = self._count()
        self._on_head_path = self._path_to(head)

    def walk(self, root: str) -> Iterator[tuple[str, DrawnTurn]]:
        """Yields each turn from `root` down with the edges that stand before it."""
        waiting = [(root, "", "")]
        while waiting:
            turn, edge, indent = waiting.pop()
            yield edge, self._turns[turn]
            straight = self._straight_on(turn)
            aside = [child for child in self._next.get(turn, ()) if child != straight]
            lines = [(child, "─") for child in aside]
            lines += [(child, "┄") for child in self._spawned.get(turn, ())]
            below: list[tuple[str, str, str]] = []
            for left, (child, line) in enumerate(reversed(lines)):
                last = straight is None and left == 0
                corner, rest = ("└", "  ") if last else ("├", "│ ")
                below.append((child, indent + corner + line, indent + rest))
            if straight is not None:
                waiting.append((straight, indent, indent))
            waiting.extend(below)

    def _hang(self, turn: DrawnTurn) -> None:
        if turn.predecessor is not None and turn.predecessor in self._turns:
            self._next.setdefault(turn.predecessor, []).append(turn.id)
        elif turn.caller is not None and turn.caller.turn in self._turns:
            self._spawned.setdefault(turn.caller.turn, []).append(turn.id)
        else:
            self.roots.append(turn.id)

    def _straight_on(self, turn: str) -> str | None:
        """Returns the child that continues the line: toward the head, else to the most turns."""
        children = self._next.get(turn)
        if not children:
            return None
        return max(children, key=lambda child: (child in self._on_head_path, self._sizes[child]))

    def _count(self) -> dict[str, int]:
        """Returns for each turn how many turns hang on it, itself included."""
        order: list[str] = []
        waiting = list(self.roots)
        while waiting:
            turn = waiting.pop()
            order.append(turn)
            waiting += self._below(turn)
        sizes: dict[str, int] = {}
        for turn in reversed(order):
            sizes[turn] = 1 + sum(sizes[child] for child in self._below(turn))
        return sizes

    def _below(self, turn: str) -> list[str]:
        return [*self._next.get(turn, ()), *self._spawned.get(turn, ())]

    def _path_to(self, head: str | None) -> set[str]:
        path: set[str] = set()
        turn = self._turns.get(head or "")
        while turn is not None and turn.id not in path:
            path.add(turn.id)
            caller = turn.caller.turn if turn.caller else ""
            turn = self._turns.get(turn.predecessor or caller)
        return path


class _Painter:
    """Writes one turn as one line."""

    def __init__(
        self,
        branches: Sequence[DrawnBranch],
        head: str | None,
        *,
        workspace: str | None,
        whole_ids: bool,
        columns: int,
        ink: Ink,
    ) -> None:
        self.marks_used: set[str] = set()
        self._names: dict[str, list[str]] = {}
        for branch in branches:
            self._names.setdefault(branch.tip, []).append(_name_of(branch))
        self._head = head
        self._workspace = workspace
        self._whole_ids = whole_ids
        self._columns = columns
        self._ink = ink

    def line(self, edges: str, turn: DrawnTurn) -> str:
        """Returns the line of `turn`: edges, mark, role, id, what points here, then its words."""
        edges = self._fitting(edges)
        mark = self._mark_of(turn)
        self.marks_used.add(mark)
        start = f"{mark} {pad(turn.role, _ROLE_CELLS)} {pad(self._id(turn.id), _ID_CELLS)}"
        room = self._columns - width_of(f"{edges}{start} ")
        pointers = clip(self._pointers(turn), room)
        words = " ".join([*_notes(turn, self._id), _words(turn)])
        words = clip(words.rstrip(), room - width_of(pointers))
        return f"{self._ink.dim(edges)}{self._painted(turn, start, pointers, words)}".rstrip()

    def _painted(self, turn: DrawnTurn, start: str, pointers: str, words: str) -> str:
        if turn.state != "live":
            return f"{self._ink.dim(start)} {self._ink.accent(pointers)}{self._ink.struck(words)}"
        return f"{start} {self._ink.accent(pointers)}{words}"

    def _pointers(self, turn: DrawnTurn) -> str:
        """Returns `*HEAD` and the names of branches that end here, with a blank behind."""
        here = ["*HEAD"] if turn.id == self._head else []
        names = self._names.get(turn.id, [])
        if names:
            others = f" +{len(names) - 1}" if len(names) > 1 else ""
            here.append(f"[{names[0]}{others}]")
        return "".join(f"{pointer} " for pointer in here)

    def _mark_of(self, turn: DrawnTurn) -> str:
        marks = turn.marks
        mark = marks.get(self._workspace) if self._workspace else next(iter(marks.values()), None)
        if mark is not None:
            return _MARKS.get(mark.outcome, "?")
        return _OWED if turn.recordable and turn.state == "live" else _NOT_RECORDABLE

    def _fitting(self, edges: str) -> str:
        """Returns the edges, without the leftmost where they would take a third of the line."""
        most = self._columns // 3
        return edges if width_of(edges) <= most else "… " + edges[len(edges) - most + 2 :]

    def _id(self, turn: str) -> str:
        return one_line(turn) if self._whole_ids else clip(one_line(turn), _ID_CELLS)


def _name_of(branch: DrawnBranch) -> str:
    name = clip(one_line(branch.name or branch.branch or "tip"), _NAME_CELLS)
    return name if branch.state == "live" else f"{name} {branch.state}"


def _notes(turn: DrawnTurn, short: Callable[[str], str]) -> Iterator[str]:
    """Yields what the words alone don't say of a turn, each in brackets."""
    if turn.state == "retired":
        yield "(taken back)"
    if turn.kind not in {"turn", turn.role}:
        yield f"({one_line(turn.kind)})"
    if turn.lost_predecessor:
        yield "(its predecessor is lost)"
    if turn.merged:
        yield f"(merges {', '.join(short(merged) for merged in turn.merged)})"
    if turn.caller is not None:
        yield "(sub-agent)"


def _words(turn: DrawnTurn) -> str:
    if turn.state == "forgotten":
        return "(forgotten)"
    text = one_line(turn.text or "")
    name = one_line(turn.speaker.name or "") if turn.speaker else ""
    return f"{name}: {text}" if name else text
