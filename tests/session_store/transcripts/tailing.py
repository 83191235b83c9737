"""A tail on files that a test writes piece by piece, and the DAG that it comes to.

Nothing runs in the background: `settle` lets the tail do all that is due now, on a clock that the
test moves. What the store then holds is compared with an import of the finished files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, Self

import anyio
import anyio.lowlevel

from session_store.stage import Stage
from turnmark.commands.import_ import lines_of
from turnmark_session_store.queries import rows_of
from turnmark_session_store.requests import ImportLines
from turnmark_session_store.store import SessionStore
from turnmark_session_store.transcripts.claude_code.live import ClaudeCodeLiveReader
from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.database_live import DatabaseReader
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.live import LiveReader, Patience
from turnmark_session_store.transcripts.reader import Reader
from turnmark_session_store.transcripts.tail import TranscriptTail
from turnmark_session_store.transcripts.tail_loop import Tail

Dag = dict[str, Any]
CLAUDE = ClaudeCodeReader()
IMPATIENT = Patience(quiet_seconds=0.0, orphan_seconds=0.0)
HASTY = Patience(quiet_seconds=0.0, orphan_seconds=6_000.0)
PATIENT = Patience(quiet_seconds=3_000.0, orphan_seconds=6_000.0)


class Follow(Protocol):
    """Makes a tail that knows nothing but the checkpoints, as a new process would."""

    def __call__(self, store: SessionStore, root: Path, patience: Patience, **more: Any) -> Tail:
        """Returns it; `more` are options of all tails."""
        ...


def of_files(reader: Callable[[Patience], LiveReader]) -> Follow:
    """Follows the files that a reader reads."""

    def follow(store: SessionStore, root: Path, patience: Patience, **more: Any) -> Tail:
        return TranscriptTail(store, reader(patience), root, rest_per_work=0.0, **more)

    return follow


def of_databases(reader: Callable[[Patience], DatabaseReader]) -> Follow:
    """Follows the databases that a reader reads."""

    def follow(store: SessionStore, root: Path, patience: Patience, **more: Any) -> Tail:
        return DatabaseTail(store, reader(patience), root, rest_per_work=0.0, **more)

    return follow


class Tailed:
    """A store and a tail below `root`; every look is asked for."""

    def __init__(
        self,
        place: Path,
        root: Path,
        patience: Patience = PATIENT,
        *,
        follow: Follow = of_files(ClaudeCodeLiveReader),  # noqa: B008 - makes no tail yet
        **more: Any,
    ) -> None:
        self.stage = Stage(place)
        self.root = root
        self.follow = follow
        self.more = more
        self.tail: Tail
        self._patience = patience

    async def __aenter__(self) -> Self:
        await self.stage.__aenter__()
        self.renew(self._patience)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stage.__aexit__(*error)

    def renew(self, patience: Patience = PATIENT) -> None:
        """Puts another tail in the place of this one, as a new process would."""
        self.tail = self.follow(self.stage.store, self.root, patience, **self.more)

    async def settle(self, *changed: Path) -> None:
        """Lets the tail deal with these paths and all that is due."""
        if changed:
            self.tail.changed(changed)
        with anyio.fail_after(60):
            await self.tail.deal_with_all()

    async def dag(self) -> Dag:
        """Returns what the store holds."""
        return await dag_of(self.stage)

    async def said(self) -> list[str]:
        """Returns what the live turns say, in the order in which they were appended."""
        return said(await self.dag())


async def imported(place: Path, paths: Iterable[Path], reader: Reader = CLAUDE) -> Dag:
    """Returns the DAG that an import of finished files makes."""
    async with Stage(place) as stage:
        await import_files(stage, paths, reader)
        return await dag_of(stage)


async def import_files(stage: Stage, paths: Iterable[Path], reader: Reader = CLAUDE) -> None:
    """Imports finished files into a store, as the command does."""
    for read in reader.read(list(paths)):
        await stage.store.import_lines(ImportLines(lines=list(lines_of(read)), last=True))


async def dag_of(stage: Stage) -> Dag:
    """Returns the live turns with their edges and kinds, and each session's head and live tips."""
    return await stage.store.read(dag_in)


async def texts_in(stage: Stage) -> list[str]:
    """Returns what all live turns say, sorted, also where two have the same id."""
    rows = await stage.store.read(
        lambda db: rows_of(
            db,
            "SELECT text FROM turn_words WHERE turn NOT IN (SELECT turn FROM retired_turn)",
        )
    )
    return sorted(str(text, "utf-8") if isinstance(text, bytes) else text for (text,) in rows)


def dag_in(db: Any) -> Dag:
    """Returns the same of a database."""
    turns = rows_of(
        db,
        "SELECT turn.key, above.key, turn.role, turn.kind, text, turn.recordable,"
        " turn.lost_predecessor, caller.key FROM turn"
        " JOIN turn_words ON turn_words.turn = turn.id"
        " LEFT JOIN turn AS above ON above.id = turn.predecessor"
        " LEFT JOIN turn AS caller ON caller.id = turn.caller"
        " WHERE turn.id NOT IN (SELECT turn FROM retired_turn)",
    )
    tips = rows_of(
        db,
        "SELECT session.name, turn.key FROM branch JOIN session ON session.id = branch.session"
        " JOIN turn ON turn.id = tip WHERE state = 'live'",
    )
    heads = rows_of(
        db,
        "SELECT session.name, turn.key, title, project FROM session"
        " LEFT JOIN turn ON turn.id = head"
        " LEFT JOIN session_words ON session_words.session = session.id",
    )
    return {
        "turns": {key: rest for key, *rest in turns},
        "tips": sorted(tips),
        "heads": sorted(heads),
    }


def said(dag: Dag) -> list[str]:
    """Returns what the live turns say, in the order in which they were appended."""
    return [turn[3].decode() for turn in dag["turns"].values()]


def edges(dag: Dag) -> dict[str, str | None]:
    """Returns what each live turn says, and what the one before it."""
    texts = {key: turn[3].decode() for key, turn in dag["turns"].items()}
    return {texts[key]: texts.get(turn[0]) for key, turn in dag["turns"].items()}


def humans(dag: Dag) -> int:
    """Returns how many prompts of people are live, and recordable."""
    return sum(turn[1] == "user" and turn[4] == 1 for turn in dag["turns"].values())


def differences(found: Dag, wanted: Dag) -> list[str]:
    """Returns what is different, a line each: `+` is too much, `-` is missing."""
    here = {f"{part} {one}" for part, ones in found.items() for one in _entries(ones)}
    there = {f"{part} {one}" for part, ones in wanted.items() for one in _entries(ones)}
    return [f"+ {one}" for one in sorted(here - there)] + [
        f"- {one}" for one in sorted(there - here)
    ]


def _entries(ones: Any) -> list[Any]:
    return list(ones.items()) if isinstance(ones, dict) else list(ones)
