"""Tests of opencode's sessions: words, order, forks, take-backs, sub-agents."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_store.transcripts.opencode_program import (
    EPOCH_MS,
    EXPORTED,
    WRITTEN,
    Opencode,
    edges,
    read,
    said,
    words,
)
from turnmark_session_store.model import CallerRef
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.opencode.reader import OpencodeReader

MAIN, SUB = "ses_dd6e20f21ffevHhqSJHAtIbvYP", "ses_dd6e1b35dffePTlBbWQTW1NlVQ"
FORK, FULL_FORK = "ses_dd6e194bbffedyWGG2CAP8mFSN", "ses_dd6e18acaffex3lj2lnRox3OkG"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Opencode]:
    """The program on a database of its own."""
    running = Opencode(tmp_path / "opencode.db")
    yield running
    running.close()


# What the program itself wrote.


def test_what_the_program_wrote_is_all_there_and_once() -> None:
    """Five prompts stand, the log tells the sixth, the fork adds one, the sub-agent none."""
    found = read(WRITTEN)
    assert [said(found[name]) for name in (SUB, FORK, FULL_FORK)] == [
        [],
        ["On this fork plan Sunday."],
        [],
    ]
    assert said(found[MAIN]) == [
        "My name is Robin and I moved from Oslo to Bergen last month.",
        "Please list files here.",
        "Please delegate the ferry research.",
        "I prefer tabs.",
        "Actually I prefer two spaces.",
        "Which city do I live in?",
    ]
    assert not any(one.warnings for one in found.values())


def test_a_turn_that_was_deleted_stands_where_a_fork_holds_its_copy() -> None:
    """The archived fork ends in it; nothing of the set was taken back."""
    found = read(WRITTEN)
    assert words(found[FULL_FORK], found[FULL_FORK].tips, found[MAIN]) == ["Noted: I prefer tabs."]
    assert [one.taken_back for one in found.values()] == [(), (), (), ()]
    turns = {str(one.turn.text): one for one in found[MAIN].turns}
    tabs, spaces = turns["I prefer tabs."], turns["Actually I prefer two spaces."]
    assert tabs.predecessor == spaces.predecessor


def test_the_task_of_a_sub_agent_is_its_callers() -> None:
    """It is a root with a caller: the turn at which the session stood that called."""
    found = read(WRITTEN)
    asked = next(one.turn.id for one in found[MAIN].turns if "delegate" in str(one.turn.text))
    assert found[SUB].caller == CallerRef(session=MAIN, turn=str(asked))
    task = found[SUB].turns[0]
    assert (task.turn.kind, task.predecessor, task.turn.caller) == (
        "runtime",
        None,
        found[SUB].caller,
    )


def test_an_export_comes_to_the_turns_of_the_database() -> None:
    """It has no log, so what was taken back is not in it."""
    [exported] = read(EXPORTED).values()
    stored = read(WRITTEN)[MAIN]
    ids = [one.turn.id for one in stored.turns if "tabs" not in str(one.turn.text)]
    assert [one.turn.id for one in exported.turns] == ids
    assert exported.tips == stored.tips


# Words.


def test_a_turn_says_what_was_said_and_not_what_the_program_added(program: Opencode) -> None:
    """Synthetic and ignored parts, thoughts and tools are no words; parts keep their order."""
    session = program.open("a")
    asked = program.prompt(session, "看一下这个文件", "and the other one\u2028too")
    program.part(asked, type="text", text="Called the Read tool", synthetic=True)
    program.part(asked, type="text", text="a note of the screen", ignored=True)
    told = program.begin(session, role="assistant")
    program.part(told, type="reasoning", text="Hm.")
    program.part(told, type="text", text="One moment.")
    program.part(told, type="tool", tool="read", callID="c", state={"status": "completed"})
    program.part(told, type="text", text="Done.")
    program.finish(told)
    found = read(program.path)[session]
    assert edges(found) == {
        "看一下这个文件\n\nand the other one\u2028too": None,
        "One moment.\n\nDone.": "看一下这个文件\n\nand the other one\u2028too",
    }


def test_quotes_that_the_command_line_added_are_cut(program: Opencode) -> None:
    """Those that a person put around one word, or inside a sentence, stay."""
    session = program.open("a")
    for typed in ('"I moved to \\"Porto\\""', '"Porto"', 'say "a b" and "c d"', '"a b" "c d"'):
        program.prompt(session, typed)
    assert said(read(program.path)[session]) == [
        'I moved to "Porto"',
        '"Porto"',
        'say "a b" and "c d"',
        '"a b" "c d"',
    ]


def test_a_picture_without_words_is_a_turn(program: Opencode) -> None:
    """A text file that goes with nothing is none."""
    session = program.open("a")
    shown = program.prompt(session)
    program.part(shown, type="file", mime="image/png", url="data:image/png;base64,AAAA")
    listed = program.prompt(session)
    program.part(listed, type="file", mime="text/plain", url="file:///a.txt")
    [turn] = read(program.path)[session].turns
    assert turn.turn.text == ""


def test_summaries_and_stopped_answers_keep_the_chain_and_are_no_evidence(
    program: Opencode,
) -> None:
    """Each has a kind of its own; the row that asked for a summary is no turn."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    program.compact(session, "They counted.")
    program.prompt(session, "three")
    stopped = program.begin(session, role="assistant", error={"name": "MessageAbortedError"})
    program.part(stopped, type="text", text="fo")
    failed = program.begin(session, role="assistant", error={"name": "APIError"})
    program.part(failed, type="text", text="fiv")
    found = read(program.path)[session]
    assert [(one.turn.kind, one.turn.text) for one in found.turns] == [
        ("turn", "one"),
        ("turn", "two"),
        ("summary", "They counted."),
        ("turn", "three"),
        ("runtime", "fo"),
        ("error", "fiv"),
    ]
    assert edges(found)["three"] == "They counted."


