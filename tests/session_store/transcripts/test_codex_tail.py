"""Tests of `session_store/transcripts/codex/live.py`: what is followed is what an import gives."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from session_store.transcripts.codex_rollouts import (
    OTHER,
    T1,
    T2,
    TALK,
    THREAD,
    U1,
    U2,
    event,
    item,
    meta,
    response,
    rollout_name,
    started,
    told,
    typed,
    uuid7,
)
from session_store.transcripts.json_records import Record, lines
from session_store.transcripts.tailing import (
    IMPATIENT,
    PATIENT,
    Tailed,
    differences,
    imported,
    of_files,
    said,
)
from session_store.transcripts.written_files import append
from turnmark_session_store.transcripts.codex.live import CodexLiveReader, thread_of
from turnmark_session_store.transcripts.codex.reader import CodexReader
from turnmark_session_store.transcripts.live import Patience
from turnmark_session_store.transcripts.reader import ReadTurn

REVERTED = "01a22921-7692-7751-a692-8ea930f22500"
DATA = Path(__file__).resolve().parents[2] / "data" / "codex" / "generated-v0.169"
CODEX = CodexReader()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A home of Codex."""
    made = tmp_path / "codex"
    made.mkdir()
    return made


@pytest.fixture
def file(root: Path) -> Path:
    """Where the thread of the made-up records is written."""
    return root / "sessions" / "2026" / "08" / "09" / rollout_name(THREAD)


def follow(place: Path, root: Path, patience: Patience = PATIENT, **more: Any) -> Tailed:
    """A store and a tail on a home of Codex."""
    return Tailed(place, root, patience, follow=of_files(CodexLiveReader), **more)


@pytest.fixture
async def tailed(root: Path, place: Path) -> AsyncIterator[Tailed]:
    """A store and a tail that waits long for everything."""
    async with follow(place / "sessions.db", root) as made:
        yield made


def move(path: Path, to: Path) -> None:
    """Renames a file, as archiving does."""
    path.rename(to)


# The whole.


def test_every_byte_may_be_the_last_of_a_look(tmp_path: Path) -> None:
    """One byte more each time: nothing is said before its line has ended, and nothing unsaid."""
    files = sorted((DATA / "sessions").rglob(f"*{REVERTED}*.jsonl"))
    live = CodexLiveReader(PATIENT).live_set()
    given: list[ReadTurn] = []
    for number, file in enumerate(files):
        path = tmp_path / file.name
        live.add(REVERTED, [path], {})
        with path.open("ab", buffering=0) as written:
            for byte in file.read_bytes():
                written.write(bytes([byte]))
                live.read_on(now=1_000.0)
                if byte == ord("\n"):
                    standing = live.stand((), now=1_000.0)
                    turns = [turn for one in standing.sessions for turn in one.turns]
                    assert turns[: len(given)] == given
                    given = turns
        [whole] = CODEX.read(files[: number + 1])
        assert list(whole.turns) == given
        assert live.stand((), now=1_000.0).held == frozenset()
    assert [turn.turn.role for turn in given].count("user") == 6


# When a turn is given.


@pytest.mark.anyio
async def test_what_only_the_model_was_shown_waits_for_better(
    tailed: Tailed, file: Path, place: Path
) -> None:
    """The event may still come; when the exchange is over, or nobody writes, it is taken."""
    early = (
        meta(),
        started(T1, 10),
        response("user", 11, "I live in Bergen."),
        response("assistant", 12, "Noted."),
    )
    append(file, lines(*early))
    await tailed.settle(file)
    assert (said(await tailed.dag()), tailed.tail.status().held) == ([], 2)
    append(file, lines(started(T2, 20), response("user", 21, "我喜欢咖啡。")))
    await tailed.settle(file)
    assert said(await tailed.dag()) == ["I live in Bergen.", "Noted."]
    os.utime(file, (0, 0))
    await tailed.settle(file)
    assert len(said(await tailed.dag())) == 3
    assert differences(await tailed.dag(), await imported(place / "i.db", [file], CODEX)) == []


