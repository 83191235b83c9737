"""Tests of `daemon/directory_watch.py`: what happens right in some directories, and only there."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from turnmark.directory_watch import Changes, DirectoryWatch

pytestmark = pytest.mark.anyio


async def heard(watch: DirectoryWatch, is_enough: Callable[[set[Path]], bool]) -> set[Path]:
    """All paths that are told of until they are enough."""
    paths: set[Path] = set()
    with anyio.fail_after(60):
        while not is_enough(paths):
            paths |= (await watch.wait()).paths
    return paths


async def test_tells_of_files_that_are_written_or_renamed_into_place(tmp_path: Path) -> None:
    """In followed directories, not in those below or beside them."""
    watched, beside = tmp_path / "watched", tmp_path / "beside"
    for directory in (watched / "below", beside):
        directory.mkdir(parents=True)
    with DirectoryWatch() as watch:
        assert watch.follow([watched, tmp_path / "nowhere"]) == [watched]
        assert watch.follow([watched]) == []
        (watched / "below" / "deep.json").write_text("x", "utf-8")
        (beside / "other.json").write_text("x", "utf-8")
        (beside / "话.tmp").write_text("x", "utf-8")
        (beside / "话.tmp").rename(watched / "话.json")
        last = watched / "last.json"
        last.write_text("x", "utf-8")
        paths = await heard(watch, lambda paths: last in paths)
        assert paths == {watched / "话.json", last}


async def test_directories_come_and_go(tmp_path: Path) -> None:
    """One that is followed no longer tells nothing; one that went can come again."""
    first, second = tmp_path / "first", tmp_path / "second"
    with DirectoryWatch() as watch:
        watch.follow([tmp_path])
        first.mkdir()
        await heard(watch, lambda paths: first in paths)
        assert watch.follow([tmp_path, first]) == [first]
        first.rename(second)
        await heard(watch, lambda paths: {first, second} <= paths)
        first.mkdir()
        assert watch.follow([first, second]) == [first, second]
        (tmp_path / "unheard").touch()
        (first / "one").touch()
        (second / "two").touch()
        paths = await heard(watch, lambda paths: second / "two" in paths)
        assert tmp_path / "unheard" not in paths
        assert first / "one" in paths


async def test_a_directory_under_two_paths_tells_by_each_that_is_followed(tmp_path: Path) -> None:
    """The system has one watch for both: it stays as long as one of them is followed."""
    place, link = tmp_path / "place", tmp_path / "链接"
    place.mkdir()
    link.symlink_to(place)
    with DirectoryWatch() as watch:
        assert watch.follow([place, link]) == [place, link]
        (place / "one").touch()
        await heard(watch, lambda paths: {place / "one", link / "one"} <= paths)
        assert watch.follow([place]) == []
        (link / "two").touch()
        assert link / "two" not in await heard(watch, lambda paths: place / "two" in paths)
        assert watch.follow([]) == []
        assert watch.follow([link]) == [link]
        (place / "three").touch()
        await heard(watch, lambda paths: link / "three" in paths)


def test_says_that_changes_were_lost(tmp_path: Path) -> None:
    """The kernel's queue ran over: it names no directory, and everything has to be looked at."""
    with DirectoryWatch() as watch:
        watch.follow([tmp_path])
        ran_over = struct.pack("iIII", -1, 0x4000, 0, 0)  # IN_Q_OVERFLOW
        assert watch._heard(ran_over) == Changes(paths=frozenset(), lost=True)
        (watched,) = watch._watches.values()
        created = struct.pack("iIII4s", watched, 0x100, 0, 4, b"a\0\0\0")  # IN_CREATE
        assert watch._heard(created) == Changes(paths=frozenset({tmp_path / "a"}), lost=False)
        assert watch._heard(created + ran_over).lost
