"""Tests of the reader of pi: what each version of its files says, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from session_store.transcripts.codex_rollouts import edges, said
from session_store.transcripts.json_records import Record, lines, write
from session_store.transcripts.pi_records import (
    OTHER,
    SESSION,
    THIRD,
    answer,
    at,
    entry,
    file_name,
    header,
    message,
    ms,
    tool,
    user,
    without_ids,
)
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.openclaw.reader import OpenClawReader
from turnmark_session_store.transcripts.pi.reader import PiReader
from turnmark_session_store.transcripts.reader import ReadSession

DATA = Path(__file__).resolve().parents[2] / "data" / "pi" / "v3-tree-generated"
HI = user("aaaa0001", None, "Hi", 1)
HELLO = answer("aaaa0002", "aaaa0001", "Hello.", 2)


def read(*paths: Path, **options: Any) -> list[ReadSession]:
    """Reads a set of files."""
    return list(PiReader(**options).read(paths))


def read_one(tmp_path: Path, *records: Record | str) -> ReadSession:
    """Reads one transcript that makes one session."""
    [session] = read(write(tmp_path / file_name(), records))
    return session


def test_reads_what_the_program_wrote() -> None:
    """A tree, a file of one branch and a fork: seven prompts, and one each."""
    main, branched, fork = read(*sorted(DATA.glob("*.jsonl")))
    assert [len(said(one)) for one in (main, branched, fork)] == [7, 1, 1]
    assert (main.title, main.project, len(main.tips)) == ("demo tree", "/tmp/demo-project", 4)
    assert said(branched) == ["Only in the branched file."]
    assert branched.forked_from is not None
    assert branched.forked_from.session == main.session
    assert {main.namespace, branched.namespace, fork.namespace} == {f"family:{main.session}"}
    assert main.head == main.tips[-1]
    first = main.turns[0]
    assert first.turn.time == "2026-11-29T20:43:22.510Z"
    assert first.turn.metadata is not None
    assert first.turn.metadata["origin"]["line"] == 4
    assert first.turn.speaker is None


def test_says_which_model_answered_and_in_which_file(tmp_path: Path) -> None:
    """A person's turn has no model."""
    session = read_one(tmp_path, header(), HI, HELLO)
    assert [turn.turn.metadata for turn in session.turns] == [
        {"origin": {"file": file_name(), "line": 2}},
        {"origin": {"file": file_name(), "line": 3}, "model": "faux-1"},
    ]


def test_what_carries_the_chain_is_no_turn(tmp_path: Path) -> None:
    """Tools, a person's shell, what extensions put in, summaries and edits of the context."""
    shell = message("bashExecution", [], 4, command="date", output="Mon", excludeFromContext=True)
    notes = [
        tool("bbbb0001", "aaaa0002", 3),
        entry("message", "bbbb0002", "bbbb0001", 4, message=shell),
        entry("custom_message", "bbbb0003", "bbbb0002", 5, content="Not typed", display=True),
        entry("message", "bbbb0004", "bbbb0003", 6, message=message("custom", "Not typed", 6)),
        entry("message", "bbbb0005", "bbbb0004", 7, message=message("hookMessage", "Nor this", 7)),
        entry("message", "bbbb0006", "bbbb0005", 8, message=message("system", "Be kind", 8)),
        entry("compaction", "bbbb0007", "bbbb0006", 9, summary="So far", firstKeptEntryId="x"),
        entry("branch_summary", "bbbb0008", "bbbb0007", 10, summary="Left", fromId="x"),
        entry("context_edit", "bbbb0009", "bbbb0008", 11, targetId="aaaa0001", replacement=None),
        entry("usage", "bbbb000a", "bbbb0009", 12),
        entry("never seen before", "bbbb000b", "bbbb000a", 13),
    ]
    session = read_one(
        tmp_path, header(), HI, HELLO, *notes, user("cccc0001", "bbbb000b", "And?", 14)
    )
    assert edges(session) == {"Hi": None, "Hello.": "Hi", "And?": "Hello."}
    assert session.warnings == ()


@pytest.mark.parametrize(
    ("stopped", "kind"),
    [
        ("stop", "turn"),
        ("length", "turn"),
        ("toolUse", "turn"),
        ("aborted", "runtime"),
        ("error", "error"),
    ],
)
def test_how_an_answer_stopped_says_what_it_is(tmp_path: Path, stopped: str, kind: str) -> None:
    """One without words is none, nor one that is not settled."""
    told = answer("aaaa0002", "aaaa0001", "Well", 2, stopReason=stopped)
    empty = answer("aaaa0003", "aaaa0002", [], 3, stopReason=stopped)
    open_ = answer("aaaa0004", "aaaa0003", "Not yet", 4, stopReason="pending")
    session = read_one(tmp_path, header(), HI, told, empty, open_)
    assert [turn.turn.kind for turn in session.turns] == ["turn", kind]


