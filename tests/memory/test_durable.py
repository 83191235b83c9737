"""Durable steps on files, with the kernel's calls and without them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnmark_events.errors import Unavailable
from turnmark_memory import durable


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    """A descriptor of an empty directory."""
    opened = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield opened
    os.close(opened)


@pytest.fixture(params=["renameat2", "fallback"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test with renameat2 and as on a system that lacks it."""
    if request.param == "fallback":
        monkeypatch.setattr(durable, "_libc_renameat2", lambda: None)
    return str(request.param)


def test_exchange_swaps_two_files(tmp_path: Path, fd: int, way: str) -> None:
    """Both names hold the other's bytes, and nothing else is left."""
    (tmp_path / "a").write_text("ours")
    (tmp_path / "b").write_text("theirs")
    durable.exchange_names(fd, "a", fd, "b")
    assert (tmp_path / "a").read_text() == "theirs"
    assert (tmp_path / "b").read_text() == "ours"
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("missing", ["a", "b"])
def test_exchange_with_nothing_changes_nothing(
    tmp_path: Path, fd: int, way: str, missing: str
) -> None:
    """FileNotFoundError, and the file that is there stays."""
    (there,) = {"a", "b"} - {missing}
    (tmp_path / there).write_text("x")
    with pytest.raises(FileNotFoundError):
        durable.exchange_names(fd, "a", fd, "b")
    assert (tmp_path / there).read_text() == "x"
    assert names(tmp_path) == [there]


def test_rename_new_never_replaces(tmp_path: Path, fd: int, way: str) -> None:
    """A name that is taken stays as it is."""
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    with pytest.raises(FileExistsError):
        durable.rename_new(fd, "a", fd, "b")
    assert (tmp_path / "b").read_text() == "old"
    durable.rename_new(fd, "a", fd, "c")
    assert names(tmp_path) == ["b", "c"]


def test_heal_finishes_the_fallback_after_a_crash(tmp_path: Path, fd: int) -> None:
    """Between its two renames the displaced file has only the name that heal looks for."""
    (tmp_path / "a.old").write_text("displaced")
    (tmp_path / "b").write_text("ours")
    durable.heal_exchange(fd, "a")
    assert (tmp_path / "a").read_text() == "displaced"
    # Before them, the extra name is a second one of the target.
    os.link(tmp_path / "b", tmp_path / "a.old")
    durable.heal_exchange(fd, "a")
    assert names(tmp_path) == ["a", "b"]


def test_replace_is_whole_under_a_reader(tmp_path: Path, fd: int) -> None:
    """A descriptor opened before still reads the old bytes; the name has the new ones."""
    durable.replace(fd, fd, "x", b"old" * 1000)
    with (tmp_path / "x").open("rb") as reader:
        durable.replace(fd, fd, "x", b"new")
        assert reader.read() == b"old" * 1000
    assert (tmp_path / "x").read_bytes() == b"new"


def test_stage_cannot_be_led_away_by_a_link(tmp_path: Path, fd: int) -> None:
    """A link planted under the temporary name is not written through."""
    (tmp_path / "target").write_text("mine")
    (tmp_path / ("x" + durable.TORN_SUFFIX)).symlink_to("target")
    with pytest.raises(OSError, match="symbolic links") as caught:
        durable.stage(fd, "x", b"evil")
    assert caught.value.errno == errno.ELOOP
    assert (tmp_path / "target").read_text() == "mine"


def test_append_adds_at_the_end(tmp_path: Path) -> None:
    """Whatever the size of what is appended."""
    opened = os.open(tmp_path / "x", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        durable.append_durably(opened, b"a\n")
        durable.append_durably(opened, b"b" * 3_000_000)
    finally:
        os.close(opened)
    assert (tmp_path / "x").read_bytes() == b"a\n" + b"b" * 3_000_000


def test_full_disk_is_unavailable_with_its_reason() -> None:
    """The sentence says what failed and what to do; the cause is chained."""
    with (
        pytest.raises(
            Unavailable, match=r"Could not write: No space left.*Free some space"
        ) as caught,
        durable.disk_errors("write"),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        durable.write_all(full.fileno(), b"x")
    assert caught.value.facts["errno"] == errno.ENOSPC
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EROFS, "Let this user write there"),
        (errno.EEXIST, "Something else is there: move it away"),
        (errno.EIO, "Check the disk"),
    ],
)
def test_a_disk_error_says_what_to_do(number: int, advice: str) -> None:
    """Each kind has an advice of its own: none frees space where a file is in the way."""
    with pytest.raises(Unavailable, match=advice), durable.disk_errors("write"):
        raise OSError(number, "it failed")
