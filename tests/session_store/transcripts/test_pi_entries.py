"""Tests of `session_store/transcripts/pi/entries.py`: from entries to turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_store.transcripts.json_records import Record
from session_store.transcripts.pi_records import (
    OTHER,
    SESSION,
    answer,
    at,
    edges_in,
    entry,
    given_ids,
    ms,
    tool,
    tree_of,
    user,
    without_ids,
)
from turnmark_session_store.transcripts.pi.entries import read_entry

DATA = Path(__file__).resolve().parents[2] / "data" / "pi" / "v3-tree-generated"
TALK = (
    entry("model_change", "aaaa0000", None, 1, modelId="faux-1"),
    user("aaaa0001", "aaaa0000", "I live in Bergen.", 2),
    answer("aaaa0002", "aaaa0001", "Noted.", 3),
    tool("aaaa0003", "aaaa0002", 4),
    user("aaaa0004", "aaaa0003", "我喜欢咖啡。", 5),
    answer("aaaa0005", "aaaa0004", "好的。", 6),
)
EDGES = {
    "I live in Bergen.": None,
    "Noted.": "I live in Bergen.",
    "我喜欢咖啡。": "Noted.",
    "好的。": "我喜欢咖啡。",
}


def records_in(path: Path) -> list[Record]:
    """The entries of a finished file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()[1:]]


def test_collapses_what_only_carries_the_chain() -> None:
    """A turn stands behind the nearest turn above it; the leaf is the last entry."""
    tree = tree_of(*TALK, entry("label", "aaaa0006", "aaaa0005", 7, targetId="aaaa0001"))
    turns = tree.turns()
    assert edges_in(turns) == EDGES
    assert tree.head() == f"aaaa0005.{ms(6)}"
    assert [turn.entry.line for turn in turns.values()] == [3, 4, 6, 7]
    assert not any(turn.is_lost for turn in turns.values())


def test_reads_what_the_program_wrote_as_one_tree_with_two_roots() -> None:
    """Seven prompts on four tips; what only the harness wrote is no turn."""
    main, branched, fork = (tree_of(*records_in(file)) for file in sorted(DATA.glob("*.jsonl")))
    turns = main.turns()
    prompts = [turn for turn in turns.values() if turn.words.role == "user"]
    assert len(prompts) == 7
    assert [turn.words.text for turn in turns.values() if turn.predecessor is None] == [
        "My name is Robin and I moved from Oslo to Bergen last month.",
        "Fresh root in the same file.",
    ]
    assert len(turns.keys() - {turn.predecessor for turn in turns.values()}) == 4
    for copy, own in ((branched, "Only in the branched file."), (fork, "Only in the fork.")):
        found = copy.turns()
        added = [turn.words.text for key, turn in found.items() if key not in turns]
        assert added[0] == own
        assert len(added) == 2


def test_a_child_may_stand_before_its_parent_and_depth_costs_no_stack() -> None:
    """Parents are looked for in the whole file."""
    chain = [user(f"{n:08x}", f"{n - 1:08x}" if n else None, f"Say {n}", n) for n in range(5_000)]
    turns = tree_of(*reversed(chain)).turns()
    assert edges_in(turns) == {f"Say {n}": f"Say {n - 1}" if n else None for n in range(5_000)}


@pytest.mark.parametrize(
    ("parent", "lost"), [("missing0", True), ("aaaa0004", False), (SESSION, False)]
)
def test_a_parent_that_is_nowhere_or_is_the_entry_itself_makes_a_root(
    parent: str, *, lost: bool
) -> None:
    """Only the first is told to have lost something, through what carries the chain as well."""
    records = (*TALK[:3], user("aaaa0004", parent, "我喜欢咖啡。", 5), TALK[5])
    turns = tree_of(*records).turns()
    assert edges_in(turns) == EDGES | {"我喜欢咖啡。": None}
    assert [turn.is_lost for turn in turns.values()] == [False, False, lost, False]
    gone = tree_of(*TALK[4:]).turns()
    assert [turn.is_lost for turn in gone.values()] == [True, False]


