"""Tests of `session_store/transcripts/opencode/database.py`: a tail comes to an import's result."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest

from session_store.stage import Stage
from session_store.transcripts import tailing
from session_store.transcripts.agents import ends_of
from session_store.transcripts.opencode_program import WRITTEN, Opencode
from session_store.transcripts.opencode_stores import Files, NewOpencode, write
from session_store.transcripts.tailing import (
    IMPATIENT,
    PATIENT,
    Dag,
    dag_of,
    import_files,
    imported,
)
from turnmark_session_store.model import MemoryMode
from turnmark_session_store.store import SessionStore
from turnmark_session_store.transcripts.database_file import read_database
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.live import Patience
from turnmark_session_store.transcripts.opencode.database import OpencodeDatabaseReader
from turnmark_session_store.transcripts.opencode.reader import OpencodeReader
from turnmark_session_store.transcripts.opencode.storage import OpencodeStorages, StorageTail

OPENCODE = OpencodeReader()
# So long ago that an import waits for nothing, and a patient tail for everything.
_LATELY_MS = 1_000_000


class Tailed(tailing.Tailed):
    """A store and a tail on a directory of databases; every look is asked for."""

    def __init__(self, place: Path, root: Path, **more: Any) -> None:
        super().__init__(place, root, follow=self._follow, **more)
        self._undo_seconds = 6_000.0

    def renew(self, patience: Patience = PATIENT, *, undo_seconds: float = 6_000.0) -> None:
        """Puts another tail in the place of this one, as a new process would."""
        self._undo_seconds = undo_seconds
        super().renew(patience)

    def _follow(
        self, store: SessionStore, root: Path, patience: Patience, **more: Any
    ) -> DatabaseTail:
        reader = OpencodeDatabaseReader(patience, undo_seconds=self._undo_seconds)
        return DatabaseTail(store, reader, root, rest_per_work=0.0, **more)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Opencode]:
    """The program, with an empty database."""
    running = Opencode(
        tmp_path / "opencode" / "opencode.db", now=round(time.time() * 1000) - _LATELY_MS, tick=1
    )
    yield running
    running.close()


@pytest.fixture
async def tailed(program: Opencode, place: Path) -> AsyncIterator[Tailed]:
    """A store and a tail on the program's directory."""
    async with Tailed(place / "sessions.db", program.path.parent) as made:
        yield made


def log_of(program: Opencode) -> Path:
    """Where the program writes first."""
    return program.path.with_name(program.path.name + "-wal")


@pytest.mark.anyio
async def test_what_the_program_wrote_comes_to_what_an_import_gives(
    tmp_path: Path, place: Path
) -> None:
    """Read once, and not again by a process that starts later."""
    root = tmp_path / "opencode"
    root.mkdir()
    (root / "opencode.db").write_bytes(WRITTEN.read_bytes())
    async with Tailed(place / "a.db", root) as tailed:
        await tailed.settle()
        found, seq = await tailed.dag(), tailed.stage.seq
        assert found == await imported(place / "b.db", [WRITTEN], OPENCODE)
        assert (len(found["turns"]), len(found["tips"])) == (17, 4)
        tailed.renew()
        await tailed.settle()
        await import_files(tailed.stage, [WRITTEN], OPENCODE)
        assert (await tailed.dag(), tailed.stage.seq) == (found, seq)


@pytest.mark.anyio
async def test_an_answer_is_a_turn_when_it_is_complete(program: Opencode, tailed: Tailed) -> None:
    """Not while it streams in, and never in pieces; what follows it waits as well."""
    session = program.open("a")
    program.prompt(session, "Where do I live?")
    await tailed.settle()
    assert await tailed.said() == []
    told = program.begin(session, role="assistant")
    part = program.part(told, type="text", text="")
    await tailed.settle(program.path)
    assert await tailed.said() == ["Where do I live?"]
    for text in ("In", "In Berg", "In Bergen."):
        program.stream(part, text=text)
        await tailed.settle(log_of(program))
        assert await tailed.said() == ["Where do I live?"]
    program.prompt(session, "Thanks")
    await tailed.settle(log_of(program))
    assert tailed.tail.status().held == 2
    program.finish(told)
    program.begin(session, role="assistant")
    await tailed.settle(log_of(program))
    assert await tailed.said() == ["Where do I live?", "In Bergen.", "Thanks"]


