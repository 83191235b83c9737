"""Tests of `session_store/transcripts/tail.py`: what is followed is what an import would give."""

from __future__ import annotations

import json
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from session_store.stage import WORKSPACE, Stage
from session_store.transcripts.claude_records import (
    SESSION,
    Record,
    answer,
    call,
    hook,
    result,
    row,
    thought,
    user,
    write,
)
from session_store.transcripts.tailing import (
    HASTY,
    IMPATIENT,
    PATIENT,
    Tailed,
    dag_of,
    differences,
    import_files,
    imported,
)
from session_store.transcripts.written_files import append
from turnmark_session_store.backlog import park_backlog
from turnmark_session_store.marks import workspace_key
from turnmark_session_store.model import TurnIn
from turnmark_session_store.queries import rows_of
from turnmark_session_store.requests import AppendTurns, OpenSession
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts.claude_code.live import session_of

pytestmark = pytest.mark.anyio
DATA = Path(__file__).resolve().parents[2] / "data" / "claude-code"
GIVEN = Path(os.environ.get("TURNMARK_TRANSCRIPTS") or "/dev/null") / "claude-code"
SETS = [DATA, *([GIVEN] if GIVEN.is_dir() else [])]
OTHER = "5e55107a-0000-4000-8000-000000000002"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory of projects."""
    made = tmp_path / "projects"
    made.mkdir()
    return made


@pytest.fixture
def file(root: Path) -> Path:
    """Where the session of the made-up records is written."""
    return root / "-home-robin-demo" / f"{SESSION}.jsonl"


@pytest.fixture
async def tailed(root: Path, place: Path) -> AsyncIterator[Tailed]:
    """A store and a tail that waits long for everything."""
    async with Tailed(place / "sessions.db", root) as made:
        yield made


def lines(*records: Record) -> bytes:
    """Records as the program writes them."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def file_stat(path: Path) -> os.stat_result:
    """What the file system says of a file."""
    return path.stat()


def put(new: Path, path: Path) -> None:
    """Renames a file over another."""
    new.rename(path)


def remove(path: Path) -> None:
    """Deletes a file."""
    path.unlink()


def below(root: Path) -> list[Path]:
    """The transcripts below a directory."""
    return sorted(root.rglob("*.jsonl"))


async def ids(tailed: Tailed) -> list[str]:
    """The ids of the live turns, in the order in which they were appended."""
    return list((await tailed.dag())["turns"])


TALK = (
    user("u1", None, 0, "I live in Bergen."),
    answer("a1", "u1", 1, thought(), response="m1"),
    answer("a2", "a1", 2, "Noted.", response="m1"),
    answer("a3", "a2", 3, call("t1"), response="m1"),
    result("r1", "a3", 4, "t1"),
    answer("a4", "r1", 5, "Done.", response="m2"),
    hook("s1", "a4", 6),
    user("u2", "s1", 7, "我喜欢咖啡。"),
    answer("a5", "u2", 8, "好的。"),
    hook("s2", "a5", 9),
)


# The whole.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("files", SETS, ids=lambda path: path.parent.name)
async def test_files_may_be_imported_in_any_order_and_twice(
    place: Path, files: Path, seed: int
) -> None:
    """All at once, or a session at a time, and all of it again: the same turns, tips and heads.

    A sub-agent's files go with their session's: alone nothing says which turn called them.
    """
    chance = random.Random(seed)
    paths = below(files)
    sessions: dict[str | None, list[Path]] = {}
    for path in paths:
        sessions.setdefault(session_of(path), []).append(path)
    whole = await imported(place / "whole.db", paths)
    assert len(whole["turns"]) > len(sessions)
    chance.shuffle(paths)
    assert differences(await imported(place / "shuffled.db", paths), whole) == []
    one_by_one = list(sessions.values())
    chance.shuffle(one_by_one)
    async with Stage(place / "a.db") as stage:
        for session in one_by_one:
            await import_files(stage, session)
        found, seq = await dag_of(stage), stage.seq
        assert differences(found, whole) == []
        for session in reversed(one_by_one):
            await import_files(stage, session)
        await import_files(stage, paths)
        assert await dag_of(stage) == found
        assert stage.seq == seq


