"""Installs against people who save: no edit is lost, and no batch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from turnmark_events.errors import Refused
from turnmark_memory import durable, slots
from turnmark_memory.durable import digest_of
from turnmark_memory.exchange import close_exchange, exchange
from turnmark_memory.file_exchange import Checkpoint, Exchanged, MergeInput, StagedFile
from turnmark_memory.workspace import RevisionStamp, Workspace

PATH = "topics/people/dana.md"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace."""
    with Workspace.open(tmp_path / "memory") as opened:
        yield opened


def merge_lines(wanted: MergeInput) -> bytes:
    """Their lines, then those of ours that are neither theirs nor in the base."""
    base = (wanted.base or b"").splitlines()
    theirs = (wanted.theirs or b"").splitlines()
    ours = (wanted.ours or b"").splitlines()
    kept = [line for line in theirs if line in ours or line not in base]
    added = [line for line in ours if line not in base and line not in theirs]
    return b"".join(line + b"\n" for line in kept + added)


def never(wanted: MergeInput) -> bytes:
    """A merge for installs that meet nobody."""
    raise AssertionError(wanted.path)


def staged(base: bytes | None, content: bytes | None, path: str = PATH) -> StagedFile:
    return StagedFile(
        path=path,
        base=None if base is None else digest_of(base),
        base_content=base,
        content=content,
    )


def outcomes(results: Sequence[Exchanged]) -> list[str]:
    return [result.outcome for result in results]


def staging(workspace: Workspace) -> list[str]:
    return names(workspace.root / ".turnmark" / "staging")


def test_creates_changes_and_removes(workspace: Workspace) -> None:
    """The three things an install does to a file; nothing stays in staging after the close."""
    file = workspace.root / PATH
    assert outcomes(exchange(workspace, [staged(None, b"1\n")], never)) == ["installed"]
    assert file.read_bytes() == b"1\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert outcomes(exchange(workspace, [staged(b"1\n", b"2\n")], never)) == ["installed"]
    assert file.read_bytes() == b"2\n"
    (gone,) = exchange(workspace, [staged(b"2\n", None)], never)
    assert (gone.outcome, gone.content, gone.digest) == ("installed", None, None)
    assert not file.exists()
    assert close_exchange(workspace, never) == []
    assert staging(workspace) == []


def test_repeated_install_is_skipped(workspace: Workspace) -> None:
    """Before and after the close: the file that holds its content is left alone."""
    file = [staged(None, b"1\n")]
    exchange(workspace, file, never)
    assert outcomes(exchange(workspace, file, never)) == ["already"]
    close_exchange(workspace, never)
    assert outcomes(exchange(workspace, file, never)) == ["already"]


def test_revision_is_written_last(workspace: Workspace) -> None:
    """While any file is missing the workspace still says the old revision."""
    stamp = RevisionStamp(revision=3, at=datetime(2026, 8, 9, tzinfo=UTC))
    seen: list[object] = []

    def look(_: str) -> None:
        seen.append(workspace.revision())

    files = [staged(None, b"1\n"), staged(None, b"2\n", "topics/core.md")]
    exchange(workspace, files, never, stamp=stamp, checkpoint=look)
    assert seen[-1] == stamp
    assert stamp not in seen[:-1]


def test_persons_edit_is_merged(workspace: Workspace) -> None:
    """A file that isn't the base keeps what the person wrote and gets what the install adds."""
    file = workspace.root / PATH
    file.write_bytes("a\n人手\n".encode())
    (result,) = exchange(workspace, [staged(b"a\nb\n", b"a\nb\nnew\n")], merge_lines)
    assert result.outcome == "merged"
    assert file.read_bytes() == "a\n人手\nnew\n".encode()
    assert result.content == file.read_bytes()
    assert result.digest == digest_of(file.read_bytes())


def test_new_file_meets_a_persons(workspace: Workspace) -> None:
    """A file that a person made under the name of a new topic is merged with base None."""
    file = workspace.root / PATH
    file.write_bytes(b"mine\n")
    exchange(workspace, [staged(None, b"new\n")], merge_lines)
    assert file.read_bytes() == b"mine\nnew\n"


def test_removed_file_gets_only_what_is_new(workspace: Workspace) -> None:
    """What the person removed stays removed; the batch's words are still installed."""
    exchange(workspace, [staged(b"a\n", b"a\nnew\n")], merge_lines)
    assert (workspace.root / PATH).read_bytes() == b"new\n"