def test_a_picture_alone_is_a_turn_without_words(tmp_path: Path) -> None:
    """A prompt with neither is none."""
    picture: list[Record] = [{"type": "image", "data": "…", "mimeType": "image/png"}]
    session = read_one(
        tmp_path, header(), user("aaaa0001", None, picture, 1), user("aaaa0002", "aaaa0001", [], 2)
    )
    assert said(session) == [""]


def test_a_leaf_that_is_moved_says_where_the_head_is(tmp_path: Path) -> None:
    """Nothing is taken back by it, and all tips stay."""
    moved = entry("leaf", "aaaa0009", "aaaa0002", 9, targetId="aaaa0001")
    session = read_one(tmp_path, header(), HI, HELLO, moved)
    assert session.tips == (session.turns[1].turn.id,)
    assert session.head == session.turns[0].turn.id
    assert session.taken_back == ()
    to_the_start = {**moved, "targetId": None}
    assert read_one(tmp_path, header(), HI, HELLO, to_the_start).head == session.tips[0]


def test_a_second_header_in_the_middle_is_nobodys(tmp_path: Path) -> None:
    """It came with copied lines, or a resumed session wrote it again."""
    other = header(OTHER, 5, parentSession="/x/y.jsonl", cwd="/elsewhere")
    session = read_one(tmp_path, header(), HI, other, HI, HELLO)
    assert (session.session, session.project) == (SESSION, "/home/robin/demo")
    assert edges(session) == {"Hi": None, "Hello.": "Hi"}


def test_a_file_of_the_first_version_is_one_line_of_turns(tmp_path: Path) -> None:
    """No ids, no version, and the header may be younger than the first message."""
    first = header(second=900)
    del first["version"]
    old = [without_ids(one) for one in (HI, tool("x", None, 1.5), HELLO)]
    session = read_one(tmp_path, first, *old)
    assert edges(session) == {"Hi": None, "Hello.": "Hi"}
    assert all(str(turn.turn.id).startswith("t-") for turn in session.turns)
    again = read_one(tmp_path / "again", first, *old)
    assert [turn.turn.id for turn in again.turns] == [turn.turn.id for turn in session.turns]


# Version 4.


def newest(session: str = SESSION, second: float = 0, **fields: Any) -> Record:
    """The header of a session of version 4."""
    made = {"kind": "header", "version": 4, "id": session, "createdAt": ms(second)}
    return {**made, "cwd": "/home/robin/demo", **fields}


def mutation(record: Record, lane: str | None = "main") -> Record:
    """An entry as version 4 writes it."""
    second = next(n for n in range(100) if at(n) == record["timestamp"])
    made = {**record, "seq": second, "timestamp": ms(second)}
    return {"kind": "entry", **({"lane": lane} if lane else {}), "entry": made}


def test_a_session_of_version_4_is_a_tree_with_lanes(tmp_path: Path) -> None:
    """What is queued is said when it becomes an entry; all lanes are live."""
    queued: Record = {"type": "queue_enqueued", "lane": "main", "target": HI}
    records: list[Record] = [
        newest(),
        {"kind": "record", "record": queued},
        mutation(HI),
        mutation(HELLO),
        {"kind": "lane", "seq": 3, "lane": "side", "leafId": "aaaa0001"},
        mutation(user("bbbb0001", "aaaa0001", "Aside", 3), "side"),
        mutation(user("aaaa0003", "aaaa0002", "And?", 4)),
        {"kind": "fact", "seq": 9, "fact": "name", "name": "渡轮"},
        {"kind": "fact", "seq": 10, "fact": "label", "targetId": "aaaa0001", "label": "x"},
    ]
    session = read_one(tmp_path, *records)
    assert edges(session) == {"Hi": None, "Hello.": "Hi", "Aside": "Hi", "And?": "Hello."}
    assert (session.title, session.project) == ("渡轮", "/home/robin/demo")
    assert [turn.turn.text for turn in session.turns if turn.turn.id == session.head] == ["And?"]
    flat = [one["entry"] | one if one.get("kind") == "entry" else one for one in records]
    assert edges(read_one(tmp_path / "flat", *flat)) == edges(session)


def test_a_fork_of_version_4_shares_what_it_copied(tmp_path: Path) -> None:
    """Also with a file of version 3, which it may have been made of: the times are the same."""
    origin = write(tmp_path / file_name(), [header(), HI, HELLO])
    fork = write(
        tmp_path / file_name(OTHER, 50),
        [
            newest(OTHER, 50, parentSessionId=SESSION),
            mutation(HI, None),
            mutation(HELLO, None),
            {"kind": "lane", "seq": 3, "lane": "main", "leafId": "aaaa0001"},
            {"kind": "lane", "seq": 4, "lane": "side", "leafId": "aaaa0002"},
        ],
    )
    first, second = read(fork, origin)
    assert (len(first.turns), second.turns) == (2, ())
    assert second.forked_from == ForkPoint(session=SESSION, turn=str(first.turns[0].turn.id))
    assert second.head == first.turns[0].turn.id


