"""Tests of `session_store/transcripts/pi/live.py`: what is followed is what an import gives."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from session_store.transcripts.live_sessions import interleaved, torn
from session_store.transcripts.pi_records import (
    OTHER,
    SESSION,
    THIRD,
    Record,
    answer,
    entry,
    file_name,
    given_ids,
    header,
    lines,
    user,
    without_ids,
    write,
)
from session_store.transcripts.pi_sessions import PiRecording, Write
from session_store.transcripts.tailing import (
    HASTY,
    IMPATIENT,
    PATIENT,
    Dag,
    Tailed,
    append,
    differences,
    import_files,
    imported,
)
from turnmark_session_store.transcripts.live import Patience
from turnmark_session_store.transcripts.pi.live import PiLiveReader, session_of
from turnmark_session_store.transcripts.pi.reader import PiReader

DATA = Path(__file__).resolve().parents[2] / "data" / "pi" / "v3-tree-generated"
PI = PiReader()
# More with `SEEDS=400 pytest -k comes_to`.
SEEDS = int(os.environ.get("SEEDS", "10"))

TALK = (
    header(),
    user("aaaa0001", None, "I live in Bergen.", 1),
    answer("aaaa0002", "aaaa0001", "Noted.", 2),
    user("aaaa0003", "aaaa0002", "我喜欢咖啡。", 3),
    answer("aaaa0004", "aaaa0003", "好的。", 4),
)
SAID = ["I live in Bergen.", "Noted.", "我喜欢咖啡。", "好的。"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where pi keeps its sessions."""
    made = tmp_path / "sessions"
    made.mkdir()
    return made


@pytest.fixture
def file(root: Path) -> Path:
    """Where the session of the made-up records is written."""
    return root / "--home-robin-demo--" / file_name()


def follow(place: Path, root: Path, patience: Patience = PATIENT, **more: Any) -> Tailed:
    """A store and a tail on a directory of sessions."""
    return Tailed(place, root, patience, live=PiLiveReader, **more)


@pytest.fixture
async def tailed(root: Path, place: Path) -> AsyncIterator[Tailed]:
    """A store and a tail that waits long for everything."""
    async with follow(place / "sessions.db", root) as made:
        yield made


def said(dag: Dag) -> list[str]:
    """What the live turns say, in the order in which they were appended."""
    return [turn[3].decode() for turn in dag["turns"].values()]


def edges(dag: Dag) -> dict[str, str | None]:
    """What each live turn says, and what the one before it."""
    texts = {key: turn[3].decode() for key, turn in dag["turns"].items()}
    return {texts[key]: texts.get(turn[0]) for key, turn in dag["turns"].items()}


def pieces_of(chance: random.Random, written: list[Write]) -> list[Write]:
    """The writes, those that add cut at random bytes."""
    pieces: list[Write] = []
    for one in written:
        if one.anew:
            pieces.append(one)
        else:
            pieces += [Write(*piece) for piece in torn(chance, [(one.path, one.data)])]
    return pieces


def write_piece(root: Path, piece: Write) -> None:
    """Writes as the program does: at the end, or all of it in place."""
    path = root / piece.path
    if not piece.anew:
        append(path, piece.data)
        return
    with path.open("r+b") as file:
        file.write(piece.data)
        file.truncate()


# The whole.


def shuffled(chance: random.Random, pieces: list[Write]) -> list[Write]:
    """The pieces in another order across files; within a file they stay as they are."""
    queues: dict[str, list[Write]] = {}
    for piece in pieces:
        queues.setdefault(piece.path, []).append(piece)
    order = [piece.path for piece in pieces]
    chance.shuffle(order)
    return [queues[path].pop(0) for path in order]


