"""A real daemon, really killed between two steps: nothing acknowledged is lost or written twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import anyio
import apsw
import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from laws.soundness import store_faults, times_settled, workspace_faults
from turnmark.client import Memory
from turnmark.errors import ConnectionLost, DaemonNotRunning
from turnmark_memory.tokens import load_counter

pytestmark = pytest.mark.anyio

BEFORE_JOURNAL = (
    "batch.claimed",
    "batch.archived",
    "batch.written",
    "install.before_journal",
)
AFTER_JOURNAL = (
    "install.journalled",
    "install.recorded",
    "install.manifest",
    "install.staged",
    "install.created",
    "install.flushed",
    "install.file",
    "install.file=kill@2",
    "install.file=kill@3",
    "install.revision",
    "install.in_place",
)
AFTER_SETTLING = ("install.settled", "install.cleared", "install.indexed")
AFTER_ALL = ("core.rendered=kill@2", "core.replaced=kill@2")
"""The first visit is the start's: an empty page."""

COMMITS = tuple(
    f"store.{place}=kill@{visit}"
    for place in ("before_commit", "after_commit")
    for visit in (13, 15)
)
"""More than a start commits by itself, fewer than with what is said and written after it."""

SAID: tuple[tuple[str, str, str, str | None], ...] = (
    # session, id, words, after
    ("porto", "p1", "I moved from Oslo to Porto in May 2026.", None),
    ("porto", "p2", "That sounds lovely.", "p1"),
    ("porto", "p3", "My daughter Ida goes to the school at Foz.", "p2"),
    ("porto", "p4", "I have decided to keep the flat in Oslo.", "p2"),
    ("porto", "p5", "My bank is called Sparebanken.", "p4"),
    ("北京", "b1", "我叫小明，我决定以后用 Python 写后端服务。", None),
    ("北京", "b2", "好的。", "b1"),
    ("北京", "b3", "我的猫叫豆豆，今年三岁。", "b2"),
)


