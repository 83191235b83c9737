"""Tests of `session_store/transcripts/codex/reader.py`: rollouts in, sessions of turns out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from session_store.transcripts.codex_rollouts import (
    OTHER,
    T1,
    T2,
    T3,
    TALK,
    THIRD,
    THREAD,
    U1,
    U2,
    U3,
    edges,
    event,
    item,
    meta,
    read,
    read_one,
    record,
    response,
    rollout_name,
    said,
    started,
    texts_of,
    told,
    typed,
    uuid7,
)
from session_store.transcripts.json_records import Record, lines, write
from turnmark_events.errors import Unavailable
from turnmark_session_store.model import CallerRef
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.codex.reader import CodexReader
from turnmark_session_store.transcripts.reader import ReadSession

DATA = Path(__file__).resolve().parents[2] / "data" / "codex" / "generated-v0.169"
REVERTED = "01a22921-7692-7751-a692-8ea930f22500"
AGENT = "01a22921-7841-7383-aa3b-4ea365700f5b"
LONG = "01a22920-6177-73c0-b0d1-b8b7d161046c"
FORK = "01a22920-6643-7330-a946-ab1ad5d715e9"


def generated() -> dict[str, ReadSession]:
    """The threads that the program itself wrote."""
    return {one.session: one for one in read(*sorted(DATA.rglob("*.jsonl")))}


# What the program wrote.


def test_reads_three_files_of_a_thread_that_was_reverted_twice() -> None:
    """Six prompts, three ends; the task of the sub-agent is none of them."""
    session = generated()[REVERTED]
    assert said(session) == [
        "I live in Bergen.",
        "Please delegate the ferry research.",
        "I prefer tabs.",
        "Actually I prefer two spaces.",
        "Second thing on reverted branch.",
        "Start over from the beginning.",
    ]
    found = edges(session)
    assert found["I prefer tabs."] == found["Actually I prefer two spaces."]
    assert found["Actually I prefer two spaces."] == "The tool has finished."
    assert found["Start over from the beginning."] is None
    texts = texts_of([session])
    assert [texts[tip] for tip in session.tips] == [
        "Noted: I prefer tabs.",
        "Noted: Second thing on reverted branch.",
        "Noted: Start over from the beginning.",
    ]
    assert session.head == session.tips[-1]
    assert (session.taken_back, session.forked_from) == ((), None)
    assert not any(turn.lost_predecessor for turn in session.turns)


def test_reads_a_thread_with_steering_tools_and_a_compaction() -> None:
    """Six prompts, two of one exchange; the summary is no answer."""
    session = generated()[LONG]
    assert len(said(session)) == 6
    answers = said(session, role="assistant")
    assert len(answers) == 5
    assert not [text for text in answers if "Summary" in text]
    assert said(session)[-2:] == ["Which city do I live in?", "Please delegate the ferry research."]
    assert len(session.turns) == 11


def test_reads_a_fork_behind_a_turn_of_its_origin() -> None:
    """One prompt more, and nothing of the origin again."""
    sessions = generated()
    fork = sessions[FORK]
    assert said(fork) == ["On this fork plan Sunday."]
    assert fork.forked_from is not None
    assert fork.forked_from.session == LONG
    assert texts_of([sessions[LONG]])[str(fork.forked_from.turn)] == "Noted: I prefer tabs."
    assert fork.turns[0].predecessor == fork.forked_from.turn


def test_reads_a_sub_agent_as_a_session_with_a_caller() -> None:
    """It begins with a task, which is no person's."""
    agent = generated()[AGENT]
    assert said(agent) == []
    assert said(agent, kind="runtime") == ["Find ferry times and report back."]
    caller = agent.caller
    assert caller is not None
    assert caller.session == REVERTED
    texts = texts_of([generated()[REVERTED]])
    assert texts[caller.turn] == "Please delegate the ferry research."
    assert (agent.turns[0].turn.caller, agent.turns[0].predecessor) == (caller, None)


def test_a_fork_and_an_agent_alone_say_what_they_miss() -> None:
    """Their files do not hold what they rest on."""
    files = {path.name: path for path in DATA.rglob("*.jsonl")}
    [fork] = read(next(path for name, path in files.items() if FORK in name))
    assert [turn.lost_predecessor for turn in fork.turns] == [True, False]
    assert fork.forked_from is None
    [agent] = read(next(path for name, path in files.items() if AGENT in name))
    assert (agent.caller, said(agent, kind="runtime")) == (
        None,
        ["Find ferry times and report back."],
    )


