"""Where OpenProgram keeps sessions: a directory each, below its own or inside a project.

Only names and small files are read, and no directory but those where sessions can be: each session
has a repository beside its nodes, with thousands of files that tell nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnmark_session_store.recordable import replace_surrogates
from turnmark_session_store.transcripts.openprogram.nodes import parse_object

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
    """The directories of sessions; `missing` are (name, reason) of what could not be found.

    `begun` are those that are there and hold nothing yet that tells them from others.
    """

    found: tuple[Path, ...]
    begun: tuple[Path, ...]
    missing: tuple[tuple[str, str], ...]


def homes_of(root: Path) -> Homes:
    """Returns the directories of all sessions of a state directory, those of projects included.

    Raises:
        OSError: if a directory is there and can't be read.
    """
    sessions = root / SESSIONS
    homes: dict[Path, None] = {}
    begun: list[Path] = []
    missing: list[tuple[str, str]] = []
    for home in sorted(sessions.iterdir()) if sessions.is_dir() else ():
        if _is_home(home):
            homes[home] = None
        elif _is_directory(home):
            begun.append(home)
    for name, place in _locations(sessions / LOCATIONS, missing).items():
        found = _home_at(place, name)
        if isinstance(found, str):
            missing.append((name, found))
            begun += filter(_is_directory, _possible_homes(place, name))
        else:
            homes[found] = None
    unnamed = [home for home in homes if replace_surrogates(home.name) != home.name]
    for home in unnamed:
        del homes[home]
        missing.append((replace_surrogates(home.name), "its name is not UTF-8; rename it"))
    return Homes(found=tuple(homes), begun=tuple(begun), missing=tuple(missing))


def files_of_home(home: Path) -> list[Path]:
    """Returns the files of a session's nodes, and its `meta.json` if it has one."""
    return [Path(entry.path) for entry in entries_of(home)]


def entries_of(home: Path) -> Iterator[os.DirEntry[str]]:
    """Yields the entries of the same files, in no order; no link and nothing else of the name."""
    try:
        with os.scandir(home / HISTORY) as nodes:
            yield from (one for one in nodes if one.name.endswith(_NODE) and _is_file(one))
    except FileNotFoundError:
        pass  # a session of which nothing was said yet
    with os.scandir(home) as beside:
        yield from (one for one in beside if one.name == META and _is_file(one))


def project_of(home: Path) -> str | None:
    """Returns the project that a session's directory lies in, None where it lies in no project."""
    directory = home.parent.parent
    if home.parent.parts[-2:] != _IN_PROJECT:
        return None
    is_state = any((directory / name).exists() for name in _OF_THE_STATE)
    return None if is_state else replace_surrogates(str(directory.parent))


def _possible_homes(place: Path, name: str) -> list[Path]:
    inside = (place, place.joinpath(*_IN_PROJECT, name), place / name)
    return [one for one in inside if one.name == name and one.is_absolute()]


def _home_at(place: Path, name: str) -> Path | str:
    """Returns the directory of the session `name` that is said to be at a place, or why not."""
    try:
        home = next(filter(_is_home, _possible_homes(place, name)), None)
    except OSError as error:
        return f"its directory {place} can't be read ({error.strerror})"
    if home is None:
        return f"its directory is not at {place} any more"
    return home


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)


def _is_directory(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.is_dir()
    except OSError:  # no directory has such a name
        return False


def _is_home(path: Path) -> bool:
    return not path.is_symlink() and ((path / HISTORY).is_dir() or (path / META).is_file())


def _locations(path: Path, missing: list[tuple[str, str]]) -> dict[str, Path]:
    try:
        named = parse_object(path.read_bytes())
    except FileNotFoundError:
        return {}
    except IsADirectoryError:
        named = None
    if named is None:
        missing.append((path.name, "is no JSON object; sessions inside projects were not found"))
        return {}
    return {name: Path(place) for name, place in named.items() if isinstance(place, str)}
