"""The archive of evidence: once, in order, and never torn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from turnmark_events.errors import Unavailable
from turnmark_memory import durable, source_erasure
from turnmark_memory.archive import Archive
from turnmark_memory.labels import label_of
from turnmark_memory.model import Evidence
from turnmark_memory.workspace import Workspace

PATH = "sources/claude-code/s1.jsonl"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace."""
    with Workspace.open(tmp_path / "memory") as opened:
        yield opened


@pytest.fixture
def archive(workspace: Workspace) -> Iterator[Archive]:
    """Its archive."""
    opened = Archive(workspace)
    yield opened
    opened.close()


def turn(number: int, *, session: str = "s1", text: str | None = None) -> Evidence:
    return Evidence(
        key=number,
        namespace="claude-code",
        id=f"t{number}",
        label=label_of("claude-code", f"t{number}"),
        session=session,
        agent="claude-code",
        project=None,
        role="user",
        speaker_id="u-17",
        speaker_name="Dana",
        time=datetime(2026, 8, 9, 14, number % 60, tzinfo=UTC),
        text=text if text is not None else f"第{number}句 sentence {number}\nsecond line",
        tokens=5,
    )


def content(workspace: Workspace, path: str = PATH) -> bytes:
    return (workspace.root / path).read_bytes()


def test_a_disk_that_fails_at_the_start_is_said_in_a_sentence(workspace: Workspace) -> None:
    """A map that can be neither opened nor made anew is no bug: the daemon says what to do."""
    (workspace.root / ".turnmark" / "sources.db").mkdir()
    with pytest.raises(Unavailable, match="Could not open the archive: "):
        Archive(workspace)


def test_turns_become_lines_with_their_labels(workspace: Workspace, archive: Archive) -> None:
    """One JSON object a line; the answer says which line."""
    lines = archive.append([turn(1), turn(2)])
    assert [(line.path, line.line) for line in lines] == [(PATH, 1), (PATH, 2)]
    first, second = content(workspace).decode().splitlines()
    assert json.loads(second)["id"] == "t2"
    assert json.loads(first) == {
        "label": label_of("claude-code", "t1"),
        "namespace": "claude-code",
        "id": "t1",
        "session": "s1",
        "agent": "claude-code",
        "role": "user",
        "speaker": {"id": "u-17", "name": "Dana"},
        "time": "2026-08-09T14:01:00Z",
        "text": "第1句 sentence 1\nsecond line",
        "tokens": 5,
    }
    assert (workspace.root / PATH).stat().st_mode & 0o777 == 0o600


def test_turn_is_archived_once(workspace: Workspace, archive: Archive) -> None:
    """Also when another session brings it, twice in one call."""
    (first,) = archive.append([turn(1)])
    before = content(workspace)
    again = archive.append([turn(1, session="s2"), turn(1, session="s2"), turn(1)])
    assert again == [first] * 3
    assert content(workspace) == before
    assert not (workspace.root / "sources/claude-code/s2.jsonl").exists()
    twice = archive.append([turn(2), turn(2)])
    assert [line.line for line in twice] == [2, 2]


def test_lookups_agree(archive: Archive) -> None:
    """By label, by turn, read and scanned."""
    (line,) = archive.append([turn(1)])
    assert archive.resolve(line.label) == archive.by_turn("claude-code", "t1") == line
    read = archive.read(line.label)
    assert read is not None
    assert read.text == turn(1).text
    assert list(archive.scan()) == [(line, read)]
    assert archive.resolve("s-000000000000") is None
    assert archive.read("s-000000000000") is None
    assert archive.by_turn("claude-code", "t9") is None


@pytest.mark.parametrize("damage", ["gone", "garbage", "other version"])
def test_map_is_rebuilt_from_the_files(workspace: Workspace, damage: str) -> None:
    """Labels resolve from the sources alone."""
    first = Archive(workspace)
    lines = first.append([turn(number, session=f"s{number % 3}") for number in range(30)])
    first.close()
    database = workspace.root / ".turnmark/sources.db"
    if damage == "gone":
        database.unlink()
    elif damage == "garbage":
        database.write_bytes(b"no database" * 1000)
    else:
        import apsw

        db = apsw.Connection(str(database))
        db.pragma("user_version", 99)
        db.close()
    second = Archive(workspace)
    assert [second.resolve(line.label) for line in lines] == lines
    assert second.append([turn(3)]) == [lines[3]]
    second.close()