def test_facts_about_a_session_and_its_turns() -> None:
    """The project, the time, where a turn was read, which model said it."""
    session = generated()[REVERTED]
    assert (session.agent, session.namespace) == ("codex", "codex")
    assert (session.project, session.title) == ("/home/user/demo", None)
    turn = session.turns[1].turn
    assert turn.time == "2026-11-29T21:06:28.928Z"
    assert turn.metadata == {
        "origin": {
            "file": f"rollout-2026-11-29T21-06-28-{REVERTED}.jsonl",
            "line": 10,
        },
        "model": "demo",
    }


# Which copy of a message counts.


def test_reads_the_old_events(tmp_path: Path) -> None:
    """A prompt, commentary and the answer, each once, though each is there twice."""
    session = read_one(
        tmp_path,
        meta(),
        started(T1, 10),
        response("developer", 10, "<permissions instructions>"),
        response("user", 10, "# AGENTS.md instructions for /x\n<INSTRUCTIONS>x</INSTRUCTIONS>"),
        response("user", 11, "Fix the parser"),
        typed("Fix the parser", 11),
        event("agent_reasoning", 12, text="Hm."),
        typed("Use tabs.", 12, kind="user_instructions"),
        record("session_meta", 12, {"id": 7}),
        told("I look at it.", 12, phase="commentary"),
        response("assistant", 12, "I look at it."),
        record("response_item", 13, {"type": "function_call", "name": "x", "call_id": "c"}),
        told("Fixed.", 14, phase="final_answer"),
        event("task_complete", 15, turn_id=T1, last_agent_message="Fixed."),
    )
    assert edges(session) == {
        "Fix the parser": None,
        "I look at it.": "Fix the parser",
        "Fixed.": "I look at it.",
    }
    phases = [turn.turn.metadata["phase"] for turn in session.turns[1:]]
    assert phases == ["commentary", "final_answer"]


def test_an_event_and_an_item_that_say_the_same_are_one(tmp_path: Path) -> None:
    """As a version between the two might write them; what is said twice is two."""
    session = read_one(
        tmp_path,
        meta(),
        started(T1, 10),
        typed("Yes", 11),
        item("UserMessage", U1, T1, 11, "Yes"),
        item("AgentMessage", "msg_1", T1, 12, "Well."),
        told("Well.", 12),
        item("UserMessage", U2, T1, 13, "Yes"),
        typed("Yes", 13),
    )
    assert said(session) == ["Yes", "Yes"]
    assert said(session, role="assistant") == ["Well."]


def test_a_plan_is_said(tmp_path: Path) -> None:
    """What is agreed to in the next prompt stands in it."""
    plan = {"type": "Plan", "id": f"{T1}-plan", "text": "# Plan\n1. Sail."}
    session = read_one(
        tmp_path,
        *TALK[:4],
        event("item_completed", 13, turn_id=T1, item=plan),
        *TALK[4:6],
    )
    assert edges(session)["我喜欢咖啡。"] == "# Plan\n1. Sail."


def test_reads_what_the_model_was_shown_where_there_is_nothing_else(tmp_path: Path) -> None:
    """Without what the harness put there; a summary that was made for the model is none."""
    summary = "Robin lives in Bergen."
    session = read_one(
        tmp_path,
        meta(),
        response("user", 1, "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"),
        response("user", 2, "I live in Bergen."),
        response("assistant", 3, "Noted."),
        response("assistant", 4, summary),
        record("compacted", 5, {"message": f"Another model says: {summary}"}),
        response("user", 6, "<image>", "</image>", "And tea?"),
        response("assistant", 7, "gAAAAABmV3k2b2Rpbmcgb2YgYSBzZWNyZXQgdG9rZW4="),
        response("assistant", 8, "Tea, too."),
    )
    assert edges(session) == {
        "I live in Bergen.": None,
        "Noted.": "I live in Bergen.",
        "And tea?": "Noted.",
        "Tea, too.": "And tea?",
    }