def test_very_old_words_stand_in_the_summary(program: Opencode) -> None:
    """Only where the message has no part at all."""
    session = program.open("a")
    program.prompt(session, summary={"title": "Greeting", "body": "hello"})
    program.prompt(session, "with parts", summary={"title": "Parts"})
    assert said(read(program.path)[session]) == ["hello", "with parts"]


def test_a_title_that_the_program_gives_at_first_is_none(program: Opencode) -> None:
    """The one that it finds later is."""
    program.prompt(program.open("a", title="New session - 2026-08-09T10:00:00.000Z"), "x")
    program.prompt(program.open("b", title="Porto"), "y")
    assert [one.title for one in read(program.path).values()] == [None, "Porto"]


# Broken and strange rows.


def test_times_may_be_text_or_missing_or_beyond_all_years(program: Opencode) -> None:
    """ISO and milliseconds come to the same moment; without any the row's own time counts."""
    session = program.open("a")
    at = program.now + 1_000
    for created in ("2026-08-09T10:00:02Z", None, 5e246):
        program.prompt(session, f"at {created}", time={"created": created})
    turns = read(program.path)[session].turns
    assert at == EPOCH_MS + 2_000
    assert [one.turn.time for one in turns] == [
        "2026-08-09T10:00:02.000Z",
        "2026-08-09T10:00:04.000Z",
        "2026-08-09T10:00:06.000Z",
    ]


