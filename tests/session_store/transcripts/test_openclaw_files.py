"""Tests of `transcripts/openclaw/files.py` and `live.py`: the file era."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from session_store.transcripts.json_records import lines
from session_store.transcripts.openclaw_files import (
    FOLDER,
    entry,
    header,
    message,
    write,
)
from session_store.transcripts.openclaw_gateway import Gateway, line_to, said, sessions_in
from session_store.transcripts.tailing import PATIENT, Tailed, differences, of_files
from turnmark_session_store.transcripts.openclaw.live import OpenClawLiveReader
from turnmark_session_store.transcripts.openclaw.reader import OpenClawReader
from turnmark_session_store.transcripts.openclaw.tables import NAME
from turnmark_session_store.transcripts.pi.reader import PiReader
from turnmark_session_store.transcripts.recognise import find_transcripts

OPENCLAW = OpenClawReader()
TALK = (
    header("s1"),
    message("00000001", None, 1, "user", "I live in Bergen."),
    message("00000002", "00000001", 2, "assistant", "Noted."),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an agent's transcripts lie."""
    return tmp_path / "state" / FOLDER


@pytest.fixture
async def tailed(tmp_path: Path, place: Path) -> AsyncIterator[Tailed]:
    """A store and a tail on a state directory."""
    root = tmp_path / "state"
    follow = of_files(OpenClawLiveReader)
    async with Tailed(place / "sessions.db", root, follow=follow) as made:
        yield made


def index(folder: Path, rows: dict[str, dict[str, Any]]) -> None:
    """Writes the index of conversations."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sessions.json").write_text(json.dumps(rows))


def test_a_file_is_called_what_its_name_says(folder: Path) -> None:
    """A migration left first records behind that name something else."""
    write(folder / "s2.jsonl", *TALK)
    write(folder / "s3-topic-7.jsonl", *TALK[:1], message("0000000a", "s1", 1, "user", "hi"))
    reads = sessions_in(*sorted(folder.iterdir()))
    assert {name: said(read) for name, read in reads.items()} == {
        "s2": ["I live in Bergen.", "Noted."],
        "s3-topic-7": ["hi"],
    }
    assert reads["s2"].turns[0].turn.id == "00000001.1786269601000"
    assert reads["s2"].turns[0].turn.time == "2026-08-09T10:00:00.900Z"
    assert reads["s2"].project == "/home/robin/clawd"


def test_files_beside_transcripts_are_none(folder: Path) -> None:
    """Copies, archives of what was deleted, trajectories and locks; a reset is no deletion."""
    own = (*TALK, entry("00000003", "00000002", 3, "custom", customType="model-snapshot"))
    names = [
        "a.jsonl",
        "b.jsonl.reset.2026-08-09T10-00-00.000Z",
        "b.jsonl.reset.2026-08-09T11-00-00.000Z.zst",
        "c.jsonl.deleted.2026-08-09T10-00-00.000Z",
        "d.jsonl.full.bak",
        "e.checkpoint.0a0b0c0d-0000-4000-8000-000000000000.jsonl",
        "f.trajectory.jsonl",
        "g.trajectory-path.json",
        "h.jsonl.lock",
    ]
    for name in names:
        write(folder / name, *own)
    files = sorted(folder.iterdir())
    known = [file.name for file in files if OPENCLAW.recognises(file, file.read_bytes())]
    assert known == names[:2]
    live = OpenClawLiveReader()
    assert [live.session_of(file) for file in files] == ["a", "b", *[None] * 7]


def test_a_file_is_told_from_pis_by_its_records_or_its_folder(tmp_path: Path) -> None:
    """Both write the same grammar."""
    bare = lines(*TALK)
    note = entry("3", "2", 3, "custom", customType="openclaw:bootstrap-context:full")
    marked = lines(*TALK, note)
    assert not OPENCLAW.recognises(tmp_path / "a.jsonl", bare)
    assert OPENCLAW.recognises(tmp_path / "a.jsonl", marked)
    assert OPENCLAW.recognises(tmp_path / "agents" / "main" / "sessions" / "a.jsonl", bare)
    assert not OPENCLAW.recognises(tmp_path / "agents" / "main" / "sessions" / "a.jsonl", b"{}\n")
    assert not OPENCLAW.recognises(tmp_path / "a.jsonl", b"")
    own, other = write(tmp_path / "own.jsonl", *TALK, note), write(tmp_path / "pis.jsonl", *TALK)
    found = find_transcripts([tmp_path], readers=[OPENCLAW, PiReader()]).found
    assert {one.agent: one.paths for one in found} == {"openclaw": (own,), "pi": (other,)}


def test_the_index_names_conversations_and_spawners(folder: Path) -> None:
    """A sub-agent's caller is known by it, its task by what the program puts in front."""
    asked = message("00000003", "00000002", 3, "user", "Count the files.")
    write(folder / "s1.jsonl", *TALK, asked)
    task = "[Subagent Context] You are a subagent.\n\n[Subagent Task]: Count."
    write(folder / "s2.jsonl", header("s2", 4), message("00000001", None, 5, "user", task))
    index(
        folder,
        {
            "agent:main:main": {"sessionId": "s1", "label": "Moving"},
            "agent:main:subagent:1": {"sessionId": "s2", "spawnedBy": "agent:main:main"},
            "broken": {"sessionId": 7},
        },
    )
    main, agent = sessions_in(folder / "s1.jsonl", folder / "s2.jsonl").values()
    assert main.title == "Moving"
    assert agent.turns[0].turn.kind == "runtime"
    assert agent.caller is not None
    assert agent.caller.turn == main.turns[-1].turn.id
    (folder / "sessions.json").write_text("{")
    again = list(sessions_in(folder / "s1.jsonl", folder / "s2.jsonl").values())
    assert [one.turn.kind for read in again for one in read.turns] == [
        "turn",
        "turn",
        "turn",
        "runtime",
    ]


