"""Tests of opencode's other stores: tables of 2.x, of the first version, files and exports."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest

from session_store.stage import Stage
from session_store.transcripts.opencode_program import (
    EXPORTED,
    WRITTEN,
    Opencode,
    edges,
    read,
    said,
    words,
)
from session_store.transcripts.opencode_stores import (
    Files,
    NewOpencode,
    old_text,
    write,
    write_first_version,
)
from session_store.transcripts.spoiling import spoil
from session_store.transcripts.tailing import (
    IMPATIENT,
    dag_of,
    differences,
    import_files,
    imported,
)
from turnmark_session_store.queries import rows_of
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.opencode.database import OpencodeDatabaseReader
from turnmark_session_store.transcripts.opencode.reader import OpencodeReader
from turnmark_session_store.transcripts.opencode.storage import OpencodeStorages, StorageTail
from turnmark_session_store.transcripts.recognise import find_transcripts

OPENCODE = OpencodeReader()
# More with `SEEDS=400 pytest -k whatever_stands`.
SEEDS = int(os.environ.get("SEEDS", "6"))
ODD_COLUMNS = [
    *(("session", column) for column in ("revert", "parent_id", "directory", "time_updated")),
    *(("session_v2", column) for column in ("revert", "fork_session_id", "fork_boundary")),
    *(("message", column) for column in ("time_created", "time_updated")),
    *(("part", column) for column in ("time_updated", "message_id")),
    *(("session_message", column) for column in ("type", "time_created", "time_updated")),
    *(("event", column) for column in ("type", "data")),
]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[NewOpencode]:
    """The program of 2.x on a database of its own."""
    running = NewOpencode(tmp_path / "opencode.db")
    yield running
    running.close()


# 2.x.


def test_rows_of_2x_are_read_in_the_order_of_their_numbers(program: NewOpencode) -> None:
    """Nobody says what the program, a shell or a switch of models says."""
    session = program.open("a")
    program.prompt(session, "one")
    for kind in ("synthetic", "system", "skill", "shell", "model-switched", "idle", "new-kind"):
        program.say(session, kind, text="not said", summary="not said")
    program.answer(session, "two", "and a half")
    program.say(session, "compaction", status="completed", summary="They counted.", recent="")
    program.prompt(session, "three")
    found = read(program.path)[session]
    assert edges(found) == {
        "one": None,
        "two\n\nand a half": "one",
        "They counted.": "two\n\nand a half",
        "three": "They counted.",
    }
    assert said(found, role="assistant", kind="summary") == ["They counted."]


def test_a_fork_of_2x_says_what_it_is_of_and_shares_its_rows(program: NewOpencode) -> None:
    """Copies have new ids and the old times."""
    session = program.open("a")
    program.prompt(session, "one")
    program.answer(session, "two")
    cut = program.prompt(session, "three")
    fork = program.fork(session, "b", before=cut)
    program.prompt(fork, "other three")
    found = read(program.path)
    two = str(found[session].turns[1].turn.id)
    assert edges(*found.values()) == {
        "one": None,
        "two": "one",
        "three": "two",
        "other three": "two",
    }
    assert found[fork].forked_from == ForkPoint(session=session, turn=two)


def test_a_fork_without_copies_goes_on_from_its_origin(program: NewOpencode) -> None:
    """And of one whose origin is not there the pointer is kept."""
    session = program.open("a")
    program.prompt(session, "one")
    program.answer(session, "two")
    cut = program.prompt(session, "three")
    fork = program.fork(session, "b", before=cut, copies=False)
    program.prompt(fork, "other three")
    assert edges(*read(program.path).values())["other three"] == "two"
    lost = program.fork(session, "c", before=cut)
    program.prompt(lost, "last three")
    two = str(read(program.path)[session].turns[1].turn.id)
    program.db.execute("DELETE FROM session_message WHERE session_id <> ?", (lost,))
    program.db.execute("DELETE FROM session_v2 WHERE id <> ?", (lost,))
    [left] = read(program.path).values()
    assert left.forked_from == ForkPoint(session=session, turn=two)
    assert said(left) == ["one", "last three"]


def test_a_marker_of_2x_takes_back_what_is_behind_it(program: NewOpencode) -> None:
    """From its message on; what is deleted then is gone without a record."""
    session = program.open("a")
    program.prompt(session, "one")
    cut = program.prompt(session, "two")
    program.answer(session, "three")
    program.revert(session, cut)
    found = read(program.path)[session]
    assert words(found, found.taken_back) == ["two", "three"]
    program.commit(session, cut)
    program.prompt(session, "other two")
    assert edges(read(program.path)[session]) == {"one": None, "other two": "one"}


def test_a_sub_agent_of_2x_is_called_by_what_names_it(program: NewOpencode) -> None:
    """The call holds the session."""
    session = program.open("a")
    program.prompt(session, "ask somebody")
    child = program.open("b", parent_id=session)
    called = {"status": "completed", "structured": {"sessionID": child}}
    content = [
        {"type": "text", "id": "0", "text": "I'll ask."},
        {"type": "tool", "id": "1", "name": "task", "state": called},
    ]
    time = {"created": program.now, "completed": program.now}
    program.say(session, "assistant", content=content, time=time)
    program.prompt(child, "Count")
    program.answer(child, "Done")
    found = read(program.path)
    caller = found[child].caller
    assert caller is not None
    assert words(found[session], (caller.turn,)) == ["I'll ask."]
    assert (said(found[child]), said(found[child], kind="runtime")) == ([], ["Count"])


def test_a_session_that_both_tables_hold_is_read_from_the_new_one(tmp_path: Path) -> None:
    """Its words are those of the old rows, which stay: the turns are the same as before."""
    old = Opencode(tmp_path / "opencode.db")
    session, other = old.open("a"), old.open("b")
    asked, told = old.exchange(session, "one", "two")
    old.exchange(other, "kept", "there")
    before = read(old.path)
    new = NewOpencode(old.path, now=old.now)
    new.open("a", time_created=old.now)
    new.say(session, "user", key=asked, text="one")
    new.say(session, "assistant", key=told, content=[], time={"created": 1, "completed": 2})
    new.prompt(session, "three")
    found = read(old.path)
    assert edges(found[session]) == {"one": None, "two": "one", "three": "two"}
    assert [one.turn.id for one in found[session].turns[:2]] == [
        one.turn.id for one in before[session].turns
    ]
    assert edges(found[other]) == {"kept": None, "there": "kept"}
    new.close()
    old.close()


# The first version.


def test_the_first_version_is_read_with_its_own_ids(tmp_path: Path) -> None:
    """Titles that its model was asked for are no conversation; its agents have callers."""
    uuid = "01890000-0000-4000-8000-00000000000{}".format
    call = {"type": "tool_call", "data": {"id": "call_1", "name": "agent", "input": "{}"}}
    path = write_first_version(
        tmp_path / "demo" / ".opencode" / "opencode.db",
        [
            (uuid(1), None, "Porto", 1_786_269_600, uuid(7)),
            (f"title-{uuid(1)}", uuid(1), "Generate a title", 1_786_269_601, None),
            ("call_1", uuid(1), "Task", 1_786_269_602, None),
        ],
        [
            (uuid(2), uuid(1), "user", [old_text("one")], 1_786_269_600),
            (uuid(3), uuid(1), "assistant", [old_text("two"), call], 1_786_269_601),
            (uuid(4), uuid(1), "tool", [{"type": "tool_result", "data": {}}], 1_786_269_602),
            (uuid(5), f"title-{uuid(1)}", "user", [old_text("a title?")], 1_786_269_602),
            (uuid(6), "call_1", "user", [old_text("Count")], 1_786_269_603),
            (uuid(7), uuid(1), "assistant", [old_text("They counted.")], 1_786_269_604),
        ],
    )
    found = read(path)
    assert set(found) == {uuid(1), "call_1"}
    assert edges(found[uuid(1)]) == {"one": None, "two": "one", "They counted.": "two"}
    assert [one.turn.id for one in found[uuid(1)].turns] == [uuid(2), uuid(3), uuid(7)]
    assert found[uuid(1)].project == str(tmp_path / "demo")
    assert found["call_1"].caller is not None
    assert found["call_1"].caller.turn == uuid(3)
    assert said(found["call_1"], kind="runtime") == ["Count"]


def test_another_program_with_the_same_tables_is_none(tmp_path: Path) -> None:
    """It took them over, under another name."""
    rows = [("s", None, "x", 1, None)], [("m", "s", "user", [old_text("one")], 1)]
    other = write_first_version(tmp_path / "crush.db", *rows)
    own = write_first_version(tmp_path / "opencode.db", *rows)
    head = own.read_bytes()[:4096]
    assert [OPENCODE.recognises(path, head) for path in (other, own)] == [False, True]


# Files and exports.


@pytest.mark.parametrize("nested", [False, True], ids=["session/project", "session/info"])
def test_files_come_to_the_turns_of_the_database(tmp_path: Path, *, nested: bool) -> None:
    """In both forms; a directory is searched, and any file leads to its session."""
    files = Files(tmp_path / "storage", nested=nested)
    session = files.open("a")
    files.say(session, "user", "one", "一")
    told = files.say(session, "assistant", "two")
    part = {"id": "prt_9", "type": "text", "text": "added", "synthetic": True}
    write(files.folder_of(session, told) / "prt_9.json", part)
    write(files.base / "session_diff" / f"{session}.json", {"id": session})
    [found] = find_transcripts([tmp_path], readers=[OPENCODE]).found
    wanted = {"one\n\n一": None, "two": "one\n\n一"}
    assert (len(found.paths), edges(read(*found.paths)[session])) == (7, wanted)
    for path in found.paths:
        assert edges(read(path)[session]) == wanted
    turn = read(*found.paths)[session].turns[0].turn
    stored = Opencode(tmp_path / "opencode.db", now=files.now)
    again = stored.open("a")
    stored.prompt(again, "one", "一", time={"created": turn.time})
    assert read(stored.path)[again].turns[0].turn.id == turn.id
    stored.close()


def test_the_database_goes_before_files_and_exports_of_a_session(tmp_path: Path) -> None:
    """What is only in files is read from there; nothing is mixed."""
    files = Files(tmp_path / "storage")
    for name in "ab":
        files.say(files.open(name), "user", f"old {name}")
    stored = Opencode(tmp_path / "opencode.db", now=files.now)
    stored.prompt(stored.open("a"), "new a")
    stored.open("b")
    export = tmp_path / "export.json"
    write(
        export,
        {
            "info": {"id": "ses_b", "title": "B", "time": {"created": 1, "updated": 2}},
            "messages": [
                {
                    "info": {"id": "msg_1", "role": "user", "time": {"created": files.now}},
                    "parts": [{"type": "text", "text": "exported b"}],
                }
            ],
        },
    )
    found = read(stored.path, *files.paths())
    assert {name: said(one) for name, one in found.items()} == {
        "ses_a": ["new a"],
        "ses_b": ["old b"],
    }
    assert said(read(stored.path, export, *files.paths())["ses_b"]) == ["exported b"]
    stored.close()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b"\0\0", b'{"id":"ses_a"', b"{}"])
def test_a_broken_file_costs_nothing_but_itself(tmp_path: Path, content: bytes) -> None:
    """A message or a part that was being written when the power went."""
    files = Files(tmp_path / "storage")
    session = files.open("a")
    files.say(session, "user", "one")
    broken = files.say(session, "assistant", "two")
    files.say(session, "user", "three")
    (files.folder_of(session, broken) / "prt_0.json").write_bytes(content)
    found = read(*files.paths())[session]
    assert edges(found) == {"one": None, "three": "one"}
    assert len(found.warnings) == (0 if content == b"{}" else 1)


def test_files_longer_than_what_is_looked_at_are_recognised(tmp_path: Path) -> None:
    """Instructions of the program stood in each answer, and pictures in parts."""
    files = Files(tmp_path / "storage")
    session = files.open("a", summary={"diffs": ["x" * 300_000]})
    files.say(session, "user", "one " + "long " * 60_000)
    files.say(session, "assistant", "two", system=["x" * 300_000])
    [found] = find_transcripts([tmp_path], readers=[OPENCODE]).found
    assert (found.paths, len(read(*found.paths)[session].turns)) == (tuple(files.paths()), 2)


def test_a_message_without_its_sessions_file_is_read(tmp_path: Path) -> None:
    """An upgrade that failed left it behind; the directory says which session it is of."""
    files = Files(tmp_path / "storage")
    session = files.open("a")
    files.say(session, "user", "one")
    for path in (files.base / "session").rglob("*.json"):
        path.unlink()
    assert said(read(*files.paths())[session]) == ["one"]


def test_an_export_of_2x_is_read_as_rows(tmp_path: Path) -> None:
    """Its messages have a type and no parts."""
    path = tmp_path / "export.json"
    time = {"created": 1_786_269_600_000, "completed": 1_786_269_601_000}
    write(
        path,
        {
            "info": {"id": "ses_a", "directory": "/home/robin", "time": time},
            "messages": [
                {"id": "msg_1", "type": "user", "text": "one", "time": time},
                {
                    "id": "msg_2",
                    "type": "assistant",
                    "content": [{"type": "text", "text": "two"}],
                    "time": time,
                },
            ],
        },
    )
    assert OPENCODE.recognises(path, path.read_bytes())
    assert edges(read(path)["ses_a"]) == {"one": None, "two": "one"}


@pytest.mark.parametrize(
    "record",
    [
        {"info": {"id": "x"}, "messages": []},
        {"messages": [], "info": {"id": "ses_1"}},
        {"id": "ses_1", "title": "t"},
        {"info": []},
    ],
)
def test_other_json_is_nobodys(tmp_path: Path, record: dict[str, Any]) -> None:
    """Only what begins as an export does, or lies where a storage's files do."""
    path = tmp_path / "some.json"
    write(path, record)
    assert not OPENCODE.recognises(path, path.read_bytes())