@pytest.mark.parametrize("bad", ["", "{", "[1]", '"x"', "\0", '{"role":"nobody"}', "{}", None])
def test_one_bad_row_costs_nothing_but_itself(program: Opencode, bad: str | None) -> None:
    """It is told of, unless it is whole and says nothing."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    broken = program.prompt(session, "lost")
    program.exchange(session, "three", "four")
    value = bad if bad is not None else b"\xff"
    program.db.execute("UPDATE message SET data = ? WHERE id = ?", (value, broken))
    found = read(program.path)[session]
    assert said(found) == ["one", "three"]
    assert len(found.warnings) == (0 if bad in ('{"role":"nobody"}', "{}") else 1)


def test_lone_surrogates_and_bytes_that_are_no_text_are_replaced(program: Opencode) -> None:
    """Such a row was cut out of a longer text."""
    session = program.open("a")
    program.prompt(session, "x")
    program.db.execute(
        "UPDATE part SET data = CAST(? AS TEXT)", (b'{"type":"text","text":"a\xff"}',)
    )
    program.prompt(session, "cut \ud83d")
    assert said(read(program.path)[session]) == ["a\ufffd", "cut \ufffd"]


def test_columns_that_are_not_there_are_done_without(program: Opencode) -> None:
    """A version without markers, titles and directories."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    for column in ("revert", "title", "directory", "time_updated"):
        program.db.execute(f"ALTER TABLE session DROP COLUMN {column}")
    program.db.execute("DROP TABLE event")
    assert edges(read(program.path)[session]) == {"one": None, "two": "one"}


@pytest.mark.parametrize("orphan", ["", "msg_00", "msg_\u0100", "msg_~", "zzz"])
def test_parts_without_their_message_lead_no_words_astray(program: Opencode, orphan: str) -> None:
    """Wherever they stand among the others; one message has no parts, one has them mixed in."""
    session = program.open("a")
    first = program.prompt(session, "one")
    program.prompt(session)
    second = program.prompt(session, "二")
    program.part(first, type="text", text="more of it")
    program.prompt(session, "three")
    program.part(second, type="text", text="再")
    program.db.execute("PRAGMA foreign_keys = off")
    program.db.execute(
        "INSERT INTO part SELECT 'prt_' || ?1, ?1, session_id, 1, 1, data FROM part LIMIT 1",
        (orphan,),
    )
    assert said(read(program.path)[session]) == ["one\n\nmore of it", "二\n\n再", "three"]


def test_what_stands_only_in_the_log_of_sqlite_is_read(program: Opencode) -> None:
    """The database itself holds nothing yet."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    assert program.path.stat().st_size <= 4096
    assert program.path.with_name("opencode.db-wal").stat().st_size > 4096
    assert said(read(program.path)[session]) == ["one"]


def test_a_session_of_thousands_is_no_recursion(program: Opencode) -> None:
    """Nor a long time."""
    session = program.open("a")
    with program.db:
        for number in range(3_000):
            program.prompt(session, f"number {number}")
    found = read(program.path)[session]
    assert len(found.turns) == 3_000
    assert found.turns[-1].predecessor == found.turns[-2].turn.id


def test_a_clock_that_goes_backwards_loses_nothing(program: Opencode) -> None:
    """The order is that of the times, as the program's own."""
    session = program.open("a")
    program.prompt(session, "later")
    program.now -= 60_000
    program.prompt(session, "earlier")
    assert edges(read(program.path)[session]) == {"earlier": None, "later": "earlier"}


# Forks.


def test_a_fork_shares_its_prefix_and_adds_its_own(program: Opencode) -> None:
    """Both branches are there, with a pointer that no row holds."""
    origin = program.open("a")
    program.exchange(origin, "one", "two")
    cut = program.prompt(origin, "three")
    fork = program.fork(origin, "b", before=cut)
    program.exchange(fork, "other three", "other four")
    program.answer(origin, "four")
    found = read(program.path)
    two = found[origin].turns[1].turn.id
    assert edges(*found.values()) == {
        "one": None,
        "two": "one",
        "three": "two",
        "four": "three",
        "other three": "two",
        "other four": "other three",
    }
    assert said(found[fork]) == ["other three"]
    assert found[fork].forked_from == ForkPoint(session=origin, turn=two)
    assert [words(found[one], found[one].tips, found[origin]) for one in (origin, fork)] == [
        ["four"],
        ["other four"],
    ]