def test_a_file_that_went_on_under_a_newer_version_keeps_its_beginning(tmp_path: Path) -> None:
    """Exchanges from before the first event are read from what the model was shown."""
    session = read_one(
        tmp_path,
        meta(),
        started(T1, 10),
        response("user", 11, "I live in Bergen."),
        response("assistant", 12, "Noted."),
        started(T2, 20),
        response("user", 21, "我喜欢咖啡。"),
        typed("我喜欢咖啡。", 21),
        response("user", 22, "<x>Some new kind of notice</x>"),
    )
    assert said(session) == ["I live in Bergen.", "我喜欢咖啡。"]


def test_reads_files_from_before_there_were_envelopes(tmp_path: Path) -> None:
    """Without exchanges, ids and, in some, times that are text."""
    path = tmp_path / "rollout-2025-05-07-old.jsonl"
    first = {"id": "old", "timestamp": "2025-05-07T17:24:21.597Z", "instructions": None}
    said_then = [
        {"type": "message", "role": "user", "content": "Hello"},
        {"record_type": "state"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi"}],
        },
    ]
    write(path, [first, *({**one, "timestamp": 1_746_638_670} for one in said_then)])
    assert CodexReader().recognises(path, path.read_bytes())
    [session] = read(path)
    assert edges(session) == {"Hello": None, "Hi": "Hello"}
    assert session.turns[0].turn.time == "2025-05-07T17:24:30.000Z"


# Ids.


def test_ids_are_those_of_items_where_codex_made_them(tmp_path: Path) -> None:
    """A provider's ids count only within an exchange, and there only with their words."""
    session = read_one(
        tmp_path,
        meta(),
        item("UserMessage", U1, T1, 11, "One"),
        item("AgentMessage", "msg_1", T1, 12, "First"),
        item("AgentMessage", "msg_1", T1, 13, "Second"),
        item("AgentMessage", "msg_1", T1, 13, "Second"),
        item("UserMessage", U1, T1, 14, "One"),
        item("AgentMessage", "msg_1", T2, 22, "Third"),
    )
    assert [turn.turn.id for turn in session.turns] == [
        U1,
        f"{T1}.msg_1",
        f"{T1}.msg_1.2",
        f"{T2}.msg_1",
    ]


def test_the_same_words_in_two_threads_are_two_turns(tmp_path: Path) -> None:
    """Also where neither exchanges nor messages have ids."""
    for name in (THREAD, OTHER):
        talk = [typed("Hi", 1), told("Hello", 2), typed("Hi", 3)]
        write(tmp_path / rollout_name(name), [meta(name), *talk])
    one, other = read(*tmp_path.iterdir())
    ids = {turn.turn.id for session in (one, other) for turn in session.turns}
    assert len(ids) == 6


@pytest.mark.parametrize("turns", [(T1, T2), ("1", "2"), (None, None)], ids=["uuid", "count", "no"])
def test_a_copied_turn_is_the_turn_whatever_ids_there_are(
    tmp_path: Path, turns: tuple[str | None, str | None]
) -> None:
    """A fork of a fork, whose times are all of the copying."""
    talk = [
        *([started(turns[0], 10)] if turns[0] else []),
        typed("One", 11),
        told("First", 12),
        *([started(turns[1], 20)] if turns[1] else []),
        typed("Two", 21),
    ]
    again = [{**one, "timestamp": "2026-08-09T10:09:00.000Z"} for one in [meta(), *talk]]
    first = write(tmp_path / rollout_name(THREAD), [meta(), *talk, told("Second", 22)])
    forked = [meta(OTHER, 500, forked_from_id=THREAD), *again]
    second = write(tmp_path / rollout_name(OTHER), [*forked, typed("Three", 510)])
    third = write(
        tmp_path / rollout_name(THIRD),
        [meta(THIRD, 900, forked_from_id=OTHER), *forked, typed("Four", 910)],
    )
    sessions = read(first, second, third)
    assert edges(*sessions) == {
        "One": None,
        "First": "One",
        "Two": "First",
        "Second": "Two",
        "Three": "Two",
        "Four": "Two",
    }
    origin, fork, fork_of_fork = sessions
    assert (said(fork), said(fork_of_fork)) == (["Three"], ["Four"])
    assert fork.forked_from == ForkPoint(session=THREAD, turn=origin.turns[2].turn.id)
    alone = {t.turn.id for one in (first, second, third) for s in read(one) for t in s.turns}
    assert alone == {t.turn.id for s in sessions for t in s.turns}


# Forks, reverts, rollbacks.


