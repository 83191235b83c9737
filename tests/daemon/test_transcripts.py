"""Agents' files followed by a real daemon, as a program beside it writes them."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.to_thread
import apsw
import pytest

from daemon.daemon_process import DaemonPlace, daemon_place, turnmark
from session_store.transcripts.claude_records import SESSION, answer, hook, user
from session_store.transcripts.codex_rollouts import THREAD, item, meta, rollout_name, uuid7
from session_store.transcripts.hermes_store import HermesStore
from session_store.transcripts.json_records import lines
from session_store.transcripts.live_sessions import ClaudeCodeRecording
from session_store.transcripts.openclaw_gateway import Gateway
from session_store.transcripts.opencode_program import Opencode
from session_store.transcripts.pi_records import SESSION as PI_SESSION
from session_store.transcripts.pi_records import file_name as pi_file_name
from session_store.transcripts.pi_records import header as pi_header
from session_store.transcripts.pi_records import user as pi_user
from session_store.transcripts.tailing import Dag, dag_in, differences
from session_store.transcripts.written_files import append, torn
from turnmark.client import EventStream
from turnmark.transcripts import is_of_transcripts
from turnmark_events.types import TipMoved
from turnmark_session_store.database import open_reader
from turnmark_session_store.transcripts.openclaw.tables import NAME

SECONDS = 60
CODEX_PROMPTS = (uuid7(1, 7), uuid7(2, 8))
QUIET_MINUTES = 60


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """A place for a daemon, whose Claude Code has a directory of its own."""
    with daemon_place(idle_minutes=QUIET_MINUTES) as made:
        yield made


@pytest.fixture
def projects(place: DaemonPlace) -> Path:
    """Where Claude Code writes."""
    made = place.agents / "projects"
    made.mkdir(parents=True)
    return made


def status(place: DaemonPlace) -> dict[str, Any]:
    """What the daemon says of Claude Code's files."""
    with place.connect_sync() as client:
        found: dict[str, Any] = client.call("status")["transcripts"]["claude-code"]
        return found


def store_of(place: DaemonPlace) -> Dag:
    """What the daemon's store holds now."""
    db: apsw.Connection = open_reader(place.state / "sessions.db")
    try:
        with db:
            return dag_in(db)
    finally:
        db.close()


async def wait_for(place: DaemonPlace, wanted: Dag) -> None:
    """Waits until the store holds what is wanted, looking after each event.

    What changes without an event (a title) is seen at the next look.
    """
    left: list[str] = []
    try:
        with anyio.fail_after(SECONDS):
            async with place.connect() as client, client.subscribe(types=["TipMoved"]) as events:
                while left := differences(await anyio.to_thread.run_sync(store_of, place), wanted):
                    with anyio.move_on_after(0.5):
                        await anext(events)
    except TimeoutError:
        raise AssertionError(left) from None


