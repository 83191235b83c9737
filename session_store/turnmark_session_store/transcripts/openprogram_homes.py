"""Where OpenProgram keeps sessions: a directory each, below its own or inside a project.

Only names and small files are read, and no directory but those where sessions can be: each session
has a repository beside its nodes, with thousands of files that tell nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

HISTORY: Final = "history"
META: Final = "meta.json"
SESSIONS: Final = "sessions"
LOCATIONS: Final = "locations.json"
_NODE: Final = ".json"
# Above the sessions of a project: `<project>/.openprogram/sessions/<session>`. The program's own
# directory can have the same name; these lie in it and in no project.
_IN_PROJECT: Final = (".openprogram", SESSIONS)
_OF_THE_STATE: Final = ("owner.json", "memory", f"{SESSIONS}/index.json")


class Homes(msgspec.Struct, frozen=True, kw_only=True):
    """The directories of sessions; `missing` are (name, reason) of what could not be found."""

    found: tuple[Path, ...]
    missing: tuple[tuple[str, str], ...]


def homes_of(root: Path) -> Homes:
    """Returns the directories of all sessions of a state directory, those of projects included.

    Raises:
        OSError: if a directory is there and can't be read.
    """
    sessions = root / SESSIONS
    homes: dict[Path, None] = {}
    missing: list[tuple[str, str]] = []
    if sessions.is_dir():
        homes.update((home, None) for home in sorted(sessions.iterdir()) if _is_home(home))
    for name, place in _locations(sessions / LOCATIONS, missing).items():
        inside = (place, place.joinpath(*_IN_PROJECT, name), place / name)
        home = next((one for one in inside if one.name == name and _is_home(one)), None)
        if home is None:
            missing.append((name, f"its directory is not at {place} any more"))
        else:
            homes[home] = None
    return Homes(found=tuple(homes), missing=tuple(missing))


def files_of_home(home: Path) -> list[Path]:
    """Returns the files of a session's nodes, and its `meta.json` if it has one."""
    return [Path(entry.path) for entry in entries_of(home)]


def entries_of(home: Path) -> Iterator[os.DirEntry[str]]:
    """Yields the entries of the same files, in no order."""
    try:
        with os.scandir(home / HISTORY) as nodes:
            yield from (node for node in nodes if node.name.endswith(_NODE))
    except FileNotFoundError:
        pass  # a session of which nothing was said yet
    with os.scandir(home) as beside:
        yield from (entry for entry in beside if entry.name == META)


def project_of(home: Path) -> str | None:
    """Returns the project that a session's directory lies in, None where it lies in no project."""
    directory = home.parent.parent
    if home.parent.parts[-2:] != _IN_PROJECT:
        return None
    is_state = any((directory / name).exists() for name in _OF_THE_STATE)
    return None if is_state else str(directory.parent)


def _is_home(path: Path) -> bool:
    return not path.is_symlink() and ((path / HISTORY).is_dir() or (path / META).is_file())


def _locations(path: Path, missing: list[tuple[str, str]]) -> dict[str, Path]:
    try:
        parsed = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        missing.append((path.name, "is not JSON; sessions inside projects were not found"))
        return {}
    named = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    return {name: Path(place) for name, place in named.items() if isinstance(place, str)}
