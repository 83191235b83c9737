"""What two turns say together."""

from __future__ import annotations

import msgspec
import pytest

from memory.writers.said import talk
from turnmark_memory.writers.exchanges import exchanges_of


def acts(*lines: str, project: str | None = None) -> list[tuple[str, str, str]]:
    """Returns act, words and answer of all exchanges of a conversation."""
    turns = talk(*lines, project=project)
    return [
        (one.act, one.words, one.answer)
        for number in range(len(turns))
        for one in exchanges_of(turns, number)
    ]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("A: I can treat an empty offset as zero.", "U: yes, do that."), 0),
        (("A: I'd suggest the `geojson` crate. Shall I go ahead?", "U: sounds good, go ahead"), 0),
        (("A: 用 UUID 作记录名就不会出错。", "U: 行，听你的"), 0),
        (("A: 一年后大概是 2027 年 5 月，到时候要提醒你吗？", "U: 要的，提醒我"), 0),
        (("Priya: Then the 12th. Agreed?", "Tom: agreed"), 0),
        (("Mia: Let's take the train.", "Leo: no idea", "Jonas: +1"), 0),
        (("A: The pool size should go from 10 to 25.", "U: by all means"), 0),
        (("A: A lock per tenant would do.", "U: great plan, go for it"), 0),
        (("A: Shall I remind you on the 3rd each month?", "U: aye do that"), 0),
        (("A: 建议缓存改用 Redis，过期五分钟。", "U: 做吧"), 0),
        (("A: 要不要把报表先放到 6 月？", "U: 改"), 0),
    ],
)
def test_joins_a_yes_with_the_proposal(lines: tuple[str, ...], words: int) -> None:
    """The proposal's own words are what was agreed to."""
    proposal = lines[words].split(": ", 1)[1]
    ((act, agreed, answer),) = acts(*lines)
    assert (act, answer) == ("agreed", "")
    assert proposal.startswith(agreed)


@pytest.mark.parametrize(
    "lines",
    [
        ("A: Should I amend the last commit to that form?", "U: Please."),
        ("A: Would you like a checklist?", "U: Sure, but keep it short."),
        ("A: Monterey is quite a change from Tucson.", "U: Yeah, six years is enough."),
        ("A: 太好了，一家人可以在一起了。", "U: 对呀😊"),
        ("A: “王经理，我想请半天假，望批准。”", "U: 可以，发了"),
        ("A: I'd use Redis for that.", "U: yes?"),
        ("A: 可以先试一周看看客流。", "U: 再说吧"),
        ("A: 需要改提醒吗？", "U: 改吧"),
        ("陈姐: 我们换到三楼排练了", "小雨: 好好养着"),
        ("A: I'd use Redis for that.", "U: No, MySQL!"),
    ],
)
def test_takes_no_order_and_no_small_talk_for_a_decision(lines: tuple[str, ...]) -> None:
    """A yes to an offer is an order; a yes to nothing proposed is talk."""
    assert acts(*lines) == []


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (("Tom: does that hall have a piano?", "Ines: an upright, bit out of tune"), True),
        (("Ines: what do we charge?", "Priya: 12 pounds, kids free."), True),
        (("A: I would rather take 120.", "U: ok, 120 it is"), True),
        (("A: A token bucket, or a simple sleep.", "U: simple sleep is fine"), True),
        (("A: Who drives?", "Ines: I drive my van."), False),
        (("A: How was the trip?", "U: Long."), False),
        (("A: What shall we start with?", "U: the parser please"), False),
        (("A: 先从哪一块开始？", "U: 地图页滑动掉帧，帮我看看"), False),
        (("A: Which one?", "U: not sure"), False),
        (("Ana: what did I miss", "Ben: everything"), False),
        (("Ana: who is Gerd?", "Ben: before your time"), False),
        (("Ana: who caters?", "Ben: Dilek's Kitchen"), True),
        (("阿杰: 奶奶上周查血压，高压 165", "小雨: 奶奶没事吧"), False),
        (("阿杰: 排练啥时候", "小雨: 每周二晚七点"), True),
    ],
)
def test_joins_a_short_answer_with_its_question(lines: tuple[str, ...], *, answer: bool) -> None:
    """An answer that says nothing alone has its question beside it."""
    found = acts(*lines)
    assert [act for act, _, _ in found] == (["answered"] if answer else [])
    for _, words, _ in found:
        assert words in lines[0]


def test_keeps_a_cause_that_the_assistant_found_in_a_project() -> None:
    """A cause needs nobody's yes, but a project."""
    line = "A: The crash comes from `offset_minutes`: some stations leave it empty."
    assert [act for act, _, _ in acts(line, project="/code/tidepool")] == ["found"]
    assert acts(line) == []
    assert acts("A: Done, the tests pass.", project="/code/tidepool") == []


def test_joins_nothing_across_sessions() -> None:
    """The turn before it in another session is no turn before it."""
    first, second = talk("A: I can use zero.", "U: yes, do that")
    apart = msgspec.structs.replace(second, session="other")
    assert list(exchanges_of((first, apart), 1)) == []
    assert len(list(exchanges_of((first, second), 1))) == 1
