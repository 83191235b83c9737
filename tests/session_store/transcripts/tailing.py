"""A tail on files that a test writes piece by piece, and the DAG that it comes to.

Nothing runs in the background: `settle` lets the tail do all that is due now, on a clock that the
test moves. What the store then holds is compared with an import of the finished files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.lowlevel

from session_store.stage import Stage
from turnmark.commands.import_ import lines_of
from turnmark_session_store.queries import rows_of
from turnmark_session_store.requests import ImportLines
from turnmark_session_store.transcripts.claude_code.live import ClaudeCodeLiveReader
from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.live import LiveReader, Patience
from turnmark_session_store.transcripts.reader import Reader
from turnmark_session_store.transcripts.tail import TranscriptTail

Dag = dict[str, Any]
CLAUDE = ClaudeCodeReader()
IMPATIENT = Patience(quiet_seconds=0.0, orphan_seconds=0.0)
HASTY = Patience(quiet_seconds=0.0, orphan_seconds=6_000.0)
PATIENT = Patience(quiet_seconds=3_000.0, orphan_seconds=6_000.0)


class Tailed:
    """A store and a tail below `root`; every look is asked for."""

    def __init__(
        self,
        place: Path,
        root: Path,
        patience: Patience = PATIENT,
        *,
        live: Callable[[Patience], LiveReader] = ClaudeCodeLiveReader,
        **more: Any,
    ) -> None:
        self.stage = Stage(place)
        self.root = root
        self.live = live
        self.more = more
        self.tail: TranscriptTail
        self.use(patience)

    def use(self, patience: Patience) -> None:
        """Begins anew with a tail that knows nothing but the checkpoints."""
        self._patience = patience

    async def __aenter__(self) -> Self:
        await self.stage.__aenter__()
        self.renew(self._patience)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stage.__aexit__(*error)

    def renew(self, patience: Patience) -> None:
        """Puts another tail in the place of this one, as a new process would."""
        reader = self.live(patience)
        self.tail = TranscriptTail(
            self.stage.store, reader, self.root, rest_per_work=0.0, **self.more
        )

    async def settle(self, *changed: Path) -> None:
        """Lets the tail deal with these paths and all that is due."""
        if changed:
            self.tail.changed(changed)
        with anyio.fail_after(60):
            await self.tail.deal_with_all()

    async def dag(self) -> Dag:
        """Returns what the store holds."""
        return await dag_of(self.stage)


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


def append(path: Path, data: bytes) -> None:
    """Appends bytes to a file, as a program that writes it does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def differences(found: Dag, wanted: Dag) -> list[str]:
    """Returns what is different, a line each: `+` is too much, `-` is missing."""
    here = {f"{part} {one}" for part, ones in found.items() for one in _entries(ones)}
    there = {f"{part} {one}" for part, ones in wanted.items() for one in _entries(ones)}
    return [f"+ {one}" for one in sorted(here - there)] + [
        f"- {one}" for one in sorted(there - here)
    ]


def _entries(ones: Any) -> list[Any]:
    return list(ones.items()) if isinstance(ones, dict) else list(ones)