async def test_a_finished_file_is_not_opened_again(tailed: Tailed, file: Path) -> None:
    """The checkpoint covers it: a new tail has nothing to read, and nothing in memory."""
    append(file, lines(*TALK))
    await tailed.settle()
    before = file_stat(file)
    tailed.renew(PATIENT)
    await tailed.settle()
    status = tailed.tail.status()
    assert (status.state, status.files, status.last_error) == ("following", 1, None)
    assert (status.bytes_done, status.bytes_total) == (before.st_size, before.st_size)
    assert tailed.tail._followed == {}
    assert file_stat(file).st_atime_ns == before.st_atime_ns


# When a turn is given.


async def test_gives_a_prompt_at_once_and_its_answer_when_it_is_over(
    tailed: Tailed, file: Path
) -> None:
    """The answer waits for a record that says that it is over."""
    given = []
    for record in TALK:
        append(file, lines(record))
        await tailed.settle(file)
        given.append(len(await ids(tailed)))
    # u1, then a2 with the response a4 that follows it, a4 with the hook behind it, u2, a5.
    assert given == [1, 1, 1, 1, 1, 2, 3, 4, 4, 5]


@pytest.mark.parametrize(
    "last",
    [
        user("u2", "a1", 2, "Next"),
        answer("b1", "a1", 2, call("t"), response="other"),
        row("system", "d1", "a1", 2, subtype="turn_duration", durationMs=4),
    ],
    ids=["prompt", "response", "duration"],
)
async def test_what_ends_a_response(tailed: Tailed, file: Path, last: Record) -> None:
    """A prompt, another response, the note of how long it took."""
    append(file, lines(user("u1", None, 0, "Hi"), answer("a1", "u1", 1, "Hello")))
    await tailed.settle(file)
    assert await ids(tailed) == ["u1"]
    append(file, lines(last))
    await tailed.settle(file)
    assert (await ids(tailed))[:2] == ["u1", "a1"]


async def test_a_stop_reason_ends_a_response_at_once(tailed: Tailed, file: Path) -> None:
    """Nothing has to follow."""
    ended = answer("a1", "u1", 1, "Hello")
    ended["message"]["stop_reason"] = "end_turn"
    append(file, lines(user("u1", None, 0, "Hi"), ended))
    await tailed.settle(file)
    assert await ids(tailed) == ["u1", "a1"]


async def test_silence_ends_a_response(tailed: Tailed, file: Path) -> None:
    """Most responses say nothing about their end; the deadline is the file's, not a tick."""
    append(file, lines(user("u1", None, 0, "Hi"), answer("a1", "u1", 1, "Hello")))
    await tailed.settle(file)
    assert (await ids(tailed), tailed.tail.status().held) == (["u1"], 1)
    os.utime(file, (0, 0))
    await tailed.settle(file)
    assert (await ids(tailed), tailed.tail.status().held) == (["u1", "a1"], 0)


async def test_snapshots_that_come_late_take_the_place_of_the_earlier(
    root: Path, file: Path, place: Path
) -> None:
    """What was given as a turn is retired, so that the words are live once."""
    grown = [answer(f"a{n}", "u1", n, "Hello there, Robin"[: 6 * n], response="m") for n in (1, 2)]
    after = (*grown, user("u2", "a2", 4, "Bye"))
    whole = await imported(place / "i.db", [write(place / f"{SESSION}.jsonl", [TALK[0], *after])])
    async with Tailed(place / "a.db", root, HASTY) as tailed:
        for record in (TALK[0], *after):
            append(file, lines(record))
            await tailed.settle(file)
        assert differences(await tailed.dag(), whole) == []
        assert await ids(tailed) == ["u1", "a2", "u2"]


async def test_an_orphan_waits_for_its_parent(tailed: Tailed, file: Path) -> None:
    """A child may be written before its parent."""
    append(file, lines(user("u1", None, 0, "One"), user("u2", "p1", 2, "Two")))
    await tailed.settle(file)
    assert await ids(tailed) == ["u1"]
    append(file, lines(row("progress", "p1", "u1", 1, data={"type": "x"})))
    await tailed.settle(file)
    assert (await tailed.dag())["turns"]["u2"][0] == "u1"