# Families.


def test_forks_of_forks_are_one_family_whatever_is_there(tmp_path: Path) -> None:
    """By headers, by those beside the file, by names, and by what stands in both."""
    paths = [tmp_path / file_name(one, 10 * n) for n, one in enumerate((SESSION, OTHER, THIRD))]
    write(paths[0], [header(), HI, HELLO])
    write(paths[1], [header(OTHER, 10, parentSession=f"/gone/{paths[0].name}"), HI, HELLO])
    write(paths[2], [header(THIRD, 20, branchedFrom=f"C:\\gone\\{paths[1].name}"), HI])
    family = f"family:{SESSION}"
    assert [one.namespace for one in read(*paths)] == [family] * 3
    assert [one.namespace for one in read(paths[2])] == [family]
    paths[1].unlink()
    assert [one.namespace for one in read(paths[2])] == [f"family:{OTHER}"]
    both = read(paths[2], paths[0])
    assert [one.namespace for one in both] == [family] * 2
    assert both[1].turns == ()


def test_forks_that_name_their_origin_by_its_id_find_it_beside_them(tmp_path: Path) -> None:
    """As version 4 does."""
    paths = [tmp_path / file_name(one, 10 * n) for n, one in enumerate((SESSION, OTHER, THIRD))]
    write(paths[0], [newest(), mutation(HI)])
    write(paths[1], [newest(OTHER, 10, parentSessionId=SESSION), mutation(HI, None)])
    write(paths[2], [newest(THIRD, 20, parentSessionId=OTHER), mutation(HI, None)])
    assert [one.namespace for one in read(paths[2])] == [f"family:{SESSION}"]


@pytest.mark.parametrize("parent", [file_name(), "notes.txt", "/", "\0.jsonl"])
def test_a_header_that_points_nowhere_makes_no_family(tmp_path: Path, parent: str) -> None:
    """At itself, at no transcript, at nothing that can be."""
    session = read_one(tmp_path, header(parentSession=parent), HI)
    assert session.turns[0].predecessor is None
    [again] = read(tmp_path / file_name())
    assert again == session


def test_a_session_that_only_follows_another_shares_nothing(tmp_path: Path) -> None:
    """A header may name what a session continues without a copy of it."""
    origin = write(tmp_path / file_name(), [header(), HI, HELLO])
    other = user("aaaa0001", None, "Go on", 60)
    follow = write(
        tmp_path / file_name(OTHER, 50), [header(OTHER, 50, parentSession=str(origin)), other]
    )
    _, second = read(origin, follow)
    assert second.forked_from is None
    assert [turn.predecessor for turn in second.turns] == [None]


def test_a_pointer_to_what_is_not_there_tells_the_last_copied_turn(tmp_path: Path) -> None:
    """The store may know that session."""
    parent = f"/gone/{file_name()}"
    more = user("bbbb0001", "aaaa0002", "And?", 60)
    fork = write(
        tmp_path / file_name(OTHER, 50),
        [header(OTHER, 50, parentSession=parent), HI, HELLO, more],
    )
    [session] = read(fork)
    assert session.forked_from == ForkPoint(session=SESSION, turn=str(session.turns[1].turn.id))


def test_headers_that_point_in_a_circle_are_one_family(tmp_path: Path) -> None:
    """And the first of them has what they share."""
    paths = [tmp_path / file_name(one) for one in (SESSION, OTHER)]
    for path, session, parent in zip(paths, (SESSION, OTHER), (OTHER, SESSION), strict=True):
        write(path, [header(session, parentSession=file_name(parent)), HI])
    both = read(*paths)
    assert {one.namespace for one in both} == {f"family:{SESSION}"}
    assert sum(len(one.turns) for one in both) == 1


def test_a_file_that_was_copied_is_the_same_session(tmp_path: Path) -> None:
    """The longer one says where it stands."""
    short = write(tmp_path / "a" / file_name(), [header(), HI])
    long = write(tmp_path / "b" / file_name(), [header(), HI, HELLO])
    [session] = read(short, long)
    assert edges(session) == {"Hi": None, "Hello.": "Hi"}
    assert session.head == session.turns[1].turn.id