@pytest.mark.anyio
async def test_a_response_item_is_never_given_before_its_event(tailed: Tailed, file: Path) -> None:
    """They are written in one breath, but a look may fall between."""
    append(file, lines(meta(), started(T1, 10), response("user", 11, "Hi", id="msg_1")))
    await tailed.settle(file)
    append(file, lines(item("UserMessage", U1, T1, 11, "Hi")))
    await tailed.settle(file)
    assert list((await tailed.dag())["turns"]) == [U1]


def paginated_fork(thread: str, second: float, key: str, at: bytes, ordinal: int) -> list[Record]:
    """A file whose history ends behind the bytes of the first thread's file."""
    base = {"thread_id": THREAD, "end_ordinal_exclusive": ordinal, "end_byte_offset": len(at)}
    return [
        meta(thread, second, ordinal=ordinal, history_base=base),
        item("UserMessage", key, uuid7(second, 9), second, f"After {ordinal}", ordinal=ordinal + 1),
    ]


@pytest.mark.anyio
async def test_a_fork_waits_for_its_origin_and_is_a_root_in_the_end(
    tailed: Tailed, file: Path
) -> None:
    """Its first record says what is missing."""
    talk = lines(meta(ordinal=0), item("UserMessage", U1, T1, 11, "One", ordinal=1))
    fork = file.with_name(rollout_name(OTHER))
    append(fork, lines(*paginated_fork(OTHER, 500, U2, talk, 2)))
    await tailed.settle(fork)
    assert (said(await tailed.dag()), tailed.tail.status().held) == ([], 1)
    append(file, talk[:-9])
    await tailed.settle(file)
    assert said(await tailed.dag()) == []
    append(file, talk[-9:])
    await tailed.settle(file, fork)
    assert (await tailed.dag())["turns"][U2][0] == U1
    lost = file.with_name(rollout_name(uuid7(900, 3)))
    orphan = uuid7(901, 4)
    append(lost, lines(*paginated_fork(uuid7(900, 3), 900, orphan, talk + b"more", 7)))
    await tailed.settle(lost)
    assert orphan not in (await tailed.dag())["turns"]
    tailed.renew(IMPATIENT)
    await tailed.settle(lost)
    above, *_, is_lost, _caller = (await tailed.dag())["turns"][orphan]
    assert (above, is_lost) == (None, 1)


@pytest.mark.anyio
async def test_a_revert_is_a_branch_and_the_head_goes_along(tailed: Tailed, file: Path) -> None:
    """What was said before it stays live; the thread is where its newest file ends."""
    first = lines(meta(ordinal=0), item("UserMessage", U1, T1, 11, "One", ordinal=1))
    append(file, first + lines(item("UserMessage", U2, T2, 21, "Two", ordinal=2)))
    await tailed.settle(file)
    again = file.with_name(rollout_name(THREAD, OTHER))
    key = uuid7(501, 4)
    append(again, lines(*paginated_fork(THREAD, 500, key, first, 2)))
    await tailed.settle(again)
    dag = await tailed.dag()
    assert dag["tips"] == [(THREAD, U2), (THREAD, key)]
    assert dag["heads"][0][1] == key
    assert dag["turns"][key][0] == dag["turns"][U2][0] == U1


@pytest.mark.anyio
async def test_a_revert_of_a_revert_waits_for_the_right_file(tailed: Tailed, file: Path) -> None:
    """An older one has a line of that ordinal, too."""
    first = lines(meta(ordinal=0), item("UserMessage", U1, T1, 11, "One", ordinal=1))
    append(file, first)
    append(file, lines(*(item("UserMessage", U2, T2, 21, "Two", ordinal=n) for n in (2, 3, 4))))
    second, third = (file.with_name(rollout_name(THREAD, uuid7(n, n))) for n in (500, 600))
    key, last = uuid7(501, 4), uuid7(601, 5)
    again = lines(*paginated_fork(THREAD, 500, key, first, 2))
    append(third, lines(*paginated_fork(THREAD, 600, last, again, 4)))
    await tailed.settle(file, third)
    assert list((await tailed.dag())["turns"]) == [U1, U2]
    append(second, again)
    await tailed.settle(second)
    turns = (await tailed.dag())["turns"]
    assert (turns[key][0], turns[last][0]) == (U1, key)


