"""`turnmark.tree_drawing`: every turn once, whatever the shape, within the width of a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark.terminal import Ink, width_of
from turnmark.tree_drawing import (
    Caller,
    DrawnBranch,
    DrawnMark,
    DrawnTurn,
    SpeakerName,
    draw_tree,
)

W = "w-0123456789abcdef"


def turn(name: str, after: str | None = None, **fields: object) -> DrawnTurn:
    """Returns a turn that says its own name."""
    given_fields = {"id": name, "role": "user", "text": f"say {name}", "predecessor": after}
    return DrawnTurn(**{**given_fields, **fields})  # type: ignore[arg-type] # checked by hand


def drawn(turns: Sequence[DrawnTurn], *arguments: object, **options: object) -> list[str]:
    """Returns the drawing without its legend."""
    lines = draw_tree(turns, *arguments, **options)  # type: ignore[arg-type] # passed through
    return lines[:-2]


def test_draws_a_line_of_turns_straight_down() -> None:
    """Without forks there is no edge, only a line a turn, oldest first."""
    assert drawn([turn("a"), turn("b", "a", role="assistant"), turn("c", "b")], [], "c") == [
        "- user      a        say a",
        "- assistant b        say b",
        "- user      c        *HEAD say c",
    ]


def test_draws_what_forks_off_before_the_line_goes_on() -> None:
    """The line to the head keeps the left edge, even where another is longer."""
    turns = [turn("a"), turn("b", "a"), turn("c", "b"), turn("d", "c"), turn("e", "a")]
    branches = [DrawnBranch(tip="d", name="旧的"), DrawnBranch(tip="e", name="main")]
    assert drawn(turns, branches, "e") == [
        "- user      a        say a",
        "├─- user      b        say b",
        "│ - user      c        say c",
        "│ - user      d        [旧的] say d",
        "- user      e        *HEAD [main] say e",
    ]


def test_draws_the_longest_line_straight_where_no_head_says_otherwise() -> None:
    """Without a head the child with the most turns below it goes on."""
    turns = [turn("a"), turn("b", "a"), turn("c", "a"), turn("d", "c")]
    assert [line.index("say") for line in drawn(turns)] == [21, 23, 21, 21]


def test_hangs_sub_agents_below_their_caller() -> None:
    """A spawned turn has a dotted edge; the last edge of a turn that ends has a corner."""
    spawned = turn("s", caller=Caller(session="x", turn="a"))
    assert drawn([turn("a"), spawned, turn("t", "s")], [], "a") == [
        "- user      a        *HEAD say a",
        "└┄- user      s        (sub-agent) say s",
        "  - user      t        say t",
    ]


def test_sets_roots_apart() -> None:
    """Each root, one whose predecessor is not in the export too, begins after an empty line."""
    lost = turn("b", "gone", lost_predecessor=True)
    called = turn("c", caller=Caller(session="other", turn="elsewhere"))
    lines = drawn([turn("a"), lost, called])
    assert lines[1::2] == ["", ""]
    assert "(its predecessor is lost) say b" in lines[2]
    assert "(sub-agent) say c" in lines[4]


@pytest.mark.parametrize(
    ("fields", "sign"),
    [
        ({"marks": {W: DrawnMark(outcome="kept")}, "recordable": True}, "✓"),
        ({"marks": {W: DrawnMark(outcome="nothing")}, "recordable": True}, "·"),
        ({"marks": {W: DrawnMark(outcome="parked", reason="failed")}}, "!"),
        ({"marks": {"w-other": DrawnMark(outcome="kept")}, "recordable": True}, "○"),
        ({"recordable": True}, "○"),
        ({}, "-"),
        ({"recordable": True, "state": "retired"}, "-"),
    ],
)
def test_shows_the_mark_of_this_workspace(fields: dict[str, object], sign: str) -> None:
    """A turn's sign is its mark of the workspace asked for, else whether it is owed."""
    lines = draw_tree([turn("a", **fields)], workspace=W)
    assert lines[0].startswith(f"{sign} user")
    assert lines[-1].startswith(f"{sign} ")