def test_an_export_that_was_cut_off_is_told_of(tmp_path: Path) -> None:
    """Its head is one."""
    path = tmp_path / "cut.json"
    path.write_bytes(EXPORTED.read_bytes()[:5_000])
    [found] = read(path).values()
    assert OPENCODE.recognises(path, path.read_bytes())
    assert (found.turns, len(found.warnings)) == ((), 1)


@pytest.mark.anyio
async def test_whatever_is_imported_first_comes_to_the_same(place: Path, tmp_path: Path) -> None:
    """A fork before its origin, an export before the database, all of it twice."""
    program = Opencode(tmp_path / "opencode.db")
    origin = program.open("a")
    program.exchange(origin, "one", "two")
    fork = program.fork(origin, "b")
    program.exchange(fork, "other three", "other four")
    program.exchange(origin, "three", "four")
    exports = [export_of(program, name, tmp_path) for name in (origin, fork)]
    wanted = await imported(place / "a.db", [program.path], OPENCODE)
    for number, order in enumerate([exports, exports[::-1], [exports[1], program.path]]):
        async with Stage(place / f"{number}.db") as stage:
            for path in (*order, *order):
                await import_files(stage, [path], OPENCODE)
            found = await dag_of(stage)
            assert differences(found, wanted) == []
    program.close()


