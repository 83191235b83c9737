"""The agents that are followed, each with its program at work, for tests of what holds for all.

An `Agent` has a program that does one thing after another (`Work`); whoever follows it may look at
any of those moments, and must come to what an import gives of what is there in the end.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from session_store.transcripts.codex_sessions import CodexRecording
from session_store.transcripts.hermes_store import HermesPlay, HermesStore
from session_store.transcripts.live_sessions import ClaudeCodeRecording
from session_store.transcripts.openclaw_files import OpenClawRecording
from session_store.transcripts.openclaw_gateway import Gateway
from session_store.transcripts.openclaw_play import Player
from session_store.transcripts.opencode_play import Doings
from session_store.transcripts.opencode_program import Opencode
from session_store.transcripts.openprogram_play import play
from session_store.transcripts.openprogram_state import OpenProgramState
from session_store.transcripts.pi_sessions import PiRecording
from session_store.transcripts.tailing import (
    HASTY,
    IMPATIENT,
    PATIENT,
    Dag,
    Follow,
    of_databases,
    of_files,
)
from session_store.transcripts.written_files import WrittenFiles
from turnmark_session_store.store import SessionStore
from turnmark_session_store.transcripts.claude_code.live import ClaudeCodeLiveReader
from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.codex.live import CodexLiveReader
from turnmark_session_store.transcripts.codex.reader import CodexReader
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.hermes.database import HermesDatabaseReader
from turnmark_session_store.transcripts.hermes.reader import HermesReader
from turnmark_session_store.transcripts.live import LiveReader, Patience
from turnmark_session_store.transcripts.openclaw.database import OpenClawDatabaseReader
from turnmark_session_store.transcripts.openclaw.live import OpenClawLiveReader
from turnmark_session_store.transcripts.openclaw.reader import OpenClawReader
from turnmark_session_store.transcripts.openclaw.tables import NAME
from turnmark_session_store.transcripts.opencode.database import OpencodeDatabaseReader
from turnmark_session_store.transcripts.opencode.reader import OpencodeReader
from turnmark_session_store.transcripts.openprogram.reader import OpenProgramReader
from turnmark_session_store.transcripts.openprogram.tail import OpenProgramTail
from turnmark_session_store.transcripts.pi.live import PiLiveReader
from turnmark_session_store.transcripts.pi.reader import PiReader
from turnmark_session_store.transcripts.reader import Reader
from turnmark_session_store.transcripts.tail_loop import Tail

DATA = Path(__file__).resolve().parents[2] / "data"
GIVEN = Path(os.environ.get("TURNMARK_TRANSCRIPTS") or "/dev/null")
SEEDS = os.environ.get("SEEDS")
"""How often each agent's program plays: more with `SEEDS=400 pytest -k comes_to`."""

# So long ago that an import waits for nothing, and a patient tail for everything.
_LATELY_MS = 1_000_000


class Moment(NamedTuple):
    """Something that happened: these paths changed. `is_seen` says that they are looked at now."""

    changed: Collection[Path]
    is_seen: bool = False


class Work(NamedTuple):
    """A program at work below `root`; `paths` are what an import is given in the end.

    As a context manager it ends with the block.
    """

    root: Path
    moments: Iterator[Moment]
    paths: Callable[[], list[Path]]
    end: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


def _same(dag: Dag, wanted: Dag) -> Dag:
    """All of a DAG is what an import gives."""
    del wanted
    return dag


class Agent(NamedTuple):
    """An agent, as tests of all of them know it.

    `work` begins its program below a directory; `seeds` is how it is begun here. `looks` and
    `restarts` are how likely either is at each moment, `patiences` what a new tail is drawn from;
    where `tells_all`, a look is told of all that changed since the last one. `compared` is the part
    of a DAG in which a tail agrees with an import.
    """

    name: str
    reader: Reader
    follow: Follow
    work: Callable[[random.Random, Path], Work]
    seeds: Collection[int]
    looks: float = 0.4
    restarts: float = 0.03
    patiences: tuple[Patience, ...] = (PATIENT, HASTY)
    tells_all: bool = False
    compared: Callable[[Dag, Dag], Dag] = _same

    def __str__(self) -> str:
        """Its name, in the ids of tests."""
        return self.name


# Files.


