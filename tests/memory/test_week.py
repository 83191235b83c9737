"""A week of simulated days on a scripted model, and the memory that it ends in.

Two people in two languages; questions and small talk, forks, a correction, a retried reply, words
taken back, one person speaking of the other, an old conversation that comes late, a paragraph by
hand. The golden files are meant to be read; `TURNMARK_WRITE_GOLDEN=1` writes them anew.
"""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path

import pytest

from memory.at_work import AtWork, assistant, at_work, scratch, tokens, user
from memory.scripted_model import Card, ScriptedModel
from turnmark_memory.requests import RecallRequest
from turnmark_memory.writers.model_writer import ModelWriter
from turnmark_session_store.model import Speaker, TurnIn
from turnmark_session_store.requests import Rewind

pytestmark = pytest.mark.anyio

GOLDEN = Path(__file__).parent / "golden" / "week"
WORKSPACE = "w-00000000000000aa"
DANA = Speaker(id="u-17", name="Dana")
ZHOU = Speaker(id="u-23", name="周明")

CARDS = (
    Card(
        says="I lead the billing team",
        topic="people/dana",
        heading="Work",
        text="Dana has led the billing team at Acme since May 2026.",
    ),
    Card(
        says="we release every Friday",
        topic="projects/billing",
        heading="Releases",
        text="The billing team releases every Friday.",
    ),
    Card(
        says="我住在里斯本",
        topic="people/周明",
        heading="生活",
        text="周明住在里斯本。",
    ),
    Card(
        says="负责税务系统",
        topic="people/周明",
        heading="工作",
        text="周明负责税务系统。",
    ),
    Card(
        says="ledger runs on PostgreSQL 15",
        topic="projects/ledger",
        text="The ledger runs on PostgreSQL 15.",
    ),
    Card(
        says="每周三部署",
        topic="projects/税务系统",
        heading="部署",
        text="税务系统每周三部署。",
    ),
    Card(
        says="12 September at the Vila",
        topic="projects/offsite",
        text="The offsite in Porto may be on 12 September 2026 at the Vila.",
    ),
    Card(
        says="on 19 September by the harbour",
        topic="projects/offsite",
        text="The offsite in Porto may be on 19 September 2026 by the harbour.",
        about="12 September 2026",
    ),
    Card(
        says="上周末我搬到了波尔图",
        topic="people/周明",
        heading="生活",
        text="周明自2026年8月1日至2日的周末起住在波尔图。",
        about="周明住在里斯本",
    ),
    Card(
        says="upgraded the ledger to PostgreSQL 17 yesterday",
        topic="projects/ledger",
        text="The ledger has run on PostgreSQL 17 since 5 August 2026.",
        about="PostgreSQL 15",
    ),
    Card(
        says="周明 is still in Lisbon, I think",
        topic="people/周明",
        heading="生活",
        text="Dana thought on 6 August 2026 that 周明 was still in Lisbon.",
        about="住在波尔图",
    ),
    Card(
        says="My birthday is on 3 March",
        topic="people/dana",
        text="Dana's birthday is on 3 March.",
    ),
    Card(
        says="I drink my coffee black",
        topic="people/dana",
        heading="Tastes",
        text="Dana drinks her coffee black.",
    ),
    Card(
        says="the ledger is on MySQL",
        topic="projects/ledger",
        text="The ledger was on MySQL in February 2026.",
        about="PostgreSQL 17",
    ),
    Card(
        says="我还住在法鲁",
        topic="people/周明",
        heading="生活",
        text="周明2026年2月住在法鲁。",
        about="住在波尔图",
    ),
    Card(
        says="对，税务系统每周三上线",
        topic="projects/税务系统",
        text="税务系统每周三部署。",
        about="税务系统每周三部署",
        keeps_cites=True,
    ),
    Card(
        says="from now on we release on Tuesdays",
        topic="projects/billing",
        heading="Releases",
        text="The billing team releases every Tuesday since 9 August 2026.",
        about="releases every Friday",
    ),
)


