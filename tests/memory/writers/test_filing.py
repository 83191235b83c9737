"""Where statements go: topics and headings."""

from __future__ import annotations

import pytest

from memory.writers.said import adds_of, batch, shown, talk, turn
from turnmark_memory.headings import fitting
from turnmark_memory.writers.slugs import slug_of


def topics_of(*lines: str, project: str | None = None) -> list[str]:
    return [add.topic for add in adds_of(batch(*talk(*lines, project=project)))]


def test_files_by_what_a_statement_is_about() -> None:
    """The speaker, another person and the project each have a topic."""
    assert topics_of(
        "Robin: I prefer tea.",
        "Robin: Dana leads the billing team since May 2026.",
        "Robin: We decided to use Postgres.",
        "Robin: 王芳负责计费团队。",
        project="/home/robin/Blue Kiosk",
    ) == ["people/robin", "people/dana", "projects/blue-kiosk", "people/王芳"]


def test_files_a_name_that_recurs_under_a_subject() -> None:
    """Without a project, what comes up again has a page of its own; so has what memory knows."""
    turns = talk(
        "Robin: The capacity of Glomma is 30 MW.",
        "Robin: The owner of Glomma is a town of 900 people.",
        "Robin: The valley of Rauma has 3 farms.",
    )
    adds = adds_of(batch(*turns, topics=(("subjects/rauma", "the valley"),)))
    assert [add.topic for add in adds] == ["subjects/glomma", "subjects/glomma", "subjects/rauma"]


def test_files_what_a_group_decides_under_what_it_talks_about() -> None:
    """What is personal stays with the person; who is spoken to is no subject."""
    topics = topics_of(
        "Priya: Can we plan the concert?",
        "Tom: The concert needs brass, Priya. Dec 12 is free.",
        "Ines: I can't do the 19th, Priya.",
        "A: Noted: the concert is on December 12.",
    )
    assert topics == ["subjects/concert", "people/ines"]


def test_files_a_chinese_group_too() -> None:
    """The noun that most turns hold is what they talk about."""
    topics = topics_of(
        "阿杰: 周末露营的地方定天目湖",
        "小雨: 露营我带天幕和三盏灯，再带两把椅子",
        "A: 好的，露营地点定为天目湖。",
        "陈姐: 天目湖开车一个半小时",
    )
    assert set(topics) <= {"subjects/天目湖", "subjects/露营", "people/小雨"}
    assert "people/小雨" in topics


def test_keeps_people_of_one_name_apart() -> None:
    """Two who share a name have a page each, and keep it where memory has it."""
    first = turn("I prefer tea.", 1)
    second = turn("I live in Oslo.", 2, speaker_id="u-23")
    adds = adds_of(batch(first, second))
    assert [add.topic for add in adds] == ["people/robin-u-17", "people/robin-u-23"]
    known = (("people/robin-u-23", "who Robin is"),)
    assert adds_of(batch(second, topics=known))[0].topic == "people/robin-u-23"
    assert adds_of(batch(first))[0].topic == "people/robin"


@pytest.mark.parametrize(
    "line", ["Robin: By the way, I'm allergic to peanuts.", "李雷: 另外我对花生过敏，跟代码没关系"]
)
def test_what_is_nobodys_business_but_ones_own_is_no_projects(line: str) -> None:
    """Health goes with the person wherever it is said."""
    (topic,) = topics_of(line, project="/home/robin/kiosk")
    assert topic.startswith("people/")


def test_files_a_first_name_with_the_whole_one() -> None:
    """Jonas is Jonas Thorvald while there is one Jonas."""
    known = (("people/jonas-thorvald", "who Jonas Thorvald is"),)
    adds = adds_of(batch(turn("Jonas wants the export by May 3."), topics=known))
    assert adds[0].topic == "people/jonas-thorvald"


