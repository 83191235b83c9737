"""A model behind a program: the question on its standard input, the answer on its output.

The program runs in a directory of the writer's own. An agent notes where it was called; what it
notes of these calls is known by that place and never read in as a conversation (law 15).
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread

from turnmark_memory.models.model import Question, Reply
from turnmark_memory.models.settings import ModelSettings
from turnmark_memory.models.spoken import reply
from turnmark_memory.writers.writer import WriterFailed

OUTPUT_LIMIT_BYTES: Final = 4 * 1024 * 1024

MARK_VARIABLE: Final = "TURNMARK_WRITER"
"""Set for the program and all it starts, so that turnmark's own hooks leave it alone."""

_ERRORS_KEPT_BYTES: Final = 4_096
_ERROR_SHOWN_CHARACTERS: Final = 200

# What a program prints of its question is a turn's text; a run as long as this is no coincidence.
_QUOTED_CHARACTERS: Final = 24

_DATA_ERROR: Final = os.EX_DATAERR
"""The exit status by which a program says that the question is at fault, not the world."""


def check_program(settings: ModelSettings, environ: Mapping[str, str]) -> None:
    """Checks that there is such a program now; costs a look into each directory of the PATH.

    Raises:
        WriterFailed: if there is none.
    """
    if shutil.which(settings.command[0], path=environ.get("PATH")) is None:
        raise not_started(settings, "is not there")


def not_started(settings: ModelSettings, reason: str) -> WriterFailed:
    """Returns the failure of a program that never ran."""
    return WriterFailed(
        f"the program {settings.command[0]!r} {reason}; {settings.table}.command needs a full "
        "path, or one on the PATH that turnmark was started with",
        transport=True,
    )


class CommandModel:
    """Asks a program, a new process for each question; kills its process group when time is up."""

    def __init__(
        self, settings: ModelSettings, directory: Path, environ: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._environ = {**environ, MARK_VARIABLE: "1"}

    @property
    def name(self) -> str:
        """See `Model`."""
        return f"command/{self._settings.model or Path(self._settings.command[0]).name}"

    @property
    def is_local(self) -> bool:
        """See `Model`; nobody knows where a program goes with what it is told."""
        return False

    async def ask(self, question: Question) -> Reply:
        """See `Model`; cancelling it kills the program and what it started."""
        asked = f"{question.instructions}\n\n{question.material}\n"
        await anyio.to_thread.run_sync(self._make_directory)
        program = await self._start()
        run = _Run(program)
        try:
            with anyio.move_on_after(self._settings.timeout_seconds) as within:
                await run.through(asked.encode("utf-8", "replace"))
        finally:
            with anyio.CancelScope(shield=True):
                await run.end()
        if within.cancelled_caught:
            raise WriterFailed(
                f"{self.name} was not done after {self._settings.timeout_seconds:g} s and was "
                f"ended; a slow model needs a higher {self._settings.table}.timeout_seconds"
            )
        return reply(question, self._words(run, asked), None, None)

    def _make_directory(self) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WriterFailed(
                f"the directory {self._directory} for {self.name} can't be made: {error.strerror}",
                transport=True,
            ) from error

    async def _start(self) -> anyio.abc.Process:
        try:
            return await anyio.open_process(
                list(self._settings.command),
                cwd=self._directory,
                env=self._environ,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise not_started(self._settings, "is not there") from error
        except (OSError, ValueError) as error:
            reason = f"can't be started ({getattr(error, 'strerror', None) or error})"
            raise not_started(self._settings, reason) from error

    def _words(self, run: _Run, asked: str) -> str:
        status = run.status
        if run.is_too_long:
            limit = OUTPUT_LIMIT_BYTES // 1024 // 1024
            raise WriterFailed(f"{self.name} printed more than {limit} MiB and was ended")
        if status != 0:
            ended = f"signal {-status}" if status < 0 else f"exit status {status}"
            said = _last_line(run.errors, asked)
            raise WriterFailed(
                f"{self.name} ended with {ended}{f': {said}' if said else ''}",
                transport=status != _DATA_ERROR,
            )
        try:
            return run.output.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WriterFailed(f"{self.name} printed what is not UTF-8") from error


class _Run:
    """One process from its first byte to its last."""

    def __init__(self, program: anyio.abc.Process) -> None:
        self._program = program
        self.output = b""
        self.errors = b""
        self.is_too_long = False
        self._is_over = False

    @property
    def status(self) -> int:
        """The exit status, negative for a signal."""
        status = self._program.returncode
        return -signal.SIGKILL if status is None else status

    async def through(self, question: bytes) -> None:
        """Returns when the process has ended and all it printed is read, or it printed too much."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._feed, question)
            tasks.start_soon(self._read_errors)
            await self._read_output()
            if self.is_too_long:
                tasks.cancel_scope.cancel("too long")
                return
            await self._program.wait()
        self._is_over = True

    async def _feed(self, question: bytes) -> None:
        assert self._program.stdin is not None  # noqa: S101  opened with a pipe
        # A program may answer without reading all, or anything.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._program.stdin.send(question)
            await self._program.stdin.aclose()

    async def _read_output(self) -> None:
        assert self._program.stdout is not None  # noqa: S101  opened with a pipe
        parts: list[bytes] = []
        size_bytes = 0
        async for part in self._program.stdout:
            size_bytes += len(part)
            if size_bytes > OUTPUT_LIMIT_BYTES:
                self.is_too_long = True
                return
            parts.append(part)
        self.output = b"".join(parts)

    async def _read_errors(self) -> None:
        assert self._program.stderr is not None  # noqa: S101  opened with a pipe
        async for part in self._program.stderr:
            self.errors = (self.errors + part)[-_ERRORS_KEPT_BYTES:]

    async def end(self) -> None:
        """Kills the process group of a process that is not done, and frees the process.

        One that is done has no more than a number, which may be another's by now.
        """
        if not self._is_over:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._program.pid, signal.SIGKILL)
        await self._program.aclose()


def _last_line(errors: bytes, asked: str) -> str:
    """Returns the last line that a program says of its failure and that quotes no turn."""
    lines = [
        "".join(sign for sign in line if sign.isprintable()).strip()[-_ERROR_SHOWN_CHARACTERS:]
        for line in errors.decode("utf-8", "replace").splitlines()
    ]
    return next((line for line in reversed(lines) if line and not _quotes(line, asked)), "")


def _quotes(line: str, asked: str) -> bool:
    """Tells whether a line holds a run of what was asked, or is, all of it, a part of it."""
    if len(line) <= _QUOTED_CHARACTERS:
        return line in asked
    return any(
        line[start : start + _QUOTED_CHARACTERS] in asked
        for start in range(len(line) - _QUOTED_CHARACTERS + 1)
    )