class FileAgent(NamedTuple):
    """An agent that writes lines to files, of which a `recording` is drawn.

    `below` is where in its directory they are; it plays at most `steps` things.
    """

    name: str
    reader: Reader
    live: Callable[[Patience], LiveReader]
    recording: Callable[[random.Random], WrittenFiles]
    steps: int
    seeds: Collection[int]
    below: str = "."

    def __str__(self) -> str:
        """Its name, in the ids of tests."""
        return self.name

    def played(self, chance: random.Random, steps: int) -> WrittenFiles:
        """Returns a recording of that much of what may happen."""
        recording = self.recording(chance)
        recording.play(steps)
        return recording

    def agent(self, *, mixed: bool) -> Agent:
        """Returns the agent as others see it; its files grow `mixed`, or as they were written."""

        def work(chance: random.Random, place: Path) -> Work:
            recording = self.recording(chance)
            recording.play(chance.randint(1, self.steps))
            root = place / "agent"
            (root / self.below).mkdir(parents=True)
            pieces = recording.pieces(chance, mixed=mixed)
            moments = (Moment([piece.to(root / self.below)]) for piece in pieces)
            if self.name == "codex":
                moments = _archiving(chance, root, moments)
            return Work(root, moments, lambda: recording.write_to(place / "finished"))

        name = f"{self.name}, {'files at random' if mixed else 'as written'}"
        return Agent(name, self.reader, of_files(self.live), work, self.seeds)


def _archiving(chance: random.Random, root: Path, moments: Iterator[Moment]) -> Iterator[Moment]:
    """Moves a file to the archive now and then, and back again."""
    archived = root / "archived_sessions"
    archived.mkdir()
    for moment in moments:
        yield moment
        if chance.random() < 0.03:
            [path] = moment.changed
            away = path.rename(archived / path.name)
            yield Moment([path, away], is_seen=True)
            away.rename(path)


def _seeds(number: int) -> range:
    return range(int(SEEDS or number))


# Each of these found a fault: take-backs in forks, copies and callers that came too early.
_FAULTS = {325, 328, 339, 343, 601}

CLAUDE_CODE = FileAgent(
    "claude-code",
    ClaudeCodeReader(),
    ClaudeCodeLiveReader,
    ClaudeCodeRecording,
    14,
    sorted({*_seeds(12), *_FAULTS}),
)
CODEX = FileAgent(
    "codex",
    CodexReader(),
    CodexLiveReader,
    lambda chance: CodexRecording(chance, apart=True),
    12,
    _seeds(10),
    "sessions",
)
OPENCLAW = FileAgent(
    "openclaw", OpenClawReader(), OpenClawLiveReader, OpenClawRecording, 12, _seeds(10)
)
PI = FileAgent("pi", PiReader(), PiLiveReader, PiRecording, 16, _seeds(10))
FILE_AGENTS = (CLAUDE_CODE, CODEX, OPENCLAW, PI)


# Databases, and files that are written anew.


def _hermes(chance: random.Random, place: Path) -> Work:
    store = HermesStore(place / "hermes" / "state.db")
    playing = HermesPlay(store, chance)

    def moments() -> Iterator[Moment]:
        for _ in range(chance.randint(1, 40)):
            playing.step()
            yield Moment([_log_of(store.path)])

    return Work(store.path.parent, moments(), lambda: [store.path], store.close)


def _openclaw(chance: random.Random, place: Path) -> Work:
    gateway = Gateway(place / "agents" / "main" / "agent" / NAME, chance=chance)
    player = Player(chance, gateway)

    def moments() -> Iterator[Moment]:
        for _ in range(chance.randint(1, 25)):
            player.play()
            yield Moment([_log_of(gateway.path)])
            if chance.random() < 0.1:
                gateway.db.wal_checkpoint()

    return Work(place, moments(), lambda: [gateway.path], gateway.close)


def _opencode(chance: random.Random, place: Path) -> Work:
    began = round(time.time() * 1000) - _LATELY_MS
    program = Opencode(place / "opencode" / "opencode.db", now=began, tick=1)
    doings = Doings(program, chance)

    def moments() -> Iterator[Moment]:
        for _ in range(chance.randint(10, 60)):
            for _ in doings.do():
                yield Moment([_log_of(program.path)])
                if chance.random() < 0.05:
                    program.db.pragma("wal_checkpoint(TRUNCATE)")
        doings.end()

    return Work(program.path.parent, moments(), lambda: [program.path], program.close)