def test_a_fork_alone_comes_to_the_ids_of_its_origin(program: Opencode, tmp_path: Path) -> None:
    """Whichever is read first, also where the origin was deleted before."""
    origin = program.open("a")
    program.exchange(origin, "one", "two")
    whole = [one.turn.id for one in read(program.path)[origin].turns]
    fork = program.fork(origin, "b")
    program.delete(origin)
    program.prompt(fork, "three")
    [left] = read(program.path).values()
    assert [one.turn.id for one in left.turns[:2]] == whole
    assert said(left) == ["one", "three"]


def test_a_fork_of_a_fork_rests_on_it(program: Opencode) -> None:
    """Each shares what it has from the one before."""
    one = program.open("a")
    program.exchange(one, "one", "two")
    two = program.fork(one, "b")
    program.exchange(two, "three", "four")
    three = program.fork(two, "c")
    program.exchange(three, "five", "six")
    found = read(program.path)
    assert edges(*found.values())["five"] == "four"
    point = found[three].forked_from
    assert point is not None
    assert (point.session, said(found[three])) == (two, ["five"])


def test_the_same_words_at_another_moment_are_another_turn(program: Opencode) -> None:
    """Thousands say "yes"; nothing is shared by text alone."""
    for name in "abc":
        program.exchange(program.open(name), "yes", "ok")
    found = read(program.path)
    assert [said(one) for one in found.values()] == [["yes"]] * 3
    assert len({turn.turn.id for one in found.values() for turn in one.turns}) == 6


def test_what_is_said_twice_in_one_moment_is_there_twice(program: Opencode) -> None:
    """In a store without times all are said in one."""
    session = program.open("a")
    moment = {"created": program.now}
    for _ in range(3):
        program.prompt(session, "again", time=moment)
    turns = read(program.path)[session].turns
    assert [turn.turn.text for turn in turns] == ["again"] * 3
    assert len({turn.turn.id for turn in turns}) == 3


def test_a_session_that_moves_to_another_project_keeps_its_turns(program: Opencode) -> None:
    """A directory becomes a repository, and its sessions are that project's."""
    session = program.open("a", project_id="global")
    program.exchange(session, "one", "two")
    before = read(program.path)[session]
    program.db.execute("UPDATE session SET project_id = 'f00'")
    assert read(program.path)[session] == before


# Take-backs.


def test_a_marker_takes_back_what_is_behind_it(program: Opencode) -> None:
    """The session stands before it, although the rows are still there."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    cut, _ = program.exchange(session, "I prefer tabs", "noted")
    program.revert(session, cut)
    found = read(program.path)[session]
    assert words(found, found.taken_back) == ["I prefer tabs", "noted"]
    assert words(found, found.tips) == ["two"]
    program.unrevert(session)
    assert read(program.path)[session].taken_back == ()


def test_what_was_deleted_is_told_by_the_log(program: Opencode) -> None:
    """With its words and its place; the next prompt hangs from what was there before."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    cut, _ = program.exchange(session, "three", "four")
    program.revert(session, cut)
    again, _ = program.exchange(session, "other three", "other four")
    program.revert(session, again)
    program.prompt(session, "last three")
    found = read(program.path)[session]
    assert edges(found) == {
        "one": None,
        "two": "one",
        "three": "two",
        "four": "three",
        "other three": "two",
        "other four": "other three",
        "last three": "two",
    }
    assert words(found, found.taken_back) == ["three", "four", "other three", "other four"]
    assert words(found, found.tips) == ["last three"]


def test_what_is_gone_without_a_record_was_not_taken_back(program: Opencode) -> None:
    """A log of an older version, or none: absence says nothing."""
    program.logs = False
    session = program.open("a")
    program.exchange(session, "one", "two")
    cut, _ = program.exchange(session, "three", "four")
    program.revert(session, cut)
    program.prompt(session, "other three")
    found = read(program.path)[session]
    assert edges(found) == {"one": None, "two": "one", "other three": "two"}
    assert found.taken_back == ()