class Writer:
    """A process that appends to files, each piece in a write() of its own, as Claude Code does."""

    _CODE = """
import os, sys
for line in sys.stdin:
    path, data = line.split()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, bytes.fromhex(data))
    os.close(file)
    print("written", flush=True)
"""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, path: str, data: bytes) -> None:
        """Appends; it is on disk when this returns."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self._root / path} {data.hex()}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "written\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=SECONDS)


def recorded(seed: int) -> ClaudeCodeRecording:
    """A session with everything: forks, sub-agents, rewinds, compaction, parallel calls."""
    recording = ClaudeCodeRecording(random.Random(seed))
    recording.play(3)
    main = recording.lines[0]
    recording.fork_by_copy(main)
    recording.compact(main)
    recording.rewind(main)
    recording.fork_by_sdk(main)
    recording.play(8)
    return recording


@cache
def imported(seed: int) -> Dag:
    """What an import of the finished files makes in another daemon; it is the same each time."""
    with daemon_place(idle_minutes=QUIET_MINUTES) as other:
        finished = other.root / "finished"
        recorded(seed).write_to(finished)
        other.start()
        turnmark(other, "import", finished, "--no-flush")
        found = store_of(other)
        other.stop()
        return found


async def next_move(events: EventStream) -> TipMoved:
    """The next move of a tip."""
    with anyio.fail_after(SECONDS):
        event = await anext(events)
    assert isinstance(event, TipMoved)
    return event


def assert_recalled(place: DaemonPlace, turns: str, directory: Path, followed: Path) -> None:
    """What was followed is written and recalled; imported as well, it is there once."""
    turnmark(place, "flush")
    assert "Bergen" in turnmark(place, "recall", "where do I live?")
    assert f"{turns}, 0 new" in turnmark(place, "import", directory, "--no-flush")
    assert f"following 1 file in {followed}" in turnmark(place, "status")


@pytest.mark.parametrize("kills", [0, 3], ids=["undisturbed", "killed"])
@pytest.mark.anyio
async def test_a_live_session_comes_to_what_an_import_gives(
    place: DaemonPlace, projects: Path, kills: int
) -> None:
    """Torn lines, forks in mid-flight, sub-agents, compaction; killed anywhere, started again."""
    recording = recorded(1)
    chance = random.Random(2)
    pieces = torn(chance, recording.written)
    killed = set(chance.sample(range(len(pieces)), kills))
    place.start()
    with Writer(projects) as writer:
        for number, piece in enumerate(pieces):
            writer.write(piece.path, piece.data)
            if number in killed:
                place.kill()
                place.start()
    whole = imported(1)
    await wait_for(place, whole)
    place.kill()
    place.start()
    turnmark(place, "import", projects, "--no-flush")
    await wait_for(place, whole)
    assert status(place)["last_error"] is None
    place.stop()


@pytest.mark.parametrize("failpoint", ["store.before_commit", "store.after_commit"])
@pytest.mark.anyio
async def test_a_kill_in_the_middle_of_a_first_scan_loses_nothing(
    place: DaemonPlace, projects: Path, failpoint: str
) -> None:
    """Between any two transactions: the next start goes on from the checkpoints."""
    recorded(3).write_to(projects)
    whole = imported(3)
    for visit in (2, 5, 9):
        place.begin(failpoint=f"{failpoint}=kill@{visit}")
        assert place.wait_end() == -9
    place.start()
    await wait_for(place, whole)
    place.stop()


@pytest.mark.anyio
async def test_each_written_line_is_a_turn_unasked(place: DaemonPlace, projects: Path) -> None:
    """One event for each, before the next is written; `benchmarks/tail_latency.py` says when."""
    file = projects / "-demo" / f"{SESSION}.jsonl"
    place.start()
    async with place.connect() as client, client.subscribe(types=["TipMoved"]) as events:
        above: str | None = None
        for number in range(10):
            append(file, lines(user(f"u{number}", above, number, f"Number {number}")))
            event = await next_move(events)
            assert event.new == f"u{number}"
            above = f"u{number}"
    place.stop()


@pytest.mark.anyio
async def test_what_is_followed_is_written_and_recalled(place: DaemonPlace, projects: Path) -> None:
    """From a line in another program's file to the answer of a recall."""
    file = projects / "-demo" / f"{SESSION}.jsonl"
    place.start()
    said = user("u1", None, 0, "I moved from Oslo to Bergen in May.")
    append(file, lines(said, answer("a1", "u1", 1, "Noted: Bergen."), hook("s1", "a1", 2)))
    async with place.connect() as client, client.subscribe(since=0, types=["TipMoved"]) as events:
        with anyio.fail_after(SECONDS):
            async for event in events:
                if isinstance(event, TipMoved) and event.new == "a1":
                    break
    turnmark(place, "flush")
    assert "Bergen" in turnmark(place, "recall", "where do I live?")
    assert "following 1 file in " in turnmark(place, "status")
    place.stop()


@pytest.mark.anyio
async def test_what_codex_writes_is_followed_archived_and_recalled(place: DaemonPlace) -> None:
    """From a line in a rollout to the answer of a recall; imported as well, it is there once."""
    file = place.codex / "sessions" / "2026" / "08" / "09" / rollout_name(THREAD)
    archived = place.codex / "archived_sessions" / file.name
    place.start()
    assert f"waiting for {place.codex / 'sessions'}" in turnmark(place, "status")
    said = (
        item("UserMessage", CODEX_PROMPTS[0], THREAD, 1, "I moved from Oslo to Bergen in May."),
        item("UserMessage", CODEX_PROMPTS[1], THREAD, 2, "我喜欢黑咖啡。"),
    )
    async with place.connect() as client, client.subscribe(types=["TipMoved"]) as events:
        append(file, lines(meta(), said[0]))
        event = await next_move(events)
        assert (event.session, event.new) == (THREAD, CODEX_PROMPTS[0])
        archived.parent.mkdir()
        file.rename(archived)
        append(archived, lines(said[1]))
        event = await next_move(events)
        assert (event.old, event.new) == CODEX_PROMPTS
    assert_recalled(place, "2 turns", place.codex, place.codex)
    place.stop()


