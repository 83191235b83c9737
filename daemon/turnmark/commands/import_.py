"""`turnmark import PATH…`: transcripts of agents, and exports, into sessions, and into memory.

The built-in writer costs nothing, so what came in is written at once; with another writer the
command only says how much waits and what would write it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnmark import places
from turnmark.commands.export_lines import split_sessions
from turnmark.commands.flush import print_written
from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import Fields, count
from turnmark.errors import ConnectionLost, DaemonNotRunning
from turnmark.terminal import one_line
from turnmark_events.errors import NotFound, Refused, TurnmarkError
from turnmark_session_store.model import MarkOut
from turnmark_session_store.recordable import text_of
from turnmark_session_store.transcripts import weclaw
from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.codex import compressed
from turnmark_session_store.transcripts.codex.reader import CodexReader
from turnmark_session_store.transcripts.openprogram.reader import OpenProgramReader
from turnmark_session_store.transcripts.pi.reader import PiReader
from turnmark_session_store.transcripts.reader import Reader, ReadSession, ReadTurn
from turnmark_session_store.transcripts.recognise import EXPORT_AGENT, find_transcripts

# How many records that could not be read are named; the others are counted.
_NAMED = 10
_STDIN = "-"
_OF_GIT = ".git"
_FREE_WRITER = "builtin"
# Named here, for their readers are only loaded once a daemon answers.
AGENTS = (
    "claude-code",
    "codex",
    "hermes",
    "openclaw",
    "opencode",
    "openprogram",
    "pi",
    weclaw.AGENT,
    EXPORT_AGENT,
)

Marks = Mapping[str, Mapping[str, MarkOut]]


class Tally(msgspec.Struct, kw_only=True):
    """What an import came to. `unread` counts records, `failed` names files or sessions.

    `compressed` counts files that are not read because they are. `flush` is what the flush
    afterwards answered, `waiting` what memory owes where there was none.
    """

    sessions: int = 0
    turns: int = 0
    new: int = 0
    unread: int = 0
    compressed: int = 0
    failed: list[dict[str, str]] = []
    flush: dict[str, Any] | None = None
    waiting: dict[str, Any] | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a transcript, an export, or a directory of them"
    )
    parser.add_argument(
        "--agent",
        choices=AGENTS,
        metavar="NAME",
        help=f"whose transcripts they are; without: recognised ({', '.join(AGENTS)})",
    )
    parser.add_argument(
        "--no-flush", action="store_true", help="leave the writing to the daemon's own time"
    )


def run(invocation: Invocation) -> int:
    """Reads and sends everything that can be, and has it written; 1 where something failed."""
    work = _Import(invocation)
    work.take(invocation.options.paths, invocation.options.agent)
    tally = work.tally
    if tally.sessions:
        _write(invocation, tally)
    _report(invocation, tally)
    return 1 if tally.failed or (tally.flush or {}).get("failures") else 0


def lines_of(read: ReadSession, marks: Marks | None = None) -> Iterator[str]:
    """Yields a session that a reader found as the lines of an export, header to end.

    `marks` are marks that turns come with, by the turn's id, each by the workspace's.
    """
    yield _line(
        "turnmark-export",
        version=1,
        session=read.session,
        agent=read.agent,
        title=read.title,
        project=read.project,
        namespace=read.namespace,
        forked_from=read.forked_from,
        caller=read.caller,
        source="reader",
    )
    for turn in read.turns:
        yield _turn_line(turn, (marks or {}).get(turn.turn.id or "", {}))
    if read.taken_back:
        yield _line("taken_back", turns=read.taken_back)
    for tip in read.tips:
        yield _line("branch", tip=tip)
    yield _line("end", head=read.head, turns=len(read.turns))


def _turn_line(read: ReadTurn, marks: Mapping[str, MarkOut]) -> str:
    turn = read.turn
    return _line(
        "turn",
        id=turn.id,
        predecessor=read.predecessor,
        merged=(),
        role=turn.role,
        kind=turn.kind,
        text=text_of(turn.text),
        speaker=turn.speaker,
        time=turn.time,
        caller=turn.caller,
        supersedes=turn.supersedes,
        metadata=turn.metadata,
        lost_predecessor=read.lost_predecessor,
        marks=marks,
    )


def _line(tag: str, /, **fields: Any) -> str:
    return msgspec.json.encode({"type": tag, **fields}).decode()


def readers(*, skip_directories: Sequence[Path] = ()) -> tuple[Reader, ...]:
    """Returns a reader for each agent whose transcripts can be imported.

    Those of agents that keep databases need SQLite, which no command is to load before it knows
    that a daemon answers.
    """
    from turnmark_session_store.transcripts.hermes.reader import HermesReader  # noqa: PLC0415 - see above
    from turnmark_session_store.transcripts.openclaw.reader import OpenClawReader  # noqa: PLC0415
    from turnmark_session_store.transcripts.opencode.reader import OpencodeReader  # noqa: PLC0415

    kinds = (
        ClaudeCodeReader,
        CodexReader,
        HermesReader,
        OpenClawReader,  # before pi's: the grammar of its files is pi's
        OpencodeReader,
        OpenProgramReader,
        PiReader,
    )
    return tuple(kind(skip_directories=skip_directories) for kind in kinds)


class _Import:
    """Reads one set of paths and sends what is in them, keeping count."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._client = invocation.client()
        # A writer that is an agent leaves transcripts, too: memory must not feed on itself.
        state = places.state_dir(invocation.options.state, environ=invocation.environ)
        own = places.writer_dirs(state)
        self._readers = readers(skip_directories=own)
        self.tally = Tally()

    def take(self, paths: Sequence[str], agent: str | None) -> None:
        """Sends the exports among `paths` as they are and everything else through its reader."""
        found: dict[str, set[Path]] = {}
        for path in paths:
            with self._failing_as(path):
                if path == _STDIN:
                    self._take_export("standard input", self._invocation.stdin)
                else:
                    self._find(Path(path), agent, found)
        for file in sorted(found.pop(EXPORT_AGENT, ())):
            with self._failing_as(str(file)), file.open(encoding="utf-8", newline="\n") as lines:
                self._take_export(str(file), lines)
        for reader in self._readers:
            if reader.agent in found:
                self._take_transcripts(reader, sorted(found[reader.agent]))

    def _find(self, path: Path, agent: str | None, found: dict[str, set[Path]]) -> None:
        """Adds the transcripts in `path`; in a directory no file keeps the others from it."""
        where = path.resolve()
        if agent == weclaw.AGENT or weclaw.is_home(where) or weclaw.is_private(where):
            raise Refused(f"{weclaw.ELSEWHERE}. Import the files of those agents.")
        if not path.is_dir():
            self._recognise(path, agent, found)
            return
        before = sum(map(len, found.values()))
        own: dict[str, set[Path]] = {}
        for file in _files_below(path):
            if compressed.is_compressed(file):
                self.tally.compressed += compressed.is_unread(file)
                continue
            with self._failing_as(str(file)), contextlib.suppress(Refused):
                self._recognise(file, None, own)
        for owner, files in own.items():
            if agent in {None, owner}:
                found.setdefault(owner, set()).update(files)
        if sum(map(len, found.values())) == before and not self.tally.compressed:
            of = "that turnmark knows" if agent is None else f"of {agent}"
            raise NotFound(f"holds no transcript {of} that was not named before")

    def _recognise(self, file: Path, agent: str | None, found: dict[str, set[Path]]) -> None:
        if compressed.is_compressed(file) and file.is_file():
            raise Refused(f"is compressed, and not read: {compressed.ADVICE}")
        for one in find_transcripts([file], readers=self._readers, agent=agent).found:
            found.setdefault(one.agent, set()).update(one.paths)

    def _take_export(self, name: str, lines: Iterable[str]) -> None:
        for number, session in enumerate(split_sessions(lines), start=1):
            self._send(name if number == 1 else f"{name}, session {number}", session)

    def _take_transcripts(self, reader: Reader, files: Sequence[Path]) -> None:
        """Sends a set of transcripts; they are read whole, as one may point into another."""
        with (
            self._failing_as(reader.agent),
            self._invocation.progress(f"{reader.agent}:") as bar,
        ):
            bar.show(0, None, f"reading {count(len(files), 'file')}")
            sessions = list(reader.read(files))
            for number, read in enumerate(sessions):
                bar.show(number, len(sessions), read.title or read.session)
                self._warn(read)
                self._send(read.session, lines_of(read))

    def _send(self, name: str, lines: Iterable[str]) -> None:
        with self._failing_as(name):
            answer = self._client.import_lines(lines)
            self.tally.sessions += 1
            self.tally.turns += answer["turns"]
            self.tally.new += answer["new"]

    def _warn(self, read: ReadSession) -> None:
        for warning in read.warnings:
            self.tally.unread += 1
            if self.tally.unread <= _NAMED:
                place = f"{warning.file}:{warning.line}" if warning.line else warning.file
                self._invocation.note(one_line(f"{place}: {warning.reason}"))

    @contextlib.contextmanager
    def _failing_as(self, name: str) -> Generator[None]:
        """Records what fails inside as `name`'s failure, and lets the others go on."""
        try:
            yield
        except (DaemonNotRunning, ConnectionLost):
            raise  # nothing after it could be sent either
        except (TurnmarkError, OSError, UnicodeDecodeError) as error:
            self.tally.failed.append({"name": name, "reason": _reason(error)})