class Talk:
    """Appends the conversation and keeps what was acknowledged; bears the daemon's death."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()

    async def go_on(self, memory: Memory) -> None:
        """Appends all that is not acknowledged yet, each with the same key whenever it is sent."""
        for session, turn, text, after in SAID:
            if turn not in self.acknowledged:
                answer = await memory.append(
                    session,
                    role="assistant" if turn in {"p2", "b2"} else "user",
                    text=text,
                    id=turn,
                    after=after,
                    key=f"k-{turn}",
                )
                assert answer["turns"] == [turn]
                self.acknowledged.add(turn)


NO_TRANSCRIPTS = "".join(
    f'{agent} = "off"\n'
    for agent in ("claude-code", "codex", "hermes", "openclaw", "opencode", "pi")
)


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """A place whose branches fall silent after a third of a second.

    It follows no agent: their tails commit when they like, and commits are counted here.
    """
    with daemon_place(idle_minutes=0.005, config=f"[transcripts]\n{NO_TRANSCRIPTS}") as made:
        yield made


def _term(failpoint: str) -> str:
    return failpoint if "=" in failpoint else f"{failpoint}=kill"


async def _die_talking(place: DaemonPlace, failpoint: str, talk: Talk) -> None:
    """Talks and flushes until the daemon dies at the failpoint, and nowhere else."""
    place.start(failpoint=_term(failpoint))
    with anyio.fail_after(60):
        with pytest.raises(ConnectionLost):
            await _talk_and_flush(place, talk)
    assert place.wait_end() == -signal.SIGKILL


async def _talk_and_flush(place: DaemonPlace, talk: Talk) -> None:
    async with place.connect() as memory:
        await talk.go_on(memory)
        await memory.flush()


async def _wait_written(memory: Memory) -> None:
    """Waits, without asking for anything to be written, until nothing is owed."""
    async with memory.subscribe(types=["TurnsWritten"], since=0) as events:
        while (await memory.owed())["turns"]:
            await anext(events)


async def _live_on(place: DaemonPlace, talk: Talk) -> None:
    """Restarts without the failpoint, says the rest, waits for the worker, and proves the laws."""
    place.start()
    with anyio.fail_after(60):
        async with place.connect() as memory:
            await _assert_kept(memory, talk)
            await talk.go_on(memory)
            await _wait_written(memory)
            # Joins what still runs behind the settling; nothing is left for it to write.
            assert (await memory.flush())["turns"] == 0
            hits = await memory.recall("Sparebanken", session="porto", kinds=["block"])
            assert "Sparebanken" in hits[0]["text"]
    place.stop()
    _assert_sound(place)


async def _assert_kept(memory: Memory, talk: Talk) -> None:
    """Everything that was acknowledged is in the store, in its place."""
    found: dict[str, Any] = {}
    for session in ("porto", "北京"):
        if any(said[0] == session and said[1] in talk.acknowledged for said in SAID):
            for branch in (await memory.show_session(session))["branches"]:
                page = await memory.branch(session, branch["tip"])
                found |= {turn["id"]: turn for turn in page["turns"]}
    assert talk.acknowledged <= set(found)
    for _, turn, text, after in SAID:
        if turn in talk.acknowledged:
            assert (found[turn]["text"], found[turn]["predecessor"]) == (text, after)


def _assert_sound(place: DaemonPlace) -> None:
    database = place.state / "sessions.db"
    assert store_faults(database) == []
    assert workspace_faults(place.workspace, load_counter().count) == []
    again = {turn: times for turn, times in times_settled(database).items() if times != 1}
    assert again == {}, "turns were settled more than once"


def _journalled(place: DaemonPlace) -> set[int]:
    """The turns of installs that are journalled and not ended, as the dead daemon left them."""
    db = apsw.Connection(str(place.state / "sessions.db"))
    try:
        return {
            turn
            for (turn,) in db.execute(
                "SELECT turn FROM batch_turn JOIN batch ON batch.id = batch"
                " WHERE install IS NOT NULL AND closed_ms IS NULL"
            )
        }
    finally:
        db.close()


def _batches_of(place: DaemonPlace, turns: set[int]) -> dict[int, int]:
    """In how many batches, and so how often before a writer, each turn was."""
    db = apsw.Connection(str(place.state / "sessions.db"))
    try:
        rows = db.execute("SELECT turn, count(*) FROM batch_turn GROUP BY turn")
        return {turn: times for turn, times in rows if turn in turns}
    finally:
        db.close()


@pytest.mark.parametrize("failpoint", [*COMMITS, *BEFORE_JOURNAL])
async def test_keeps_and_writes_all_after_a_death_before_the_journal(
    place: DaemonPlace, failpoint: str
) -> None:
    """What was acknowledged is there; what is owed is written, once, though nobody asks."""
    talk = Talk()
    await _die_talking(place, failpoint, talk)
    assert _journalled(place) == set()
    await _live_on(place, talk)


@pytest.mark.parametrize("failpoint", AFTER_JOURNAL)
async def test_finishes_a_journalled_install_without_asking_the_writer(
    place: DaemonPlace, failpoint: str
) -> None:
    """The next start rolls the install forward from its journal; its turns meet no writer again."""
    talk = Talk()
    await _die_talking(place, failpoint, talk)
    journalled = _journalled(place)
    assert journalled
    asked = _batches_of(place, journalled)
    await _live_on(place, talk)
    assert _batches_of(place, journalled) == asked
    assert len(place.logged("install_rolled_forward")) == 1


@pytest.mark.parametrize("failpoint", [*AFTER_SETTLING, *AFTER_ALL])
async def test_makes_what_is_derived_again_after_a_death_behind_the_marks(
    place: DaemonPlace, failpoint: str
) -> None:
    """Index, staging directory and core page are in step after the start; nothing is redone."""
    talk = Talk()
    await _die_talking(place, failpoint, talk)
    assert _journalled(place) == set()
    await _live_on(place, talk)
    assert place.logged("install_rolled_forward") == []


@pytest.mark.parametrize(
    ("failpoint", "again"),
    [
        ("install.journalled", "start.taken_over"),
        ("install.journalled", "install.staged"),
        ("install.file", "install.file"),
        ("install.file", "install.in_place"),
        ("install.revision", "install.settled"),
        ("install.in_place", "install.cleared"),
        ("install.in_place", "start.rolled_forward"),
        ("install.settled", "core.rendered"),
        ("batch.archived", "start.rolled_forward"),
    ],
)
async def test_survives_a_death_in_the_middle_of_the_recovery(
    place: DaemonPlace, failpoint: str, again: str
) -> None:
    """A recovery that dies is recovered by the next start; still no writer is asked twice."""
    talk = Talk()
    await _die_talking(place, failpoint, talk)
    journalled = _journalled(place)
    asked = _batches_of(place, journalled)
    place.begin(failpoint=_term(again))
    assert not place.wait_ready()
    assert place.wait_end() == -signal.SIGKILL
    await _live_on(place, talk)
    assert _batches_of(place, journalled) == asked


async def test_dies_at_the_last_of_many_recoveries_and_still_comes_back(
    place: DaemonPlace,
) -> None:
    """Five deaths in a row, each a step further, cost nothing."""
    talk = Talk()
    await _die_talking(place, "install.journalled", talk)
    for again in ("install.recorded", "install.created", "install.file", "install.revision"):
        place.begin(failpoint=_term(again))
        assert not place.wait_ready()
        assert place.wait_end() == -signal.SIGKILL
    await _live_on(place, talk)
    assert len(place.logged("install_rolled_forward")) == 5


async def test_writes_after_a_restart_what_fell_silent_while_the_daemon_was_down() -> None:
    """A deadline that passed meanwhile is due at the start."""
    with daemon_place(idle_minutes=0.005) as place:
        talk = Talk()
        place.start(failpoint="batch.claimed=kill")
        with anyio.fail_after(60), pytest.raises(ConnectionLost):
            await _talk_and_wait(place, talk)
        assert place.wait_end() == -signal.SIGKILL
        await _live_on(place, talk)
        assert place.logged("stopping")[0]["drain"] is False


async def _talk_and_wait(place: DaemonPlace, talk: Talk) -> None:
    async with place.connect() as memory:
        await talk.go_on(memory)
        await _wait_written(memory)


async def test_writes_after_a_restart_at_a_deadline_that_is_still_ahead() -> None:
    """The deadline of before the death holds: not at once, and without a new move."""
    with daemon_place(idle_minutes=0.05) as place:
        talk = Talk()
        place.start()
        async with place.connect() as memory:
            await talk.go_on(memory)
            deadlines = await _deadlines(memory)
        place.kill()
        place.start()
        with anyio.fail_after(60):
            async with place.connect() as memory:
                async with memory.subscribe(types=["TipIdle"], since=0) as silences:
                    first = await anext(silences)
                assert first.at >= min(deadlines)
                assert await _deadlines(memory) <= deadlines
                await _wait_written(memory)
                await memory.flush()
        place.stop()
        _assert_sound(place)


async def _deadlines(memory: Memory) -> set[str]:
    shown = [await memory.show_session(session) for session in ("porto", "北京")]
    return {
        branch["idle_at"] for one in shown for branch in one["branches"] if branch.get("idle_at")
    }


async def test_writes_after_a_restart_a_batch_that_was_full_when_the_daemon_died() -> None:
    """A full batch does not wait for silence, before the death or after it."""
    config = "trigger_tokens = 40\n"
    with daemon_place(idle_minutes=60, config=config) as place:
        place.start(failpoint="batch.claimed=kill")
        with anyio.fail_after(60), pytest.raises(ConnectionLost):
            await _say_much(place)
        assert place.wait_end() == -signal.SIGKILL
        place.start()
        with anyio.fail_after(60):
            async with place.connect() as memory:
                async with memory.subscribe(types=["TurnsWritten"], since=0) as events:
                    written = await anext(events)
                assert written.turns[0] == "t0"
                assert len(written.turns) >= 3
                await memory.flush()
        place.stop()
        _assert_sound(place)


async def _say_much(place: DaemonPlace) -> None:
    async with place.connect() as memory:
        for number in range(100):
            text = f"My machine number {number} is called host-{number} and stands in Porto."
            await memory.append("much", role="user", text=text, id=f"t{number}")


class _Chatterbox:
    """One client that says one thing after the other, each with a key, until the daemon dies."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.answers: dict[str, dict[str, Any]] = {}
        self.unanswered: str | None = None
        self._number = 0

    async def talk(self, place: DaemonPlace, died: anyio.Event) -> None:
        """Talks on its own session, and forks now and then."""
        with suppress(ConnectionLost, DaemonNotRunning):
            async with place.connect() as memory:
                while not died.is_set():
                    await self.say(memory, str(self._number))
                    self._number += 1

    async def say(self, memory: Memory, number: str) -> dict[str, Any]:
        """Appends the turn of that number; sent again it is the same request."""
        self.unanswered = number
        # Every fifth turn begins a fork after the very first one.
        first = self.answers.get("0")
        after = {"after": first["turns"][0]} if first and int(number) % 5 == 4 else {}
        answer: dict[str, Any] = await memory.append(
            self.name, role="user", text=f"{self.name} 说 {number}", key=f"k{number}", **after
        )
        self.answers[number] = answer
        self.unanswered = None
        return answer

    async def check(self, memory: Memory) -> None:
        """All that was answered is there; a retry answers what the first try did, and adds none."""
        for number, answer in list(self.answers.items()):
            again = await self.say(memory, number)
            assert again == {**answer, "new": 0}
        unknown = self.unanswered or str(len(self.answers))
        first = await self.say(memory, unknown)
        assert (await self.say(memory, unknown))["turns"] == first["turns"]
        texts = await self._texts(memory)
        assert sorted(texts) == sorted(f"{self.name} 说 {number}" for number in self.answers)

    async def _texts(self, memory: Memory) -> list[str]:
        found: dict[str, str] = {}
        for branch in (await memory.show_session(self.name))["branches"]:
            cursor: str | None = None
            while True:
                page = await memory.branch(self.name, branch["tip"], cursor=cursor)
                found |= {turn["id"]: turn["text"] for turn in page["turns"]}
                cursor = page.get("next")
                if cursor is None:
                    break
        return list(found.values())