class Week:
    """The memory, and the days as they go by."""

    def __init__(self, work: AtWork) -> None:
        self.work = work
        self.day = date(2026, 8, 3)
        self.minute = 0

    def _at(self) -> str:
        self.minute += 3
        return f"{self.day.isoformat()}T{9 + self.minute // 60:02}:{self.minute % 60:02}:00Z"

    def dana(self, words: str, name: str) -> TurnIn:
        """Returns what Dana says next."""
        return user(words, name, speaker=DANA, time=self._at())

    def zhou(self, words: str, name: str) -> TurnIn:
        """Returns what 周明 says next."""
        return user(words, name, speaker=ZHOU, time=self._at())

    def agent(self, words: str, name: str) -> TurnIn:
        """Returns what the assistant answers next."""
        return assistant(words, name, time=self._at())

    async def say(self, session: str, *turns: TurnIn, after: str | None = None) -> None:
        """Appends turns and lets the session's branches be written."""
        more = {} if after is None else {"after": after}
        await self.work.append(session, turns, **more)
        assert (await self.work.flush(session=session)).failures == []

    async def night(self) -> None:
        """Ends the day."""
        await self.work.memory.rescan()
        assert (await self.work.flush()).left == 0
        self.day = date.fromordinal(self.day.toordinal() + 1)
        self.minute = 0


async def live(week: Week) -> None:
    """Lives the seven days."""
    await monday(week)
    await week.night()
    await tuesday(week)
    await week.night()
    await wednesday(week)
    await week.night()
    await thursday(week)
    await week.night()
    await friday(week)
    await week.night()
    await saturday(week)
    await week.night()
    await sunday(week)
    await week.night()


async def monday(week: Week) -> None:
    """Two people introduce themselves."""
    await week.say(
        "mon-dana",
        week.dana("Hi, I'm Dana. I lead the billing team at Acme since May.", "mon1"),
        week.agent("Nice to meet you, Dana!", "mon2"),
        week.dana("Just so you know, we release every Friday.", "mon3"),
    )
    await week.say(
        "mon-zhou",
        week.zhou("你好，我是周明，我住在里斯本。", "mon4"),
        week.agent("你好周明！", "mon5"),
        week.zhou("我负责税务系统。", "mon6"),
    )


async def tuesday(week: Week) -> None:
    """Facts of two projects, a question, and an assistant's idea that nobody took up."""
    await week.say(
        "tue-dana",
        week.dana("Our ledger runs on PostgreSQL 15. Is that still supported?", "tue1"),
        week.agent("It is. You could also move to SQLite, which is simpler.", "tue2"),
        week.dana("Thanks, what's the weather like?", "tue3"),
    )
    await week.say("tue-zhou", week.zhou("我们税务系统每周三部署。", "tue4"))


async def wednesday(week: Week) -> None:
    """A plan that forks: two ways it may go, and neither is a change of mind."""
    await week.say(
        "wed",
        week.dana("Help me plan the team's offsite in Porto.", "wed1"),
        week.agent("Gladly. When and where?", "wed2"),
        week.dana("Let's say 12 September at the Vila.", "wed3"),
    )
    await week.say(
        "wed",
        week.dana("Or rather have the offsite in Porto on 19 September by the harbour.", "wed4"),
        after="wed2",
    )


async def thursday(week: Week) -> None:
    """A move, an upgrade, and what one person believes of the other."""
    await week.say("thu-zhou", week.zhou("上周末我搬到了波尔图，不在里斯本了。", "thu1"))
    await week.say(
        "thu-dana",
        week.dana("We upgraded the ledger to PostgreSQL 17 yesterday, no more 15.", "thu2"),
        week.agent("Congratulations!", "thu3"),
        week.dana("周明 is still in Lisbon, I think, not 住在波尔图.", "thu4"),
    )


