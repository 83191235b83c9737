"""What topics held lately: bounded, durable, scrubbed; and which of it a save was made from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnmark_memory.bases import KEPT, Base, Bases
from turnmark_memory.nearest import known_ids, nearest
from turnmark_memory.topic import TopicWarning
from turnmark_memory.topic_format import parse


@pytest.fixture
def bases(tmp_path: Path) -> Iterator[Bases]:
    """Empty bases."""
    opened = Bases.open(tmp_path / "bases.db")
    yield opened
    opened.close()


def base(
    content: str | None, *, kind: str = "install", at: int = 1, view: str | None = None
) -> Base:
    return Base(
        topic="people/dana",
        kind=kind,  # type: ignore[arg-type]
        content=None if content is None else content.encode(),
        view=None if view is None else view.encode(),
        at_ms=at,
        revision=at,
    )


def test_keeps_the_last_contents_of_each_kind(bases: Bases) -> None:
    """However often it is saved, what was installed before stays known."""
    for number in range(2 * KEPT):
        bases.record([base(f"install {number}\n", at=number)])
    for number in range(2 * KEPT, 5 * KEPT):
        bases.record([base(f"edit {number}\n", kind="edit", at=number)])
    recent = bases.recent("people/dana")
    assert [one.kind for one in recent] == ["edit"] * KEPT + ["install"] * KEPT
    newest = bases.newest("people/dana")
    assert newest == recent[0]
    assert newest is not None
    assert newest.content == f"edit {5 * KEPT - 1}\n".encode()
    assert bases.is_seen("people/dana", newest.content)
    assert not bases.is_seen("people/dana", b"other")
    assert not bases.is_seen("people/erin", None)


def test_a_redo_changes_nothing(bases: Bases) -> None:
    """An install that is finished after a crash notes the same again."""
    both = [base("mine\n", kind="edit", at=5), base("mine\n\nours\n", at=5)]
    bases.record([base("old\n")])
    bases.record(both)
    before = bases.recent("people/dana")
    bases.record(both)
    assert bases.recent("people/dana") == before


def test_waits_with_ids_until_they_are_written(bases: Bases) -> None:
    """The view makes a topic pending, the next content without one ends it."""
    bases.record([base("a\n", kind="edit", at=7, view="a ^b-11111111\n")])
    assert bases.oldest_pending_ms() == 7
    assert bases.pending(6) == []
    assert bases.pending(7) == ["people/dana"]
    bases.record([base("a ^b-11111111\n", at=8)])
    assert bases.oldest_pending_ms() is None


def test_scrubs_what_was_forgotten_from_the_bytes(bases: Bases, tmp_path: Path) -> None:
    """The newest content stays: it is what the file holds."""
    bases.record([base("secret[^s-0123456789ab] ^b-11111111\n"), base("plain\n", at=2)])
    assert bases.scrub(["s-0123456789ab"]) == 1
    assert [one.content for one in bases.recent("people/dana")] == [b"plain\n"]
    assert bases.scrub([]) == 0
    bases.record([base("left\n", at=3)])
    assert bases.scrub(["b-22222222"]) == 0
    assert len(bases.recent("people/dana")) == 2


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    """Only the memory of recent saves is lost with it."""
    path = tmp_path / "bases.db"
    path.write_bytes(b"no database" * 1_000)
    opened = Bases.open(path)
    assert opened.recent("people/dana") == []
    opened.record([base("a\n")])
    opened.close()
    again = Bases.open(path)
    assert again.topics() == ["people/dana"]
    assert again.below("people") == ["people/dana"]
    again.clear()
    assert again.topics() == []
    again.close()


def test_tells_a_problem_once(bases: Bases) -> None:
    """What was known before is not new, wherever it stands now."""
    found = [TopicWarning(line=3, problem="odd")]
    assert bases.set_problems("people/dana", found) == found
    assert bases.set_problems("people/dana", [TopicWarning(line=9, problem="odd")]) == []
    assert [one.line for one in bases.problems()] == [9]
    assert bases.set_problems("people/dana", []) == []
    assert bases.problems() == []


A = "A.[^s-aaaaaaaaaaaa] ^b-aaaaaaaa"
B = "B.[^s-bbbbbbbbbbbb] ^b-bbbbbbbb"
C = "C.[^s-cccccccccccc] ^b-cccccccc"
NOTE_A, NOTE_B, NOTE_C = (f"[^s-{letter * 12}]: note" for letter in "abc")


def text(*paragraphs: str) -> str:
    return "\n\n".join(paragraphs) + "\n"


OLD = text("# T", A, NOTE_A)
MIDDLE = text("# T", A, B, NOTE_A, NOTE_B)
NEW = text("# T", A, B, C, NOTE_A, NOTE_B, NOTE_C)


@pytest.mark.parametrize(
    ("saved", "place"),
    [
        (NEW, 0),
        (text("# T", A, B, "Mine.", C, NOTE_A, NOTE_B, NOTE_C), 0),
        (text("# T", A, "Mine.", NOTE_A), 2),
        (text("# T", A, B, "Mine.", NOTE_A, NOTE_B), 1),
        (text("# T", A, B, NOTE_A, NOTE_B, NOTE_C), 0),  # C was taken out, its footnote stayed
        (text("# T", A, "Mine.", NOTE_A, NOTE_B, NOTE_C), 0),  # both were
        (text("# T", B, NOTE_A, NOTE_B), 1),  # A was taken out of a text without C
        (MIDDLE, 1),
        (OLD, 2),
        ("", 0),
    ],
)
def test_finds_the_text_that_a_save_was_made_from(saved: str, place: int) -> None:
    """By what it holds first, then by what it lacks."""
    recent = [base(NEW, at=3), base(MIDDLE, at=2), base(OLD, at=1)]
    assert nearest(saved.encode(), recent) == place


def test_only_an_install_makes_an_editor_stale() -> None:
    """What a person wrote and took out again stays out."""
    edited = text("# T", A, "Mine.", NOTE_A)
    recent = [base(edited, kind="edit", at=2), base(OLD, at=1)]
    assert nearest(OLD.encode(), recent) == 0


def test_a_reworded_paragraph_without_id_keeps_the_one_it_was_given() -> None:
    """By likeness, where the file never had the id; word for word, where a person deleted it."""
    seen = base("My words.\n\nB. ^b-bbbbbbbb\n", view="My words. ^b-11111111\n\nB. ^b-bbbbbbbb\n")
    assert known_ids(parse(b"My own words.\n\nB.\n"), seen) == {0: "b-11111111", 1: "b-bbbbbbbb"}
    assert known_ids(parse(b"Something else entirely.\n"), seen) == {}


def test_ids_wait_no_longer_than_those_of_an_edit_made_now(bases: Bases) -> None:
    """A clock that was ahead when a file was saved doesn't keep its ids waiting for years."""
    bases.record([base("saved\n", kind="edit", at=9_000, view="seen\n")])
    bases.bring_near(10_000)
    assert bases.oldest_pending_ms() == 9_000
    bases.bring_near(4_000)
    assert bases.oldest_pending_ms() == 4_000
    assert bases.pending(4_000) == ["people/dana"]