@pytest.mark.anyio
async def test_a_piece_of_an_answer_is_a_turn_when_it_says_so(
    program: Opencode, tailed: Tailed
) -> None:
    """A call may take an hour; what is said after it takes the place of what was said before."""
    session = program.open("a")
    program.prompt(session, "Where do I live?")
    told = program.begin(session, role="assistant")
    first = program.part(told, type="text", text="I look", time={"start": 1})
    await tailed.settle(program.path)
    assert await tailed.said() == ["Where do I live?"]
    program.stream(first, text="I look it up.", time={"start": 1, "end": 2})
    program.part(told, type="tool", tool="grep", callID="c", state={"status": "running"})
    await tailed.settle(program.path)
    assert await tailed.said() == ["Where do I live?", "I look it up."]
    second = program.part(told, type="text", text="In", time={"start": 3})
    await tailed.settle(program.path)
    assert await tailed.said() == ["Where do I live?", "I look it up."]
    assert (await tailed.dag())["heads"][0][1] == _key(await tailed.dag(), "I look it up.")
    program.stream(second, text="In Bergen.", time={"start": 3, "end": 4})
    program.prompt(session, "Thanks")
    program.finish(told)
    program.begin(session, role="assistant")
    await tailed.settle(program.path)
    found = await tailed.dag()
    assert sorted(await tailed.said()) == [
        "I look it up.\n\nIn Bergen.",
        "Thanks",
        "Where do I live?",
    ]
    assert ends_of(found, found)["tips"] == [_key(found, "Thanks")]


@pytest.mark.anyio
async def test_a_prompt_waits_for_its_parts_until_it_was_quiet(
    program: Opencode, tailed: Tailed
) -> None:
    """Each part is a row of its own; after half a second no more is expected."""
    session = program.open("a")
    asked = program.prompt(session, "Look at this.")
    await tailed.settle(program.path)
    assert tailed.tail.status().held == 1
    program.part(asked, type="text", text="And at that.")
    tailed.renew(IMPATIENT)
    await tailed.settle(program.path)
    assert await tailed.said() == ["Look at this.\n\nAnd at that."]


@pytest.mark.anyio
async def test_what_nobody_completes_is_given_out_after_a_minute(
    program: Opencode, tailed: Tailed
) -> None:
    """The program died."""
    session = program.open("a")
    program.prompt(session, "Count")
    program.part(program.begin(session, role="assistant"), type="text", text="One, two")
    await tailed.settle(program.path)
    assert await tailed.said() == ["Count"]
    tailed.renew(IMPATIENT)
    await tailed.settle()
    assert await tailed.said() == ["Count", "One, two"]


@pytest.mark.anyio
async def test_a_fork_adds_its_own_and_shares_the_rest(program: Opencode, tailed: Tailed) -> None:
    """Also while it is copied, and where its origin was placed long before."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    cut, _ = program.exchange(session, "three", "four")
    await tailed.settle(program.path)
    fork = program.fork(session, "b", before=cut)
    await tailed.settle(program.path)
    assert await tailed.said() == ["one", "two", "three", "four"]
    program.exchange(fork, "other three", "other four")
    tailed.renew()
    await tailed.settle(program.path)
    found = await tailed.dag()
    assert await tailed.said() == ["one", "two", "three", "four", "other three", "other four"]
    assert len(found["tips"]) == 2


@pytest.mark.anyio
async def test_a_fork_whose_origin_was_deleted_adds_nothing_twice(
    program: Opencode, tailed: Tailed
) -> None:
    """What the store holds of the origin stays, and the fork goes on from it."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    await tailed.settle(program.path)
    fork = program.fork(session, "b")
    program.delete(session)
    program.exchange(fork, "three", "four")
    tailed.renew()
    await tailed.settle(program.path)
    assert await tailed.said() == ["one", "two", "three", "four"]