def _files_below(directory: Path) -> Iterator[Path]:
    """Yields the regular files below, sorted; links would lead out, or to the same file twice.

    What git keeps is nobody's transcript, and there may be a repository in each session. Weclaw's
    accounts are not opened.
    """
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(
            name
            for name in folders
            if name != _OF_GIT and not weclaw.is_private(Path(folder, name).resolve())
        )
        paths = (Path(folder, name) for name in sorted(names))
        yield from (path for path in paths if path.is_file() and not path.is_symlink())


def _reason(error: Exception) -> str:
    if isinstance(error, TurnmarkError):
        return error.message
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 at byte {error.start}"
    return getattr(error, "strerror", None) or str(error)


def _write(invocation: Invocation, tally: Tally) -> None:
    """Flushes where that costs nothing, else finds out how much waits."""
    writer = invocation.call("status")["writer"]
    if writer.startswith(_FREE_WRITER) and not invocation.options.no_flush:
        tally.flush = invocation.call_shown("writing", "memory.flush")
        return
    owed = invocation.whole("memory.owed", "tips")
    tally.waiting = {
        "writer": writer,
        "turns": owed["turns"],
        "tokens": owed["tokens"],
        "backlog": any(tip["state"] == "backlog" for tip in owed["tips"]),
    }