def test_a_fork_without_its_origins_file_names_where_it_was_forked(tmp_path: Path) -> None:
    """What was said before the fork's thread began was said elsewhere, and then."""
    copied = [{**one, "timestamp": "2026-08-09T10:08:20.000Z"} for one in TALK]
    write(
        tmp_path / rollout_name(OTHER),
        [meta(OTHER, 500, forked_from_id=THREAD), *copied, started(uuid7(510, 9), 510)],
    )
    [fork] = read(tmp_path / rollout_name(OTHER))
    assert fork.forked_from == ForkPoint(session=THREAD, turn=fork.turns[-1].turn.id)
    assert fork.turns[0].turn.time == "2026-08-09T10:00:10.000Z"


@pytest.mark.parametrize(("number", "left"), [(1, 2), (2, 0), (9, 0), (0, 4)])
def test_a_rollback_takes_back_prompts_and_their_answers(
    tmp_path: Path, number: int, left: int
) -> None:
    """As the record says; what comes then hangs from what is left."""
    session = read_one(
        tmp_path,
        *TALK,
        event("thread_rolled_back", 25, num_turns=number),
        started(T3, 30),
        typed("Tea, then.", 31),
    )
    ids = [str(turn.turn.id) for turn in session.turns]
    assert session.taken_back == tuple(ids[left:4])
    assert session.turns[4].predecessor == (ids[left - 1] if left else None)
    assert (session.tips, session.head) == ((ids[4],), ids[4])


def test_all_may_be_rolled_back(tmp_path: Path) -> None:
    """Nothing is left, and nobody is there."""
    session = read_one(tmp_path, *TALK, event("thread_rolled_back", 25, num_turns=2))
    assert len(session.taken_back) == 4
    assert (session.tips, session.head) == ((), None)


def test_a_fork_keeps_what_its_origin_rolled_back_and_takes_nothing_from_it(
    tmp_path: Path,
) -> None:
    """Law 13: a turn is taken back where nothing goes on from it."""
    back = event("thread_rolled_back", 600, num_turns=1)
    fork = [meta(OTHER, 500, forked_from_id=THREAD), *TALK]
    origin = write(tmp_path / rollout_name(THREAD), [*TALK, back])
    kept = write(tmp_path / rollout_name(OTHER), [*fork, typed("On", 510)])
    sessions = read(origin, kept)
    assert [one.taken_back for one in sessions] == [(), ()]
    origin = write(origin, TALK)
    write(kept, [*fork, back])
    sessions = read(origin, kept)
    assert [one.taken_back for one in sessions] == [(), ()]
    [alone] = read(kept)
    assert alone.taken_back == ()


def test_a_revert_finds_its_line_by_the_byte_else_by_the_ordinal(tmp_path: Path) -> None:
    """Ordinals repeat; bytes may be of a file that was written anew since."""
    talk = [meta(ordinal=0), item("UserMessage", U1, T1, 11, "One", ordinal=1)]
    first = write(
        tmp_path / rollout_name(THREAD),
        [*talk, item("UserMessage", U2, T2, 21, "Two", ordinal=2)],
    )
    for shift in (0, 7):
        base = {
            "thread_id": THREAD,
            "end_ordinal_exclusive": 2,
            "end_byte_offset": len(lines(*talk)) + shift,
        }
        second = write(
            tmp_path / rollout_name(THREAD, uuid7(30, 5)),
            [
                meta(second=30, ordinal=2, history_base=base),
                item("UserMessage", U3, T3, 31, "Three", ordinal=3),
            ],
        )
        assert edges(*read(first, second)) == {"One": None, "Two": "One", "Three": "One"}


@pytest.mark.parametrize("end", [2**64 - 1, 2**70, 77, -1, None, "2"])
def test_a_base_that_can_not_be_is_lost_or_none(tmp_path: Path, end: Any) -> None:
    """Numbers that no file reaches, and what is no number."""
    first = write(tmp_path / rollout_name(THREAD), [meta(ordinal=0), *TALK[1:4]])
    base = {"thread_id": THREAD, "end_ordinal_exclusive": end, "end_byte_offset": end}
    fork = [meta(OTHER, 500, ordinal=2**70, history_base=base), typed("On", 510)]
    second = write(tmp_path / rollout_name(OTHER), fork)
    sessions = read(first, second)
    [turn] = {one.session: one for one in sessions}[OTHER].turns
    assert turn.predecessor is None
    assert turn.lost_predecessor is (isinstance(end, int) and end > 0)