@pytest.mark.parametrize("folder", ["subagents", file_name().removesuffix(".jsonl") + "/run-0"])
def test_what_a_sub_agent_is_told_is_no_persons(tmp_path: Path, folder: str) -> None:
    """By where its session lies; what it copied of its parent was said by a person."""
    origin = write(tmp_path / file_name(), [header(), HI, HELLO])
    task = user("bbbb0001", "aaaa0002", "Find ferries.", 60)
    agent = write(
        tmp_path / folder / "session.jsonl",
        [header(OTHER, 50, parentSession=str(origin)), HI, HELLO, task],
    )
    for paths in ((origin, agent), (agent,)):
        sessions = read(*paths)
        assert said(*sessions) == ["Hi"]
        assert said(*sessions, kind="runtime") == ["Find ferries."]


# Files as they may be.


def test_sessions_in_a_skipped_directory_are_passed_over_with_their_forks(tmp_path: Path) -> None:
    """Law 15: turnmark's own writer may be pi."""
    own = write(tmp_path / file_name(), [header(cwd="/state/writer/x"), HI])
    write(tmp_path / file_name(OTHER), [header(OTHER, parentSession=str(own)), HI])
    write(tmp_path / file_name(THIRD), [header(THIRD), user("cccc0001", None, "Yes", 1)])
    sessions = read(*tmp_path.glob("*.jsonl"), skip_directories=[Path("/state/writer")])
    assert said(*sessions) == ["Yes"]


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"", []),
        (lines(header()), []),
        (lines(header(), HI)[:-1], ["Hi"]),
        (lines(header(), HI) + lines(HELLO)[:-9], ["Hi"]),
        (lines(header(), HI) + b"\0" * 9_000 + b"\n", ["Hi"]),
        (lines(header()) + b"\0" * 9 + lines(HI), ["Hi"]),
        (lines(header(), "7", "[]", '"x"', "{", "{}", '{"kind":"entry"}', HI), ["Hi"]),
        (lines(header(), "[" * 100_000, HI), ["Hi"]),
        (lines(header(), user("aaaa0001", None, "a\u2028b", 1)), ["a\u2028b"]),
        (lines(header(), user("aaaa0001", None, "€", 1)).replace(b"\x82", b"\xff"), ["���"]),
        (lines(header()) + rb'{"type":"message","id":"a","parentId":null,"timestamp":"x",'
         rb'"message":{"role":"user","content":"\ud83d"}}' + b"\n", ["\ufffd"]),
        (lines(header(), HI).replace(b"\n", b"\r\n"), ["Hi"]),
    ],
)  # fmt: skip
def test_a_bad_line_costs_no_more_than_itself(
    tmp_path: Path, data: bytes, texts: list[str]
) -> None:
    """Torn, NUL, no objects, nested too deeply, bad bytes, halves of a pair, other line ends."""
    path = tmp_path / file_name()
    path.write_bytes(data)
    assert said(*read(path)) == texts


def test_words_of_any_length_are_kept(tmp_path: Path) -> None:
    """A line of 20 MB."""
    words = "海" * 7_000_000
    session = read_one(tmp_path, header(), user("aaaa0001", None, words, 1))
    assert said(session) == [words]


def test_a_file_without_a_header_is_the_session_of_its_name(tmp_path: Path) -> None:
    """Where it was named as pi's."""
    session = read_one(tmp_path, HI, HELLO)
    assert (session.session, session.project) == (SESSION, None)
    odd = write(tmp_path / "notes.jsonl", [header("a\nb"), HI])
    assert [one.session for one in read(odd)] == ["notes"]


def test_an_id_that_repeats_with_other_words_is_warned_of(tmp_path: Path) -> None:
    """Both are kept."""
    session = read_one(tmp_path, header(), HI, user("aaaa0001", None, "Other", 2))
    assert said(session) == ["Hi", "Other"]
    assert [warning.line for warning in session.warnings] == [3]


def test_recognises_its_files_by_their_first_lines(tmp_path: Path) -> None:
    """Of all versions; other agents' and other endings are not its."""
    reader = PiReader()
    path = tmp_path / file_name()
    old = header()
    del old["version"]
    titled = lines({"type": "title", "title": "x"}, header())
    for head in (lines(old), lines(header()), lines(newest()), titled, lines(newest(v=4))):
        assert reader.recognises(path, head)
    foreign: list[Record] = [
        {"type": "session", "version": 4, "id": SESSION, "timestamp": at(0)},
        {"type": "session", "version": 3, "timestamp": at(0)},
        {"kind": "header", "version": 5, "id": SESSION},
        {"type": "session_meta", "id": "x", "payload": {}},
        {"type": "user", "uuid": "x", "parentUuid": None},
    ]
    assert not any(reader.recognises(path, lines(one)) for one in foreign)
    assert not reader.recognises(path, b"\xff[" + b"[" * 200_000)
    assert not reader.recognises(path.with_suffix(".txt"), lines(header()))
    for file in DATA.glob("*.jsonl"):
        assert reader.recognises(file, file.read_bytes())
        assert not OpenClawReader().recognises(file, file.read_bytes())