@pytest.mark.anyio
async def test_what_the_program_wrote_is_imported_once(place: Path) -> None:
    """Seven prompts of people on four lines, however often."""
    async with Stage(place / "a.db") as stage:
        await import_files(stage, [WRITTEN], OPENCODE)
        found, seq = await dag_of(stage), stage.seq
        prompts = [turn for turn in found["turns"].values() if turn[1] == "user" and turn[4]]
        assert (len(prompts), len(found["turns"]), len(found["tips"])) == (7, 17, 4)
        await import_files(stage, [EXPORTED, WRITTEN], OPENCODE)
        await import_files(stage, [EXPORTED], OPENCODE)
        assert (await dag_of(stage), stage.seq) == (found, seq)


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_whatever_stands_in_the_rows_is_read_and_imported(
    place: Path, tmp_path: Path, seed: int
) -> None:
    """Values of any type in any place, in all tables and files; a tail reads them, too."""
    chance = random.Random(seed)
    program = Opencode(tmp_path / "opencode.db")
    session = program.open("a")
    program.exchange(session, "one", "two")
    cut, _ = program.exchange(session, "three", "four")
    program.exchange(program.fork(session, "b"), "five", "six")
    program.revert(session, cut)
    told = program.begin(session, role="assistant")
    program.call(told, program.open("c", parent=session), "task")
    newer = NewOpencode(program.path, now=program.now)
    other = newer.open("d")
    newer.prompt(other, "seven")
    newer.prompt(newer.fork(other, "e", before=newer.answer(other, "eight")), "nine")
    for table in ("message", "part", "event", "session_message"):
        for key, data in rows_of(program.db, f"SELECT id, data FROM {table}"):
            record = json.loads(data)
            spoil(chance, record)
            changed = (json.dumps(record), key)
            program.db.execute(f"UPDATE {table} SET data = ? WHERE id = ?", changed)
    for table, column in ODD_COLUMNS:
        rows = f"SELECT rowid FROM {table} WHERE rowid % 3 = {chance.randrange(3)}"
        odd = chance.choice((None, "x", b"\xff", 3, 1.5, -5, "{}", 10**15, "ses_a"))
        with contextlib.suppress(apsw.ConstraintError):
            program.db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid IN ({rows})", (odd,))
    files = Files(tmp_path / "storage")
    files.say(files.open("f"), "user", "ten")
    files.say(files.open("g", parentID="ses_f"), "assistant", "eleven")
    for path in files.paths():
        record = json.loads(path.read_text(encoding="utf-8"))
        spoil(chance, record)
        write(path, record)
    async with Stage(place / "a.db") as stage:
        await import_files(stage, [program.path, *files.paths()], OPENCODE)
        found, seq = await dag_of(stage), stage.seq
        await import_files(stage, [program.path, *files.paths()], OPENCODE)
        assert (await dag_of(stage), stage.seq) == (found, seq)
        for tail in (
            DatabaseTail(stage.store, OpencodeDatabaseReader(IMPATIENT), tmp_path),
            StorageTail(stage.store, OpencodeStorages(IMPATIENT), tmp_path),
        ):
            with anyio.fail_after(60):
                await tail.deal_with_all()
            assert tail.status().last_error is None
    newer.close()
    program.close()


def export_of(program: Opencode, session: str, place: Path) -> Path:
    """What `opencode export` writes."""
    sql = "SELECT title, time_created FROM session WHERE id = ?"
    [(title, created)] = rows_of(program.db, sql, (session,))
    info = {"id": session, "directory": "/home/robin/demo", "title": title}
    messages: list[dict[str, Any]] = []
    for key, _, data in program.messages(session):
        rows = rows_of(program.db, "SELECT data FROM part WHERE message_id = ? ORDER BY id", (key,))
        parts = [{**json.loads(part), "id": str(at)} for at, (part,) in enumerate(rows)]
        messages.append({"info": {**data, "id": key}, "parts": parts})
    path = place / f"{session}.json"
    write(path, {"info": {**info, "time": {"created": created}}, "messages": messages})
    return path