@pytest.mark.anyio
async def test_a_rollback_takes_back_what_was_given(tailed: Tailed, file: Path) -> None:
    """Law 13: once, whatever is read again."""
    append(file, lines(*TALK))
    await tailed.settle(file)
    append(file, lines(event("thread_rolled_back", 25, num_turns=1)))
    await tailed.settle(file)
    dag = await tailed.dag()
    assert said(dag) == ["I live in Bergen.", "Noted."]
    assert dag["heads"][0][1] == dag["tips"][0][1] == list(dag["turns"])[-1]
    append(file, lines(started(uuid7(30, 8), 30), typed("Tea, then.", 31)))
    await tailed.settle(file)
    found = (await tailed.dag())["turns"]
    assert [turn[3].decode() for turn in found.values()][-1] == "Tea, then."
    assert list(found.values())[-1][0] == list(dag["turns"])[-1]
    seq = tailed.stage.seq
    tailed.renew(PATIENT)
    await tailed.settle(file)
    assert tailed.stage.seq == seq


@pytest.mark.anyio
async def test_a_sub_agents_task_waits_until_a_record_names_it(tailed: Tailed, file: Path) -> None:
    """Its file may be seen before the record."""
    agent = file.with_name(rollout_name(OTHER))
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    append(file, lines(*TALK[:3]))
    append(agent, lines(meta(OTHER, 500, source=spawn), typed("Find ferries.", 501)))
    await tailed.settle(agent, file)
    assert said(await tailed.dag()) == ["I live in Bergen."]
    append(file, lines(event("collab_agent_spawn_end", 499, new_thread_id=OTHER)))
    await tailed.settle(file, agent)
    dag = await tailed.dag()
    task = next(turn for turn in dag["turns"].values() if turn[3] == b"Find ferries.")
    assert (task[-1], task[4]) == (next(iter(dag["turns"])), 0)
    assert {session for session, _ in dag["tips"]} == {THREAD, OTHER}


# Files and what becomes of them.


@pytest.mark.anyio
@pytest.mark.parametrize("restarted", [False, True])
async def test_an_archived_thread_is_the_same_and_may_come_back(
    tailed: Tailed, file: Path, root: Path, *, restarted: bool
) -> None:
    """It is moved, goes on, is rolled back there, and moved again."""
    archived = root / "archived_sessions" / file.name
    archived.parent.mkdir()
    append(file, lines(*TALK))
    await tailed.settle(file)
    before, seq = await tailed.dag(), tailed.stage.seq
    move(file, archived)
    if restarted:
        tailed.renew(PATIENT)
    await tailed.settle(file, archived)
    assert tailed.stage.seq == seq
    append(archived, lines(event("thread_rolled_back", 25, num_turns=1)))
    await tailed.settle(archived)
    assert len((await tailed.dag())["turns"]) == 2
    move(archived, file)
    append(file, lines(typed("And tea.", 31)))
    await tailed.settle(archived, file)
    after = await tailed.dag()
    assert list(after["turns"])[:2] == list(before["turns"])[:2]
    assert said(after)[2:] == ["And tea."]


@pytest.mark.anyio
async def test_facts_that_come_later_add_no_turn(tailed: Tailed, file: Path) -> None:
    """A name, more first records."""
    append(file, lines(*TALK))
    await tailed.settle(file)
    named = event("thread_name_updated", 30, thread_id=THREAD, thread_name="渡轮")
    append(file, lines(meta(second=31), named))
    await tailed.settle(file)
    dag = await tailed.dag()
    assert len(dag["turns"]) == 4
    assert dag["heads"][0][2:] == ("渡轮", "/home/robin/demo")


