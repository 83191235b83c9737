"""One thing by its ref, with where it comes from."""

from __future__ import annotations

import pytest

from memory.at_work import AtWork, at_work, user
from turnmark_events.errors import Forgotten, NotFound, Refused
from turnmark_memory.requests import RecallRequest, ShowRequest
from turnmark_session_store.requests import SessionRef

pytestmark = pytest.mark.anyio


async def written(work: AtWork) -> tuple[str, str]:
    """Writes one turn; returns its block and its label."""
    await work.say("s", "m1")
    await work.flush()
    answer = await work.memory.recall(RecallRequest(query="fact m1", kinds=("block",)))
    return answer.hits[0].ref, answer.hits[0].sources[0].label


async def test_shows_a_block_a_source_a_topic_and_a_turn() -> None:
    """Each kind of ref answers with its text, and with the turn that it rests on."""
    async with at_work() as work:
        block, label = await written(work)
        for ref, kind in (
            (block, "block"),
            (f"^{block.removeprefix('^')}", "block"),
            (label, "source"),
            ("subjects/facts", "topic"),
            ("s#m1", "turn"),
            ("m1", "turn"),
        ):
            shown = await work.memory.show(ShowRequest(ref=ref))
            assert shown.kind == kind
            assert "fact m1" in shown.text
            if kind != "topic":
                assert [source.turn for source in shown.sources] == ["m1"]
            assert (work.root / (shown.path or "")).is_file()


async def test_says_what_it_can_not_show() -> None:
    """Unknown, ambiguous and forgotten refs are told apart."""
    async with at_work() as work:
        await written(work)
        for ref in ("b-00000000", "s-000000000000", "subjects/none", "s#none", "none", "../x"):
            with pytest.raises(NotFound):
                await work.memory.show(ShowRequest(ref=ref))
        await work.append("t", [user("fact other", "m1")])
        with pytest.raises(Refused, match="t#m1"):
            await work.memory.show(ShowRequest(ref="m1"))


async def test_a_turn_may_be_called_like_a_block_or_a_source() -> None:
    """Where there is none of that name, the turn of an agent that numbers its own so is shown."""
    async with at_work() as work:
        for name in ("b-00000000", "s-000000000000"):
            await work.append("s", [user(f"fact {name}", name)])
            assert (await work.memory.show(ShowRequest(ref=name))).text == f"fact {name}"


async def test_tells_forgotten_from_unknown() -> None:
    """A label and a turn that were erased are `forgotten`, with no word of them."""
    async with at_work() as work:
        _, label = await written(work)
        deleted = await work.store.delete_session(SessionRef(session="s"))
        await work.memory.forgotten(deleted.turns)
        for ref in (label, "m1"):
            with pytest.raises(Forgotten):
                await work.memory.show(ShowRequest(ref=ref))