@pytest.mark.anyio
async def test_what_pi_writes_is_followed_branched_and_recalled(place: DaemonPlace) -> None:
    """From a line in a transcript to the answer of a recall; both branches are there once."""
    file = place.pi / "--home-robin-demo--" / pi_file_name()
    place.start()
    assert f"waiting for {place.pi}" in turnmark(place, "status")
    said = (
        pi_user("aaaa0001", None, "I moved from Oslo to Bergen in May.", 1),
        pi_user("aaaa0002", "aaaa0001", "我喜欢黑咖啡。", 2),
        pi_user("aaaa0003", "aaaa0001", "I prefer tabs over spaces.", 3),
    )
    async with place.connect() as client, client.subscribe(types=["TipMoved"]) as events:
        for records in ((pi_header(), *said[:2]), said[2:]):
            append(file, lines(*records))
            event = await next_move(events)
            assert (event.session, event.old) == (PI_SESSION, None)
    assert_recalled(place, "3 turns", place.pi, place.pi)
    place.stop()


@pytest.mark.anyio
async def test_what_hermes_writes_is_followed_taken_back_and_recalled(place: DaemonPlace) -> None:
    """From a row of its database to the answer of a recall; what is rewound is not recalled."""
    place.start()
    assert f"waiting for {place.hermes}" in turnmark(place, "status")
    async with place.connect() as client, client.subscribe(types=["TipMoved"]) as events:
        hermes = HermesStore(place.hermes / "state.db")
        session = hermes.begin("20260921_101500_a1b2c3")
        hermes.say(session, "I moved from Oslo to Bergen in May.")
        event = await next_move(events)
        assert (event.session, event.old) == (session, None)
        row = hermes.say(session, "我喜欢黑咖啡。")
        await next_move(events)
        hermes.rewind(session, row)
        event = await next_move(events)
        assert event.cause == "rewind"
    assert_recalled(place, "2 turns", place.hermes, place.hermes)
    hermes.close()
    place.stop()


@pytest.mark.anyio
async def test_what_openclaw_writes_is_followed_and_recalled(place: DaemonPlace) -> None:
    """From a row in its database to the answer of a recall; imported as well, it is there once."""
    gateway = Gateway(place.openclaw / "agents" / "main" / "agent" / NAME)
    session = gateway.begin()
    place.start()
    async with place.connect() as client, client.subscribe(types=["TipMoved"]) as events:
        said = gateway.user("I moved from Oslo to Bergen in May.")
        event = await next_move(events)
        assert (event.session, event.new) == (session, said)
    assert_recalled(place, "1 turn", place.openclaw, place.openclaw)
    gateway.close()
    place.stop()


@pytest.mark.anyio
async def test_what_opencode_writes_is_followed_and_recalled(place: DaemonPlace) -> None:
    """From a row of its database to the answer of a recall; a fork adds its own only."""
    place.start()
    assert f"waiting for {place.opencode.parent}" in turnmark(place, "status")
    async with place.connect() as client, client.subscribe(types=["TipMoved"]) as events:
        with closing(Opencode(place.opencode)) as program:
            session = program.open("a")
            program.exchange(session, "I moved from Oslo to Bergen in May.", "Noted: Bergen.")
            fork = program.fork(session, "b")
            program.exchange(fork, "我喜欢黑咖啡。", "好的。")
        with anyio.fail_after(SECONDS):
            async for event in events:
                if isinstance(event, TipMoved) and event.session == fork:
                    branch = await client.call("session.branch", {"session": fork})
                    if [turn["text"] for turn in branch["turns"]][2:] == [
                        "我喜欢黑咖啡。",
                        "好的。",
                    ]:
                        break
    assert_recalled(place, "4 turns", place.opencode.parent, place.opencode)
    place.stop()


