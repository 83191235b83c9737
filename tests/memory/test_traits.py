"""What kind of thing a turn says and a question asks."""

from __future__ import annotations

import pytest

from turnmark_memory.traits import Trait, Wants, traits_of, wants_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Trait(0)),
        ("fine", Trait(0)),
        ("Really? Fine.", Trait.QUESTION),
        ("你会弹吉他吗？", Trait.QUESTION | Trait.ASKS),
        ("I moved yesterday", Trait.SELF | Trait.TIME),
        ("我昨天搬家了", Trait.SELF | Trait.TIME),
        ("the pool is closed on thursdays", Trait.TIME),
        ("the band plays until one", Trait.TIME),
        ("店里中午休息半小时", Trait.TIME),
        ("it cost 40 euros", Trait.NUMBER),
        ("It lies in Porto", Trait.NAME),
        ("He met Ana, Ben and Dana", Trait.NAME | Trait.NAMES),
    ],
)
def test_a_turn_shows_its_traits(text: str, expected: Trait) -> None:
    """In either language; a capital at the beginning of a sentence is no name."""
    assert traits_of(text) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("violin", Wants()),
        ("When did Ana move?", Wants(time=True)),
        ("安娜什么时候搬家？", Wants(time=True)),
        ("What's the deadline?", Wants(time=True)),
        ("截止到哪一天？", Wants(time=True)),
        ("How many violins are there?", Wants(number=True)),
        ("Which port does it use?", Wants(number=True, name=True)),
        ("水管有多深？", Wants(number=True)),
        ("一共有多少把？", Wants(number=True)),
        ("Where do I live?", Wants(name=True, self=True)),
        ("我的老师是谁？", Wants(name=True, self=True)),
    ],
)
def test_a_question_shows_what_it_wants(question: str, expected: Wants) -> None:
    """A time, a number, a name; and whether who asks means themselves."""
    assert wants_of(question) == expected
