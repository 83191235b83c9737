"""Which turn spawned a sub-agent of Claude Code."""

from __future__ import annotations

from collections.abc import Iterator

from turnmark_session_store.model import CallerRef
from turnmark_session_store.transcripts.claude_code.records import Row
from turnmark_session_store.transcripts.claude_code.set import TranscriptSet, Unit


class Spawns:
    """Finds callers in one set: by what the records say, then by the task, then by the time."""

    def __init__(self, transcripts: TranscriptSet) -> None:
        self._set = transcripts
        self._calls: dict[tuple[str, str], str] = {}
        self._tasks: dict[tuple[str, str], list[str]] = {}
        self._mentions: dict[str, list[str]] = {}
        for row_id, row in transcripts.rows.items():
            for use in row.tool_uses:
                self._calls.setdefault((row.session, use.id), row_id)
                if use.prompt:
                    self._tasks.setdefault((row.session, use.prompt), []).append(row_id)
            if row.spawned_agent is not None:
                self._mentions.setdefault(row.spawned_agent, []).append(row_id)

    def caller_of(self, unit: Unit) -> CallerRef | None:
        """Returns the turn that spawned a sub-agent's unit, or None if its session is not there.

        In this order: a row that the sub-agent's first row hangs from; a row that names the agent;
        a call whose task is the first prompt; the last turn of the spawning session before the
        sub-agent began, or else its first.
        """
        for row_id in self._candidates(unit):
            turn_id = self._set.chain.turn_at(row_id)
            if turn_id is not None:
                return self._ref(turn_id)
        return self._by_time(unit)

    def is_certain(self, unit: Unit) -> bool:
        """Returns whether no later record can name another caller for a unit."""
        first = next(iter(unit.times))
        words = self._set.rows[first].words
        task = (unit.spawning_session or "", words.text if words else "")
        return (
            first in self._set.spawn_parents
            or bool(self._mentions_of(unit))
            or len(self._tasks.get(task, ())) == 1
        )

    def _candidates(self, unit: Unit) -> Iterator[str]:
        first = next(iter(unit.times))
        if first in self._set.spawn_parents:
            yield self._set.spawn_parents[first]
        for mention in self._mentions_of(unit):
            yield self._call_of(self._set.rows[mention]) or mention
        words = self._set.rows[first].words
        task = (unit.spawning_session or "", words.text if words else "")
        began = self._set.chain.moment(first)
        same_task = self._tasks.get(task, [])
        yield from reversed([r for r in same_task if self._set.chain.moment(r) <= began])
        yield from same_task
        # Copies last: one may be there before the records of its origin are.
        for mention in self._mentions.get(unit.agent_id or "", []):
            yield self._call_of(self._set.rows[mention]) or mention

    def _mentions_of(self, unit: Unit) -> list[str]:
        """Returns the rows that name a sub-agent: its own session's, else those of no copy."""
        mentions = self._mentions.get(unit.agent_id or "", [])
        near = [m for m in mentions if self._set.rows[m].session == unit.spawning_session]
        return near or [m for m in mentions if self._set.rows[m].copy_of is None]

    def _call_of(self, row: Row) -> str | None:
        tool_ids = (*row.tool_results, *([row.spawned_by_tool] if row.spawned_by_tool else ()))
        calls = (self._calls.get((row.session, tool_id)) for tool_id in tool_ids)
        return next((call for call in calls if call is not None), None)

    def _by_time(self, unit: Unit) -> CallerRef | None:
        spawning = self._set.units.get(unit.spawning_session or "")
        if spawning is None:
            return None
        chain = self._set.chain
        turns = sorted(
            (row_id for row_id in spawning.times if row_id in self._set.predecessors),
            key=chain.moment,
        )
        began = min(unit.times.values())
        before = [turn_id for turn_id in turns if chain.moment(turn_id)[0] <= began]
        chosen = before[-1:] or turns[:1]
        return self._ref(chosen[0]) if chosen else None

    def _ref(self, turn_id: str) -> CallerRef:
        return CallerRef(session=self._set.unit_of(turn_id), turn=turn_id)
