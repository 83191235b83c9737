"""Tests of `transcripts/claude_code/graph.py`: what becomes of the chain between turns."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_store.transcripts.claude_records import (
    SESSION,
    Record,
    answer,
    call,
    edges,
    hook,
    read,
    read_one,
    result,
    row,
    said,
    thought,
    user,
    write,
)
from turnmark_session_store.transcripts.claude_code.graph import cut_cycles


def test_a_prompt_comes_after_the_answer_beside_the_hook_that_it_hangs_from(tmp_path: Path) -> None:
    """A hook's summary became a sibling of the answer 220 ms after it was delivered."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Where do I live?"),
        answer("a1", "u1", 1, thought(), response="m"),
        answer("a2", "a1", 2, "In Bergen.", response="m"),
        hook("s1", "a1", 2.22),
        user("u2", "s1", 9, "Right."),
    )
    assert edges(session) == {"u1": None, "a2": "u1", "u2": "a2"}
    assert session.head == "u2"


@pytest.mark.parametrize("anchor", ["u1", "r1"])
def test_the_same_holds_below_a_prompt_and_below_a_tool_result(tmp_path: Path, anchor: str) -> None:
    """The answer is another response than the row that it hangs from."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Look"),
        answer("a1", "u1", 1, call("t1")),
        result("r1", "a1", 2, "t1"),
        answer("a2", anchor, 3, "Found."),
        hook("s1", anchor, 3.2),
        row("attachment", "s2", "s1", 3.3, attachment={"type": "hook_success"}),
        user("u2", "s2", 9, "谢谢"),
    )
    assert edges(session) == {"u1": None, "a2": "u1", "u2": "a2"}


def test_the_head_is_the_answer_when_only_the_hook_is_newer(tmp_path: Path) -> None:
    """The newest row says nothing; it stands behind the answer beside it."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Look"),
        answer("a1", "u1", 1, thought(), response="m"),
        answer("a2", "a1", 2, "Found.", response="m"),
        hook("s1", "a1", 2.2),
    )
    assert (session.head, session.tips) == ("a2", ("a2",))


def test_feedback_of_a_hook_comes_after_the_answer_beside_it(tmp_path: Path) -> None:
    """The notice is a turn of kind runtime and keeps the chain."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Look"),
        answer("a1", "u1", 1, "Done."),
        user("n1", "u1", 2, "Stop hook feedback: lint failed", isMeta=True),
        answer("a2", "n1", 3, "Fixed."),
    )
    assert edges(session) == {"u1": None, "a1": "u1", "n1": "a1", "a2": "n1"}


def test_the_next_fragment_and_a_tool_result_are_no_branches(tmp_path: Path) -> None:
    """Text between two calls of one response is said before the next response."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Look"),
        answer("a1", "u1", 1, "First", response="m"),
        answer("a2", "a1", 1.1, call("t1"), response="m"),
        answer("a3", "a2", 1.2, "and second.", response="m"),
        answer("a4", "a3", 1.3, call("t2"), response="m"),
        row("progress", "p1", "a2", 1.4, data={"type": "bash_progress"}),
        result("r1", "p1", 2, "t1"),
        result("r2", "a4", 2.1, "t2"),
        answer("b1", "r1", 3, "Both done."),
        user("u2", "b1", 4, "Good"),
    )
    assert edges(session) == {"u1": None, "a1": "u1", "a3": "a1", "b1": "a3", "u2": "b1"}
    assert session.tips == ("u2",)


def test_a_prompt_typed_during_a_tool_call_is_no_branch(tmp_path: Path) -> None:
    """It hangs from one tool result, the answer from another."""
    queued = {"type": "queued_command", "prompt": "Also check the docs", "commandMode": "prompt"}
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Look"),
        answer("a1", "u1", 1, call("t1"), response="m"),
        answer("a2", "a1", 1.1, call("t2"), response="m"),
        result("r1", "a1", 2, "t1"),
        result("r2", "a2", 2, "t2"),
        row("attachment", "q1", "r1", 3, attachment=queued),
        answer("b1", "r2", 4, "Both."),
    )
    assert edges(session) == {"u1": None, "q1": "u1", "b1": "q1"}
    assert said(session) == ["Look", "Also check the docs"]