@pytest.mark.parametrize("saved", [b"a\nb\n", b"a\nb\nmine\n"])
def test_slow_save_by_moving_away_is_no_removal(workspace: Workspace, saved: bytes) -> None:
    """A file that comes back while the install goes on keeps every line, changed or not."""
    file = workspace.root / PATH
    file.write_bytes(b"a\nb\n")

    seen: list[str] = []

    def save(step: str) -> None:
        seen.append(step)
        if seen == ["manifest", "staged"]:
            file.unlink()
        elif seen.count("merged") == 1 and step == "merged":
            (file.parent / "tmp").write_bytes(saved)
            (file.parent / "tmp").rename(file)

    exchange(workspace, [staged(b"a\nb\n", b"a\nb\nnew\n")], merge_lines, checkpoint=save)
    assert file.read_bytes() == saved + b"new\n"


def test_file_that_both_take_away_is_gone(workspace: Workspace) -> None:
    """Removing what is not there is done already."""
    assert outcomes(exchange(workspace, [staged(b"a\n", None)], never)) == ["already"]


def test_removal_meets_an_edit(workspace: Workspace) -> None:
    """A person's line written into a file that the install takes away brings it back."""
    file = workspace.root / PATH
    file.write_bytes(b"a\nmine\n")
    exchange(workspace, [staged(b"a\n", None)], merge_lines)
    assert file.read_bytes() == b"mine\n"


def test_save_at_every_step_is_kept(workspace: Workspace) -> None:
    """A person saves by rename between any two steps, once and then again."""
    file = workspace.root / PATH
    steps: list[str] = []
    exchange(workspace, [staged(None, b"x\n")], never, checkpoint=steps.append)
    for at in range(2 * len(steps)):
        file.write_bytes(b"a\n")
        left = [at, at + 2]

        def save(_: str, left: list[int] = left) -> None:
            left[:] = [count - 1 for count in left]
            if any(count == -1 for count in left):
                now = file.read_bytes()
                (file.parent / "tmp").write_bytes(now + b"mine %d\n" % len(now))
                (file.parent / "tmp").rename(file)

        exchange(workspace, [staged(b"a\n", b"a\nnew %d\n" % at)], merge_lines, checkpoint=save)
        close_exchange(workspace, merge_lines, checkpoint=save)
        lines = file.read_bytes().splitlines()
        saved = sum(count < 0 for count in left)
        assert lines.count(b"new %d" % at) == 1
        assert sum(line.startswith(b"mine") for line in lines) == saved
        assert staging(workspace) == []


class _Crash(BaseException):
    """Stands for kill -9 at this step: nothing after it runs."""


def _crashing(at: int, steps: list[str]) -> Checkpoint:
    def checkpoint(step: str) -> None:
        steps.append(step)
        if len(steps) == at + 1:
            raise _Crash

    return checkpoint


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("lacking", [False, True])
def test_crash_at_every_step_rolls_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: bool, lacking: bool
) -> None:
    """After a crash anywhere, the repetition ends where an undisturbed install ends."""
    if lacking:
        monkeypatch.setattr(durable, "_libc_renameat2", lambda: None)
    files = [
        staged(b"a\n", b"a\nnew\n"),
        staged(None, b"made\n", "topics/subjects/新.md"),
        staged(b"old\n", None, "topics/projects/gone.md"),
    ]
    stamp = RevisionStamp(revision=1, at=None)
    crashes = 0
    for at in range(100):
        with Workspace.open(tmp_path / str(at)) as workspace:
            (workspace.root / PATH).write_bytes(b"a\nmine\n" if edited else b"a\n")
            (workspace.root / "topics/projects/gone.md").write_bytes(b"old\n")
            steps: list[str] = []
            crash = _crashing(at, steps)
            try:
                exchange(workspace, files, merge_lines, stamp=stamp, checkpoint=crash)
                close_exchange(workspace, merge_lines, checkpoint=crash)
            except _Crash:
                crashes += 1
                exchange(workspace, files, merge_lines, stamp=stamp)
                close_exchange(workspace, merge_lines)
            expected = b"a\nmine\nnew\n" if edited else b"a\nnew\n"
            assert (workspace.root / PATH).read_bytes() == expected, steps
            assert (workspace.root / "topics/subjects/新.md").read_bytes() == b"made\n"
            assert not (workspace.root / "topics/projects/gone.md").exists()
            assert workspace.revision() == stamp
            assert staging(workspace) == []
            if len(steps) <= at:
                break
    assert crashes >= 10