def test_torn_line_is_cut_and_never_read(workspace: Workspace) -> None:
    """At every length of the torn end, a redo gives the bytes of an undisturbed run."""
    first = Archive(workspace)
    lines = first.append([turn(1), turn(2)])
    first.close()
    whole = content(workspace)
    start = whole.index(b"\n") + 1
    for length in range(start, len(whole), 7):
        (workspace.root / PATH).write_bytes(whole[:length])
        again = Archive(workspace)
        assert len(list(again.scan())) == 1
        assert again.resolve(lines[1].label) is None
        assert again.append([turn(1), turn(2)]) == lines
        assert content(workspace) == whole
        again.close()


def test_file_put_back_behind_its_back_is_read_again(
    workspace: Workspace, archive: Archive
) -> None:
    """An older copy that is restored lacks turns: they are archived again."""
    archive.append([turn(1)])
    old = content(workspace)
    lines = archive.append([turn(2)])
    (workspace.root / PATH).write_bytes(old)
    assert archive.append([turn(2)]) == lines
    (workspace.root / PATH).unlink()
    assert archive.refresh() == 1
    assert archive.by_turn("claude-code", "t1") is None


def test_many_are_read_as_each_is_read(workspace: Workspace, archive: Archive) -> None:
    """From several files, without what is unknown or forgotten, and after a file was changed."""
    turns = [turn(number, session=f"s{number % 3}") for number in range(9)]
    labels = [line.label for line in archive.append(turns)]
    archive.forget(labels[4:5])
    asked = [*reversed(labels), "s-000000000000", labels[0]]
    for _ in range(2):
        found = archive.read_many(asked)
        assert set(found) == {*labels} - {labels[4]}
        for label, (line, read) in found.items():
            assert (line, read) == (archive.resolve(label), archive.read(label))
        file = workspace.root / "sources/claude-code/s0.jsonl"
        file.write_bytes(b"".join(reversed(file.read_bytes().splitlines(keepends=True))))
    (workspace.root / "sources/claude-code/s0.jsonl").unlink()
    assert set(archive.read_many(asked)) == {labels[place] for place in (1, 2, 5, 7, 8)}


def test_line_that_is_no_turn_is_passed_over(workspace: Workspace, archive: Archive) -> None:
    """Line numbers count it, nothing else does."""
    archive.append([turn(1)])
    with (workspace.root / PATH).open("ab") as file:
        file.write(b"not json\n\n\xff\n{}\n")
    assert [line.line for line in archive.append([turn(2)])] == [6]
    assert [line.line for line, _ in archive.scan()] == [1, 6]


def test_label_clash_takes_a_longer_label(workspace: Workspace) -> None:
    """Both turns resolve, before and after a rebuild, in one call and in two."""
    clash = label_of("claude-code", "t1")
    turns = [turn(1)] + [msgspec.structs.replace(turn(n), label=clash) for n in (2, 3)]
    first = Archive(workspace)
    lines = first.append(turns[:1]) + first.append(turns[1:])
    assert [line.label for line in lines] == [
        clash,
        label_of("claude-code", "t2", 13),
        label_of("claude-code", "t3", 13),
    ]
    first.close()
    (workspace.root / ".turnmark/sources.db").unlink()
    second = Archive(workspace)
    assert [second.resolve(line.label) for line in lines] == lines
    second.close()


def test_forgotten_line_keeps_its_place(workspace: Workspace, archive: Archive) -> None:
    """The words are in no file of the workspace any more; the neighbours resolve as before."""
    lines = archive.append([turn(1), turn(2, text="秘密 hunter2"), turn(3)])
    assert archive.forget([lines[1].label, "s-000000000000"]) == 1
    assert content(workspace).splitlines()[1] == b'{"forgotten":true}'
    assert archive.resolve(lines[1].label) is None
    assert archive.by_turn("claude-code", "t2") is None
    assert archive.resolve(lines[2].label) == lines[2]
    read = archive.read(lines[2].label)
    assert read is not None
    assert read.id == "t3"
    for path in workspace.root.rglob("*"):
        if path.is_file():
            found = path.read_bytes()
            assert b"hunter2" not in found
            assert lines[1].label.encode() not in found
    assert archive.forget([lines[1].label]) == 0
    assert [line.line for line in archive.append([turn(4)])] == [4]


def test_forgotten_bytes_are_overwritten(workspace: Workspace, archive: Archive) -> None:
    """Who still has the old file open reads zeros."""
    (line,) = archive.append([turn(1, text="hunter2")])
    with (workspace.root / PATH).open("rb") as old:
        archive.forget([line.label])
        assert set(old.read()) == {0}