def _report(invocation: Invocation, tally: Tally) -> None:
    """Prints the summary, and each failure beside it."""
    for failure in tally.failed:
        name, reason = failure["name"], one_line(failure["reason"])
        named = reason if reason.startswith(name) else f"{name}: {reason}"
        invocation.note(f"turnmark: {named}")
    if invocation.as_json:
        invocation.print_json(tally)
        return
    sizes = f"{count(tally.turns, 'turn')}, {tally.new:,} new"
    unread = f"; {count(tally.unread, 'record')} could not be read" if tally.unread else ""
    failed = f"; {len(tally.failed):,} failed" if tally.failed else ""
    invocation.print(f"{count(tally.sessions, 'session')}: {sizes}{unread}{failed}.")
    if tally.compressed:
        files = count(tally.compressed, "compressed rollout")
        invocation.print(f"{files} not read: {compressed.ADVICE}.")
    if tally.flush is not None:
        print_written(invocation, tally.flush)
    elif tally.waiting is not None and tally.waiting["turns"]:
        invocation.print(_waiting(tally.waiting))


def _waiting(waiting: Fields) -> str:
    sizes = f"{count(waiting['turns'], 'turn')} ({count(waiting['tokens'], 'token')})"
    held = " --backlog" if waiting["backlog"] else ""
    return (
        f"{sizes} wait for the writer {waiting['writer']}: turnmark flush{held} writes them now, "
        "turnmark owed lists them."
    )
