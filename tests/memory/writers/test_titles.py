"""What a conversation is called, where that is the name of a group's matter."""

from __future__ import annotations

import pytest

from turnmark_memory.writers.titles import matter_of, name_given

SPEAKERS = ("Ana", "Ben Ortiz")
FIRST = "ok so who's still up for doing the street fair again"


@pytest.mark.parametrize(
    ("title", "chinese", "name"),
    [
        ("Street Fair 2026 🎪", False, "Street Fair 2026"),
        ("The Choir Committee", False, "Choir Committee"),
        ("#garden", False, "garden"),
        ("Smith family chat", False, "Smith family"),
        ("Mon/Wed football", False, "Mon Wed football"),
        ("周末露营群(12)", True, "周末露营"),
        ("读书会交流群", True, "读书会"),
        ("Market hall 市集群", False, "Market hall"),
        ("Market hall 市集群", True, "市集"),
    ],
)
def test_takes_the_name_of_a_group(title: str, name: str, *, chinese: bool) -> None:
    """Without signs, and without words that only say that it is a group."""
    assert matter_of(title, speakers=SPEAKERS, first=FIRST, chinese=chinese) == name


@pytest.mark.parametrize(
    "title",
    [
        None,
        "",
        "💥",
        "New chat",
        "#general",
        "新对话",
        "相亲相爱一家人",
        "Ana, Ben",
        "Ana & Ben Ortiz",
        "ok so who's still up",
        "ok so who's still up for…",
        "Should we move?",
        "telegram:-1003344556",
        "/home/ana/choir",
        "choir/concert",
        "7b3e9f10-aa11",
        "Fix the crash that comes when the importer is started twice",
        "https://example.org/choir",
    ],
)
def test_takes_nothing_that_is_no_name(title: str | None) -> None:
    """A first message cut off, who speaks, an id, a path, a question, a default."""
    assert matter_of(title, speakers=SPEAKERS, first=FIRST, chinese=False) == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("I set up this group for the night market in the old hall.", "night market"),
        ("hi, this chat is for planning the spring trip, so post here", "spring trip"),
        ("morning all, Salt Mile prep chat. who is in?", "Salt Mile"),
        ("Welcome to the Elm Road garden!", "Elm Road garden"),
        ("拉个群商量一下毕业旅行的事", "毕业旅行"),
        ("欢迎加入咱们三单元业主群", "三单元业主群"),
        ("this group is about to explode", ""),
        ("welcome to my life", ""),
        ("群里说一声", ""),
        ("who is in tonight", ""),
    ],
)
def test_hears_what_a_group_is_opened_for(text: str, name: str) -> None:
    """In the words of whoever opens it; most messages open nothing."""
    assert name_given(text) == name