async def test_an_orphan_becomes_a_root_in_the_end(tailed: Tailed, file: Path) -> None:
    """It is said that it lost what was before it."""
    append(file, lines(user("u1", None, 0, "One"), user("u2", "nowhere", 2, "Two")))
    await tailed.settle(file)
    tailed.renew(IMPATIENT)
    await tailed.settle()
    above, *_, lost, _caller = (await tailed.dag())["turns"]["u2"]
    assert (above, lost) == (None, 1)


# Files and what becomes of them.


async def test_a_torn_line_is_whole_or_nothing(tailed: Tailed, file: Path) -> None:
    """Rows 20, 22, 24 and 25: also across a restart."""
    data = lines(*TALK[:1])
    append(file, data[:-1])
    await tailed.settle(file)
    assert await ids(tailed) == []
    tailed.renew(PATIENT)
    append(file, b"\n" + data[:5])
    await tailed.settle(file)
    assert await ids(tailed) == ["u1"]


async def test_bad_bytes_cost_a_line_and_are_counted(tailed: Tailed, file: Path) -> None:
    """Rows 4, 5, 19: what follows them is read."""
    append(
        file, lines(TALK[0]) + b"\0" * 9_000 + b"\n{\xff\n" + lines(user("u2", "u1", 3, "\ud83d"))
    )
    await tailed.settle(file)
    assert await ids(tailed) == ["u1", "u2"]
    assert tailed.tail.status().unread == 2


@pytest.mark.parametrize("restarted", [False, True])
async def test_words_that_were_changed_in_place_take_the_place_of_the_old(
    tailed: Tailed, file: Path, restarted: bool
) -> None:
    """The record keeps its id; its new wording is `<id>~2`, and what comes hangs from that."""
    append(file, lines(*TALK[:1], user("u2", "u1", 3, "Tea")))
    await tailed.settle(file)
    if restarted:
        tailed.renew(PATIENT)
    for number, words in ((2, "Coffee"), (3, "Water")):
        os.truncate(file, 0)
        append(file, lines(*TALK[:1], user("u2", "u1", 3, words)))
        await tailed.settle(file)
        assert await ids(tailed) == ["u1", f"u2~{number}"]
    append(file, lines(user("u3", "u2", 4, "Bye")))
    await tailed.settle(file)
    dag = await tailed.dag()
    assert dag["turns"]["u3"][0] == "u2~3"
    assert (dag["tips"], dag["heads"][0][1]) == ([(SESSION, "u3")], "u3")
    seq = tailed.stage.seq
    tailed.renew(PATIENT)
    await tailed.settle(file)
    assert tailed.stage.seq == seq


async def test_a_renamed_folder_is_the_same_conversation(tailed: Tailed, file: Path) -> None:
    """It is read again under its new name, and goes on there."""
    append(file, lines(*TALK))
    await tailed.settle(file)
    seq = tailed.stage.seq
    moved = file.parent.rename(file.parent.with_name("-home-robin-moved"))
    await tailed.settle(file.parent, moved)
    assert tailed.stage.seq == seq
    append(moved / file.name, lines(user("u3", "s2", 20, "Bye")))
    await tailed.settle(moved / file.name)
    dag = await tailed.dag()
    assert (len(dag["turns"]), dag["turns"]["u3"][0]) == (6, "a5")


async def test_two_writers_of_one_file(tailed: Tailed, file: Path) -> None:
    """Two windows on one conversation: their lines alternate, their branches stay apart."""
    append(file, lines(TALK[0]))
    for n in range(4):
        for writer in ("x", "y"):
            above = f"{writer}{n - 1}" if n else "u1"
            append(file, lines(user(f"{writer}{n}", above, n + 1, f"{writer} says {n}")))
            await tailed.settle(file)
    dag = await tailed.dag()
    assert dag["tips"] == [(SESSION, "x3"), (SESSION, "y3")]
    assert (dag["turns"]["x3"][0], dag["turns"]["y0"][0]) == ("x2", "u1")