@pytest.mark.anyio
async def test_what_is_undone_may_be_done_again_for_a_moment(
    program: Opencode, tailed: Tailed
) -> None:
    """Then the marker counts, and for good, whatever the program puts in again."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    cut, _ = program.exchange(session, "three", "four")
    await tailed.settle(program.path)
    program.revert(session, cut)
    await tailed.settle(program.path)
    assert (await tailed.said(), tailed.tail.status().held) == (["one", "two", "three", "four"], 1)
    program.unrevert(session)
    await tailed.settle(program.path)
    assert tailed.tail.status().held == 0
    program.revert(session, cut)
    tailed.renew(undo_seconds=0.0)
    await tailed.settle(program.path)
    assert await tailed.said() == ["one", "two"]
    program.unrevert(session)
    await tailed.settle(program.path)
    assert await tailed.said() == ["one", "two"]


@pytest.mark.anyio
async def test_a_process_that_saw_the_marker_knows_what_was_deleted_behind_it(
    program: Opencode, tailed: Tailed
) -> None:
    """An older version keeps no log of its sessions."""
    program.logs = False
    session = program.open("a")
    program.exchange(session, "one", "two")
    cut, _ = program.exchange(session, "secret", "noted")
    program.revert(session, cut)
    await tailed.settle(program.path)
    assert await tailed.said() == ["one", "two", "secret", "noted"]
    program.exchange(session, "other", "yes")
    await tailed.settle(program.path)
    found = await tailed.dag()
    assert await tailed.said() == ["one", "two", "other", "yes"]
    assert found["turns"][_key(found, "other")][0] == _key(found, "two")


@pytest.mark.anyio
async def test_a_part_that_was_undone_is_taken_out_of_an_answer(
    program: Opencode, tailed: Tailed
) -> None:
    """What it said with it goes, what it said before stands."""
    program.logs = False
    session = program.open("a")
    program.prompt(session, "one")
    told = program.begin(session, role="assistant")
    program.part(told, type="text", text="two")
    rest = program.part(told, type="text", text="and a half")
    program.finish(told)
    await tailed.settle(program.path)
    program.revert(session, told, rest)
    await tailed.settle(program.path)
    program.exchange(session, "three", "four")
    await tailed.settle(program.path)
    assert await tailed.said() == ["one", "two", "three", "four"]


@pytest.mark.anyio
async def test_what_was_deleted_before_the_next_look_is_taken_back_by_the_log(
    program: Opencode, tailed: Tailed
) -> None:
    """The marker came and went; the log tells what was removed, and with which words."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    cut, _ = program.exchange(session, "secret", "noted")
    await tailed.settle(program.path)
    program.revert(session, cut)
    program.exchange(session, "other", "yes")
    await tailed.settle(program.path)
    assert await tailed.said() == ["one", "two", "other", "yes"]


@pytest.mark.anyio
async def test_what_vanishes_without_a_record_stays(program: Opencode, tailed: Tailed) -> None:
    """A message, a session, and the whole database."""
    program.logs = False
    session, other = program.open("a"), program.open("b")
    _, last = program.exchange(session, "one", "two")
    program.exchange(other, "three", "four")
    await tailed.settle(program.path)
    program.remove(last)
    program.delete(other)
    await tailed.settle(program.path)
    program.path.unlink()
    await tailed.settle(program.path)
    tailed.renew()
    await tailed.settle()
    assert sorted(await tailed.said()) == ["four", "one", "three", "two"]


@pytest.mark.anyio
async def test_another_database_under_the_name_is_read_as_well(
    program: Opencode, tailed: Tailed
) -> None:
    """Moved away and begun anew; what it repeats is there already."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    await tailed.settle(program.path)
    program.close()
    program.path.rename(program.path.with_name("old"))
    other = Opencode(program.path, now=program.now)
    other.exchange(other.open("b"), "three", "four")
    await tailed.settle(program.path)
    assert await tailed.said() == ["one", "two", "three", "four"]
    other.close()


@pytest.mark.anyio
async def test_a_sub_agents_session_waits_for_the_call_that_began_it(
    program: Opencode, tailed: Tailed
) -> None:
    """Its caller may still say more; the task is no person's."""
    session = program.open("a")
    program.prompt(session, "Ask somebody")
    told = program.begin(session, role="assistant")
    program.part(told, type="text", text="I ask.", time={"start": 1, "end": 2})
    child = program.open("b", parent=session)
    program.call(told, child, "Find it")
    program.exchange(child, "Find it", "Found")
    await tailed.settle(program.path)
    assert await tailed.said() == ["Ask somebody", "I ask."]
    program.finish(told)
    await tailed.settle(program.path)
    found = await tailed.dag()
    assert sorted(await tailed.said()) == ["Ask somebody", "Find it", "Found", "I ask."]
    task = found["turns"][_key(found, "Find it")]
    assert (task[0], task[2], task[6]) == (None, "runtime", _key(found, "I ask."))