def test_a_rewind_below_a_hook_stays_a_fork(tmp_path: Path) -> None:
    """Both prompts hang from the hook behind the answer; the rule crosses no prompt."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Look"),
        answer("a1", "u1", 1, "Done."),
        hook("s1", "a1", 1.2),
        user("u2", "s1", 2, "Tea"),
        answer("a2", "u2", 3, "Noted tea."),
        hook("s2", "a2", 3.2),
        user("u3", "s1", 4, "Coffee"),
        answer("a3", "u3", 5, "Noted coffee."),
    )
    dag = edges(session)
    assert (dag["u2"], dag["u3"]) == ("a1", "a1")
    assert set(session.tips) == {"a2", "a3"}


def test_a_rewind_to_before_an_answer_that_was_never_given_stays_a_fork(tmp_path: Path) -> None:
    """Two prompts directly below one turn are siblings, whatever their answers did."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "One"),
        user("u2", "u1", 1, "Two"),
        answer("a1", "u1", 2, "Late"),
    )
    assert edges(session) == {"u1": None, "u2": "u1", "a1": "u1"}


def test_a_second_prompt_directly_below_the_first_is_a_fork(tmp_path: Path) -> None:
    """Without the harness between them nothing says that the answer came first."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "One"),
        answer("a1", "u1", 1, "Answered."),
        user("u2", "u1", 2, "Two"),
    )
    assert edges(session) == {"u1": None, "a1": "u1", "u2": "u1"}


def test_two_responses_to_one_prompt_are_a_fork(tmp_path: Path) -> None:
    """A response that was tried again stands beside the first one."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "One"),
        answer("a1", "u1", 1, thought(), response="m"),
        answer("a2", "a1", 2, "First try.", response="m"),
        answer("b1", "u1", 3, thought(), response="n"),
        answer("b2", "b1", 4, "Second try.", response="n"),
    )
    assert edges(session) == {"u1": None, "a2": "u1", "b2": "u1"}


def test_an_answer_that_came_later_is_not_before_the_prompt(tmp_path: Path) -> None:
    """Only what had been delivered by then comes first."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "One"),
        hook("s1", "u1", 1),
        user("u2", "s1", 2, "Two"),
        answer("a1", "u1", 3, "Late"),
    )
    assert edges(session) == {"u1": None, "u2": "u1", "a1": "u1"}


def test_a_fork_does_not_follow_what_only_its_origin_said(tmp_path: Path) -> None:
    """The answer beside the hook is not in the fork's file."""
    shared = [user("u1", None, 0, "One"), hook("s1", "u1", 2)]
    fork = [record | {"sessionId": "fork"} for record in shared]
    fork.append(user("u3", "s1", 9, "Mine") | {"sessionId": "fork"})
    sessions = read(
        write(tmp_path / f"{SESSION}.jsonl", [*shared, answer("a1", "u1", 1, "Theirs")]),
        write(tmp_path / "fork.jsonl", fork),
    )
    assert edges(*sessions) == {"u1": None, "a1": "u1", "u3": "u1"}


