"""`turnmark migrate openprogram PATH`: another memory's sessions, topics and sources into this one.

Sessions are sent first, with the turns held that their topics hold already, so that no writer
takes them meanwhile; then the topics' blocks; at last those turns are settled. A kill in between
leaves turns that are owed, and the same command again goes on: what is here is not sent twice.
Nothing of the other program's state is changed.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from turnmark import places
from turnmark.commands.import_ import Marks, lines_of
from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import count
from turnmark.errors import ConnectionLost, DaemonNotRunning
from turnmark.openprogram.problem import Problem
from turnmark.terminal import one_line
from turnmark_events.errors import TurnmarkError
from turnmark_session_store.model import MarkOut

if TYPE_CHECKING:
    from turnmark.openprogram.plan import Plan
    from turnmark_memory.requests import AdoptedBlock, SettledTurns

_ORIGIN: Final = "openprogram"
# How many problems are named; all of them are in the answer for machines.
_NAMED: Final = 20
# One request's share: well under the 1 MiB that a frame may have.
_REQUEST_BYTES: Final = 256 * 1024
_TURNS_AT_ONCE: Final = 2_000
_BLOCK_BYTES: Final = 3 * _REQUEST_BYTES
_TOO_LONG: Final = "it is too long for a block; part it there, or leave it where it is"
_TAKEN_BACK: Final = "it rests only on turns that were taken back"
_NOT_HERE: Final = "it cites a session that could not be imported; run the command again"


class Tally(msgspec.Struct, kw_only=True):
    """What a migration came to, or would come to.

    `settled` turns need no writer, `waiting` ones do; `backlog` says that some of them are only
    written when that is asked for. Of a dry run `new` is 0. `blocks` are new
    ones, `persons` those of them without a source, `known` blocks that are or were here. `problems`
    name what can't be taken as it is, `failed` what should have been taken and was not.
    """

    dry_run: bool
    sessions: int = 0
    turns: int = 0
    new: int = 0
    settled: int = 0
    waiting: int = 0
    backlog: bool = False
    topics: int = 0
    blocks: int = 0
    persons: int = 0
    known: int = 0
    sources: int = 0
    unread: int = 0
    problems: list[Problem] = []
    failed: list[Problem] = []


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("program", choices=[_ORIGIN], help="whose memory it is")
    parser.add_argument("path", metavar="PATH", help="its state directory, like ~/.openprogram")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be taken over, and write nothing"
    )


def run(invocation: Invocation) -> int:
    """Takes over what can be; 1 where something failed."""
    options = invocation.options
    if not options.dry_run:
        invocation.client()  # before a large state is read for nobody
    from turnmark.openprogram.plan import read_plan  # noqa: PLC0415 - topics need all of memory

    state = places.state_dir(options.state, environ=invocation.environ)
    with invocation.progress("reading") as bar:
        bar.show(0, None, options.path)
        plan = read_plan(Path(options.path), skip_directories=places.writer_dirs(state))
    tally = _planned(plan) if options.dry_run else _Migration(invocation, plan).carry_out()
    _report(invocation, tally)
    return 1 if tally.failed else 0


def _planned(plan: Plan) -> Tally:
    """Returns what the migration would come to, as far as no daemon is needed to tell."""
    left = _resting_on_nothing(plan)
    blocks = [block for block in plan.blocks if block not in left]
    problems = [
        *plan.problems,
        *_unread(plan),
        *(Problem(name=f"{one.topic}, {one.id}", reason=_TAKEN_BACK) for one in left),
    ]
    return Tally(
        dry_run=True,
        sessions=len(plan.sessions),
        turns=plan.turns,
        settled=plan.dealt_with,
        waiting=plan.speech - plan.dealt_with,
        topics=plan.topics,
        blocks=len(blocks),
        persons=sum(not block.cites for block in blocks),
        sources=plan.sources,
        unread=len(plan.warnings),
        problems=problems,
    )


def _resting_on_nothing(plan: Plan) -> list[AdoptedBlock]:
    """Returns the blocks that cite only what was taken back there; the daemon leaves them."""
    gone = {(one.session, turn) for one in plan.sessions for turn in one.taken_back}
    return [
        block
        for block in plan.blocks
        if block.cites and all((ref.session, ref.turn) in gone for ref in block.cites)
    ]


def _unread(plan: Plan) -> Iterator[Problem]:
    for warning in plan.warnings:
        place = f"{warning.file}:{warning.line}" if warning.line else warning.file
        yield Problem(name=place, reason=warning.reason)


class _Migration:
    """Sends one plan to the daemon, keeping count."""

    def __init__(self, invocation: Invocation, plan: Plan) -> None:
        self._invocation = invocation
        self._plan = plan
        self._client = invocation.client()
        self._topics = {block.id: block.topic for block in plan.blocks}
        self._missing: set[str] = set()
        self._waiting: set[str] = set()
        self.tally = Tally(
            dry_run=False,
            topics=plan.topics,
            sources=plan.sources,
            unread=len(plan.warnings),
            problems=[*plan.problems, *_unread(plan)],
        )

    def carry_out(self) -> Tally:
        """Sends sessions, then blocks, then what is settled; the order is that of the laws."""
        workspace = str(self._client.call("hello", {"protocol": 1})["workspace"])
        self._send_sessions(workspace)
        if self._send_blocks():
            self._settle()
        self._count_waiting()
        return self.tally

    def _count_waiting(self) -> None:
        for session in self._plan.sessions:
            if session.session in self._missing:
                continue
            owed = self._invocation.whole("memory.owed", "tips", session=session.session)
            self.tally.waiting += owed["turns"]
            self.tally.backlog |= any(tip["state"] == "backlog" for tip in owed["tips"])

    def _send_sessions(self, workspace: str) -> None:
        """Imports the sessions; turns that are dealt with are held, for a writer not to take."""
        mark = MarkOut(outcome="parked", writer=_ORIGIN, revision=0, reason="backlog")
        held: dict[str, Marks] = {
            one.session: {turn: {workspace: mark} for turn in one.turns}
            for one in self._plan.settled
        }
        with self._invocation.progress("sessions:") as bar:
            for number, read in enumerate(self._plan.sessions):
                bar.show(number, len(self._plan.sessions), read.title or read.session)
                with self._failing_as(read.session) as failed:
                    answer = self._client.import_lines(lines_of(read, held.get(read.session)))
                    self.tally.sessions += 1
                    self.tally.turns += answer["turns"]
                    self.tally.new += answer["new"]
                if failed:
                    self._missing.add(read.session)

    def _send_blocks(self) -> bool:
        """Sends the blocks that can be here; tells whether they are."""
        long = [block for block in self._plan.blocks if _bytes_of(block) > _BLOCK_BYTES]
        for block in long:
            name = f"{block.topic}, {block.id}"
            self.tally.problems.append(Problem(name=name, reason=_TOO_LONG))
        sent = [block for block in self._plan.blocks if block not in long]
        missing = [block for block in sent if self._cites_missing(block)]
        kept = [block for block in sent if not self._cites_missing(block)]
        left = [*long, *missing]
        if missing:
            self.tally.failed.append(Problem(name=count(len(missing), "block"), reason=_NOT_HERE))
        # Nor do turns count as dealt with that the blocks left behind rest on.
        self._waiting = {ref.session for block in left for ref in block.cites}
        failed: list[bool] = []
        with self._invocation.progress("topics:") as bar:
            for done, some in _shares(kept):
                bar.show(done, len(kept), "blocks")
                with self._failing_as(some[0].topic) as failed:
                    self._count(self._client.call("memory.adopt", _request(blocks=some)))
                if failed:
                    break
        return not failed

    def _cites_missing(self, block: AdoptedBlock) -> bool:
        return any(ref.session in self._missing for ref in block.cites)

    def _count(self, answer: dict[str, Any]) -> None:
        self.tally.blocks += len(answer["blocks"])
        self.tally.persons += answer["persons"]
        self.tally.known += answer["known"]
        for one in answer["left_out"]:
            name = f"{self._topics[one['block']]}, {one['block']}"
            self.tally.problems.append(Problem(name=name, reason=one["reason"]))

    def _settle(self) -> None:
        for settled in self._plan.settled:
            if settled.session in self._missing | self._waiting:
                continue
            for start in range(0, len(settled.turns), _TURNS_AT_ONCE):
                some = settled.turns[start : start + _TURNS_AT_ONCE]
                with self._failing_as(settled.session):
                    share = msgspec.structs.replace(settled, turns=some)
                    answer = self._client.call("memory.adopt", _request(settled=[share]))
                    self.tally.settled += answer["settled"]

    @contextlib.contextmanager
    def _failing_as(self, name: str) -> Generator[list[bool]]:
        """Records what fails inside as `name`'s failure; what it gives is not empty then."""
        failed: list[bool] = []
        try:
            yield failed
        except (DaemonNotRunning, ConnectionLost):
            raise  # nothing after it could be sent either
        except TurnmarkError as error:
            failed.append(True)
            self.tally.failed.append(Problem(name=name, reason=error.message))