def test_edit_after_a_crash_is_an_ordinary_one(workspace: Workspace) -> None:
    """What the person saves over our file before the repetition is not undone by it."""
    file = workspace.root / PATH
    file.write_bytes(b"a\n")
    steps: list[str] = []

    def crash(step: str) -> None:
        if step == "exchanged":
            raise _Crash

    install = [staged(b"a\n", b"a\nnew\n")]
    with pytest.raises(_Crash):
        exchange(workspace, install, never, checkpoint=crash)
    file.write_bytes(b"a\n")
    assert outcomes(exchange(workspace, install, never, checkpoint=steps.append)) == ["already"]
    assert file.read_bytes() == b"a\n"


def test_late_write_to_the_displaced_file_is_merged_at_the_close(workspace: Workspace) -> None:
    """An editor that opened the file before the exchange writes after it."""
    file = workspace.root / PATH
    file.write_bytes(b"a\n")
    editor = os.open(file, os.O_RDONLY)
    late = os.open(f"/proc/self/fd/{editor}", os.O_RDONLY)
    exchange(workspace, [staged(b"a\n", b"a\nnew\n")], never)
    writer = os.open(f"/proc/self/fd/{late}", os.O_WRONLY | os.O_TRUNC)
    os.write(writer, b"a\nlate\n")
    os.close(writer)
    (result,) = close_exchange(workspace, merge_lines)
    os.close(editor)
    os.close(late)
    assert result.outcome == "merged"
    assert file.read_bytes() == b"a\nnew\nlate\n" or file.read_bytes() == b"a\nlate\nnew\n"
    assert staging(workspace) == []