def test_files_a_pronoun_with_the_person_named_last() -> None:
    """Where only one person was named she is the one; with two of them the speaker is quoted."""
    adds = adds_of(
        batch(*talk("林晓: 我女儿果果今年上小学。", "A: 好的。", "林晓: 她只喜欢绿色的，恐龙图案"))
    )
    assert (adds[1].topic, adds[1].text) == ("people/果果", "果果只喜欢绿色的，恐龙图案。")
    adds = adds_of(batch(turn("I met Dana and asked Lena. She likes tea with 2 sugars.")))
    assert adds[-1].topic == "people/robin"
    assert 'She likes tea with 2 sugars."' in adds[-1].text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Roz: Dad next. He's called Gordon, he's 81.", "Roz's dad is called Gordon, he's 81."),
        ("李雷: 我妹妹是兽医。她 2019 年搬到了波恩。", "李雷的妹妹 2019 年搬到了波恩。"),
    ],
)
def test_says_whose_relation_a_pronoun_means(line: str, told: str) -> None:
    """Somebody who was not named is what they are to the speaker, on the speaker's page."""
    adds = adds_of(batch(*talk(line)))
    assert (adds[-1].topic.partition("/")[0], adds[-1].text) == ("people", told)


@pytest.mark.parametrize(
    "line",
    [
        "Robin: My brother told my sister. She moved to Oslo in 2019.",
        "Robin: My sister is a vet. He moved to Oslo in 2019.",
        "Robin: My kids are at school. She moved to Oslo in 2019.",
        "李雷: 我哥和我妹都来。她 2019 年搬到了波恩。",
    ],
)
def test_leaves_a_pronoun_that_may_mean_another(line: str) -> None:
    """Two relations, or one that does not fit, leave it open."""
    assert not any(
        word in add.text for add in adds_of(batch(*talk(line))) for word in ("Robin's", "李雷的妹")
    )


@pytest.mark.parametrize(
    ("about", "headings"),
    [("who Robin is", ["Preferences", "Instructions"]), ("Robin 是谁", ["偏好", "要求"])],
)
def test_heads_a_topic_in_its_one_language(about: str, headings: list[str]) -> None:
    """A topic's headings follow what it says it is about, whatever is said."""
    turns = (turn("我喜欢喝茶。", 1), turn("Always answer in German.", 2))
    adds = adds_of(batch(*turns, topics=(("people/robin", about),)))
    assert [add.heading for add in adds] == headings


def test_heads_a_new_topic_in_the_language_of_its_first_statement() -> None:
    """What comes first decides, for all that follows."""
    adds = adds_of(batch(turn("我喜欢喝茶。", 1), turn("I live in Oslo.", 2)))
    assert [add.heading for add in adds] == ["偏好", "简介"]
    block = shown("Robin likes coffee.", "s-1")
    assert adds_of(batch(turn("我喜欢喝茶。"), blocks=(block,)))[0].heading == "Preferences"


@pytest.mark.parametrize(
    ("name", "slug"), [("Blue Kiosk", "blue-kiosk"), ("王芳", "王芳"), ("Con", "con-"), ("💥", "")]
)
def test_makes_a_name_a_file_name(name: str, slug: str) -> None:
    """Letters and digits of any script; no device of Windows."""
    assert slug_of(name) == slug


@pytest.mark.parametrize(
    ("heading", "about", "present", "fits"),
    [
        ("Facts", "项目：决定", {"决定"}, "情况"),
        ("情况", "the project", set[str](), "Facts"),
        ("Facts", "项目：决定", {"Facts"}, "Facts"),
        ("Facts", "the project", set[str](), "Facts"),
        ("Work", "项目：决定", set[str](), "Work"),
        (None, "项目", set[str](), None),
    ],
)
def test_fits_a_heading_to_its_topic(
    heading: str | None, about: str, present: set[str | None], fits: str | None
) -> None:
    """Batches that begin one topic side by side head it in one language."""
    assert fitting(heading, about, present) == fits