def test_snapshots_that_grow_are_one_turn(tmp_path: Path) -> None:
    """The last snapshot has all words; a repeated one adds none."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "How?"),
        answer("a1", "u1", 1, thought(), response="m"),
        answer("a2", "a1", 2, thought(), "Step one", response="m"),
        answer("a3", "a2", 3, thought(), "Step one, step two.", response="m"),
        answer("a4", "a3", 4, "Step one, step two.", call("t1"), response="m"),
        result("r1", "a4", 5, "t1"),
        answer("b1", "r1", 6, "Step one"),
    )
    assert edges(session) == {"u1": None, "a3": "u1", "b1": "a3"}


def test_equal_answers_to_two_prompts_are_two_turns(tmp_path: Path) -> None:
    """Also behind a proxy that gives every response the same id, or none."""
    for response in ("same", None):
        session = read_one(
            tmp_path,
            user("u1", None, 0, "One"),
            answer("a1", "u1", 1, "OK", response=response),
            user("u2", "a1", 2, "Two"),
            answer("a2", "u2", 3, "OK", response=response),
        )
        assert said(session, role="assistant") == ["OK", "OK"]


def test_a_comb_of_dead_ends_is_read_in_a_moment(tmp_path: Path) -> None:
    """Thousands of turns that hang from one long chain of notices cost no square."""
    records: list[Record] = [user("u0", None, 0, "Start")]
    for n in range(1, 4001):
        records.append(row("progress", f"p{n}", f"p{n - 1}" if n > 1 else "u0", 1 + n / 10))
        # Clocks that run backwards make every crossing fail.
        records.append(answer(f"a{n}", f"p{n}", 900 - n / 10, f"Dead end {n}"))
    assert len(edges(read_one(tmp_path, *records))) == 4001


def test_every_circle_is_cut_once_at_its_last_member() -> None:
    """Chains that lead into a circle keep their edges."""
    parents: dict[str, str | None] = {"a": "b", "b": "c", "c": "a", "d": "a", "e": "f", "f": "e"}
    assert sorted(cut_cycles(parents, list("dcbafe"))) == ["a", "e"]
    assert parents == {"a": None, "b": "c", "c": "a", "d": "a", "e": None, "f": "e"}


@st.composite
def _conversations(draw: st.DrawFn) -> list[Record]:
    """A well-formed conversation: prompts, answers, tools and hooks, with rewinds and roots."""
    records: list[Record] = []
    resting: list[str | None] = [None]
    second = 0.0
    for n in range(draw(st.integers(1, 8))):
        parent = draw(st.sampled_from(resting))
        second += 10
        records.append(user(f"u{n}", parent, second, f"Prompt {n}"))
        last = f"u{n}"
        for tool in range(draw(st.integers(0, 2))):
            use, found = f"c{n}-{tool}", f"r{n}-{tool}"
            records.append(answer(use, last, second + 0.1, call(use), response=f"m{n}-{tool}"))
            if draw(st.booleans()):
                late = answer(f"x{use}", use, second + 0.2, "Wait.", response=f"m{n}-{tool}")
                records.append(late)
            records.append(result(found, use, second + 0.3, use))
            last, second = found, second + 1
        records.append(answer(f"a{n}", last, second + 1, f"Answer {n}"))
        where = draw(st.sampled_from([f"a{n}", last]))
        records.append(hook(f"s{n}", where, second + 1.2))
        resting += [f"a{n}", f"s{n}"]
    return records


@settings(max_examples=60, deadline=None)
@given(_conversations(), st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_of_lines_and_files_makes_no_difference(
    records: list[Record], order: random.Random, parts: int
) -> None:
    """Ids and edges are the same however a well-formed set is shuffled and cut into files."""
    shuffled = records[:]
    order.shuffle(shuffled)
    with TemporaryDirectory() as folder:
        whole = write(Path(folder, f"{SESSION}.jsonl"), records)
        paths = [
            write(Path(folder, f"part-{part}.jsonl"), shuffled[part::parts])
            for part in range(parts)
            if shuffled[part::parts]
        ]
        order.shuffle(paths)
        expected = edges(*read(whole))
        assert edges(*read(*paths)) == expected
    for record in records:
        uuid, parent = record["uuid"], record["parentUuid"]
        if uuid.startswith("u"):
            # Whether it hangs from an answer or from its hook: it comes after the answer.
            assert expected[uuid] == (parent and f"a{parent[1:]}")
        elif uuid.startswith("a"):
            # All that was said between the calls comes first, and then the prompt.
            waits = sum(1 for other in expected if other.startswith(f"xc{uuid[1:]}-"))
            assert _steps_to(expected, uuid, f"u{uuid[1:]}") == waits + 1


def _steps_to(dag: dict[str, str | None], uuid: str, above: str) -> int:
    steps, at = 0, dag[uuid]
    while at is not None:
        steps += 1
        if at == above:
            return steps
        at = dag[at]
    return -1