@pytest.mark.anyio
@pytest.mark.parametrize("order", ["as written", "files at random"])
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_comes_to_what_an_import_of_the_finished_files_gives(
    root: Path, place: Path, tmp_path: Path, seed: int, order: str
) -> None:
    """Cut anywhere, looked at any time, begun anew any time, rewritten in place at any time."""
    chance = random.Random(f"{seed} {order}")
    recording = PiRecording(chance)
    recording.play(chance.randint(1, 16))
    whole = await imported(place / "i.db", recording.write_to(tmp_path / "finished"), PI)
    async with follow(place / "a.db", root) as tailed:
        pieces = pieces_of(chance, recording.written)
        for piece in pieces if order == "as written" else shuffled(chance, pieces):
            write_piece(root, piece)
            if chance.random() < 0.4:
                await tailed.settle(root / piece.path)
            if chance.random() < 0.03:
                tailed.renew(chance.choice((PATIENT, HASTY)))
        tailed.renew(IMPATIENT)
        await tailed.settle()
        assert differences(await tailed.dag(), whole) == []
        assert tailed.tail.status().last_error is None


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(3))
async def test_follows_files_that_the_program_wrote(root: Path, place: Path, seed: int) -> None:
    """A tree, a file of one branch, a fork; beside each other, cut at random."""
    files = sorted(DATA.glob("*.jsonl"))
    whole = await imported(place / "i.db", files, PI)
    assert len(whole["turns"]) == 18
    chance = random.Random(seed)
    pieces = [
        (file.name, line) for file in files for line in file.read_bytes().splitlines(keepends=True)
    ]
    async with follow(place / "a.db", root) as tailed:
        for path, data in interleaved(chance, torn(chance, pieces)):
            append(root / path, data)
            await tailed.settle(root / path)
        tailed.renew(IMPATIENT)
        await tailed.settle()
        found = await tailed.dag()
    assert edges(found) == edges(whole)


@pytest.mark.anyio
async def test_a_second_reading_says_nothing_new(tailed: Tailed, file: Path) -> None:
    """After a restart, by a tail that lost its checkpoints, and by an import."""
    append(file, lines(*TALK))
    await tailed.settle()
    seq = tailed.stage.seq
    tailed.renew(PATIENT)
    await tailed.settle(file)
    await tailed.stage.store.write(lambda tx: tx.execute("DELETE FROM transcript_file"))
    tailed.renew(PATIENT)
    await tailed.settle()
    await import_files(tailed.stage, [file], PI)
    assert tailed.stage.seq == seq
    assert said(await tailed.dag()) == SAID


# When a turn is given.


@pytest.mark.anyio
async def test_gives_a_message_as_soon_as_its_line_has_ended(tailed: Tailed, file: Path) -> None:
    """It is written when it is whole."""
    given = []
    for record in TALK:
        data = lines(record)
        append(file, data[:-1])
        await tailed.settle(file)
        given.append(len(said(await tailed.dag())))
        append(file, data[-1:])
        await tailed.settle(file)
        given.append(len(said(await tailed.dag())))
    assert given == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4]
    assert tailed.tail.status().held == 0


@pytest.mark.anyio
async def test_a_prompt_beside_another_is_a_branch_and_takes_nothing_back(
    tailed: Tailed, file: Path
) -> None:
    """Law 13: the leaf was moved, and what was left stays live."""
    append(file, lines(*TALK, user("aaaa0005", "aaaa0002", "And tea.", 5)))
    await tailed.settle(file)
    dag = await tailed.dag()
    assert said(dag) == [*SAID, "And tea."]
    assert edges(dag)["And tea."] == "Noted."
    assert len(dag["tips"]) == 2
    assert dag["heads"][0][1] == list(dag["turns"])[-1]
    append(file, lines(entry("leaf", "aaaa0006", "aaaa0005", 6, targetId="aaaa0004")))
    await tailed.settle(file)
    assert (await tailed.dag())["heads"][0][1] == list(dag["turns"])[3]


@pytest.mark.anyio
async def test_a_child_waits_for_its_parent_and_is_a_root_in_the_end(
    tailed: Tailed, file: Path
) -> None:
    """It may still be written."""
    append(file, lines(*TALK[:2], *TALK[3:]))
    await tailed.settle(file)
    assert (said(await tailed.dag()), tailed.tail.status().held) == (SAID[:1], 2)
    append(file, lines(TALK[2]))
    await tailed.settle(file)
    assert edges(await tailed.dag()) == dict(zip(SAID, [None, *SAID], strict=False))
    append(file, lines(user("aaaa0009", "missing0", "Alone", 9)))
    await tailed.settle(file)
    assert said(await tailed.dag()) == SAID
    os.utime(file, (0, 0))
    tailed.renew(IMPATIENT)
    await tailed.settle(file)
    alone = list((await tailed.dag())["turns"].values())[-1]
    assert (alone[0], alone[3], alone[5]) == (None, b"Alone", 1)


