"""How the benchmark of the built-in writer counts (benchmarks/writing/judging.py)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from writing.judging import Count, begins_with_pronoun, holds, is_filed, judge, sentences
from writing.labelled import Gold, Turn
from writing.shown import Shown, shown_in
from writing.written import Block, cuts

from turnmark_memory.model import Batch, Evidence, ShownBlock


def turn(name: str, *keep: Gold, text: str = "") -> Turn:
    return Turn(
        id=name,
        conversation="c",
        kind="group",
        language="en",
        session="s",
        agent="a",
        project=None,
        role="user",
        speaker=None,
        time="2026-08-10T09:00:00Z",
        text=text,
        keep=keep,
    )


def gold(name: str, *quotes: str, **more: Any) -> Gold:
    return Gold(id=name, what=name, quotes=quotes, topics=("people/Dana",), **more)


def block(text: str, *cites: str, topic: str = "people/dana", superseded: bool = False) -> Block:
    return Block(
        id=f"b-{text}",
        topic=topic,
        title="",
        text=text,
        cites=frozenset(cites),
        superseded=superseded,
    )


def evidence(name: str, key: int) -> Evidence:
    return Evidence(
        key=key,
        namespace="n",
        id=name,
        label=f"s-{key:012}",
        session="s",
        agent="a",
        project=None,
        role="user",
        speaker_id=None,
        speaker_name=None,
        time=datetime(2026, 8, 10, tzinfo=UTC),
        text=name,
        tokens=1,
    )


def count(measure: str, turns: list[Turn], *states: list[Block]) -> Count:
    return judge(turns, states).counts[measure]


BILLING = turn("t1", gold("g1", "leads billing", needs=(("Dana",),)), text="Dana leads billing.")
SMALL_TALK = turn("t2", text="lol")
MOVED = turn("t3", gold("g2", "leads sales", supersedes="g1"), text="Dana leads sales now.")
AGAIN = turn("t4", gold("g3", "leads billing", duplicate_of="g1"), text="Dana leads billing!")


def test_counts_a_turn_as_kept_where_a_block_cites_it() -> None:
    """What is kept of small talk costs precision, what is not kept costs recall."""
    found = count("turns", [BILLING, SMALL_TALK, MOVED], [block("Dana leads billing", "t1", "t2")])
    assert (found.precision, found.recall) == (0.5, 0.5)


def test_leaves_a_turn_that_only_says_it_again_out_of_the_count() -> None:
    """Citing it is no mistake, and neither is leaving it out."""
    assert count("turns", [BILLING, AGAIN], [block("Dana leads billing", "t1", "t4")]).given == 1


def test_finds_a_statement_where_its_words_survive_beside_its_turn() -> None:
    """The same words with another turn's cite are no evidence."""
    right = [block("Dana LEADS billing", "t1")]
    assert count("statements", [BILLING, SMALL_TALK], right).recall == 1
    assert (
        count("statements", [BILLING, SMALL_TALK], [block("Dana leads billing", "t2")]).recall == 0
    )


def test_charges_each_sentence_that_no_label_asks_for() -> None:
    """A block that says more than is worth keeping is right in part."""
    said = [block('Dana: "I leads billing. It rains."', "t1")]
    assert count("statements", [BILLING], said).precision == 0.5


def test_judges_topic_and_standing_of_what_was_found() -> None:
    """A block in the wrong file, and one without the name, are found but not right."""
    said = [block("She leads billing", "t1", topic="subjects/notes")]
    assert count("topic", [BILLING], said) == Count(given=1, wanted=1)
    assert count("standing alone", [BILLING], said) == Count(given=1, wanted=1)


def test_tells_own_words_from_quotations() -> None:
    """A frame or an "I" is a quotation."""
    for text, told in (("Dana leads billing", 1), ('Dana: "leads billing"', 0)):
        assert count("own words", [BILLING], [block(text, "t1")]) == Count(given=1, right=told)


def test_takes_superseding_for_right_only_where_the_old_was_written_and_is_live_no_more() -> None:
    """Leaving both, or never having written the old one, is a miss."""
    turns = [BILLING, MOVED]
    old, new = block("Dana leads billing", "t1"), block("Dana leads sales", "t3")
    gone = block("Dana leads billing", "t1", superseded=True)
    assert count("superseding", turns, [old], [gone, new]).recall == 1
    assert count("superseding", turns, [old], [new]).recall == 1
    assert count("superseding", turns, [old], [old, new]).recall == 0
    assert count("superseding", turns, [], [new]).recall == 0


