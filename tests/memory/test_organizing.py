"""A night as a whole: what it reports, that it settles, and a stop at any step of it."""

from __future__ import annotations

from datetime import date

import anyio
import pytest

from memory.at_work import AtWork, at_work, user
from memory.test_install import Crashed, flat
from memory.tidier import Shown, Tidier, blocks, into, pages
from turnmark_events.types import NightDone
from turnmark_memory.abouts import plain_about
from turnmark_memory.requests import ShowRequest
from turnmark_session_store import failpoints

STEPS = (
    "night.flushed",
    "night.joined",
    "night.answered",
    "night.tidied",
    "night.arranged",
    "night.rendered",
    "night.reported",
    "install.before_journal",
    "install.journalled",
    "install.noted",
    "install.exchanged",
    "install.revision",
    "install.settled",
    "core.rendered",
)


def merge_last(shown: Shown) -> list[dict[str, object]]:
    """Joins the last two blocks, if there are as many as at first."""
    names = [block["block"] for block in shown if block["text"].startswith("Tea")]
    return [{"op": "merge", "blocks": names, "text": "Tea."}] if len(names) > 1 else []


async def remembering(work: AtWork) -> None:
    """Two equal blocks, two that a model joins, and one that was used."""
    for session, words in {
        "a": ["I live in Porto.", "Tea is green."],
        "b": ["I live in Porto.", "Tea is not black.", "I run."],
    }.items():
        turns = [user(text, f"{session}-{n}") for n, text in enumerate(words)]
        await work.append(session, turns)
        await work.flush()
    used = next(block for block in blocks(work) if block.text == "I run.")
    await work.memory.show(ShowRequest(ref=str(used.id)))


async def die_at(work: AtWork, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the process of `work`, as far as one process can, at a failpoint of a night."""

    def hook(reached: str) -> None:
        if reached == step:
            raise Crashed

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            await work.run_in(tasks)
            monkeypatch.setattr(failpoints, "hook", hook)
            await work.organize()
            raise AssertionError(f"{step} was not reached")

    with pytest.raises(BaseExceptionGroup) as caught:
        await run()
    monkeypatch.setattr(failpoints, "hook", None)
    assert [type(error) for error in flat(caught.value)] == [Crashed]
    await work.stop()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.anyio
async def test_a_stop_at_any_step_leaves_whole_pages_and_the_next_night_goes_on(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes of it in the end is what an undisturbed night makes."""
    async with at_work(tidier=Tidier(merge_last)) as calm:
        await remembering(calm)
        yesterday = pages(calm)
        await calm.organize()
        wanted = pages(calm)
    assert wanted != yesterday
    async with at_work(tidier=Tidier(merge_last)) as work:
        await remembering(work)
        await work.restart(run=False)
        await die_at(work, step, monkeypatch)
        for name, content in pages(work).items():
            assert content.endswith(b"\n"), name
        await work.start()
        await work.organize()
        texts = [block.text for block in blocks(work)]
        assert texts == ["I live in Porto.", "Tea.", "I run."]
        before = pages(work)
        assert {name: len(content) for name, content in before.items()} == {
            name: len(content) for name, content in wanted.items()
        }
        assert (await work.organize()).changed == 0
        assert pages(work) == before


@pytest.mark.anyio
async def test_reports_in_sentences_what_it_did() -> None:
    """On request and on a page of its date: changes with their undo, the core, what is owed."""
    async with at_work(tidier=Tidier(merge_last), core_tokens=4) as work:
        work.scribe.answer = into(lambda _id: "subjects/facts")
        await remembering(work)
        answer = await work.organize()
        page = (work.root / f".turnmark/nights/{answer.date}.md").read_text()
        assert page.splitlines()[0] == f"# Night of {answer.date}"
        assert [line.removeprefix("- ") for line in page.splitlines()[2:]] == [*answer.report]
        text = "\n".join(answer.report)
        for part in (
            "1 merge of blocks; topics ",
            "`turnmark undo ",
            "scripted/tidier was asked 1 question.",
            "No room for b-",
            "Nothing is owed.",
        ):
            assert part in text
        assert "Porto" not in text
        path = f".turnmark/nights/{answer.date}.md"
        assert work.memory.statistics()["report"] == path
        await work.restart()
        assert work.memory.statistics()["report"] == path


@pytest.mark.anyio
async def test_says_a_missing_about_and_leaves_one_that_is_there() -> None:
    """A file by hand gets a line that says what it is about; nothing else of it changes."""
    async with at_work() as work:
        folder = work.root / "topics/people"
        (folder / "dana.md").write_text("# Dana\n\nBy hand.\n")
        (folder / "zoe.md").write_text("---\nabout: 'mine'\n---\nBy hand too.\n")
        await work.memory.rescan()
        await work.organize()
        dana = (folder / "dana.md").read_text()
        assert dana.startswith(f"---\nabout: {plain_about('people/dana')}\n---\n")
        assert "\n# Dana\n\nBy hand. ^b-" in dana
        assert (folder / "zoe.md").read_text().startswith("---\nabout: 'mine'\n---\n")


@pytest.mark.anyio
async def test_puts_links_right_that_point_to_the_wrong_topic() -> None:
    """An embed that names the old file follows the block's id; what a person wrote stays."""
    async with at_work() as work:
        await work.append("a", [user("Dana leads billing.", "a1"), user("Zoe sails.", "a2")])
        await work.flush()
        dana, zoe = (str(block.id) for block in blocks(work))
        file = work.root / "topics/subjects/facts.md"
        text = file.read_text().replace("Zoe sails.", f"Zoe sails [[wrong#^{dana}]].")
        file.write_text(text + f"\nBy hand: [[wrong#^{zoe}]]\n")
        core = work.root / "topics/core.md"
        core.write_text(f"# Core\n\n![[wrong#^{dana}]]\n\n" + core.read_text())
        await work.memory.rescan()
        await work.organize()
        assert f"![[subjects/facts#^{dana}]]" in core.read_text()
        assert f"By hand: [[wrong#^{zoe}]]" in file.read_text()
        assert "Dana leads billing." in (work.root / "core.md").read_text()


@pytest.mark.anyio
async def test_is_noted_once_for_each_date() -> None:
    """The date and its event are written together; another run of the date says it again."""
    async with at_work() as work:
        await work.memory._organizing.night(date(2026, 8, 9))
        await work.memory._organizing.night(date(2026, 8, 10))
        said = [event for event in work.events if isinstance(event, NightDone)]
        assert [one.date for one in said] == ["2026-08-09", "2026-08-10"]
        assert await work.memory._organizing.last_night() == date(2026, 8, 10)