@pytest.mark.anyio
async def test_rows_of_2x_are_followed_as_well(tmp_path: Path, place: Path) -> None:
    """Written in place while they stream; forked, put back, deleted."""
    program = NewOpencode(tmp_path / "opencode.db", now=round(time.time() * 1000) - _LATELY_MS)
    async with Tailed(place / "a.db", tmp_path) as tailed:
        session = program.open("a")
        program.prompt(session, "one")
        told = program.answer(session, "t", done=False)
        await tailed.settle(program.path)
        assert await tailed.said() == ["one"]
        content = [{"type": "text", "text": "two"}]
        program.write(told, content=content)
        await tailed.settle(program.path)
        assert await tailed.said() == ["one"]
        program.write(told, time={"created": program.now, "completed": program.now})
        await tailed.settle(program.path)
        assert await tailed.said() == ["one", "two"]
        cut = program.prompt(session, "three")
        program.prompt(program.fork(session, "b", before=cut), "other three")
        await tailed.settle(program.path)
        assert await tailed.said() == ["one", "two", "three", "other three"]
        program.revert(session, cut)
        await tailed.settle(program.path)
        program.commit(session, cut)
        program.prompt(session, "last three")
        await tailed.settle(program.path)
        assert await tailed.said() == ["one", "two", "other three", "last three"]
    program.close()


@pytest.mark.anyio
async def test_files_of_old_versions_are_followed(tmp_path: Path, place: Path) -> None:
    """Each piece is written anew; a session that the database holds is left to it."""
    files = Files(tmp_path / "storage")
    session, moved = files.open("a"), files.open("b")
    files.say(moved, "user", "old")
    program = Opencode(tmp_path / "opencode.db")
    program.prompt(program.open("b"), "new")
    async with Stage(place / "a.db") as stage:

        async def said(*changed: Path, patience: Patience = PATIENT) -> list[str]:
            reader = OpencodeStorages(patience)
            tail = StorageTail(stage.store, reader, tmp_path, rest_per_work=0.0)
            tail.changed(changed)
            with anyio.fail_after(60):
                await tail.deal_with_all()
            return [turn[3].decode() for turn in (await dag_of(stage))["turns"].values()]

        files.say(session, "user", "one")
        told = files.say(session, "assistant", "t", time={"created": files.now})
        assert await said() == ["one"]
        write(files.folder_of(session, told) / "prt_0.json", {"type": "text", "text": "two"})
        assert await said() == ["one"]
        message = files.base / "message" / session / f"{told}.json"
        time_of = {"created": files.now, "completed": files.now}
        write(message, {"id": told, "role": "assistant", "time": time_of})
        assert await said(message) == ["one", "two"]
        seq = stage.seq
        assert await said() == ["one", "two"]
        assert stage.seq == seq
        files.say(session, "user", "three")
        assert await said(patience=IMPATIENT) == ["one", "two", "three"]
        child = files.open("c", parentID=session)
        files.say(child, "user", "Count")
        files.say(child, "assistant", "Done")
        assert await said(patience=IMPATIENT) == ["one", "two", "three", "Count", "Done"]
    program.close()


@pytest.mark.anyio
async def test_files_beside_those_of_sessions_cost_no_look(tmp_path: Path, place: Path) -> None:
    """What answers changed in the project is written to this day, in the same directory."""
    looks: list[Path] = []

    class Watched(OpencodeStorages):
        def look(self, base: Path) -> tuple[int, list[Conversation]]:
            looks.append(base.relative_to(tmp_path))
            return super().look(base)

    bases = [Path("storage"), Path("project", "p", "storage")]
    for number, base in enumerate(bases):
        files = Files(tmp_path / base)
        files.say(files.open(f"s{number}"), "user", "one")
    async with Stage(place / "a.db") as stage:
        tail = StorageTail(stage.store, Watched(PATIENT), tmp_path, rest_per_work=0.0)
        await tail.deal_with_all()
        assert sorted(looks) == sorted(bases)
        for base in bases:
            for name, found in (
                ("session_diff/ses_1.json", []),
                ("session/p/ses_1.json", [base]),
                ("message/ses_1", [base]),
                ("", [base]),
            ):
                looks.clear()
                tail.changed([tmp_path / base / name])
                await tail.deal_with_all()
                assert looks == found, name
        looks.clear()
        tail.changed([tmp_path / "project" / "p" / "log.json", tmp_path / "project"])
        await tail.deal_with_all()
        assert looks == []