def forked(session: str, parent: Path, second: float, *records: Record) -> bytes:
    """A file that begins with a copy."""
    return lines(header(session, second, parentSession=str(parent)), *records)


@pytest.mark.anyio
async def test_a_fork_shares_what_it_copied_while_both_go_on(
    tailed: Tailed, file: Path, root: Path
) -> None:
    """Also where it lies in another directory, and is read before its origin has grown."""
    append(file, lines(*TALK))
    fork = root / "--elsewhere--" / file_name(OTHER, 50)
    append(fork, forked(OTHER, file, 50, *TALK[1:]))
    await tailed.settle(fork, file)
    append(fork, lines(user("bbbb0005", "aaaa0004", "Only here.", 51)))
    append(file, lines(user("aaaa0005", "aaaa0004", "Only there.", 52)))
    await tailed.settle(file, fork)
    dag = await tailed.dag()
    assert said(dag).count("我喜欢咖啡。") == 1
    assert edges(dag)["Only here."] == edges(dag)["Only there."] == "好的。"
    assert {session for session, _ in dag["tips"]} == {SESSION, OTHER}


@pytest.mark.anyio
async def test_a_fork_of_a_fork_waits_until_its_origin_was_seen(
    tailed: Tailed, root: Path, tmp_path: Path
) -> None:
    """Only that one's header says what all of them are a family of."""
    away = tmp_path / "away"
    paths = [away / file_name(one, 10 * n) for n, one in enumerate((SESSION, OTHER, THIRD))]
    write(paths[0], TALK)
    paths[1].write_bytes(forked(OTHER, paths[0], 10, *TALK[1:]))
    paths[2].write_bytes(forked(THIRD, paths[1], 20, *TALK[1:]))
    moved = [root / path.name for path in paths]
    for number, given in ((2, []), (1, []), (0, SAID)):
        paths[number].rename(moved[number])
        await tailed.settle(moved[number], *moved)
        assert said(await tailed.dag()) == given
    assert tailed.tail.status().held == 0


@pytest.mark.anyio
async def test_a_fork_whose_origin_is_gone_is_given_in_the_end(tailed: Tailed, root: Path) -> None:
    """And what follows at once."""
    fork = root / file_name(OTHER, 50)
    append(fork, forked(OTHER, root / file_name(), 50, *TALK[1:]))
    await tailed.settle(fork)
    assert said(await tailed.dag()) == []
    tailed.renew(IMPATIENT)
    await tailed.settle(fork)
    assert said(await tailed.dag()) == SAID
    tailed.renew(PATIENT)
    append(fork, lines(user("bbbb0005", "aaaa0004", "And tea.", 51)))
    await tailed.settle(fork)
    assert said(await tailed.dag()) == [*SAID, "And tea."]


# Files and what becomes of them.