def test_says_what_became_of_a_turn() -> None:
    """Taken back, forgotten, merged, of another kind, spoken by somebody: said in words."""
    turns = [
        turn("a", state="retired"),
        turn("b", text=None, state="forgotten"),
        turn("c", merged=("a", "b")),
        turn("d", role="system", kind="summary"),
        turn("e", speaker=SpeakerName(name="李明")),
        turn("f", role="tool", kind="tool"),
    ]
    ends = [line[21:] for line in drawn(turns) if line]
    assert ends == [
        "(taken back) say a",
        "(forgotten)",
        "(merges a, b) say c",
        "(summary) say d",
        "李明: say e",
        "say f",
    ]


def test_strikes_through_what_was_taken_back_where_colour_is() -> None:
    """With colour a retired turn is struck through and its sign stays readable."""
    (line, *_) = draw_tree([turn("a", state="retired")], ink=Ink(color=True))
    assert "\x1b[2;9m(taken back) say a\x1b[0m" in line


def test_names_a_branch_that_is_not_live_and_counts_shared_tips() -> None:
    """A tip of several branches shows the first and how many more; states are said."""
    branches = [DrawnBranch(tip="a", branch="br-1", state="archived"), DrawnBranch(tip="a")]
    assert "[br-1 archived +1] say a" in drawn([turn("a")], branches)[0]


def test_cuts_long_words_and_ids_but_not_inside_a_character() -> None:
    """A line of Chinese is cut at a whole character; ids are whole only when asked for."""
    long = turn("9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", text="我住在波尔图。" * 20)
    (line,) = drawn([long], columns=40)
    assert width_of(line) in {39, 40}
    assert "9b1deb4…" in line
    assert line.endswith("…")
    assert long.id in drawn([long], whole_ids=True)[0]


def test_lets_no_text_steer_the_terminal() -> None:
    """Escape sequences and newlines of a turn come out as words on its line."""
    hostile = turn(
        "\x1b[H", text="a\x1b[2J\nb\x9b1m\u202ec", speaker=SpeakerName(name="\x1b]0;x\x07")
    )
    branch = DrawnBranch(tip="\x1b[H", name="\x1b[31m")
    (line,) = drawn([hostile], [branch], "\x1b[H", whole_ids=True, columns=200)
    assert "\x1b" not in line
    assert "\x9b" not in line
    assert "\n" not in line
    assert "\u202e" not in line


def test_draws_nothing_of_nothing() -> None:
    """An empty session has no lines."""
    assert draw_tree([]) == []


@given(st.data())
def test_draws_every_turn_once_within_the_width(data: st.DataObject) -> None:
    """Any tree: each turn on one line, no line too wide, no fork deeper than its bound."""
    count = data.draw(st.integers(1, 60))
    turns = [turn("t0")]
    for number in range(1, count):
        parent = f"t{data.draw(st.integers(0, number - 1))}"
        spawn = data.draw(st.integers(0, 5)) == 0
        caller = Caller(session="s", turn=parent) if spawn else None
        turns.append(turn(f"t{number}", None if spawn else parent, caller=caller))
    head = f"t{data.draw(st.integers(0, count - 1))}"
    columns = data.draw(st.sampled_from([40, 80]))
    lines = drawn(turns, [DrawnBranch(tip=head, name="分支")], head, columns=columns)
    assert sorted(line.split("user")[1].split()[0] for line in lines) == sorted(
        one.id for one in turns
    )
    assert max(width_of(line) for line in lines) <= columns
    assert sum("*HE" in line for line in lines) == 1


@given(st.integers(2, 400), st.randoms(use_true_random=False))
def test_stays_as_shallow_as_the_logarithm(count: int, random: object) -> None:
    """Forks alone never indent by more than 1 + log2(turns) steps."""
    choose = random.randrange  # type: ignore[attr-defined] # hypothesis gives a Random
    turns = [turn("t0"), *(turn(f"t{n}", f"t{choose(n)}") for n in range(1, count))]
    lines = drawn(turns, [], f"t{count - 1}", columns=400)
    deepest = max(line.index("- user") for line in lines) // 2
    assert deepest <= 1 + math.log2(count)


def test_draws_a_long_conversation_without_recursion() -> None:
    """Twenty thousand turns in a row, and as many forks of one turn, are drawn."""
    chain = [turn("t0"), *(turn(f"t{n}", f"t{n - 1}") for n in range(1, 20_000))]
    star = [turn("t0"), *(turn(f"t{n}", "t0") for n in range(1, 20_000))]
    assert len(drawn(chain)) == len(drawn(star)) == 20_000