@pytest.mark.anyio
async def test_sessions_that_must_not_be_remembered_are_left_out(
    program: Opencode, place: Path
) -> None:
    """With their sub-agents."""

    def memory_for(project: str | None, session: str) -> MemoryMode:
        del session
        return "off" if project == "/secret" else "on"

    secret = program.open("a", directory="/secret")
    program.exchange(secret, "one", "two")
    program.exchange(program.open("b", parent=secret), "task", "done")
    program.exchange(program.open("c"), "three", "four")
    async with Tailed(place / "a.db", program.path.parent, memory_for=memory_for) as tailed:
        await tailed.settle()
        assert await tailed.said() == ["three", "four"]


@pytest.mark.anyio
async def test_databases_of_all_channels_are_followed_and_nothing_beside_them(
    program: Opencode, tailed: Tailed
) -> None:
    """`opencode-beta.db` is one; a copy with another name is none."""
    other = Opencode(program.path.with_name("opencode-beta.db"), now=program.now + 500)
    copy = Opencode(program.path.with_name("backup.db"), now=program.now + 900)
    for number, one in enumerate((program, other, copy)):
        one.exchange(one.open(f"s{number}"), f"question {number}", f"answer {number}")
    await tailed.settle()
    assert sorted(await tailed.said()) == ["answer 0", "answer 1", "question 0", "question 1"]
    assert tailed.tail.status().files == 2
    other.close()
    copy.close()


@pytest.mark.anyio
async def test_a_database_that_is_named_itself_is_the_only_one(
    program: Opencode, place: Path
) -> None:
    """OPENCODE_DB may have any name."""
    mine = Opencode(program.path.with_name("mine.db"))
    mine.exchange(mine.open("a"), "one", "two")
    program.exchange(program.open("b"), "three", "four")
    async with Tailed(place / "a.db", mine.path) as tailed:
        await tailed.settle()
        assert await tailed.said() == ["one", "two"]
        assert tailed.tail.places == (mine.path.parent,)
    mine.close()


@pytest.mark.anyio
async def test_a_database_whose_tables_are_unknown_is_told_of(
    program: Opencode, tailed: Tailed
) -> None:
    """The released program's alone: anything may be called like that of another channel."""
    program.exchange(program.open("a"), "one", "two")
    program.path.with_name("opencode-new.db").touch()
    other = apsw.Connection(str(program.path.with_name("opencode-tokens.db")))
    other.execute("CREATE TABLE token (count)")
    await tailed.settle()
    assert (tailed.tail.status().files, tailed.tail.status().last_error) == (3, None)
    for table in ("part", "message"):
        program.db.execute(f"ALTER TABLE {table} RENAME TO {table}_3")
    await tailed.settle(program.path)
    assert "opencode may be newer" in (tailed.tail.status().last_error or "")
    assert await tailed.said() == ["one", "two"]
    other.close()


def test_only_what_changed_is_read_again(program: Opencode) -> None:
    """A thousand other sessions cost a look at counts."""
    quiet, busy = program.open("a"), program.open("b")
    program.exchange(quiet, "one", "two")
    program.exchange(busy, "three", "four")
    reader = OpencodeDatabaseReader(PATIENT)
    before = {one.name: one.fingerprint for one in _conversations(program, reader)}
    told = program.begin(busy, role="assistant")
    part = program.part(told, type="text", text="")
    seen = [before]
    changes: list[Callable[[], object]] = [
        lambda: program.stream(part, text="fi"),
        lambda: program.finish(told),
        lambda: program.revert(busy, told),
        lambda: program.exchange(busy, "six", "seven"),
    ]
    for change in changes:
        change()
        seen.append({one.name: one.fingerprint for one in _conversations(program, reader)})
    assert all(one[quiet] == before[quiet] for one in seen)
    assert len({one[busy] for one in seen}) == len(seen)
    program.archive(busy)
    after = {one.name: one.fingerprint for one in _conversations(program, reader)}
    assert after == seen[-1], "an archived session is remembered as any other"


def _conversations(program: Opencode, reader: OpencodeDatabaseReader) -> list[Any]:
    return list(read_database(program.path, reader.conversations))


def _key(dag: Dag, text: str) -> str:
    return next(key for key, turn in dag["turns"].items() if turn[3].decode() == text)
