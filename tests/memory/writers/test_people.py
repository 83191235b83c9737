"""Finding people in what is said."""

from __future__ import annotations

import pytest

from turnmark_memory.writers.people import People


def named(text: str, *known: str, chinese: bool = False) -> list[str]:
    return [one.name for one in People(known, [text]).meet(text, chinese=chinese)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("My sister Lena lives in Lisbon.", ["Lena"]),
        ("The landlady, Mrs. Okafor, was lovely.", ["Mrs. Okafor"]),
        ("Today I talked to Jonas Thorvald from the pilot station.", ["Jonas Thorvald"]),
        ("Kasia on our side owns the onboarding.", ["Kasia"]),
        ("I took over harvest-api from Devraj last month.", ["Devraj"]),
        ("Dee can't stand mushrooms.", ["Dee"]),
        ("Dance left me speechless, I love dance.", []),
        ("St Mark's just wrote.", []),
        ("We deploy to Hetzner on Monday.", []),
    ],
)
def test_finds_people_in_english(text: str, names: list[str]) -> None:
    """A relation, a title or a verb that people do makes a name a person's."""
    assert named(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("我女儿果果今年九月上小学", ["果果"]),
        ("我老公陈默这个月在深圳出差", ["陈默"]),
        ("前端现在是小唐在弄", ["小唐"]),
        ("群里有个叫阿May的设计师", ["阿May"]),
        ("店主叫许梅，在昆明", ["许梅"]),
        ("我们决定用 Postgres", []),
    ],
)
def test_finds_people_in_chinese(text: str, names: list[str]) -> None:
    """Family names, nicknames and relations make a name."""
    assert named(text, chinese=True) == names


def test_finds_whom_it_knows_anywhere() -> None:
    """A known name needs no reason, but to be a word of its own."""
    assert named("ask dana and Dana, not Danae", "Dana") == ["Dana"]
    assert named("cc Danae", "Dana") == []


def test_knows_the_whole_name_of_somebody() -> None:
    """The first name alone means the only one who has it."""
    people = People(["Jonas Thorvald"])
    assert (people.whole("Jonas"), people.whole("Dana")) == ("Jonas Thorvald", "Dana")
    assert People(["Jonas A", "Jonas B"]).whole("Jonas") == "Jonas"