async def _kill_among_eight(seed: int) -> None:
    """Eight clients talk; the daemon is killed after a random number of answers; all is checked."""
    chance = random.Random(seed)
    clients = [_Chatterbox(f"talker-{number}") for number in range(8)]
    with daemon_place(idle_minutes=chance.choice([0.0005, 0.002, 60])) as place:
        place.start()
        wanted = chance.randrange(1, 400)
        died = anyio.Event()
        with anyio.fail_after(100):
            async with anyio.create_task_group() as tasks:
                for client in clients:
                    tasks.start_soon(client.talk, place, died)
                async with place.connect() as memory:
                    async with memory.subscribe(types=["TipMoved"], since=0) as moves:
                        for _ in range(wanted):
                            await anext(moves)
                    place.kill()
                    died.set()
            place.start()
            async with place.connect() as memory:
                for client in clients:
                    if client.answers:
                        await client.check(memory)
                await memory.flush()
        place.stop()
        _assert_sound(place)


@pytest.mark.parametrize("seed", range(6))
async def test_keeps_what_eight_clients_were_told_is_kept(seed: int) -> None:
    """Acknowledged turns outlive kill -9; a retry by key gives the same ids and one turn."""
    await _kill_among_eight(seed)


@pytest.mark.soak
async def test_keeps_what_clients_were_told_through_many_kills() -> None:
    """Sixty kills at least, at random moments, and more while time is left."""
    end = time.monotonic() + float(os.environ.get("TURNMARK_SOAK_SECONDS", "60"))
    seed = 1_000
    while seed < 1_060 or time.monotonic() < end:
        await _kill_among_eight(seed)
        seed += 1