def _openprogram(chance: random.Random, place: Path) -> Work:
    state = OpenProgramState(place / "openprogram")
    talks = [iter(play(chance, state.session(f"s{number}"), 25)) for number in range(3)]

    def moments() -> Iterator[Moment]:
        seen: set[tuple[Path, int]] = set()
        while talks:
            talk = chance.choice(talks)
            if next(talk, None) is None:
                talks.remove(talk)
            now = {(path, path.stat().st_mtime_ns) for path in state.files()}
            yield Moment({path for path, _ in now - seen})
            seen = now

    def paths() -> list[Path]:
        reader = OpenProgramReader()
        return [path for path in state.files() if reader.recognises(path, path.read_bytes())]

    return Work(state.root, moments(), paths)


def _log_of(database: Path) -> Path:
    """Returns where a program writes first."""
    return database.with_name(f"{database.name}-wal")


def _follow_opencode(store: SessionStore, root: Path, patience: Patience, **more: Any) -> Tail:
    reader = OpencodeDatabaseReader(patience, undo_seconds=patience.orphan_seconds)
    return DatabaseTail(store, reader, root, rest_per_work=0.0, **more)


def _follow_openprogram(store: SessionStore, root: Path, patience: Patience, **more: Any) -> Tail:
    orphans = {"orphan_seconds": patience.orphan_seconds}
    return OpenProgramTail(store, root, rest_per_work=0.0, **{**orphans, **more})


def leaves_of(dag: Dag, wanted: Dag) -> Dag:
    """The DAG without tips inside another branch of their session.

    A branch that a rewind led back stands there until something is said, where it was seen before;
    where all is read at once it never was.
    """
    del wanted
    inner: set[tuple[str, str]] = set()
    for session, tip in dag["tips"]:
        inner.update((session, key) for key in _above(dag, tip))
    return {**dag, "tips": [tip for tip in dag["tips"] if tip not in inner]}


def ends_of(dag: Dag, wanted: Dag) -> Dag:
    """Turns, the ends of lines, and where each session stands.

    A fork that was put back into what it shares with its origin ends there where all is read at
    once; where it was seen before, its branch stays on turns that are the origin's, and were not
    taken back.
    """
    inner = {key for _, tip in dag["tips"] for key in _above(dag, tip)}
    somewhere = {name for name, head, *_ in wanted["heads"] if head is not None}
    return {
        "turns": dag["turns"],
        "tips": sorted({tip for _, tip in dag["tips"]} - inner),
        "heads": [head for head in dag["heads"] if head[0] in somewhere],
    }


def without_tips(dag: Dag, wanted: Dag) -> Dag:
    """Turns and heads: what was said and then taken back was never said to an import."""
    del wanted
    return {"turns": dag["turns"], "heads": dag["heads"]}


def _above(dag: Dag, tip: str) -> Iterator[str]:
    at = dag["turns"].get(tip, [None])[0]
    while at is not None:
        yield at
        at = dag["turns"].get(at, [None])[0]


AGENTS = (
    *(one.agent(mixed=mixed) for one in FILE_AGENTS for mixed in (False, True)),
    Agent(
        "hermes", HermesReader(), of_databases(HermesDatabaseReader), _hermes, _seeds(12),
        restarts=0.05,
    ),
    Agent(
        "openclaw", OpenClawReader(), of_databases(OpenClawDatabaseReader), _openclaw, _seeds(10),
        looks=0.5, restarts=0.1, compared=leaves_of,
    ),
    Agent(
        "opencode", OpencodeReader(), _follow_opencode, _opencode, _seeds(10),
        looks=0.5, restarts=0.05, compared=ends_of,
        patiences=(PATIENT,),  # a prompt's parts are rows of their own: it is whole once quiet
    ),
    Agent(
        "openprogram", OpenProgramReader(), _follow_openprogram, _openprogram, _seeds(6),
        looks=0.3, restarts=0.05, patiences=(IMPATIENT,), tells_all=True, compared=without_tips,
    ),
)  # fmt: skip


def written(name: str) -> list[Path]:
    """What an agent's program wrote, as it lies in this repository."""
    return sorted(path for path in (DATA / name).rglob("*") if path.is_file())
