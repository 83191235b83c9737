"""What a writer is shown beside a batch: what its turns may replace, within bounds."""

from __future__ import annotations

import msgspec
import pytest

from memory.at_work import NOTHING, AtWork, Scribe, at_work, keep, user
from turnmark_memory.model import Answer, Batch, Edits
from turnmark_memory.requests import FlushRequest
from turnmark_memory.topic_format import parse
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_session_store.model import Speaker, TurnIn
from turnmark_session_store.requests import OpenSession

pytestmark = pytest.mark.anyio

THINGS = (
    *("climbing", "pottery", "rye bread", "chess", "jazz", "sailing", "old maps", "tomatoes"),
    *("kites", "opera", "quiet trains", "figs", "ferries", "hiking", "lanterns", "cider"),
    *("origami", "plums", "radio plays", "skiing", "tulips", "violins", "whisky", "yoga"),
    *("zinnias", "badminton", "cinema", "drumming", "embroidery", "fencing", "gardens", "haiku"),
)


def by(name: str, words: str, turn: str) -> TurnIn:
    return user(words, turn, speaker=Speaker(id=f"u-{name}", name=name))


def filed_by_speaker(batch: Batch) -> Answer:
    """Keeps each turn on its speaker's page."""
    return Edits(edits=tuple(keep(one, f"people/{one.speaker_name}") for one in batch.turns))


def shown_in(scribe: Scribe) -> list[str]:
    """Returns the texts that the last batch was shown."""
    return [block.text for block in scribe.batches[-1].blocks]


def holding(work: AtWork, topic: str) -> dict[str, bool]:
    """Returns the blocks of a topic and whether each holds now."""
    blocks = parse(work.topic(topic).encode()).blocks()
    return {block.text: block.superseded_by is None for block in blocks}


async def say(work: AtWork, session: str, *turns: TurnIn) -> None:
    await work.append(session, list(turns))
    await work.flush()


@pytest.mark.parametrize(
    ("name", "home", "moved", "old"),
    [
        ("Robin", "I live in Bergen.", "I moved to Porto.", "Robin lives in Bergen."),
        ("李雷", "我住在成都。", "我搬到杭州了。", "李雷住在成都。"),
    ],
)
async def test_a_move_ends_a_home_of_an_earlier_session(
    name: str, home: str, moved: str, old: str
) -> None:
    """They share no word, and much that is newer and more like it was said in between."""
    async with at_work(BuiltinWriter()) as work:
        await say(work, "one", by(name, home, "1"))
        likes = [by(name, f"I really like {one}.", f"l{at}") for at, one in enumerate(THINGS)]
        await say(work, "two", *likes)
        await say(work, "three", by(name, moved, "3"))
        found = holding(work, f"people/{name.casefold()}")
        assert found[old] is False
        assert [text for text, holds in found.items() if not holds] == [old]


async def test_shows_what_is_about_the_same_then_the_newest_of_the_speakers_page() -> None:
    """Of one's own page alone, though another's was written last."""
    async with at_work(scribe := Scribe(filed_by_speaker)) as work:
        await say(work, "one", by("ana", "Ana lives in Bergen.", "1"))
        await say(work, "two", *(by("ana", f"Ana likes {one}.", f"a{one}") for one in THINGS))
        await say(work, "two", *(by("ben", f"Ben has {one}.", f"b{one}") for one in THINGS))
        await say(work, "three", by("ana", "We moved to Porto", "3"))
        shown = shown_in(scribe)
        assert shown[0] == "Ana lives in Bergen."
        assert shown[1:] == [f"Ana likes {one}." for one in reversed(THINGS[-5:])]


async def test_shows_a_bounded_number_and_the_same_from_a_new_index() -> None:
    """However long the page has grown, and however much recall finds."""
    async with at_work(scribe := Scribe(filed_by_speaker)) as work:
        for session in ("one", "two"):
            turns = [by("ana", f"Ana likes {one} {session}.", session + one) for one in THINGS]
            await say(work, session, *turns)
        scribe.answer = lambda _batch: NOTHING
        asked = [by("ana", f"{one}?", f"q{one}") for one in THINGS]
        await say(work, "three", *asked)
        first = shown_in(scribe)
        assert len(first) == len(set(first)) == 24
        await work.stop()
        for file in (work.root / ".turnmark").glob("index*"):
            file.unlink()
        await work.start()
        await say(work, "four", *(msgspec.structs.replace(one, id=f"{one.id}4") for one in asked))
        assert len(scribe.batches) == 4
        assert shown_in(scribe) == first


async def test_shows_nothing_of_a_local_session_to_a_far_writer() -> None:
    """What stands on the speaker's page may come from one."""
    async with at_work(scribe := Scribe(filed_by_speaker, "openai/far")) as work:
        await say(work, "one", by("ana", "Ana lives in Bergen.", "1"))
        await work.store.open_session(OpenSession(session="home", memory="local"))
        await work.append("home", [by("ana", "My spare key is under the blue pot.", "h")])
        await work.memory.flush(FlushRequest())
        await say(work, "three", by("ana", "We moved to Porto", "3"))
        assert shown_in(scribe) == ["Ana lives in Bergen."]


async def test_shows_the_page_of_the_project_in_another_session() -> None:
    """A speaker without a name has the user's page beside it."""

    def on_project(batch: Batch) -> Answer:
        return Edits(edits=tuple(keep(one, one.text.split(" ")[0]) for one in batch.turns))

    async with at_work(scribe := Scribe(on_project)) as work:
        for session in ("one", "two"):
            await work.store.open_session(OpenSession(session=session, project="/src/Tidepool"))
        await say(work, "one", user("projects/tidepool deploys on Fridays", "1"))
        await say(work, "one", user("people/user drinks tea", "2"))
        await say(work, "two", user("subjects/x nothing alike", "3"))
        assert shown_in(scribe) == [
            "people/user drinks tea",
            "projects/tidepool deploys on Fridays",
        ]
