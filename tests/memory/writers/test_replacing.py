"""Finding the fact that a new one replaces, and leaving alone what goes on holding."""

from __future__ import annotations

import pytest

from turnmark_memory.writers.gists import gist_of
from turnmark_memory.writers.replacing import POINTS, Fact, Pile, repeats

ENGLISH = (
    "Robin lives in a flat in Oslo.",
    "Robin works as a nurse in Lisbon.",
    "Rehearsal is on Thursdays at 7 in the crypt.",
    "The rent is 1,900 a month.",
    "Dot does the cakes on Saturdays.",
    "The booking page is due on 21 August.",
    "The playground is hosted on Netlify.",
    "Robin is allergic to penicillin.",
    "The session timeout is 30 minutes.",
    "Robin has a dog called Miso.",
)
CHINESE = (
    "李雷在南京租房住。",
    "李雷在一家律所上班。",
    "每周四晚七点在老仓库排练",
    "房租一个月 3200",
    "周六的蛋糕是点点做",
    "预约页面 8 月 21 号上线",
    "在线演示放在 Netlify 上",
    "李雷对青霉素过敏。",
    "会话超时是 30 分钟",
    "李雷养了一条狗叫米粒。",
)


def replaced(new: str, olds: tuple[str, ...], who: str) -> str | None:
    """Returns the one of `olds` that `new` replaces, all of them of one person and topic."""
    pile = Pile()
    for old in olds:
        fact = Fact(gist=gist_of(old), topic="people/x", who=frozenset({who}), key=old)
        pile.add(fact)
    said = Fact(gist=gist_of(new), topic="people/x", who=frozenset({who}), label="s-1")
    found = pile.replaced_by(said)
    return None if found is None else str(found.key)


@pytest.mark.parametrize(
    ("new", "number"),
    [
        ("Robin moved from Oslo to Bergen.", 0),
        ("rehearsal moves to Wednesdays", 2),
        ("Rehearsal is in the scout hut from now on, the crypt is flooded.", 2),
        ("The rent goes up to 2,150 from May.", 3),
        ("Dot is off to college, Olli does the cakes.", 4),
        ("The booking page slips to 30 September.", 5),
        ("The playground is on Cloudflare now.", 6),
        ("I bumped the session timeout to two hours.", 8),
        ("Robin's sister lives in Bergen.", None),
        ("Also Robin has a cat called Tofu.", None),
        ("The hall seats 40 people.", None),
        ("Dot passed the driving test.", None),
        ("Robin likes green tea.", None),
        ("The café at the abbey wants 20 scones every Friday.", None),
        ("The order export runs every night at 2.", None),
        ("Anna works at the library.", None),
        ("Robin also sees a doctor on 2 April.", None),
    ],
)
def test_finds_what_a_fact_replaces(new: str, number: int | None) -> None:
    """Another value, place, person or tool for the same thing; what is merely near stays."""
    assert replaced(new, ENGLISH, "robin") == (None if number is None else ENGLISH[number])


@pytest.mark.parametrize(
    ("new", "number"),
    [
        ("李雷从南京搬到了杭州。", 0),
        ("李雷从律所辞职了。", 1),
        ("排练改到周三了", 2),
        ("老仓库要拆了，以后去文化站排练", 2),
        ("房租涨到 3600 了", 3),
        ("点点上学去了，蛋糕换小欧做", 4),
        ("预约页面推迟到 9 月 30 号", 5),
        ("在线演示搬到 Cloudflare 了", 6),
        ("会话超时调到两小时了", 8),
        ("李雷还养了一只猫叫豆腐。", None),
        ("小礼堂能坐 40 个人。", None),
        ("点点考下驾照了", None),
        ("李雷喜欢喝绿茶。", None),
        ("景区的咖啡馆每周五要 20 个司康", None),
        ("订单导出每天凌晨两点跑", None),
        ("安娜在图书馆工作", None),
        ("4 月 2 号还要去看皮肤科", None),
    ],
)
def test_finds_what_a_chinese_fact_replaces(new: str, number: int | None) -> None:
    """The same in Chinese."""
    assert replaced(new, CHINESE, "李雷") == (None if number is None else CHINESE[number])