def test_a_fork_names_the_path_of_its_origin(folder: Path) -> None:
    """Which may be on another machine; the copies keep ids and times."""
    write(folder / "s1.jsonl", *TALK)
    fork = header("s2", 3, parentSession="C:\\clawd\\sessions\\s1.jsonl")
    own = message("00000003", "00000002", 4, "user", "我喜欢咖啡。")
    write(folder / "s2.jsonl", fork, *TALK[1:], own)
    main, other = sessions_in(folder / "s2.jsonl", folder / "s1.jsonl").values()
    assert (said(main), said(other)) == (["I live in Bergen.", "Noted."], ["我喜欢咖啡。"])
    assert other.forked_from is not None
    assert other.forked_from.turn == main.head
    (alone,) = sessions_in(folder / "s2.jsonl").values()
    assert line_to(alone, alone.head) == ["I live in Bergen.", "Noted.", "我喜欢咖啡。"]
    assert alone.forked_from == other.forked_from


def test_what_stands_in_a_database_as_well_is_read_there(tmp_path: Path, folder: Path) -> None:
    """The migration leaves files behind."""
    gateway = Gateway(tmp_path / "state" / "agents" / "main" / "agent" / NAME)
    session = gateway.begin()
    gateway.user("I live in Bergen.")
    file = write(folder / f"{session}.jsonl", *TALK)
    (read,) = sessions_in(gateway.path, file).values()
    assert said(read) == ["I live in Bergen."]


def test_a_broken_file_costs_its_broken_lines(folder: Path) -> None:
    """NUL, bad bytes, no objects, a torn end; an empty file and a header alone are no session."""
    data = lines(*TALK[:2]) + b'\0\0\0\n[1]\n"x"\n' + lines(TALK[2])
    data += lines(message("00000003", "00000002", 3, "user", "caf\u2028e")).replace(
        b"caf", b"caf\xff"
    )
    file = write(folder / "s1.jsonl")
    file.write_bytes(data + b'{"type":"mess')
    write(folder / "s2.jsonl")
    write(folder / "s3.jsonl", header("s3"))
    (read,) = sessions_in(*sorted(folder.iterdir())).values()
    assert line_to(read, read.head) == ["I live in Bergen.", "Noted.", "caf\ufffd\u2028e"]
    assert [one.line for one in read.warnings] == [3, 4, 5, 8]


