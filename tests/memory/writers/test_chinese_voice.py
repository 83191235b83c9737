"""Chinese told in the third person, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.writers.chinese_voice import retold


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("我上个月从北京搬到了杭州。", "李雷上个月从北京搬到了杭州。"),
        ("我老婆叫小美，是小学老师。", "李雷的老婆叫小美，是小学老师。"),
        ("我对花生过敏，我儿子也是。", "李雷对花生过敏，李雷的儿子也是。"),
        ("我们搬家了。", "李雷等人搬家了。"),
        ("小唐下个月就离职了。", "小唐下个月就离职了。"),
        ("图标月底才好。", "图标月底才好。"),
    ],
)
def test_tells_of_a_speaker(said: str, told: str) -> None:
    """The first person becomes the speaker's name; a relation gets its 的."""
    assert retold(said, "李雷", in_project=False) == told


def test_tells_of_a_team() -> None:
    """In a project 我们 is the team."""
    assert retold("我们决定用 Postgres。", "用户", in_project=True) == "团队决定用 Postgres。"


@pytest.mark.parametrize(
    "said",
    [
        "喜欢喝茶",
        "每周日早上跑二十公里",
        "下周三去北京出差",
        "我跟你说过我不吃辣",
        "她只喜欢绿色的",
        "我觉得可以",
        "他说“我不去”",
    ],
)
def test_leaves_what_is_not_safe(said: str) -> None:
    """A dropped subject, somebody addressed, words in quotation marks: the caller has to quote."""
    assert retold(said, "李雷", in_project=False) is None


@given(st.text() | st.text("我们的你他喜欢在。，A"))
def test_never_raises_and_leaves_no_first_person(text: str) -> None:
    """Whatever is told, nobody in it is 我."""
    told = retold(text, "李雷", in_project=False)
    assert told is None or "我" not in told
