"""Finds the parts of an OpenProgram state directory; reads names and small files only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec

from turnmark_events.errors import NotFound, Refused, Unavailable
from turnmark_session_store.transcripts.openprogram.homes import files_of_home, homes_of

_WORKSPACE = re.compile(r"w-[0-9a-f]{8,}")
# The memory's own files have had two names; the older one is looked for where the newer is missing.
_PRIVATE: Final = (".scriptorium", ".nativemem")
# It is there while topics are replaced, and after a crash that broke that off.
_BROKEN_OFF: Final = ".scriptorium-block-backup"


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: the files of all sessions, the memory's folders, and what is missing.

    `workspace` is the id that marks name; None where no mark can be trusted, and `distrust` says
    why. `problems` are (what, why) of what can't be taken.
    """

    root: Path
    files: tuple[Path, ...]
    sources: Path
    topics: Path
    workspace: str | None
    distrust: str | None
    problems: tuple[tuple[str, str], ...]


def find_state(root: Path) -> State:
    """Returns the parts of the state directory at `root`; blocks on disk.

    Raises:
        NotFound: if there is no such directory.
        Refused: if it holds neither sessions nor a memory.
        Unavailable: if it can't be read.
    """
    if not root.is_dir():
        raise NotFound(f"There is no directory {root}; check the path.", path=str(root))
    sessions, memory = root / "sessions", root / "memory"
    if not sessions.is_dir() and not memory.is_dir():
        message = (
            f"{root} is no state directory of OpenProgram: it holds neither sessions/ nor memory/."
            " Name the directory that does, usually ~/.openprogram."
        )
        raise Refused(message, path=str(root))
    try:
        homes = homes_of(root)
        files = tuple(file for home in homes.found for file in files_of_home(home))
        workspace, distrust = _workspace(memory)
    except OSError as error:
        message = f"{error.filename or root} can't be read ({error.strerror}); check permissions."
        raise Unavailable(message, path=str(error.filename or root)) from error
    return State(
        root=root,
        files=files,
        sources=memory / "sources",
        topics=memory / "topics",
        workspace=workspace,
        distrust=distrust,
        problems=homes.missing,
    )


def _workspace(memory: Path) -> tuple[str | None, str | None]:
    """Returns the memory's id, or why what its marks say can't be relied on."""
    if (memory / _BROKEN_OFF).exists():
        return None, "an update of its topics was broken off"
    for folder in _PRIVATE:
        path = memory / folder / "workspace-id"
        if path.is_file():
            name = path.read_text("utf-8", "replace").strip()
            if _WORKSPACE.fullmatch(name):
                return name, None
            return None, f"{folder}/workspace-id holds no id"
    return None, "its memory has no workspace-id"