def test_files_that_rest_on_each_other_in_a_circle_are_read(tmp_path: Path) -> None:
    """Nobody writes them, but nobody may hang."""
    for thread, other, key in ((THREAD, OTHER, U1), (OTHER, THREAD, U2)):
        base = {"thread_id": other, "end_ordinal_exclusive": 2}
        write(
            tmp_path / rollout_name(thread),
            [
                meta(thread, ordinal=0, history_base=base),
                item("UserMessage", key, T1, 11, f"In {thread}", ordinal=1),
            ],
        )
    sessions = read(*tmp_path.iterdir())
    assert sorted(edges(*sessions).values(), key=str) in (
        [f"In {THREAD}", None],
        [None, f"In {OTHER}"],
        [f"In {OTHER}", None],
        [None, f"In {THREAD}"],
    )


def test_a_rollout_that_is_moved_is_one(tmp_path: Path) -> None:
    """The archive may hold it while it is still in its place, or a shorter copy of it."""
    name = rollout_name(THREAD)
    write(tmp_path / "sessions" / name, [*TALK, event("thread_rolled_back", 25, num_turns=1)])
    write(tmp_path / "archived_sessions" / name, TALK)
    [session] = read(*tmp_path.rglob("*.jsonl"))
    assert len(session.turns) == 4
    assert len(session.taken_back) == 2
    write(tmp_path / "archived_sessions" / name, [*TALK, typed("Elsewhere", 40)])
    [session] = read(*tmp_path.rglob("*.jsonl"))
    assert "Elsewhere" in said(session), "what is in one of two files alone is read"


# Sub-agents and what is nobody's.


def agent_meta(**fields: Any) -> Record:
    """The first record of a sub-agent's file."""
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    return meta(OTHER, 500, source=spawn, **fields)


@pytest.mark.parametrize("with_parent", [True, False])
@pytest.mark.parametrize("marked", [True, False])
def test_a_sub_agent_that_began_with_its_parents_lines(
    tmp_path: Path, *, with_parent: bool, marked: bool
) -> None:
    """They are its parent's turns: neither again, nor before the task."""
    parent = write(
        tmp_path / rollout_name(THREAD),
        [*TALK, event("collab_agent_spawn_end", 499, new_thread_id=OTHER)],
    )
    copied = [meta(second=500), *TALK[1:]]
    own = [started(uuid7(501, 7), 501), typed("Find ferries.", 502), told("Found.", 503)]
    first = agent_meta()
    if marked:  # by ordinals, where ids tell nothing
        first = agent_meta(subagent_history_start_ordinal=len(copied) + 1)
        records = [{**one, "ordinal": number} for number, one in enumerate([first, *copied, *own])]
    else:
        records = [first, *copied, *own]
    agent = write(tmp_path / rollout_name(OTHER), records)
    sessions = read(*([parent] if with_parent else []), agent)
    found = {one.session: one for one in sessions}[OTHER]
    assert said(found, kind="runtime") == ["Find ferries."]
    assert said(found, role="assistant") == ["Found."]
    assert found.turns[0].predecessor is None
    assert (found.caller is not None) is with_parent
    if with_parent:
        assert found.caller == CallerRef(session=THREAD, turn=sessions[0].head or "")


def test_a_sub_agents_copies_are_known_by_their_parents_ids_where_those_tell_no_time(
    tmp_path: Path,
) -> None:
    """Of versions whose exchanges were counted."""
    talk = [started("1", 10), typed("One", 11), told("First", 12)]
    parent = write(tmp_path / rollout_name(THREAD), [meta(), *talk])
    copied = [agent_meta(), meta(), *talk, started("2", 501), typed("Find ferries.", 502)]
    agent = write(tmp_path / rollout_name(OTHER), copied)
    whole, below = read(parent, agent)
    assert edges(whole, below) == {"One": None, "First": "One", "Find ferries.": None}
    assert said(below, kind="runtime") == ["Find ferries."]