async def test_what_can_not_be_read_is_said_and_keeps_nothing_else(
    tailed: Tailed, file: Path
) -> None:
    """A sub-agent's file turned into a directory: its session is followed all the same."""
    agent = file.with_suffix("") / "subagents" / "agent-a1.jsonl"
    append(file, lines(TALK[0]))
    append(agent, b"")
    await tailed.settle()
    agent.unlink()
    agent.mkdir()
    append(file, lines(user("u2", "u1", 1, "Tea")))
    await tailed.settle(file)
    assert await ids(tailed) == ["u1", "u2"]
    assert str(agent) in str(tailed.tail.status().last_error)
    agent.rmdir()
    await tailed.settle(file)
    assert tailed.tail.status().last_error is None


# Forks and sub-agents.


async def test_a_fork_by_copy_shares_its_beginning(tailed: Tailed, file: Path) -> None:
    """Copied while the origin goes on, line by line."""
    fork = file.with_name(f"{OTHER}.jsonl")
    append(file, lines(*TALK))
    await tailed.settle(file)
    for index, record in enumerate(TALK):
        append(fork, lines({**record, "sessionId": OTHER}))
        if index == 4:
            append(file, lines(user("u3", "s2", 20, "On with it")))
        await tailed.settle(fork, file)
    append(fork, lines(user("v3", "s2", 21, "Another way", sessionId=OTHER)))
    await tailed.settle(fork)
    dag = await tailed.dag()
    assert len(dag["turns"]) == 7
    assert dag["tips"] == [(SESSION, "u3"), (OTHER, "v3")]
    origin = await tailed.stage.store.read(
        lambda db: rows_of(
            db,
            "SELECT origin.name, turn.key FROM session JOIN session AS origin"
            " ON origin.id = session.forked_from JOIN turn ON turn.id = session.forked_turn",
        )
    )
    assert origin == [(SESSION, "a5")]


@pytest.mark.parametrize("goes_on", [False, True])
async def test_what_is_taken_back_is_so_in_forks_that_copied_it(
    tailed: Tailed, file: Path, *, goes_on: bool
) -> None:
    """Law 13: a fork that ends in the answer goes back too; one that goes on keeps it alive."""
    fork = file.with_name(f"{OTHER}.jsonl")
    talk = [*TALK[:6], user("u2", "a4", 7, "More"), answer("a5", "u2", 8, "Not so.")]
    append(file, lines(*talk, hook("s2", "a5", 9)))
    more = [user("v2", "a5" if goes_on else "a4", 10, "Or")]
    copied = [{**record, "sessionId": OTHER} for record in [*talk, hook("s3", "a5", 9), *more]]
    append(fork, lines(*copied))
    await tailed.settle(file, fork)
    assert ((OTHER, "a5") in (await tailed.dag())["tips"]) is not goes_on
    append(file, lines(answer("a6", "u2", 11, "So.", retractedMessageUuids=["a5"])))
    append(file, lines(hook("s4", "a6", 12)))
    await tailed.settle(file)
    dag = await tailed.dag()
    assert ("a5" in dag["turns"]) is goes_on
    assert (SESSION, "a5") not in dag["tips"]
    assert (OTHER, "a5") not in dag["tips"]
    assert {(SESSION, "a6"), (OTHER, "v2")} <= set(dag["tips"])


async def test_a_copy_waits_for_its_origin_even_if_nothing_follows(
    tailed: Tailed, file: Path
) -> None:
    """A copy of a copy whose origin is written in a moment: one turn, under the first id."""
    tailed.renew(HASTY)
    third = SESSION[:-1] + "3"
    origin, fork, late = (file.with_name(f"{name}.jsonl") for name in (SESSION, OTHER, third))

    def copies(session: str, of: str, mark: str, above: str) -> list[Record]:
        return [
            {
                **record,
                "uuid": f"{mark}{record['uuid'][-1]}",
                "parentUuid": record["parentUuid"] and f"{mark}{record['parentUuid'][-1]}",
                "sessionId": session,
                "forkedFrom": {"sessionId": of, "messageUuid": f"{above}{record['uuid'][-1]}"},
            }
            for record in talk
        ]

    talk = [user("u1", None, 0, "I live in Bergen."), answer("u2", "u1", 1, "Noted.")]
    append(late, lines(*copies(third, OTHER, "w", "v")))
    append(fork, lines(*copies(OTHER, SESSION, "v", "u")[:1]))
    append(origin, lines(*talk[:1]))
    await tailed.settle(late, fork, origin)
    append(fork, lines(*copies(OTHER, SESSION, "v", "u")[1:]))
    append(origin, lines(*talk[1:]))
    await tailed.settle(late, fork, origin)
    assert await ids(tailed) == ["u1", "u2"]