def test_a_night_begins_with_a_look_at_all_files(place: DaemonPlace, projects: Path) -> None:
    """Law 10: what was written a moment before, or while events were lost, is in that night."""
    place.start()
    with place.connect_sync() as client:
        for number in range(3):
            session = SESSION[:-1] + str(number)
            said = user(f"u{number}", None, 0, f"Bergen {number}", sessionId=session)
            append(projects / "-demo" / f"{session}.jsonl", lines(said))
            assert client.call("memory.organize")["owed"] == 0
            assert client.call("session.branch", {"session": session})["turns"][0]["marks"]
    place.stop()


@pytest.mark.anyio
@pytest.mark.parametrize("is_link", [False, True], ids=["as given", "through a link"])
async def test_a_models_own_session_brings_no_turn(
    place: DaemonPlace, projects: Path, *, is_link: bool
) -> None:
    """Law 15: turnmark's writer is an agent whose files lie beside all others."""
    state = place.state
    if is_link:
        state = place.root / "disk" / "state"
        state.mkdir(parents=True, mode=0o700)
        place.state.symlink_to(state)
    own = state / "writer" / "job-1"
    other = SESSION[:-1] + "2"
    append(
        projects / "-writer" / f"{other}.jsonl",
        lines(
            user("w1", None, 0, "Distil this.", cwd=str(own), sessionId=other),
            answer("w2", "w1", 1, "- Robin lives in Bergen.", cwd=str(own), sessionId=other),
            hook("w3", "w2", 2),
        ),
    )
    side = {"isSidechain": True, "agentId": "a1", "cwd": "/elsewhere", "sessionId": other}
    agent = projects / "-writer" / other / "subagents" / "agent-a1.jsonl"
    append(agent, lines(user("w4", None, 1, "Look there", **side)))
    place.start()
    append(projects / "-demo" / f"{SESSION}.jsonl", lines(user("u1", None, 0, "Hello")))
    wanted = {
        "turns": {"u1": [None, "user", "turn", b"Hello", 1, 0, None]},
        "tips": [(SESSION, "u1")],
        "heads": [(SESSION, "u1", None, "/home/robin/demo")],
    }
    await wait_for(place, wanted)
    turnmark(place, "import", projects, "--state", place.state, "--no-flush")
    await wait_for(place, wanted)
    assert status(place)["bytes_done"] == status(place)["bytes_total"]
    place.stop()


@pytest.mark.anyio
async def test_a_project_may_be_kept_out_by_a_rule(place: DaemonPlace, projects: Path) -> None:
    """Nothing of it is stored, while another is followed."""
    rule = '[[rules]]\nmatch = { project = "/home/robin/secret" }\nmemory = "off"\n'
    place.configure(idle_minutes=QUIET_MINUTES, more=rule)
    other = SESSION[:-1] + "2"
    hushed = user("s1", None, 0, "Hush", cwd="/home/robin/secret/deep", sessionId=other)
    append(projects / "-secret" / f"{other}.jsonl", lines(hushed))
    place.start()
    append(projects / "-demo" / f"{SESSION}.jsonl", lines(user("u1", None, 0, "Hello")))
    wanted = {
        "turns": {"u1": [None, "user", "turn", b"Hello", 1, 0, None]},
        "tips": [(SESSION, "u1")],
        "heads": [(SESSION, "u1", None, "/home/robin/demo")],
    }
    await wait_for(place, wanted)
    place.stop()


@pytest.mark.parametrize("ending", ["db", "sqlite", "sqlite3"])
def test_a_database_is_told_of_by_any_name_that_one_may_have(ending: str) -> None:
    """By its log, and by its file; not by the memory that readers of it change."""
    name = f"profiles/office/mine.{ending}"
    assert is_of_transcripts(name)
    assert is_of_transcripts(f"{name}-wal")
    assert not is_of_transcripts(f"{name}-shm")


@pytest.mark.parametrize("setting", ["off", "a path"])
def test_the_configuration_says_where_and_whether(place: DaemonPlace, setting: str) -> None:
    """A place that is not there yet is waited for; off is off."""
    elsewhere = place.root / "elsewhere"
    said = "off" if setting == "off" else str(elsewhere)
    place.configure(more=f'[transcripts]\nclaude-code = "{said}"\n')
    place.start()
    if setting == "off":
        assert status(place) == {"state": "off"}
    else:
        assert status(place)["path"] == said
        assert f"waiting for {said}" in turnmark(place, "status")
    place.stop()