async def friday(week: Week) -> None:
    """Words that are taken back, and a reply that was asked for again."""
    await week.say(
        "fri",
        week.dana("I drink my coffee black.", "fri1"),
        week.agent("Noted.", "fri2"),
        week.dana("My birthday is on 3 March.", "fri3"),
    )
    assert "3 March" in week.work.topic("people/dana")
    await week.work.store.rewind(Rewind(session="fri", to="fri2"))
    await week.work.append("fri", [week.agent("Shall I order some?", "fri4")], after="fri1")
    await week.work.append("fri", [week.dana("No, thanks.", "fri5")], after="fri2")


async def saturday(week: Week) -> None:
    """An old conversation comes late, and Dana writes a line by hand."""
    february = {"time": "2026-02-11T10:00:00Z"}
    await week.say(
        "old",
        user(
            "At the moment the ledger is on MySQL, not PostgreSQL 17.",
            "old1",
            speaker=DANA,
            **february,
        ),
        user("我还住在法鲁，没有住在波尔图。", "old2", speaker=ZHOU, **february),
    )
    file = week.work.root / "topics" / "people" / "dana.md"
    text = file.read_text(encoding="utf-8")
    by_hand = "She prefers to be called Dana, not Ms. Webb.\n\n"
    file.write_text(text.replace("## Work\n\n", f"## Work\n\n{by_hand}"), encoding="utf-8")


async def sunday(week: Week) -> None:
    """A confirmation, and a rule that ends."""
    await week.say("sun-zhou", week.zhou("对，税务系统每周三上线。", "sun1"))
    await week.say(
        "sun-dana",
        week.dana(
            "The team no longer releases on Fridays; from now on we release on Tuesdays.", "sun2"
        ),
    )


async def test_ends_in_the_memory_that_a_careful_person_would_have_written() -> None:
    """Every topic and the core page, byte for byte; only the day of writing is left out."""
    model = ScriptedModel(CARDS)
    with scratch() as place:
        await named_workspace(place)
        async with at_work(ModelWriter(model, tokens), place=place) as work:
            week = Week(work)
            await live(week)
            assert model.missed == []
            assert set(model.played) == {card.says for card in CARDS}
            assert await work.owed_count() == 0
            compare(found(work.root))
            await look_back(work)


async def look_back(work: AtWork) -> None:
    """History is shown on request, and never for what holds now; a retried reply made nothing."""
    assert (await work.marks())["fri4"] == ("nothing", "reply_retried")
    for query, old in (("周明住在里斯本", "周明住在里斯本。"), ("ledger PostgreSQL 15", "15.")):
        asked = RecallRequest(query=query, kinds=("block",))
        assert not any(hit.text.endswith(old) for hit in (await work.memory.recall(asked)).hits)
        asked = RecallRequest(query=query, kinds=("block",), history=True)
        (hit,) = [hit for hit in (await work.memory.recall(asked)).hits if hit.text.endswith(old)]
        assert hit.superseded_by is not None


async def named_workspace(place: Path) -> None:
    """Makes a workspace of a known id: ids of blocks follow from it."""
    work = await AtWork(place).start(run=False)
    await work.stop()
    file = place / "memory" / ".turnmark" / "workspace.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"w-[0-9a-f]{16}", WORKSPACE, text), encoding="utf-8")


def found(root: Path) -> dict[str, str]:
    """Returns what a person reads in a workspace, without the day on which it was written."""
    files = [root / "core.md", *sorted((root / "topics").rglob("*.md"))]
    return {
        str(file.relative_to(root)): re.sub(
            r"superseded \d{4}-\d\d-\d\d by", "superseded (day) by", file.read_text("utf-8")
        )
        for file in files
    }


def compare(pages: dict[str, str]) -> None:
    """Compares pages with the golden ones, or writes those."""
    if os.environ.get("TURNMARK_WRITE_GOLDEN"):
        for name, text in pages.items():
            file = GOLDEN / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    golden = {
        str(file.relative_to(GOLDEN)): file.read_text("utf-8") for file in GOLDEN.rglob("*.md")
    }
    assert pages == golden