@pytest.mark.parametrize(
    "failpoint",
    ["erase.forgotten", "erase.slice", "install.journalled=kill@2", "install.settled=kill@2"],
)
async def test_ends_a_forgetting_that_died_in_the_middle(failpoint: str) -> None:
    """A deleted session's words are in no file after the restart, whoever asks or does not."""
    with daemon_place(idle_minutes=60) as place:
        place.start(failpoint=_term(failpoint))
        with anyio.fail_after(60), pytest.raises(ConnectionLost):
            await _keep_and_delete(place)
        assert place.wait_end() == -signal.SIGKILL
        place.start()
        with anyio.fail_after(60):
            async with place.connect() as memory:
                await memory.append("other", role="user", text="My bank is called Sparebanken.")
                await memory.flush()
                assert await memory.recall("Which school does Ida go to?", kinds=["block"]) == []
        place.stop()
        files = [file for file in place.root.rglob("*") if file.is_file() and file.name != "log"]
        left = [str(file) for file in files if b"Foz" in file.read_bytes()]
        assert left == []
        assert store_faults(place.state / "sessions.db") == []
        assert workspace_faults(place.workspace, load_counter().count) == []


async def _keep_and_delete(place: DaemonPlace) -> None:
    async with place.connect() as memory:
        await memory.append("gone", role="user", text="My daughter Ida goes to the school at Foz.")
        await memory.flush()
        await memory.delete("gone")