@pytest.mark.anyio
async def test_threads_that_are_nobodys_and_other_files_are_left_alone(
    tailed: Tailed, file: Path, root: Path
) -> None:
    """They are not even named; what lies beside the threads is not looked at."""
    review = {"source": {"subagent": "review"}, "parent_thread_id": THREAD}
    append(file, lines(meta(**review), *TALK[1:]))
    append(root / "history.jsonl", lines(*TALK))
    append(root / "sessions" / "notes.jsonl", lines(*TALK))
    append(root / "archived_sessions" / "rollout-x.jsonl.tmp", lines(*TALK))
    await tailed.settle()
    await tailed.settle(root, root / "history.jsonl")
    dag = await tailed.dag()
    assert (dag["turns"], dag["heads"], tailed.tail.status().files) == ({}, [], 1)
    assert tailed.tail.status().bytes_done == len(lines(meta(**review), *TALK[1:]))


@pytest.mark.anyio
async def test_a_project_that_is_off_is_not_followed(root: Path, file: Path, place: Path) -> None:
    """Nor what it spawned elsewhere. Law 15, too: turnmark's own writer may be Codex."""

    def memory_for(project: str | None, session: str) -> str:
        return "off" if project == "/home/robin/secret" else "on"

    other = file.with_name(rollout_name(OTHER))
    of_other: Record = {"session_id": OTHER, "parent_thread_id": OTHER, "cwd": "/elsewhere"}
    async with follow(place / "a.db", root, memory_for=memory_for) as tailed:
        append(other, lines(meta(OTHER, 500, cwd="/home/robin/secret"), typed("Hush", 501)))
        task = [meta(uuid7(900, 3), 900, **of_other), told("Hush, hush", 901)]
        append(file.with_name(rollout_name(uuid7(900, 3))), lines(*task))
        append(file, lines(*TALK[:3]))
        await tailed.settle()
        append(other, lines(typed("Hush!", 502)))
        await tailed.settle(other)
        dag = await tailed.dag()
    assert said(dag) == ["I live in Bergen."]
    assert [name for name, *_ in dag["heads"]] == [THREAD]


def test_a_file_is_of_the_thread_in_its_name_else_in_its_first_record(tmp_path: Path) -> None:
    """The last part of a name may be a generation's."""
    assert thread_of(tmp_path / rollout_name(THREAD)) == THREAD
    assert thread_of(tmp_path / rollout_name(THREAD, OTHER)) == THREAD
    odd = tmp_path / "rollout-odd.jsonl"
    append(odd, lines(*TALK))
    assert thread_of(odd) == THREAD
    assert thread_of(tmp_path / "history.jsonl") is None
    assert thread_of(tmp_path / f"{rollout_name(THREAD)}.zst") is None


def test_a_sub_agents_file_is_of_the_family_that_its_first_record_names(tmp_path: Path) -> None:
    """As soon as that is written; without one it is its own thread's, and other files nobody's."""
    reader = CodexLiveReader()
    file = tmp_path / rollout_name(OTHER)
    append(file, b"")
    assert reader.session_of(file) is None
    first = lines(meta(OTHER, 500, session_id=THREAD, base_instructions={"text": "x" * 50_000}))
    append(file, first[:60])
    assert reader.session_of(file) is None
    append(file, first[60:])
    assert reader.session_of(file) == THREAD
    for number, start in enumerate((b'{"id":"x","timestamp":"y"}\n', b"\0\n", b" " * 9_000)):
        old = tmp_path / rollout_name(uuid7(900, number))
        append(old, start)
        assert reader.session_of(old) == uuid7(900, number)
    append(tmp_path / "history.jsonl", first)
    assert reader.session_of(tmp_path / "history.jsonl") is None
