"""The files of one reading, resolved against each other: which row is which, and whose it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from turnmark_session_store.transcripts.claude_code.files import Transcript
from turnmark_session_store.transcripts.claude_code.graph import TurnChain, resolve_parents
from turnmark_session_store.transcripts.claude_code.records import Row
from turnmark_session_store.transcripts.ordering import in_order, parents_first
from turnmark_session_store.transcripts.reader import ReadWarning

# A sub-agent inside its parent's file, from before agents had ids, is named by its first row.
_SHORT_ID = 12


@dataclass(kw_only=True, eq=False)
class Unit:
    """One session to be: the rows that it reaches, with the times of its own copies of them.

    A sub-agent's unit has an `agent_id`, and the session that spawned it where that is known.
    """

    name: str
    times: dict[str, str] = field(default_factory=dict[str, str])
    files: list[Transcript] = field(default_factory=list[Transcript])
    spawning_session: str | None = None
    agent_id: str | None = None


class TranscriptSet:
    """Resolves a set of files once; read-only afterwards.

    A row's identity is its uuid, or that of the record that it copies. `rows` maps it to its first
    occurrence, origins before their forks; `parents` to the identity of the
    parent; `spawn_parents` holds the parents of sub-agents' rows that lie with somebody else.
    """

    def __init__(self, files: Sequence[Transcript]) -> None:
        self.files = _origins_first(files)
        self._copies = {
            row.uuid: row.copy_of
            for file in self.files
            for row in file.rows
            if row.copy_of is not None
        }
        self.rows = self._choose_rows()
        resolved = resolve_parents(self.rows, self.canonical)
        self.parents = resolved.of
        self.spawn_parents = self._cut_spawns()
        self._inline_agents = self._name_inline_agents()
        self.units = self._collect_units()
        retracted = (self.canonical(uuid) for row in self.rows.values() for uuid in row.retracts)
        self.taken_back = frozenset(retracted) & self.rows.keys()
        self.chain = TurnChain(self.rows, self.parents, self.taken_back, self._is_reached)
        self.predecessors = self.chain.predecessors()
        self.lost = self._turns_below(resolved.lost)
        self._warn(resolved.warnings)

    def canonical(self, uuid: str) -> str:
        """Returns the record that this one is a copy of, through forks of forks; else itself."""
        seen: set[str] = set()
        while uuid in self._copies and uuid not in seen:
            seen.add(uuid)
            uuid = self._copies[uuid]
        return uuid

    def unit_of(self, row_id: str) -> str:
        """Returns the name of the unit in which a row was first said."""
        row = self.rows[row_id]
        if not row.sidechain:
            return row.session
        return _agent_session(row.session, row.agent_id or self._inline_agents[row_id])

    def _choose_rows(self) -> dict[str, Row]:
        chosen: dict[str, Row] = {}
        for file in self.files:
            for row in file.rows:
                chosen.setdefault(self.canonical(row.uuid), row)
        return chosen

    def _cut_spawns(self) -> dict[str, str]:
        spawned: dict[str, str] = {}
        for row_id, row in self.rows.items():
            parent = self.parents[row_id]
            if not row.sidechain or parent is None:
                continue
            above = self.rows[parent]
            if not above.sidechain or above.agent_id != row.agent_id:
                spawned[row_id] = parent
                self.parents[row_id] = None
        return spawned

    def _name_inline_agents(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for row_id in parents_first(self.parents):
            row, parent = self.rows[row_id], self.parents[row_id]
            if row.sidechain and row.agent_id is None:
                own = row_id.replace("-", "")[:_SHORT_ID]
                names[row_id] = own if parent is None else names.get(parent, own)
        return names

    def _collect_units(self) -> dict[str, Unit]:
        units: dict[str, Unit] = {}
        for file in self.files:
            if file.agent_id is None:
                others = {row.session for row in file.rows if not row.sidechain} - {file.session}
                for name in (*sorted(others), file.session):
                    units.setdefault(name, Unit(name=name))
                units[file.session].files.append(file)
            for row in file.rows:
                self._reach(units, file, row)
        return units

    def _reach(self, units: dict[str, Unit], file: Transcript, row: Row) -> None:
        row_id = self.canonical(row.uuid)
        if not row.sidechain:
            for name in {row.session, file.session}:
                units[name].times.setdefault(row_id, row.time)
            return
        agent_id = row.agent_id or self._inline_agents.get(row_id, row_id[:_SHORT_ID])
        name = _agent_session(row.session, agent_id)
        unit = units.setdefault(
            name, Unit(name=name, spawning_session=row.session or None, agent_id=agent_id)
        )
        unit.times.setdefault(row_id, row.time)
        if file.agent_id is not None and not any(file is other for other in unit.files):
            unit.files.append(file)

    def _is_reached(self, row_id: str, turn_id: str) -> bool:
        return turn_id in self.units[self.unit_of(row_id)].times

    def _turns_below(self, lost: Collection[str]) -> frozenset[str]:
        """Returns the root turns whose chain ends at a row that lost its parent."""
        broken: set[str] = set()
        for row_id in parents_first(self.parents):
            parent = self.parents[row_id]
            if row_id in lost or (parent is not None and parent in broken):
                broken.add(row_id)
        return frozenset(
            row_id
            for row_id, before in self.predecessors.items()
            if before is None and row_id in broken
        )

    def _warn(self, warnings: Iterable[ReadWarning]) -> None:
        by_path = {str(file.path): file for file in self.files}
        for warning in warnings:
            by_path[warning.file].warnings.append(warning)


def _origins_first(files: Sequence[Transcript]) -> list[Transcript]:
    """Orders files so that an origin stands before its forks, and a parent before its sub-agents.

    Where copies carry no pointer, the origin is the file that has nothing of its own, or whose own
    rows begin earlier; names decide the rest. The order in which files were given never does.
    """
    occurrences = Counter(uuid for file in files for uuid in {row.uuid for row in file.rows})
    firsts = {
        str(file.path): min((r.time for r in file.rows if occurrences[r.uuid] == 1), default="")
        for file in files
    }
    by_path = {str(file.path): file for file in files}
    keys = sorted(by_path, key=lambda path: (firsts[path], path))
    holders: dict[str, list[str]] = {}
    for path in keys:
        if by_path[path].agent_id is None:
            holders.setdefault(by_path[path].session, []).append(path)
    rests_on: dict[str, set[str]] = {}
    for path in keys:
        file = by_path[path]
        named = {row.session for row in file.rows} | {
            row.copy_of_session for row in file.rows if row.copy_of_session
        }
        if file.agent_id is None:
            named.discard(file.session)
        rests_on[path] = {holder for session in named for holder in holders.get(session, ())}
    return [by_path[path] for path in in_order(keys, rests_on)]


def _agent_session(session: str, agent_id: str) -> str:
    """Names a sub-agent's session: safe as a file name, and 60 signs long with today's ids."""
    return f"{session}.agent-{agent_id}" if session else f"agent-{agent_id}"