async def test_a_sub_agents_task_waits_for_its_caller(tailed: Tailed, file: Path) -> None:
    """Whichever file is seen first; the task is no person's words."""
    agent = file.with_suffix("") / "subagents" / "agent-a1.jsonl"
    side = {"isSidechain": True, "agentId": "a1"}
    append(agent, lines(user("t1", None, 3, "Find it", **side)))
    await tailed.settle(agent)
    assert await ids(tailed) == []
    append(file, lines(user("u1", None, 0, "Look"), answer("a1", "u1", 1, "I do.", response="m")))
    append(file, lines(answer("a2", "a1", 2, call("c", "Task", prompt="Find it"), response="m")))
    await tailed.settle(file)
    assert await ids(tailed) == ["u1"], "the caller itself is held"
    os.utime(file, (0, 0))
    await tailed.settle(file)
    dag = await tailed.dag()
    assert dag["turns"]["t1"][-1] == "a1"
    assert dag["turns"]["t1"][4] == 0, "not recordable"
    assert {session for session, _ in dag["tips"]} == {SESSION, f"{SESSION}.agent-a1"}


@pytest.mark.parametrize("how", ["cut", "gone"])
async def test_a_sub_agents_task_is_what_it_was_while_its_caller_is_not_there(
    tailed: Tailed, file: Path, how: str
) -> None:
    """Its session's file is written anew, or is gone, and comes again: no word has changed."""
    agent = file.with_suffix("") / "subagents" / "agent-a1.jsonl"
    side = {"isSidechain": True, "agentId": "a1"}
    asked = answer("a1", "u1", 1, "I do.", call("c", "Task", prompt="Find it"), response="m")
    talk = lines(user("u1", None, 0, "Look"), asked, hook("s1", "a1", 2))
    append(file, talk)
    task = lines(user("t1", None, 3, "Find it", **side))
    append(agent, task)
    await tailed.settle()
    before = await tailed.dag()
    assert before["turns"]["t1"][-1] == "a1"
    os.truncate(agent, 0)
    append(agent, lines({"type": "summary"}) + task)
    kept = len(lines(user("u1", None, 0, "Look"))) if how == "cut" else 0
    if how == "cut":
        os.truncate(file, kept)
    else:
        remove(file)
    tailed.renew(IMPATIENT)
    await tailed.settle(agent, file)
    assert (await tailed.dag())["turns"] == before["turns"]
    append(file, talk[kept:])
    await tailed.settle(agent, file)
    assert await tailed.dag() == before


async def test_what_a_waiting_sub_agent_called_for_waits_with_it(
    tailed: Tailed, file: Path
) -> None:
    """Its own task is known, the call that spawned the one that spawned it is not."""
    folder = file.with_suffix("") / "subagents"
    outer, inner = ({"isSidechain": True, "agentId": name} for name in ("a1", "a2"))
    spawns = call("c", "Task", prompt="Deeper")
    append(
        folder / "agent-a1.jsonl",
        lines(
            user("t1", None, 3, "Find it", **outer),
            answer("t2", "t1", 4, "I ask.", spawns, response="m", **outer),
            answer("t3", "t2", 5, "Done.", response="n", **outer),
        ),
    )
    append(folder / "agent-a2.jsonl", lines(user("d1", None, 5, "Deeper", **inner)))
    await tailed.settle(folder / "agent-a1.jsonl", folder / "agent-a2.jsonl")
    assert await ids(tailed) == []
    tailed.renew(IMPATIENT)
    await tailed.settle()
    assert (await tailed.dag())["turns"]["d1"][-1] == "t2"


# What must not be read.


async def test_a_session_that_a_client_turned_off_stays_off(tailed: Tailed, file: Path) -> None:
    """Its mode is the client's, and nothing of it is stored."""
    asked = OpenSession(session=SESSION, agent="claude-code", memory="off")
    await tailed.stage.store.open_session(asked)
    append(file, lines(*TALK))
    await tailed.settle()
    assert await ids(tailed) == []
    assert tailed.tail.status().last_error is None