def test_a_marker_inside_an_answer_takes_back_the_rest_of_it(program: Opencode) -> None:
    """What the answer said before that stands."""
    session = program.open("a")
    program.prompt(session, "one")
    told = program.begin(session, role="assistant")
    program.part(told, type="text", text="two")
    rest = program.part(told, type="text", text="and a half")
    program.finish(told)
    program.exchange(session, "three", "four")
    program.revert(session, told, rest)
    found = read(program.path)[session]
    assert words(found, found.taken_back) == ["two\n\nand a half", "three", "four"]
    assert words(found, found.tips) == ["two"]
    program.prompt(session, "other three")
    assert edges(read(program.path)[session])["other three"] == "two"


def test_what_a_fork_goes_on_from_stands(program: Opencode) -> None:
    """Its origin took it back, the fork did not."""
    origin = program.open("a")
    program.exchange(origin, "one", "two")
    cut, _ = program.exchange(origin, "three", "four")
    fork = program.fork(origin, "b")
    program.revert(origin, cut)
    program.prompt(origin, "other three")
    found = read(program.path)
    assert found[origin].taken_back == ()
    assert words(found[fork], found[fork].tips, found[origin]) == ["four"]
    program.revert(fork, program.messages(fork)[2][0])
    assert words(found[origin], read(program.path)[origin].taken_back) == ["three", "four"]


def test_one_message_that_was_deleted_leaves_the_others_where_they_are(
    program: Opencode,
) -> None:
    """Nothing that stands hangs from it."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    gone = program.prompt(session, "secret")
    program.exchange(session, "three", "four")
    program.remove(gone)
    found = read(program.path)[session]
    assert words(found, found.taken_back) == ["secret"]
    assert (edges(found)["three"], edges(found)["secret"]) == ("two", "two")


# Sub-agents.


def test_a_sub_agent_is_called_by_the_turn_that_began_it(program: Opencode) -> None:
    """By the record that names it, whatever it was told, and its caller's answer goes on."""
    session = program.open("a")
    program.prompt(session, "ask somebody")
    told = program.begin(session, role="assistant")
    program.part(told, type="text", text="I'll ask.")
    child = program.open("b", parent=session)
    program.call(told, child, "Find it")
    program.exchange(child, "Find it.", "Found.")
    program.finish(told)
    program.answer(session, "It is found.")
    found = read(program.path)
    called = found[child].caller
    assert called is not None
    assert words(found[session], (called.turn,)) == ["I'll ask."]
    assert said(found[child]) == []
    assert said(found[child], role="assistant") == ["Found."]


def test_without_a_record_the_task_names_the_caller_and_else_the_time(program: Opencode) -> None:
    """Versions that note no session with a call."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    program.prompt(session, "three")
    told = program.begin(session, role="assistant")
    state = {"status": "running", "input": {"prompt": "Count"}}
    program.part(told, type="tool", tool="task", callID="c", state=state)
    child = program.open("b", parent=session)
    program.prompt(child, "Count")
    other = program.open("c", parent=session)
    program.prompt(other, "Something else")
    program.finish(told)
    program.exchange(session, "four", "five")
    found = read(program.path)
    callers = [found[one].caller for one in (child, other)]
    assert [words(found[session], (one.turn,)) for one in callers if one] == [["three"], ["three"]]


def test_a_sub_agent_without_its_caller_is_no_person_either(program: Opencode) -> None:
    """Its session is not there; the task is the same turn."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    child = program.open("b", parent=session)
    program.exchange(child, "Count", "Done")
    before = [one.turn.id for one in read(program.path)[child].turns]
    program.delete(session)
    [left] = read(program.path).values()
    assert (left.caller, said(left), said(left, kind="runtime")) == (None, [], ["Count"])
    assert [one.turn.id for one in left.turns] == before