@pytest.mark.parametrize("lacking", [False, True])
def test_crash_while_forgetting_is_finished_by_the_next(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, lacking: bool
) -> None:
    """Whatever step it dies in: the words go, the others stay."""
    if lacking:
        monkeypatch.setattr(durable, "_libc_renameat2", lambda: None)
    for number, step in enumerate(("exchange_names", "_overwrite", "link", "rename", "unlink")):
        session = f"crash{number}"
        path = f"sources/claude-code/{session}.jsonl"
        first = Archive(workspace)
        one, two = (10 * number + n for n in (1, 2))
        lines = first.append(
            [turn(one, session=session, text="hunter2"), turn(two, session=session)]
        )

        def die(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            if step == "exchange_names":
                patched.setattr(durable, step, die)
            elif step == "_overwrite":
                patched.setattr(source_erasure, step, die)
            else:
                patched.setattr(os, step, die)
            try:
                first.forget([lines[0].label])
            except KeyboardInterrupt:
                pass
            else:
                assert not lacking or step not in {"link", "rename"}
        first.close()
        second = Archive(workspace)
        second.forget([lines[0].label])
        assert second.resolve(lines[1].label) == lines[1]
        assert second.read(lines[1].label) is not None
        second.close()
        assert b"hunter2" not in content(workspace, path)
        assert list((workspace.root / ".turnmark/staging").iterdir()) == []


def test_a_start_erases_what_a_crash_left_under_its_other_name(workspace: Workspace) -> None:
    """Between two renames, where files can not be exchanged in one step."""
    staging = workspace.root / ".turnmark" / "staging"
    staging.mkdir(exist_ok=True)
    left = staging / "forget-0123456789abcdef.old"
    left.write_text("hunter2")
    with left.open("rb") as opened:
        Archive(workspace).close()
        assert list(staging.iterdir()) == []
        assert opened.read() == bytes(len("hunter2"))


def test_scan_goes_on_through_a_forgetting(archive: Archive) -> None:
    """A file that is written anew under a scan is read on from the same line."""
    lines = archive.append([turn(number) for number in range(1300)])
    scan = archive.scan()
    seen = [next(scan)[1].id for _ in range(10)]
    assert archive.forget([lines[3].label, lines[1200].label]) == 2
    archive.append([turn(1300)])
    seen += [archived.id for _, archived in scan]
    assert seen == [f"t{number}" for number in range(1301) if number != 1200]


def test_sessions_with_odd_names_stay_apart(workspace: Workspace, archive: Archive) -> None:
    """Names that are no file names, and twins."""
    names = ["../../x", "Sess", "sess", "会话", "a/b", "a_b", ""]
    lines = archive.append([turn(n, session=name) for n, name in enumerate(names)])
    assert len({line.path.casefold() for line in lines}) == len(names)
    for line, name in zip(lines, names, strict=True):
        read = archive.read(line.label)
        assert read is not None
        assert read.session == name


def test_half_a_surrogate_pair_does_not_stop_a_batch(archive: Archive) -> None:
    """It has no UTF-8; the rest of the words is kept."""
    (line,) = archive.append([turn(1, text="a\ud800b")])
    read = archive.read(line.label)
    assert read is not None
    assert read.text == "a?b"


_WRITER = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from test_archive import turn
from turnmark_memory.archive import Archive
from turnmark_memory.workspace import Workspace
archive = Archive(Workspace.open(Path(sys.argv[1])))
for number in range(100000):
    archive.append([turn(number, session="s%d" % (number % 3), text="词" * 5000)])
    print(number, flush=True)
"""


def _killed_after(root: Path, appends: int) -> Sequence[int]:
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(root), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told: list[int] = []
    for line in process.stdout:
        told.append(int(line))
        if len(told) == appends:
            break
    process.kill()
    rest, _ = process.communicate(timeout=60)
    return [*told, *(int(line) for line in rest.splitlines())]


def test_acknowledged_turns_survive_sigkill(tmp_path: Path) -> None:
    """All that append returned for is there, whole, once."""
    told = _killed_after(tmp_path / "memory", 40)
    with Workspace.open(tmp_path / "memory") as workspace:
        archive = Archive(workspace)
        found = [archived.id for _, archived in archive.scan()]
        assert len(found) == len(set(found))
        assert {f"t{number}" for number in told} <= set(found)
        lines = archive.append([turn(number, session=f"s{number % 3}") for number in told])
        assert len({(line.path, line.line) for line in lines}) == len(told)
        archive.close()
