"""Which page a group's conversation has."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memory.writers.said import adds_of, batch, talk
from turnmark_memory.model import Batch, Evidence

HALL = (
    "Rosa: The hall has 40 rows of seats.",
    "Imke: The caretaker is paid until 30 June.",
    "Tom: The deposit is 200 euros.",
)
HALL_ZH = ("李雷: 场地押金一共 200 元。", "周敏: 门卫下周三下班。", "王芳: 一共订了 40 张票。")


def topics_of(turns: tuple[Evidence, ...], **more: Any) -> set[str]:
    asked = msgspec.structs.replace(batch(*turns), **more)
    return {add.topic for add in adds_of(asked)}


def called(title: str, *lines: str) -> tuple[Evidence, ...]:
    return tuple(msgspec.structs.replace(turn, title=title) for turn in talk(*lines))


@pytest.mark.parametrize(
    ("title", "lines", "topic"),
    [("Winter concert 🎶", HALL, "winter-concert"), ("冬季音乐会群", HALL_ZH, "冬季音乐会")],
)
def test_a_group_has_the_page_that_its_title_names(
    title: str, lines: tuple[str, ...], topic: str
) -> None:
    """Though no turn says so; without a title the statements stay with who spoke."""
    assert topics_of(called(title, *lines)) == {f"subjects/{topic}"}
    assert all(one.startswith("people/") for one in topics_of(talk(*lines)))


@pytest.mark.parametrize(
    ("opening", "lines", "topic"),
    [
        ("Rosa: This group is for the Ross Lane repairs.", HALL, "ross-lane-repairs"),
        ("李雷: 拉个群商量老宅的事", HALL_ZH, "老宅"),
    ],
)
def test_a_group_may_say_itself_what_it_is_for(
    opening: str, lines: tuple[str, ...], topic: str
) -> None:
    """In its first turns; later on the same words name nothing."""
    assert f"subjects/{topic}" in topics_of(talk(opening, *lines))
    later = tuple(msgspec.structs.replace(one, after="s-1") for one in talk(opening, *lines))
    assert not any(one.startswith("subjects/") for one in topics_of(later))


def test_a_title_is_no_subject_of_one_person_or_of_a_project() -> None:
    """An agent names a session for its task: the person and the project are what it is about."""
    alone = called("Moving house", "Rosa: The deposit for the van is 200 euros.", "A: Noted.")
    assert topics_of(alone) == {"people/rosa"}
    mine = tuple(msgspec.structs.replace(one, project="/x/kiosk") for one in called("Hall", *HALL))
    assert topics_of(mine) == {"projects/kiosk"}


def test_a_title_that_memory_knows_in_part_keeps_its_page() -> None:
    """A group that is renamed, or named later, goes on where it was; others' page is not taken."""
    known, again = (("subjects/winter-concert", "winter concert"),), "Winter concert 2026"
    assert topics_of(called(again, *HALL), topics=known) == {"subjects/winter-concert-2026"}
    usual = (("subjects/winter-concert", 0.2),)
    assert topics_of(called(again, *HALL), topics=known, usual=usual) == {"subjects/winter-concert"}


@pytest.mark.parametrize(
    ("lines", "topic"),
    [
        (
            (
                "Ana: so who is still up for the street fair",
                "Ben: the council wants 40 pounds for it",
                "Cyn: the stalls cost 30 pounds each",
                "Ana: the street fair is on Saturday 13 June",
            ),
            "street-fair",
        ),
        (
            (
                "阿杰: 这周露营还去不去",
                "小雨: 去，帐篷还差一顶",
                "陈姐: 营地一晚 120 元",
                "阿杰: 露营定在 6 月 20 号",
            ),
            "露营",
        ),
    ],
)
def test_finds_what_a_group_comes_together_for(lines: tuple[str, ...], topic: str) -> None:
    """Its opening names it; what goes with it (stalls, a camp site) has the same page."""
    assert topics_of(talk(*lines)) == {f"subjects/{topic}"}


@pytest.mark.parametrize(
    ("lines", "topic"),
    [
        (
            (
                "Ana: seating is a puzzle, 62 RSVPs so far",
                "Ben: the caterer needs numbers by 4 May",
                "Cyn: the florist wants 480 pounds",
                "Ben: the vows take 10 minutes, says the registrar",
            ),
            "wedding",
        ),
        (
            (
                "阿远: 酒店定了，10 月 3 号，云栖厅",
                "小满: 司仪请了老郑，两千块",
                "大飞: 伴郎服一套 180 元",
                "阿远: 喜糖一共装 200 盒",
            ),
            "婚礼",
        ),
    ],
)
def test_knows_a_matter_by_what_goes_with_it(lines: tuple[str, ...], topic: str) -> None:
    """Nobody says wedding where everybody plans one; half of it leaves it open."""
    assert f"subjects/{topic}" in topics_of(talk(*lines))
    half = talk(*lines[:2], lines[1].replace("4 May", "5 May"))
    assert not any(one.startswith("subjects/") for one in topics_of(half))