def test_a_fork_of_a_sub_agents_session_has_the_task_from_no_person(program: Opencode) -> None:
    """The copy has no parent, but the same words at the same moment."""
    session = program.open("a")
    program.prompt(session, "one")
    child = program.open("b", parent=session)
    program.exchange(child, "Count", "Done")
    fork = program.fork(child, "c")
    program.prompt(fork, "and again")
    found = read(program.path)
    assert said(found[fork]) == ["and again"]
    assert said(found[child], kind="runtime") == ["Count"]


def test_sub_agents_that_call_each_other_end(program: Opencode) -> None:
    """Rows in which each is the other's parent."""
    one = program.open("a")
    two = program.open("b", parent=one)
    program.db.execute("UPDATE session SET parent_id = ? WHERE id = ?", (two, one))
    program.exchange(one, "one", "two")
    program.exchange(two, "three", "four")
    found = read(program.path)
    assert sorted(str(turn.turn.text) for each in found.values() for turn in each.turns) == [
        "four",
        "one",
        "three",
        "two",
    ]


# Which files, and which sessions.


def test_sessions_of_turnmarks_own_writer_are_passed_over(program: Opencode) -> None:
    """With their sub-agents, and with nothing of the others."""
    own = program.open("a", directory="/state/writer/x")
    program.exchange(own, "write", "written")
    program.exchange(program.open("b", parent=own), "task", "done")
    program.exchange(program.open("c"), "hello", "hi")
    found = read(program.path, skip_directories=[Path("/state/writer")])
    assert [said(one) for one in found.values()] == [["hello"]]


def test_what_is_written_at_this_moment_is_left_out(program: Opencode) -> None:
    """An import takes the question and not half of the answer."""
    program.now = round(time.time() * 1000)
    session = program.open("a")
    program.prompt(session, "one")
    told = program.begin(session, role="assistant")
    program.part(told, type="text", text="tw")
    assert edges(read(program.path)[session]) == {"one": None}
    program.finish(told)
    assert edges(read(program.path)[session]) == {"one": None, "tw": "one"}


def test_an_answer_that_nobody_ends_any_more_counts_as_it_is(program: Opencode) -> None:
    """The program died."""
    session = program.open("a")
    program.prompt(session, "one")
    program.part(program.begin(session, role="assistant"), type="text", text="tw")
    assert edges(read(program.path)[session]) == {"one": None, "tw": "one"}


def test_a_database_is_recognised_by_its_tables(program: Opencode, tmp_path: Path) -> None:
    """Whatever its name; its log and another program's database are none."""
    program.prompt(program.open("a"), "x")
    reader = OpencodeReader()
    moved = tmp_path / "kept.db"
    moved.write_bytes(WRITTEN.read_bytes())
    for path, known in ((program.path, True), (moved, True), (EXPORTED, True)):
        assert reader.recognises(path, path.read_bytes()[:4096]) is known
    log = program.path.with_name("opencode.db-wal")
    assert not reader.recognises(log, log.read_bytes()[:4096])
    other = Opencode(tmp_path / "opencode-other.db")
    other.db.execute("DROP TABLE part")
    assert not reader.recognises(other.path, b"SQLite format 3\0")
    other.close()


def test_the_order_in_which_files_are_given_changes_nothing(
    program: Opencode, tmp_path: Path
) -> None:
    """Two channels' databases and an export of a session that one of them holds."""
    session = program.open("a")
    program.exchange(session, "one", "two")
    other = Opencode(tmp_path / "opencode-beta.db", now=program.now + 500)
    program.exchange(session, "three", "four")
    other.exchange(other.open("z"), "five", "six")
    paths = [program.path, other.path, WRITTEN, EXPORTED]
    wanted = read(*paths)
    for seed in range(4):
        random.Random(seed).shuffle(paths)
        assert read(*paths) == wanted
    other.close()