def test_half_of_a_save_is_not_taken_for_an_edit(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is open for writing stays in staging until its writer closed it."""
    monkeypatch.setattr(slots, "_SAVE_SECONDS", 0.01)
    file = workspace.root / PATH
    file.write_bytes(b"a\nb\n")
    writer = os.open(file, os.O_WRONLY | os.O_TRUNC)
    (result,) = exchange(workspace, [staged(b"a\nb\n", b"a\nb\nnew\n")], never)
    assert result.held
    (again,) = close_exchange(workspace, never)
    assert again.held
    assert file.read_bytes() == b"a\nb\nnew\n"
    os.write(writer, b"a\nb\nmine\n")
    os.close(writer)
    close_exchange(workspace, merge_lines)
    assert sorted(file.read_bytes().splitlines()) == [b"a", b"b", b"mine", b"new"]
    assert staging(workspace) == []


def test_link_put_there_meanwhile_is_refused_and_put_back(workspace: Workspace) -> None:
    """The link's target is untouched, the link is where it was, and a repair lets it go on."""
    file = workspace.root / PATH
    target = workspace.root / "target"
    target.write_bytes(b"secret\n")
    file.write_bytes(b"a\n")

    def plant(step: str) -> None:
        if step == "staged":
            file.unlink()
            file.symlink_to(target)

    install = [staged(b"a\n", b"a\nnew\n")]
    with pytest.raises(Refused, match="symbolic link"):
        exchange(workspace, install, never, checkpoint=plant)
    assert file.is_symlink()
    assert target.read_bytes() == b"secret\n"
    file.unlink()
    file.write_bytes(b"a\n")
    exchange(workspace, install, never)
    assert file.read_bytes() == b"a\nnew\n"


def test_odd_file_is_refused_before_anything_moves(workspace: Workspace) -> None:
    """A directory named like a topic stays."""
    (workspace.root / PATH).mkdir()
    with pytest.raises(Refused, match=r"dana\.md is a directory"):
        exchange(workspace, [staged(None, b"x\n")], never)


def test_file_named_twice_is_a_bug(workspace: Workspace) -> None:
    """The second one's base could not hold."""
    with pytest.raises(ValueError, match="twice"):
        exchange(workspace, [staged(None, b"1\n"), staged(None, b"2\n")], never)


@pytest.mark.parametrize("path", ["../x.md", "/etc/x", ".turnmark/lock", "sources/a/b.jsonl", ""])
def test_path_outside_is_refused(workspace: Workspace, path: str) -> None:
    """Neither the outside nor evidence nor bookkeeping is an install's to write."""
    with pytest.raises(Refused):
        exchange(workspace, [staged(None, b"x\n", path)], never)


_EDITOR = """
import os, sys
way, path = sys.argv[1], sys.argv[2]
def write_slowly(file, new):
    for start in range(0, len(new), 64):
        file.write(new[start : start + 64])
        os.sched_yield()
for number, _ in enumerate(sys.stdin):
    with open(path, "rb") as file:
        seen = file.read()
    new = seen + b"mine %d\\n" % number
    if way == "rename":
        with open(path + ".tmp", "wb") as file:
            file.write(new)
        os.rename(path + ".tmp", path)
    elif way == "in-place":
        with open(path, "r+b", buffering=0) as file:
            file.truncate(0)
            write_slowly(file, new)
    else:
        os.rename(path, path + "~")
        with open(path, "wb", buffering=0) as file:
            write_slowly(file, new)
        os.unlink(path + "~")
    sys.stdout.write(seen.hex() + "\\n")
    sys.stdout.flush()
"""

_RACES = 120
# At which step of the install the editor is told to save.
_STEPS = ("start", "manifest", "staged", "exchanged", "flushed", "end")


@pytest.mark.parametrize("way", ["rename", "in-place", "vim"])
def test_torture_loses_no_edit_and_no_batch(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A second process saves while an install runs, 120 times; every line of both survives.

    An editor may save a text that it read before the install and that lacks the batch: then the
    daemon merges against the version that the editor had read, as for any saved file; so does
    this test, after each race.
    """
    # On a loaded machine the editor may be stopped in the middle of a save for long.
    monkeypatch.setattr(slots, "_SAVE_SECONDS", 30.0)
    file = workspace.root / PATH
    file.write_bytes(b"start\n")
    base = b"start\n"
    editor = subprocess.Popen(
        [sys.executable, "-c", _EDITOR, way, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    editor_input, editor_output = editor.stdin, editor.stdout
    assert editor_input is not None
    assert editor_output is not None
    merged = 0
    stale = 0
    for number in range(_RACES):
        left = [number % len(_STEPS), number // len(_STEPS) * 200]

        def save(step: str, left: list[int] = left) -> None:
            if left[0] >= 0 and step == _STEPS[left[0]]:
                editor_input.write(b"go\n")
                editor_input.flush()
                # Spreads the following step over the editor's save without sleeping.
                for _ in range(left[1]):
                    pass
                left[0] = -1

        save("start")
        wanted = base + b"batch %d\n" % number
        results = exchange(workspace, [staged(base, wanted)], merge_lines, checkpoint=save)
        save("end")
        seen = bytes.fromhex(editor_output.readline().decode())
        late = close_exchange(workspace, merge_lines)
        merged += sum(result.outcome == "merged" for result in [*results, *late])
        assert not any(result.held for result in late)
        now = file.read_bytes()
        if b"batch %d\n" % number not in now:
            stale += 1
            assert b"batch %d\n" % number not in seen
            put = results[0].content
            assert put is not None
            now = merge_lines(MergeInput(path=PATH, base=seen, theirs=now, ours=put))
            file.write_bytes(now)
        lines = now.splitlines()
        for earlier in range(number + 1):
            assert lines.count(b"batch %d" % earlier) == 1, (number, merged, stale)
            assert lines.count(b"mine %d" % earlier) == 1, (number, merged, stale)
        assert lines.count(b"start") == 1
        base = now
    editor_input.close()
    assert editor.wait(timeout=60) == 0
    editor_output.close()
    assert merged + stale > 0
    assert staging(workspace) == []


def test_a_write_that_comes_during_the_close_is_not_thrown_away(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot stays, held, and the next close merges what an editor wrote into the old file."""
    file = workspace.root / PATH
    file.write_bytes(b"a\n")
    held = file.open("ab", buffering=0)
    exchange(workspace, [staged(b"a\n", b"a\nnew\n")], merge_lines)
    look = slots.Slots.foreign

    def look_then_write(*given: Any) -> list[tuple[slots.Slot, bytes]]:
        found = look(*given)
        held.write("后来\n".encode())
        held.close()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(slots, "_SAVE_SECONDS", 0.0)
        patch.setattr(slots, "_has_writer", lambda _: False)
        patch.setattr(slots.Slots, "foreign", look_then_write)
        (result,) = close_exchange(workspace, merge_lines)
    assert result.held
    assert [one.outcome for one in close_exchange(workspace, merge_lines)] == ["merged"]
    assert file.read_bytes() == "a\n后来\nnew\n".encode()
    assert staging(workspace) == []
