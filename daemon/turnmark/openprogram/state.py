"""Finds the parts of an OpenProgram state directory; reads names and small files only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from turnmark_events.errors import NotFound, Refused, Unavailable
from turnmark_session_store.transcripts.openprogram import HISTORY, META

_IN_PROJECT: Final = Path(".openprogram", "sessions")
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
    problems: list[tuple[str, str]] = []
    try:
        homes = _homes(sessions, problems)
        files = tuple(file for home in homes for file in _files_of(home))
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
        problems=tuple(problems),
    )


def _homes(sessions: Path, problems: list[tuple[str, str]]) -> list[Path]:
    """Returns the directories of all sessions, those inside projects included."""
    homes: dict[Path, None] = {}
    if sessions.is_dir():
        homes.update((home, None) for home in sorted(sessions.iterdir()) if _is_home(home))
    for name, place in _locations(sessions / "locations.json", problems).items():
        inside = (place, place / _IN_PROJECT / name, place / name)
        home = next((one for one in inside if one.name == name and _is_home(one)), None)
        if home is None:
            problems.append((name, f"its directory is not at {place} any more"))
        else:
            homes[home] = None
    return list(homes)


def _is_home(path: Path) -> bool:
    return not path.is_symlink() and ((path / HISTORY).is_dir() or (path / META).is_file())


def _locations(path: Path, problems: list[tuple[str, str]]) -> dict[str, Path]:
    try:
        parsed = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        problems.append((path.name, "is not JSON; sessions inside projects were not found"))
        return {}
    named = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    return {name: Path(place) for name, place in named.items() if isinstance(place, str)}


def _files_of(home: Path) -> list[Path]:
    nodes = sorted((home / HISTORY).glob("*.json")) if (home / HISTORY).is_dir() else []
    return [*nodes, home / META] if (home / META).is_file() else nodes


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