def _request(
    *, blocks: Sequence[AdoptedBlock] = (), settled: Sequence[SettledTurns] = ()
) -> dict[str, Any]:
    asked: dict[str, Any] = msgspec.to_builtins({"blocks": blocks, "settled": settled})
    return {"origin": _ORIGIN, **asked}


def _bytes_of(block: AdoptedBlock) -> int:
    return len(msgspec.json.encode(block))


def _shares(blocks: Sequence[AdoptedBlock]) -> Iterator[tuple[int, list[AdoptedBlock]]]:
    """Yields the blocks in shares that fit a request, each with how many came before it."""
    held: list[AdoptedBlock] = []
    size = done = 0
    for block in blocks:
        cost = _bytes_of(block)
        if held and size + cost > _REQUEST_BYTES:
            yield done, held
            done, held, size = done + len(held), [], 0
        held.append(block)
        size += cost
    if held:
        yield done, held


def _report(invocation: Invocation, tally: Tally) -> None:
    """Prints what was taken over, and what was not and why."""
    if invocation.as_json:
        invocation.print_json(tally)
        return
    invocation.print(*_summary(tally))
    _name(invocation, "Not taken as it stands:", tally.problems)
    _name(invocation, "Failed:", tally.failed)


def _summary(tally: Tally) -> Iterator[str]:
    kept, begins = tally.blocks - tally.persons, "Would take over " if tally.dry_run else ""
    new = "" if tally.dry_run else f", {tally.new:,} new"
    yield f"{begins}{count(tally.sessions, 'session')}: {count(tally.turns, 'turn')}{new}."
    yield (
        f"{begins}{count(tally.topics, 'topic')}: {count(tally.blocks, 'block')}, {kept:,} with "
        f"their sources ({count(tally.sources, 'turn')}), {tally.persons:,} as a person's."
    )
    if tally.known:
        yield f"Here already, or taken out here, and left so: {count(tally.known, 'block')}."
    would = "would be " if tally.dry_run else ""
    yield (
        f"{count(tally.settled, 'turn')} {would}taken as dealt with, "
        f"{tally.waiting:,} {would}left for the writer."
    )
    if tally.dry_run:
        yield "Nothing was written."
    elif tally.waiting:
        held = " --backlog" if tally.backlog else ""
        yield f"turnmark flush{held} writes them now, turnmark owed lists them."


def _name(invocation: Invocation, heading: str, problems: Iterable[Problem]) -> None:
    listed = list(problems)
    if not listed:
        return
    invocation.print(heading)
    for problem in listed[:_NAMED]:
        invocation.print(f"  {one_line(f'{problem.name}: {problem.reason}')}")
    if len(listed) > _NAMED:
        invocation.print(f"  and {len(listed) - _NAMED:,} more (--json lists all)")