@pytest.mark.anyio
@pytest.mark.parametrize("order", ["ids behind", "ids before"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_file_that_is_given_ids_in_place_says_nothing_twice(
    tailed: Tailed, file: Path, order: str, *, restarted: bool
) -> None:
    """What was said before the rewriting keeps what it was called, and what follows goes on."""
    old = [without_ids(record) for record in TALK[1:]]
    first = header()
    del first["version"]
    append(file, lines(first, *old))
    await tailed.settle(file)
    before, seq = await tailed.dag(), tailed.stage.seq
    if restarted:
        tailed.renew(PATIENT)
    given = given_ids(old, [f"bbbb000{number}" for number in range(4)])
    if order == "ids before":
        given = [{"type": "message", "id": one["id"], **one} for one in given]
    with file.open("r+b") as written:
        written.write(lines({**first, "version": 3}, *given))
    await tailed.settle(file)
    assert tailed.stage.seq == seq
    append(file, lines(user("bbbb0009", "bbbb0003", "And tea.", 9)))
    await tailed.settle(file)
    after = await tailed.dag()
    assert list(after["turns"])[:4] == list(before["turns"])
    assert edges(after)["And tea."] == "好的。"
    assert len(after["tips"]) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["cut", "replaced", "another session"])
async def test_what_was_said_stays_whatever_becomes_of_the_file(
    tailed: Tailed, file: Path, how: str
) -> None:
    """Absence takes nothing back, and what comes in its place is read."""
    append(file, lines(*TALK))
    await tailed.settle(file)
    if how == "cut":
        os.truncate(file, len(lines(*TALK[:3])))
    elif how == "replaced":
        other = file.with_suffix(".new")
        append(other, lines(*TALK[:3]) + b" " * 9_000 + b"\n")
        other.rename(file)
    else:
        write(file, [header(OTHER, 40)])
    above = None if how == "another session" else "aaaa0002"
    append(file, lines(user("cccc0001", above, "And tea.", 50)))
    await tailed.settle(file)
    dag = await tailed.dag()
    assert said(dag) == [*SAID, "And tea."]
    assert edges(dag)["And tea."] == (None if above is None else "Noted.")


@pytest.mark.anyio
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_folder_that_is_renamed_and_a_file_that_is_deleted_change_nothing(
    tailed: Tailed, file: Path, root: Path, *, restarted: bool
) -> None:
    """The sessions are the same, and what was said stays."""
    fork = file.with_name(file_name(OTHER, 50))
    append(file, lines(*TALK))
    append(fork, forked(OTHER, file, 50, *TALK[1:], user("bbbb0005", "aaaa0004", "Here.", 51)))
    await tailed.settle(file, fork)
    before, seq = await tailed.dag(), tailed.stage.seq
    elsewhere = root / "--srv-demo--"
    file.parent.rename(elsewhere)
    (elsewhere / file.name).unlink()
    if restarted:
        tailed.renew(PATIENT)
    await tailed.settle(file, fork, elsewhere)
    assert (await tailed.dag(), tailed.stage.seq) == (before, seq)
    append(elsewhere / fork.name, lines(user("bbbb0006", "bbbb0005", "There.", 52)))
    await tailed.settle(elsewhere / fork.name)
    assert edges(await tailed.dag()) == edges(before) | {"There.": "Here."}


@pytest.mark.anyio
async def test_a_torn_line_waits_and_bad_ones_are_counted(tailed: Tailed, file: Path) -> None:
    """NUL, no JSON; and a last line that never ends is taken when its writer is gone."""
    append(file, lines(*TALK[:3]) + b"\0" * 9_000 + b"\n{\xff\n[]\n" + lines(*TALK[3:])[:-1])
    await tailed.settle(file)
    assert said(await tailed.dag()) == SAID[:3]
    assert tailed.tail.status().unread == 3
    os.utime(file, (0, 0))
    await tailed.settle(file)
    assert said(await tailed.dag()) == SAID


@pytest.mark.anyio
async def test_a_project_that_is_off_is_not_followed(root: Path, file: Path, place: Path) -> None:
    """Law 15, too: turnmark's own writer may be pi."""

    def memory_for(project: str | None, session: str) -> str:
        return "off" if project == "/home/robin/secret" else "on"

    other = file.with_name(file_name(OTHER, 50))
    async with follow(place / "a.db", root, memory_for=memory_for) as tailed:
        append(other, lines(header(OTHER, cwd="/home/robin/secret"), *TALK[1:]))
        append(file, lines(*TALK))
        await tailed.settle()
        append(other, lines(user("aaaa0009", "aaaa0004", "Hush", 9)))
        await tailed.settle(other)
        dag = await tailed.dag()
    assert said(dag) == SAID
    assert [name for name, *_ in dag["heads"]] == [SESSION]


def test_a_file_is_of_the_session_in_its_header(tmp_path: Path) -> None:
    """As soon as that is written; other files are nobody's."""
    file = tmp_path / file_name()
    whole = lines(header(OTHER))
    for data, found in ((b"", None), (whole[:40], None), (whole[40:], OTHER)):
        append(file, data)
        assert session_of(file) == found
    titled = write(tmp_path / "t.jsonl", [{"type": "title", "title": "x"}, header(THIRD)])
    assert session_of(titled) == THIRD
    newest = {"kind": "header", "version": 4, "id": SESSION, "createdAt": 1, "cwd": "/"}
    assert session_of(write(tmp_path / "n.jsonl", [newest])) == SESSION
    assert session_of(write(tmp_path / "x.jsonl", [{"hello": 1}, TALK[1]])) is None
    assert session_of(write(tmp_path / "x.json", [header()])) is None