@pytest.mark.parametrize(
    ("new", "old", "again"),
    [
        ("Reminder: Robin is allergic to penicillin.", "Robin is allergic to penicillin.", True),
        ("Robin is not allergic to penicillin.", "Robin is allergic to penicillin.", False),
        ("The rent is 2,150 a month.", "The rent is 1,900 a month.", False),
        ("The rent is due on the 5th.", "The rent is high.", False),
        ("Robin sold the dog.", "Robin has a dog.", False),
        ("年糕的肾病记着，只能吃处方粮", "年糕有肾病，只能吃处方粮，千万别忘", True),
        ("Robin likes tea with lemon.", "Robin likes tea with milk.", False),
        ("Robin likes dish number 1 of beta.", "Robin likes dish number 1 of alpha.", False),
        ("年糕没有肾病，不吃处方粮", "年糕有肾病，只能吃处方粮", False),
        ("罗宾喜欢加柠檬的红茶", "罗宾喜欢加牛奶的红茶", False),
        ("罗宾养了一只狗", "罗宾养了一只猫", False),
        ("排练改到周三", "排练在周四", False),
    ],
)
def test_knows_what_only_says_it_again(new: str, old: str, *, again: bool) -> None:
    """No other value, nothing left, and no other word but those that say so."""
    assert repeats(gist_of(new), gist_of(old)) is again


def test_leaves_what_the_same_turn_said() -> None:
    """Two sentences of one turn don't replace each other."""
    pile = Pile()
    who = frozenset({"robin"})
    for text in ("The rent is 1,900 a month.", "The rent is 2,150 from May."):
        fact = Fact(gist=gist_of(text), topic="people/robin", who=who, label="s-1")
        assert pile.replaced_by(fact) is None
        pile.add(fact)


def test_forgets_what_was_taken_out() -> None:
    """What holds no longer is replaced by nothing."""
    pile = Pile()
    who = frozenset({"robin"})
    old = Fact(gist=gist_of("Robin lives in Oslo."), topic="people/robin", who=who)
    new = Fact(gist=gist_of("Robin moved from Oslo to Bergen."), topic="people/robin", who=who)
    pile.add(old)
    assert pile.replaced_by(new) is old
    pile.remove(old)
    assert pile.replaced_by(new) is None


def test_has_points_for_each_trait() -> None:
    """No trait is left out of what was learnt, and none was learnt that there isn't."""
    pile = Pile()
    who = frozenset({"robin"})
    pile.add(Fact(gist=gist_of("Robin lives in Oslo."), topic="people/robin", who=who))
    new = Fact(gist=gist_of("Robin moved from Oslo to Bergen."), topic="people/robin", who=who)
    ((_, traits),) = pile.rated(new)
    assert traits.keys() == POINTS.keys()


@pytest.mark.parametrize(
    ("old", "new", "ends"),
    [
        ("Robin lives in Bergen.", "Robin moved to Porto.", True),
        ("Robin住在上海。", "Robin搬到杭州了。", True),
        ("Robin's sister lives in Kyiv.", "Robin moved to Porto.", False),
        ("Robin的妈妈住在成都。", "Robin搬到杭州了。", False),
        ("Robin lives in Bergen.", "The demo moved to Cloudflare.", False),
        ("Robin lives in Bergen.", "Robin moved to the finance team.", False),
        ("Robin lives in Bergen.", "Robin is moving to Porto next month.", False),
        ("Robin likes tea with milk.", "Robin likes tea with lemon.", False),
        ("Robin喜欢喝茶。", "Robin喜欢喝咖啡。", False),
        ("Robin养了一只猫。", "Robin养了一只狗。", False),
        ("Robin likes tea with milk.", "Robin no longer likes tea with milk.", True),
    ],
)
def test_knows_what_one_person_has_one_of(old: str, new: str, *, ends: bool) -> None:
    """A home is one at a time, what somebody likes is not."""
    pile, who = Pile(), frozenset({"robin"})
    known = Fact(gist=gist_of(old), topic="people/robin", who=who)
    pile.add(known)
    fact = Fact(gist=gist_of(new), topic="people/robin", who=who, label="s-2")
    assert (pile.replaced_by(fact) is known) is ends