@pytest.mark.parametrize("with_root", [True, False])
def test_an_agent_of_an_agent_that_has_said_nothing_yet(tmp_path: Path, *, with_root: bool) -> None:
    """The one between them began with a copy, and rests on it alone."""
    root = write(tmp_path / rollout_name(THREAD), TALK)
    named = event("collab_agent_spawn_end", 502, new_thread_id=THIRD)
    copied = [{**one, "ordinal": number} for number, one in enumerate([meta(), *TALK[1:], named])]
    between = write(tmp_path / rollout_name(OTHER), [agent_meta(), *copied])
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "depth": 2}}}
    base = {"thread_id": OTHER, "end_ordinal_exclusive": 5}
    fork = uuid7(950, 4)
    below = write(
        tmp_path / rollout_name(THIRD), [meta(THIRD, 900, source=spawn), typed("Find.", 901)]
    )
    beside = write(
        tmp_path / rollout_name(fork), [meta(fork, 950, history_base=base), typed("On.", 951)]
    )
    sessions = {
        one.session: one for one in read(*([root] if with_root else []), between, below, beside)
    }
    assert sessions[THIRD].turns[0].predecessor is None
    assert (sessions[THIRD].caller is not None) is with_root
    assert (sessions[fork].turns[0].predecessor is not None) is with_root
    assert sessions[fork].turns[0].lost_predecessor is not with_root


def spawn_item() -> Record:
    """A completed call of the tool that spawns."""
    call = {"type": "CollabAgentToolCall", "tool": "spawnAgent", "receiver_thread_ids": [OTHER]}
    return event("item_completed", 21.5, item=call)


@pytest.mark.parametrize(
    "named",
    [
        event("collab_agent_spawn_end", 21.5, new_thread_id=OTHER),
        event("sub_agent_activity", 21.5, kind="started", agent_thread_id=OTHER),
        spawn_item(),
    ],
    ids=lambda one: one["payload"]["type"],
)
def test_a_caller_is_the_turn_before_the_record_that_names_the_agent(
    tmp_path: Path, named: Record
) -> None:
    """Whatever kind of record it is, and also if others name it later."""
    later = [event("sub_agent_activity", 23, kind="interacted", agent_thread_id=OTHER), named]
    write(tmp_path / rollout_name(THREAD), [*TALK[:6], named, TALK[6], *later])
    write(tmp_path / rollout_name(OTHER), [agent_meta(), typed("Find ferries.", 502)])
    parent, agent = read(*tmp_path.iterdir())
    assert agent.caller == CallerRef(session=THREAD, turn=str(parent.turns[2].turn.id))


def test_a_caller_is_named_by_the_exchange_where_no_record_names_the_agent(tmp_path: Path) -> None:
    """The prompt of that exchange."""
    write(tmp_path / rollout_name(THREAD), TALK)
    begun = started(uuid7(501, 7), 501, parent_turn_id=T2, root_turn_id=T2)
    write(tmp_path / rollout_name(OTHER), [agent_meta(), begun, typed("Find ferries.", 502)])
    parent, agent = read(*tmp_path.iterdir())
    assert agent.caller == CallerRef(session=THREAD, turn=str(parent.turns[2].turn.id))


@pytest.mark.parametrize(
    "fields",
    [
        {"source": {"subagent": "review"}},
        {"source": {"subagent": "compact"}},
        {"source": {"subagent": "memory_consolidation"}},
        {"source": {"subagent": {"other": "guardian"}}},
        {"source": {"internal": "memory_consolidation"}},
        {"thread_source": "memory_consolidation"},
        {"thread_source": "thread_title"},
    ],
    ids=str,
)
def test_threads_of_the_program_with_itself_are_passed_over(tmp_path: Path, fields: Record) -> None:
    """Law 15: derived text is no evidence."""
    write(tmp_path / rollout_name(THREAD), [meta(**fields), *TALK[1:]])
    assert read(tmp_path / rollout_name(THREAD)) == []


@pytest.mark.parametrize("source", ["cli", "exec", "vscode", {"custom": "x"}, None], ids=str)
@pytest.mark.parametrize("originator", ["codex_exec", "t3code_desktop", ""])
def test_who_asks_is_no_reason_to_pass_over(tmp_path: Path, source: Any, originator: str) -> None:
    """Clients give themselves any name."""
    session = read_one(tmp_path, meta(source=source, originator=originator), *TALK[1:])
    assert len(said(session)) == 2