@pytest.mark.parametrize("failpoint", ["import.begun", "import.placed"])
async def test_takes_an_import_again_that_died_in_the_middle(
    place: DaemonPlace, failpoint: str
) -> None:
    """The same lines sent again complete it; every turn is there and written once."""
    talk = Talk()
    place.start()
    with anyio.fail_after(60):
        async with place.connect() as memory:
            await talk.go_on(memory)
            lines = [line async for line in memory.export("porto")]
    place.stop()
    with daemon_place(idle_minutes=60) as there:
        there.start(failpoint=_term(failpoint))
        with anyio.fail_after(60), pytest.raises(ConnectionLost):
            await _bring(there, lines)
        assert there.wait_end() == -signal.SIGKILL
        there.start()
        with anyio.fail_after(60):
            await _bring(there, lines)
            async with there.connect() as memory:
                shown = await memory.show_session("porto")
                assert len(shown["branches"]) == 2
                await memory.flush(backlog=True)
                assert (await memory.owed())["turns"] == 0
        there.stop()
        _assert_sound(there)


async def _bring(place: DaemonPlace, lines: list[str]) -> None:
    async with place.connect() as memory:
        await memory.import_lines(lines)


@pytest.mark.parametrize(
    "failpoint", ["night.flushed", "night.joined", "night.reported", "night.said"]
)
async def test_loses_nothing_when_a_night_dies(place: DaemonPlace, failpoint: str) -> None:
    """What the night wrote stands; what it did not is done after the restart."""
    talk = Talk()
    place.start(failpoint=_term(failpoint))
    with anyio.fail_after(60), pytest.raises(ConnectionLost):
        await _talk_and_organize(place, talk)
    assert place.wait_end() == -signal.SIGKILL
    await _live_on(place, talk)


async def _talk_and_organize(place: DaemonPlace, talk: Talk) -> None:
    async with place.connect() as memory:
        await talk.go_on(memory)
        await memory.organize()
