"""Tests of `session_store/transcripts/pi/live.py`: what is followed is what an import gives."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from session_store.transcripts.json_records import Record, lines, write
from session_store.transcripts.pi_records import (
    OTHER,
    SESSION,
    TALK,
    THIRD,
    entry,
    file_name,
    given_ids,
    header,
    user,
    without_ids,
)
from session_store.transcripts.tailing import IMPATIENT, PATIENT, Tailed, edges, of_files, said
from session_store.transcripts.talks import SAID
from session_store.transcripts.written_files import append
from turnmark_session_store.transcripts.live import Patience
from turnmark_session_store.transcripts.pi.live import PiLiveReader, session_of


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
    return Tailed(place, root, patience, follow=of_files(PiLiveReader), **more)


@pytest.fixture
async def tailed(root: Path, place: Path) -> AsyncIterator[Tailed]:
    """A store and a tail that waits long for everything."""
    async with follow(place / "sessions.db", root) as made:
        yield made


# The whole.


# When a turn is given.


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
async def test_what_was_said_stays_where_another_session_takes_the_file(
    tailed: Tailed, file: Path
) -> None:
    """Its first turn is a root of its own."""
    append(file, lines(*TALK))
    await tailed.settle(file)
    write(file, [header(OTHER, 40), user("cccc0001", None, "And tea.", 50)])
    await tailed.settle(file)
    dag = await tailed.dag()
    assert said(dag) == [*SAID, "And tea."]
    assert edges(dag)["And tea."] is None


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