@pytest.mark.parametrize(
    ("attribution", "kind"),
    [
        ({"turn_trigger": None, "parent_turn_id": None}, "turn"),
        ({"turn_trigger": "user"}, "turn"),
        ({"turn_trigger": "composer"}, "turn"),
        ({"turn_trigger": "goal"}, "runtime"),
        ({"turn_trigger": "scheduled_task"}, "runtime"),
        ({"turn_trigger": "user", "parent_turn_id": T3}, "runtime"),
        ({"initiating_agent_path": "/root/x"}, "runtime"),
    ],
    ids=str,
)
def test_an_exchange_that_no_person_set_off_is_no_persons(
    tmp_path: Path, attribution: Record, kind: str
) -> None:
    """Its answer is one all the same, and what comes after is a person's again."""
    session = read_one(
        tmp_path,
        meta(),
        started(T1, 10, **attribution),
        typed("Go on.", 11),
        told("I go on.", 12),
        started(T2, 20),
        typed("Stop.", 21),
    )
    assert [turn.turn.kind for turn in session.turns] == [kind, "turn", "turn"]


def test_what_a_scheduled_thread_is_told_is_no_persons(tmp_path: Path) -> None:
    """Design: scheduler prompts are not recordable; what the model then says is."""
    session = read_one(tmp_path, meta(thread_source="automation"), *TALK[1:])
    assert said(session) == []
    assert len(said(session, kind="runtime")) == len(said(session, role="assistant")) == 2


def test_what_was_taken_over_from_another_agent_is_its_readers(tmp_path: Path) -> None:
    """The same words are in that agent's own files."""
    session = read_one(
        tmp_path,
        meta(),
        started("external-import-turn-1", 1),
        typed("Said to Claude", 2),
        told("Said by Claude", 3),
        started(T1, 10),
        typed("Go on here.", 11),
    )
    assert edges(session) == {"Go on here.": None}


def test_turnmarks_own_writer_is_passed_over_with_its_agents(tmp_path: Path) -> None:
    """Law 15: memory does not feed on itself."""
    own = tmp_path / "state" / "writer"
    write(tmp_path / rollout_name(THREAD), [meta(cwd=str(own / "job-1")), *TALK[1:]])
    write(tmp_path / rollout_name(OTHER), [agent_meta(cwd="/x"), typed("Find", 501)])
    other = write(tmp_path / rollout_name(THIRD), [meta(THIRD), typed("Mine", 901)])
    sessions = read(*tmp_path.glob("*.jsonl"), skip_directories=[own])
    assert [one.session for one in sessions] == [THIRD]
    assert said(*sessions) == ["Mine"]
    del other


# Records that are not as they should be.


def test_a_thread_is_named_by_its_last_name(tmp_path: Path) -> None:
    """Records may be appended to a thread that nobody talks in; copies name another."""
    named = (
        event("thread_name_updated", 30, thread_id=THREAD, thread_name="Ferries"),
        event("thread_name_updated", 31, thread_id=OTHER, thread_name="Other"),
        meta(second=32, cwd="/elsewhere"),
    )
    session = read_one(tmp_path, *TALK, *named)
    assert (session.title, session.project) == ("Ferries", "/home/robin/demo")
    assert len(session.turns) == 4


def test_a_picture_without_words_is_a_turn(tmp_path: Path) -> None:
    """With empty text, which is not recordable."""
    shown = {"type": "UserMessage", "id": U1, "content": [{"type": "local_image", "path": "/x"}]}
    session = read_one(
        tmp_path,
        meta(),
        event("item_completed", 11, turn_id=T1, item=shown),
        typed("", 12, local_images=["/x.png"]),
        typed(" ", 13),
    )
    assert said(session) == ["", ""]


def test_bad_lines_cost_a_warning_each(tmp_path: Path) -> None:
    """NUL, bytes that are no UTF-8, halves of pairs, separators, no object, deep nesting."""
    path = tmp_path / rollout_name(THREAD)
    path.write_bytes(
        b"\0" * 5_000
        + b"\n"
        + lines(*TALK[:3])
        + b'{"type":"event_msg","payload":{"type":"user_message","message":"\xff"}}\n'
        + json.dumps(typed("half \ud83d of a pair", 12)).encode()
        + b"\n"
        + lines(typed("two\u2028lines\u0085here", 13))
        + b'"text"\n[1]\n{"a":\n'
        + b"[" * 100_000
        + b"\n"
        + lines(typed("last", 14))
        + b'{"type":"event_msg","payload":{"ty'
    )
    [session] = read(path)
    assert said(session) == [
        "I live in Bergen.",
        "\ufffd",
        "half \ufffd of a pair",
        "two\u2028lines\u0085here",
        "last",
    ]
    assert [warning.line for warning in session.warnings] == [1, 8, 9, 10, 11, 13]