@pytest.mark.parametrize(
    "lines",
    [
        (
            "Ana: my daughter has her orchestra on the 19th",
            "Ben: the bakery on Elm Road opens at 7",
            "Cyn: the number 12 bus stops at the Grapes",
        ),
        ("阿杰: 文二路那家店七点开门", "小雨: 12 路公交到体育场", "陈姐: 停车费一小时 5 元"),
    ],
)
def test_has_no_subject_where_nothing_stands_out(lines: tuple[str, ...]) -> None:
    """Places, what is somebody's own and things of the day are none: whoever spoke is."""
    assert all(topic.startswith("people/") for topic in topics_of(talk(*lines)))


def test_another_matter_that_is_named_once_stays_out_of_it() -> None:
    """The page of the fair is no place for a birthday."""
    lines = (
        "Ana: the street fair is on 13 June",
        "Ben: the fair needs 3 stalls",
        "Cyn: the fair costs 300 pounds",
        "Ben: Lena's birthday dinner is at 8pm at the Grapes",
    )
    assert topics_of(talk(*lines)) == {"subjects/street-fair", "people/ben"}


@pytest.mark.parametrize(
    ("lines", "usual"),
    [
        (
            ("Ana: we have 3 stalls now", "Ben: ok", "Cyn: the council wants 40 pounds"),
            "street-fair",
        ),
        (("阿杰: 帐篷一共借了三顶，够九个人", "小雨: 好", "陈姐: 营地一晚 120 元，付过了"), "露营"),
    ],
)
def test_goes_on_where_it_stood_before(lines: tuple[str, ...], usual: str) -> None:
    """What goes with the page that memory has of these people is put there."""
    found = topics_of(talk(*lines), usual=((f"subjects/{usual}", 0.2),))
    assert f"subjects/{usual}" in found


def test_does_not_take_the_page_of_others_for_an_everyday_word() -> None:
    """The hall of somebody else's page is hardly this hall; a name of two words is plain."""
    known = (("subjects/hall", "hall"), ("subjects/easter-trip", "easter trip"))
    turns = called("Winter concert", *HALL, "Ana: The Easter trip costs 90 euros for everybody.")
    assert topics_of(turns, topics=known) == {"subjects/winter-concert", "subjects/easter-trip"}


def test_begins_no_page_for_a_part_of_a_conversation() -> None:
    """What comes up late and seldom has no page; its statements stay with who spoke."""
    others = [f"{who}: we need 3 chairs more in room {n}" for n, who in enumerate("ABCDEFGHIJ" * 3)]
    lines = (
        *(line.replace(":", "na:", 1) for line in others),
        "Ana: the picnic costs 30 pounds",
        "Bna: the picnic is on 13 June",
    )
    assert not any(topic.startswith("subjects/") for topic in topics_of(talk(*lines)))


def test_a_page_that_took_most_of_what_was_said_goes_on_taking() -> None:
    """Though nothing in the turns touches it; one that took little does not."""
    for share, topics in ((0.6, {"subjects/salt-mile"}), (0.3, set[str]())):
        found = topics_of(talk(*HALL), usual=(("subjects/salt-mile", share),))
        assert {one for one in found if one.startswith("subjects/")} == topics


def test_a_family_calls_people_by_what_they_are() -> None:
    """Grandma has a page of her own where several people speak of her."""
    lines = ("秀兰: 奶奶早上血压 142，有点高", "建国: 好的", "慧慧: 收到")
    assert topics_of(talk(*lines)) == {"people/奶奶"}
    lines = ("Ana: Grandma takes 5 mg of amlodipine now", "Ben: ok", "Cyn: good")
    assert topics_of(talk(*lines)) == {"people/grandma"}


def test_two_batches_of_one_group_agree() -> None:
    """The same turns give the same page, whatever order memory lists its topics in."""
    topics = (("subjects/choir", "choir"), ("subjects/street-fair", "street fair"))
    turns = talk("Ana: the street fair is on 13 June", "Ben: the fair needs 3 stalls", "Cyn: hi")
    both = [Batch(turns=turns, blocks=(), topics=known) for known in (topics, topics[::-1])]
    first, second = ([add.topic for add in adds_of(one)] for one in both)
    assert first == second == ["subjects/street-fair"] * len(first)