async def test_a_name_that_a_client_took_is_left_to_it(tailed: Tailed, file: Path) -> None:
    """Its turns are of another namespace: the transcript is refused, with a reason, and no turn."""
    turns = [TurnIn(role="user", text="mine", id="c1")]
    await tailed.stage.store.append(AppendTurns(session=SESSION, turns=turns))
    append(file, lines(*TALK))
    await tailed.settle()
    assert await ids(tailed) == ["c1"]
    assert SESSION in str(tailed.tail.status().last_error)


async def test_recalled_text_never_comes_back(tailed: Tailed, file: Path) -> None:
    """Law 15: a hook put it in front of the prompt."""
    recalled = "<turnmark-memory>Robin lives in Oslo.</turnmark-memory>\nWhere do I live?"
    append(file, lines(user("u1", None, 0, recalled)))
    await tailed.settle()
    text = (await tailed.dag())["turns"]["u1"][3]
    assert text.decode().strip() == "Where do I live?"


# The backlog, and the first scan.


async def test_turns_from_before_the_first_connection_can_be_held(
    root: Path, file: Path, place: Path
) -> None:
    """They are stored and parked; what comes behind them is owed as ever."""

    def hold(tx: Transaction, session: str, connected_ms: int) -> None:
        park_backlog(tx, workspace_key(tx, WORKSPACE), session, connected_ms)

    async with Tailed(place / "a.db", root, placed=hold) as tailed:
        tailed.stage.clock.at_ms = 1_786_269_606_000  # ten o'clock and six seconds, that day
        append(file, lines(*TALK))
        await tailed.settle()
        marks = await tailed.stage.store.read(
            lambda db: rows_of(
                db, "SELECT key, reason FROM mark JOIN turn ON turn.id = turn ORDER BY turn.id"
            )
        )
        owed = await tailed.stage.owed()
    assert marks == [("u1", "backlog"), ("a2", "backlog"), ("a4", "backlog")]
    assert owed.turns == 5


async def test_the_first_scan_begins_with_the_newest(tailed: Tailed, root: Path) -> None:
    """And says how far it is."""
    for n in range(3):
        name = f"{SESSION[:-1]}{n}"
        path = root / "-p" / f"{name}.jsonl"
        append(path, lines(user(f"u{n}", None, n, f"Number {n}", sessionId=name)))
        os.utime(path, (n, n))
    assert tailed.tail.status().state == "scanning"
    await tailed.settle()
    assert await ids(tailed) == ["u2", "u1", "u0"]
    assert tailed.tail.status().state == "following"
    assert tailed.tail._followed == {}, "what is old is not kept in memory"


async def test_catches_up_with_what_no_event_told(tailed: Tailed, file: Path) -> None:
    """Before the night: whoever waits finds all that is final in the store."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(tailed.tail.run)
        with anyio.fail_after(60):
            await tailed.tail.catch_up()
            append(file, lines(*TALK))
            await tailed.tail.catch_up()
        assert await ids(tailed) == ["u1", "a2", "a4", "u2", "a5"]
        tasks.cancel_scope.cancel()


async def test_a_root_may_come_late(root: Path, place: Path) -> None:
    """Until then it waits; what comes with it is read."""
    late = root / "later"
    async with Tailed(place / "a.db", late) as tailed:
        await tailed.settle()
        assert tailed.tail.status().state == "waiting"
        file = late / "-p" / f"{SESSION}.jsonl"
        append(file, lines(TALK[0]))
        await tailed.settle(late)
        assert await ids(tailed) == ["u1"]
        assert tailed.tail.status().state == "following"


async def test_other_files_are_left_alone(tailed: Tailed, file: Path) -> None:
    """Journals of workflows, notes, caches, and what lies outside."""
    folder = file.with_suffix("")
    append(folder / "subagents" / "workflows" / "w1" / "journal.jsonl", lines(TALK[0]))
    append(file.parent / "sessions-index.json", b"{}")
    append(file.with_suffix(".jsonl~"), lines(TALK[0]))
    await tailed.settle()
    await tailed.settle(Path("/"), file.parent.parent.parent)
    assert (await ids(tailed), tailed.tail.status().files) == ([], 0)