def test_a_last_line_without_its_end_counts_if_it_is_whole(tmp_path: Path) -> None:
    """Nobody writes a finished file any more."""
    path = tmp_path / rollout_name(THREAD)
    path.write_bytes(lines(*TALK)[:-1])
    [session] = read(path)
    assert len(session.turns) == 4


def test_a_long_line_is_read(tmp_path: Path) -> None:
    """Pictures stand inline in lines of many megabytes."""
    data = "A" * 17_000_000
    shown = [{"type": "image", "image_url": f"data:image/png;base64,{data}"}]
    shown.append({"type": "text", "text": "What is this?"})
    item_shown = {"type": "UserMessage", "id": U1, "content": shown}
    session = read_one(
        tmp_path, meta(), event("item_completed", 11, turn_id=T1, item=item_shown), typed("So?", 12)
    )
    assert said(session) == ["What is this?", "So?"]


def test_a_file_whose_first_record_is_lost_is_its_names(tmp_path: Path) -> None:
    """The thread stands in the name."""
    path = tmp_path / rollout_name(THREAD, OTHER)
    path.write_bytes(b"\0\0\n" + lines(*TALK[1:]))
    [session] = read(path)
    assert (session.session, len(session.turns)) == (THREAD, 4)


@pytest.mark.parametrize(
    "records", [[], [meta()], [meta(), event("token_count", 1)], ["{}"], ["[]", "7"]], ids=str
)
def test_files_without_words_give_no_turn(tmp_path: Path, records: list[Any]) -> None:
    """Empty, only a first record, other programs'."""
    path = write(tmp_path / rollout_name(THREAD), records)
    assert [one.turns for one in read(path) if one.turns] == []


def test_ids_that_could_harm_are_as_good_as_none(tmp_path: Path) -> None:
    """They come from outside, and become names."""
    bad = "a\nb" * 300
    session = read_one(
        tmp_path,
        meta(),
        item("UserMessage", bad, T1, 11, "One"),
        item("AgentMessage", bad, bad, 12, "Two"),
    )
    assert all(str(turn.turn.id).isprintable() for turn in session.turns)
    assert len(session.turns) == 2


@pytest.mark.parametrize(
    ("written", "time"),
    [
        (1_754_733_600, "2025-08-09T10:00:00.000Z"),
        (1_754_733_600_123, "2025-08-09T10:00:00.123Z"),
        ("2025-08-09T12:00:00+02:00", "2025-08-09T10:00:00.000Z"),
        (1e300, None),
        (-1e13, None),
        (True, None),
        ("yesterday", None),
    ],
)
def test_times_are_taken_as_they_come(tmp_path: Path, written: Any, time: str | None) -> None:
    """Numbers in seconds or milliseconds; without one, that of the record before."""
    late = "ffffffff-ffff-7000-8000-000000000001"
    first = {**meta(late), "timestamp": None}
    said_then = {**typed("Hi", 1, turn_id=late), "timestamp": written}
    session = read_one(tmp_path, first, {**started(late, 0), "timestamp": None}, said_then)
    assert session.turns[0].turn.time == time


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """By name."""
    with pytest.raises(Unavailable, match=r"rollout-.*it is gone"):
        read(tmp_path / rollout_name(THREAD))


# Whose files are whose.


def test_recognises_rollouts_and_nothing_else(tmp_path: Path) -> None:
    """By what is in them; the first line may be longer than what is looked at."""
    reader = CodexReader()
    path = tmp_path / "x.jsonl"
    long = json.dumps(meta(base_instructions={"text": "x" * 60_000})).encode()
    for head in (lines(meta()), long[:50_000], b"\0\n" + lines(*TALK[1:]), lines(meta(ordinal=37))):
        assert reader.recognises(path, head)
        assert not ClaudeCodeReader().recognises(path, head)
    for path_of_claude in (DATA.parents[1] / "claude-code").rglob("*.jsonl"):
        assert not reader.recognises(path_of_claude, path_of_claude.read_bytes())
    for other in (
        b"",
        b"{}\n",
        b"[1]\n",
        b'{"id":"x","thread_name":"y"}\n',
        b'{"type":"session","id":"x"}\n',
    ):
        assert not reader.recognises(path, other)
    assert not reader.recognises(tmp_path / "x.json", lines(meta()))