def test_a_cycle_is_cut_at_the_entry_that_closes_it() -> None:
    """By its place in the file."""
    one = user("aaaa0001", "aaaa0002", "One", 1)
    assert edges_in(tree_of(one, user("aaaa0002", "aaaa0001", "Two", 2)).turns()) == {
        "One": "Two",
        "Two": None,
    }


def test_a_copy_in_the_same_file_is_no_second_turn_and_other_words_are() -> None:
    """The first is the one that others hang from."""
    other = user("aaaa0001", None, "And in Oslo.", 9)
    tree = tree_of(*TALK, TALK[1], other, answer("aaaa0009", "aaaa0001", "Both?", 10))
    assert edges_in(tree.turns()) == EDGES | {
        "And in Oslo.": None,
        "Both?": "I live in Bergen.",
    }
    assert tree.repeated == [9]


def test_ids_are_those_of_every_copy_and_of_no_other_file() -> None:
    """Two files of a family may draw the same eight digits after the fork."""
    here, there = user("aaaa0001", None, "Yes", 1), user("aaaa0001", None, "Yes", 2)
    assert tree_of(here).turns().keys() != tree_of(there).turns().keys()
    uuid = user(OTHER, None, "Yes", 1)
    assert list(tree_of(uuid).turns()) == [OTHER]
    [odd] = tree_of(user("a\nb" * 400, None, "Yes", 1)).turns()
    assert odd.isprintable()
    assert len(odd) < 100


def test_entries_without_ids_follow_each_other() -> None:
    """The first version."""
    tree = tree_of(*map(without_ids, TALK))
    assert edges_in(tree.turns()) == EDGES
    assert tree.head() == list(tree.turns())[-1]


def test_ids_that_are_given_later_change_no_turn() -> None:
    """The rewriting puts them behind the rest, and the turns keep what they were called."""
    old = [without_ids(record) for record in TALK]
    before = tree_of(*old).turns()
    ids = [f"bbbb000{number}" for number in range(6)]
    more = user("bbbb0009", ids[-1], "And tea.", 9)
    after = tree_of(*given_ids(old, ids), more).turns()
    assert list(after) == [*before, f"bbbb0009.{ms(9)}"]
    assert edges_in(after) == EDGES | {"And tea.": "好的。"}


def test_ids_that_were_given_by_another_hand_change_no_turn_that_is_known() -> None:
    """Whatever the order of the fields: what is in the store decides."""
    before = tree_of(*map(without_ids, TALK)).turns()
    tree = tree_of(*TALK)
    assert tree.candidates() >= before.keys() | tree.turns().keys()
    assert list(tree.turns(known=before)) == list(before)
    assert not tree.turns(known=tree.turns()).keys() & before.keys()


def test_the_same_words_at_the_same_moment_are_turns_of_their_own() -> None:
    """With ids or without."""
    twice = [user("aaaa0001", None, "Yes", 1), user("aaaa0002", "aaaa0001", "Yes", 1)]
    for records in (twice, [without_ids(record) for record in twice]):
        assert [turn.predecessor is None for turn in tree_of(*records).turns().values()] == [
            True,
            False,
        ]


def test_a_leaf_that_is_moved_says_where_the_session_is() -> None:
    """To an entry, or to before the first."""
    tree = tree_of(*TALK)
    tree.move_leaf("aaaa0003")
    assert tree.turns()
    assert tree.head() == f"aaaa0002.{ms(3)}"
    tree.move_leaf(None)
    assert tree.head() is None


def test_a_time_is_when_it_was_said_else_when_it_was_stored() -> None:
    """In UTC; an entry with neither has none."""
    late = user("aaaa0001", None, "Hi", 40)
    late["message"]["timestamp"] = ms(5)
    times = []
    for record in (late, {**late, "message": {"role": "user", "content": "Hi"}}):
        found = read_entry(record, 1)
        assert found is not None
        times.append(found.time)
    assert times == [at(5), at(40)]
    bare = read_entry({"type": "message", "message": {"role": "user", "content": "Hi"}}, 1)
    assert bare is not None
    assert (bare.time, bare.is_linked) == (None, False)


@pytest.mark.parametrize("record", [{}, {"type": "session"}, {"type": 7}, {"id": "aaaa0001"}])
def test_what_is_no_entry_is_none(record: Record) -> None:
    """Headers of a session stand between entries, too."""
    assert read_entry(record, 1) is None
