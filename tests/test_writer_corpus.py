"""The labelled corpus that the built-in writer is measured against (benchmarks/writer_corpus)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

CORPUS = Path(__file__).parents[1] / "benchmarks" / "writer_corpus"
HALVES = ("learn", "held_out")
TURN_FIELDS = {
    *("id", "conversation", "kind", "language", "session", "agent", "project"),
    *("role", "speaker", "time", "text", "keep"),
}
GOLD_FIELDS = {
    *("id", "what", "quotes", "topics", "needs", "also", "may", "supersedes", "duplicate_of"),
}


def conversations(half: str) -> dict[str, list[dict[str, Any]]]:
    """Returns the turns of each conversation of a half, by its name."""
    return {
        file.stem: [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
        for file in sorted((CORPUS / half).glob("*.jsonl"))
    }


def all_turns() -> list[dict[str, Any]]:
    return [turn for half in HALVES for said in conversations(half).values() for turn in said]


def share_of_chinese(turns: list[dict[str, Any]]) -> float:
    return sum(turn["language"] == "zh" for turn in turns) / len(turns)


def test_is_large_and_half_chinese() -> None:
    """There are at least 400 turns, and each half of them is about half Chinese."""
    assert len(all_turns()) >= 400
    for half in HALVES:
        turns = [turn for said in conversations(half).values() for turn in said]
        assert 0.45 <= share_of_chinese(turns) <= 0.55


def test_is_split_by_whole_conversation_into_halves_of_the_same_kinds() -> None:
    """No conversation is in both halves; both hold each kind in both languages.

    What the rules are written with may grow, what they are judged by stays.
    """
    learn, held_out = (conversations(half) for half in HALVES)
    assert learn.keys().isdisjoint(held_out)
    kinds = [
        Counter((said[0]["kind"], said[0]["language"]) for said in half.values())
        for half in (learn, held_out)
    ]
    assert kinds[0].keys() == kinds[1].keys()
    assert kinds[0] >= kinds[1]
    assert kinds[1].total() == 10


def test_gives_every_turn_and_every_gold_statement_an_id_of_its_own() -> None:
    """Ids are unique over both halves."""
    turns = Counter(turn["id"] for turn in all_turns())
    gold = Counter(one["id"] for turn in all_turns() for one in turn["keep"])
    assert {*turns.values(), *gold.values()} == {1}


@pytest.mark.parametrize("half", HALVES)
def test_keeps_to_its_format(half: str) -> None:
    """Every turn has all fields, belongs to its file, and comes no earlier than the one before."""
    for name, said in conversations(half).items():
        assert [turn["time"] for turn in said] == sorted(turn["time"] for turn in said)
        for turn in said:
            assert set(turn) == TURN_FIELDS
            assert turn["conversation"] == name
            assert (turn["role"] == "user") or turn["speaker"] is None
            assert all(set(one) == GOLD_FIELDS for one in turn["keep"])


def test_titles_are_of_groups_to_learn_from() -> None:
    """Each session of those groups has one, and nothing else has."""
    groups = (said for said in conversations("learn").values() if said[0]["kind"] == "group")
    titles = msgspec.json.decode((CORPUS / "titles.json").read_bytes(), type=dict[str, str])
    assert set(titles) == {turn["session"] for said in groups for turn in said}


@pytest.mark.parametrize("half", HALVES)
def test_quotes_what_was_said(half: str) -> None:
    """Every quote is a part of its turn, or of one that the label names as evidence too."""
    for said in conversations(half).values():
        texts = {turn["id"]: turn["text"] for turn in said}
        for turn in said:
            for one in turn["keep"]:
                evidence = [turn["text"], *(texts[other] for other in one["also"])]
                assert one["quotes"]
                quotes = (*one["quotes"], *one["may"])
                assert all(any(quote in text for text in evidence) for quote in quotes)


@pytest.mark.parametrize("half", HALVES)
def test_refers_only_to_what_was_said_before(half: str) -> None:
    """What is superseded, said again or accepted stands earlier in the same conversation."""
    for said in conversations(half).values():
        turns: set[str] = set()
        gold: set[str] = set()
        for turn in said:
            for one in turn["keep"]:
                assert turns.issuperset(one["also"])
                assert gold.issuperset(filter(None, [one["supersedes"], one["duplicate_of"]]))
                gold.add(one["id"])
            turns.add(turn["id"])


@pytest.mark.parametrize("half", HALVES)
def test_names_topics_of_the_three_kinds(half: str) -> None:
    """Every label says where it may be filed."""
    for said in conversations(half).values():
        for one in (one for turn in said for one in turn["keep"]):
            assert one["topics"]
            kinds = {topic.split("/", 1)[0] for topic in one["topics"]}
            assert kinds <= {"people", "projects", "subjects"}