@pytest.mark.anyio
async def test_a_file_that_is_moved_away_takes_nothing_back(folder: Path, tailed: Tailed) -> None:
    """A reset renames it; the next one has another name."""
    file = write(folder / "s1.jsonl", *TALK)
    await tailed.settle(file)
    before = await tailed.dag()
    away = folder / "s1.jsonl.reset.2026-08-09T10-00-00.000Z"
    file.rename(away)
    await tailed.settle(file, away)
    assert differences(await tailed.dag(), before) == []
    again = write(folder / "s2.jsonl", header("s2"), message("00000009", None, 9, "user", "hi"))
    await tailed.settle(again)
    assert await tailed.said() == ["I live in Bergen.", "Noted.", "hi"]


@pytest.mark.anyio
async def test_a_file_that_is_cut_or_written_anew_adds_nothing(
    folder: Path, tailed: Tailed
) -> None:
    """Shorter, then another head, then in place: what was said stays, and is said once."""
    file = write(folder / "s1.jsonl", *TALK)
    await tailed.settle(file)
    write(file, *TALK[:2])
    await tailed.settle(file)
    write(file, {**TALK[0], "version": 4}, *TALK[1:])
    await tailed.settle(file)
    assert await tailed.said() == ["I live in Bergen.", "Noted."]


@pytest.mark.anyio
async def test_a_sub_agent_is_read_with_what_spawned_it(folder: Path, tailed: Tailed) -> None:
    """The index leads to the conversation that did, also after a restart."""
    index(
        folder,
        {
            "agent:main:main": {"sessionId": "s1"},
            "agent:main:subagent:1": {"sessionId": "s2", "spawnedBy": "agent:main:main"},
        },
    )
    main = write(folder / "s1.jsonl", *TALK)
    await tailed.settle(main)
    tailed.renew(PATIENT)
    task = message("00000001", None, 5, "user", "[Subagent Context] Count.")
    agent = write(folder / "s2.jsonl", header("s2", 4), task)
    await tailed.settle(agent)
    caller = (await tailed.dag())["turns"]["00000001.1786269605000"][6]
    assert caller == "00000002.1786269602000"


def test_times_of_any_number_of_digits_are_none(folder: Path) -> None:
    """They cost nothing but the time."""
    values: tuple[Any, ...] = (10**400, -(10**400), 1e308, True, {}, "10000-01-01")
    for odd in values:
        first = message("e1", None, 1, "user", "你好")
        first["timestamp"] = first["message"]["timestamp"] = odd
        path = write(folder / "odd.jsonl", header("odd", timestamp=odd), first)
        [read] = OpenClawReader().read([path])
        assert [(one.turn.text, one.turn.time) for one in read.turns] == [("你好", None)]


def test_a_family_of_many_is_read_once(folder: Path) -> None:
    """Thousands of sub-agents, forks and notices: each is looked at, and not each for each."""
    many = range(1_000)
    spoken = [message(f"e{n}", f"e{n - 1}" if n else None, n, "user", str(n)) for n in many]
    write(folder / "main.jsonl", header("main"), *spoken)
    program = {"provider": "openclaw", "model": "delivery-mirror"}
    sent = [
        message(f"n{n}", f"n{n - 1}" if n else None, n, "assistant", f"s{n}", **program)
        for n in range(3_000)
    ]
    write(folder / "notices.jsonl", header("notices"), *sent)
    rows: dict[str, dict[str, Any]] = {"agent:main:main": {"sessionId": "main"}}
    for n in many:
        task = message(f"t{n}", None, n, "user", "task")
        write(folder / f"sub{n}.jsonl", header(f"sub{n}", n), task)
        key = f"agent:main:subagent:{n}"
        rows[key] = {"sessionId": f"sub{n}", "spawnedBy": "agent:main:main"}
    index(folder, rows)
    read = {one.session: one for one in OpenClawReader().read(sorted(folder.glob("*.jsonl")))}
    assert len(read["notices"].turns) == len(sent)
    callers = [read[f"sub{n}"].caller for n in many]
    assert [None if one is None else one.turn.split(".")[0] for one in callers] == [
        f"e{n}" for n in many
    ]