def test_charges_what_is_gone_though_nothing_replaced_it() -> None:
    """A statement that was written and is live no more costs precision."""
    gone = [block("Dana leads billing", "t1", superseded=True)]
    old = [block("Dana leads billing", "t1")]
    assert count("superseding", [BILLING, SMALL_TALK], old, gone).precision == 0


def test_wants_a_cite_and_no_second_block_for_what_is_said_again() -> None:
    """A block of its own is a mistake; the cite is what is wanted."""
    cited = [block("Dana leads billing", "t1", "t4")]
    twice = [block("Dana leads billing", "t1"), block("leads billing", "t4")]
    assert count("said again", [BILLING, AGAIN], cited) == Count(
        right=1, given=1, wanted=1, found=1
    )
    assert count("said again", [BILLING, AGAIN], twice) == Count(given=1, wanted=1)


@pytest.mark.parametrize(
    "text",
    [
        "due 2026-03-06",
        "due on March 6, 2026",
        "due 6 March 2026",
        "the 6th of March 2026",
        "2026年3月6日交",
        "2026/3/6",
    ],
)
def test_knows_a_day_however_it_is_written(text: str) -> None:
    """English and Chinese writings of a day all meet the need for it."""
    assert holds(text, "2026-03-06")


def test_takes_no_other_day_for_it() -> None:
    """A longer number or another month is another day."""
    assert not any(
        holds(text, "2026-03-06") for text in ("2026-03-16", "16 March 2026", "March 6", "2026-03")
    )
    assert holds("in March 2026", "2026-03")
    assert holds("2026年3月", "2026-03")


@pytest.mark.parametrize("text", ["She left", "“We moved", "我搬家了", "这个不行", "it's late"])
def test_sees_a_pronoun_at_the_start(text: str) -> None:
    """Such a block leans on what is not in it."""
    assert begins_with_pronoun(text)


@pytest.mark.parametrize("text", ["Itoh left", "Wesley moved", "其他人都同意", "Dana: “I left”"])
def test_takes_no_name_for_a_pronoun(text: str) -> None:
    """Names that begin like one, and quotations that name their speaker, stand alone."""
    assert not begins_with_pronoun(text)


def test_files_by_kind_and_by_part_of_the_name() -> None:
    """`people/jonas` is where Jonas Thorvald may be; a subject of that name is not."""
    assert is_filed(["people/Jonas Thorvald"], block("x", topic="people/jonas"))
    assert not is_filed(["people/Jonas Thorvald"], block("x", topic="subjects/jonas"))


def test_cuts_sentences_in_both_languages_and_keeps_titles_whole() -> None:
    """`Mrs.` ends no sentence; what is too short belongs to its neighbour."""
    assert sentences('Dana: "Mrs. Moe left. Ok. It rains."') == ["Mrs. Moe left.", "Ok. It rains."]
    assert sentences("林晓：“医生说少吃辣。我是四川人。”") == ["医生说少吃辣。", "我是四川人。"]


def test_says_how_much_of_what_was_replaced_was_shown() -> None:
    """Only what an earlier batch kept counts: the rest a writer has before it, or nobody has."""
    said = [evidence(f"t{key}", key) for key in range(1, 4)]
    home = ShownBlock(
        block="b-1", topic="people/dana", heading=None, text="", cites=(said[0].label,), hash=""
    )
    first = Batch(turns=tuple(said[:2]), blocks=(), topics=())
    second = Batch(turns=tuple(said[2:]), blocks=(home,), topics=())
    blind = Batch(turns=tuple(said[2:]), blocks=(), topics=())
    whole = Batch(turns=tuple(said), blocks=(), topics=())
    turns = [msgspec.structs.replace(BILLING, id="t1"), SMALL_TALK, MOVED]
    kept = frozenset({"t1"})
    assert shown_in(turns, [first, second], kept) == Shown(found=1, wanted=1)
    assert shown_in(turns, [first, blind], kept) == Shown(found=0, wanted=1)
    assert shown_in(turns, [first, blind], frozenset()) == Shown()
    assert shown_in(turns, [whole], kept) == Shown()


def test_cuts_a_session_into_equal_parts() -> None:
    """The first are longer where it has to be; no part is empty."""
    turns = [turn(f"t{number}") for number in range(5)]
    assert [len(part) for part in cuts(turns, 2)] == [3, 2]
    assert [len(part) for part in cuts(turns, 9)] == [1] * 5
    assert [one for part in cuts(turns, 3) for one in part] == turns
