"""Finds transcripts among files and directories, and the agent of each by its content."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from turnmark_events.errors import NotFound, Refused, Unavailable
from turnmark_session_store.transcripts.reader import Reader

# The name that turnmark's own exports go by, and the `type` of their first line.
EXPORT_AGENT = "turnmark"
EXPORT_TYPE = "turnmark-export"
# First lines of 60 KB are usual (instructions stand inline), those of several hundred are not.
HEAD_BYTES = 256 * 1024


class FoundTranscripts(msgspec.Struct, frozen=True, kw_only=True):
    """The transcripts of one agent, sorted; `agent` is `turnmark` for turnmark's own exports."""

    agent: str
    paths: tuple[Path, ...]


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, by agent, sorted; `passed_over` are files in directories of no agent."""

    found: tuple[FoundTranscripts, ...]
    passed_over: tuple[Path, ...]


def find_transcripts(
    paths: Sequence[Path], *, readers: Sequence[Reader], agent: str | None = None
) -> Findings:
    """Returns the transcripts among `paths`, directories searched through; blocks on disk.

    A file that is named itself must be a transcript; inside directories other files are passed
    over, and symbolic links are not followed. Empty files are nobody's and no error. With `agent`,
    files that are named are taken to be that agent's, and of directories only its files.

    Raises:
        NotFound: if a path does not exist.
        Refused: if a named file is of no known agent, if nothing in the given directories is, or if
            `agent` is unknown.
        Unavailable: if a path cannot be read.
    """
    _check_agent(agent, readers)
    found: dict[str, set[Path]] = {}
    passed_over: set[Path] = set()
    for path in sorted(set(paths)):
        named = not _is_directory(path)
        for file in [path] if named else _files_below(path):
            head = _head_of(file)
            owner = agent if named and agent is not None else _agent_of(file, head, readers)
            if not head or (agent is not None and owner not in (agent, None)):
                continue
            if owner is not None:
                found.setdefault(owner, set()).add(file)
            elif named:
                raise _unknown(file, readers)
            else:
                passed_over.add(file)
    if not found and passed_over:
        raise _unknown(min(passed_over), readers)
    return Findings(
        found=tuple(
            FoundTranscripts(agent=owner, paths=tuple(sorted(files)))
            for owner, files in sorted(found.items())
        ),
        passed_over=tuple(sorted(passed_over)),
    )


def is_export(head: bytes) -> bool:
    """Returns whether a file that begins with `head` is an export of turnmark."""
    try:
        first: Any = msgspec.json.decode(head.split(b"\n", 1)[0])
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(first, dict) and cast("dict[str, Any]", first).get("type") == EXPORT_TYPE


def _agent_of(path: Path, head: bytes, readers: Sequence[Reader]) -> str | None:
    if is_export(head):
        return EXPORT_AGENT
    return next((reader.agent for reader in readers if reader.recognises(path, head)), None)


def _is_directory(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise NotFound(f"There is no {path}; check the path.", path=str(path)) from None
    except OSError as error:
        raise _unreadable(path, error) from error
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise Refused(f"{path} is neither a file nor a directory.", path=str(path))
    return stat.S_ISDIR(mode)


def _files_below(directory: Path) -> Iterator[Path]:
    """Yields the regular files below, sorted; links would lead out, or to the same file twice."""

    def stop(error: OSError) -> None:
        raise _unreadable(Path(error.filename or directory), error) from error

    for folder, folders, names in os.walk(directory, onerror=stop):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            if stat.S_ISREG(file.lstat().st_mode):
                yield file


def _head_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error


def _check_agent(agent: str | None, readers: Sequence[Reader]) -> None:
    known = sorted({EXPORT_AGENT, *(reader.agent for reader in readers)})
    if agent is not None and agent not in known:
        message = f"There is no reader for {agent!r}; name one of {', '.join(known)}."
        raise Refused(message, agent=agent, known=known)


def _unknown(path: Path, readers: Sequence[Reader]) -> Refused:
    known = ", ".join(sorted(reader.agent for reader in readers))
    message = (
        f"{path} is no transcript that turnmark knows: expected one of {known}, or an export of"
        f" turnmark (a first line of type {EXPORT_TYPE}). Name the agent with --agent if it is one."
    )
    return Refused(message, path=str(path))


def _unreadable(path: Path, error: OSError) -> Unavailable:
    message = f"{path} can't be read ({error.strerror}); check its permissions."
    return Unavailable(message, path=str(path))
