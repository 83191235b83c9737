"""Law 7: settled turns are closed under ancestors, whatever is tried, over all parents."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_store.stage import Stage, scratch, user
from turnmark_events.errors import Refused

pytestmark = pytest.mark.anyio


@given(
    shape=st.lists(st.integers(0, 50), min_size=2, max_size=10),
    tries=st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), max_size=8),
)
@settings(max_examples=60, deadline=None)
async def test_no_settling_leaves_an_unsettled_ancestor(
    shape: list[int], tries: list[list[int]]
) -> None:
    """Any set of turns is settled whole or refused whole; then every mark stands on marks."""
    with scratch() as place:
        async with Stage(place / "sessions.db") as stage:
            await stage.workspace()
            await _grow(stage, shape)
            ids = [key for (key,) in stage.sql("SELECT key FROM turn ORDER BY id")]
            for chosen in tries:
                batch = {ids[index % len(ids)] for index in chosen}
                before = stage.marks()
                try:
                    assert set(await stage.settle(*batch)) == batch
                except Refused:
                    assert stage.marks() == before
                marked = set(stage.marks())
                for child, parent in stage.sql(_EDGES):
                    assert child not in marked or parent in marked


async def _grow(stage: Stage, shape: list[int]) -> None:
    await stage.append("t0")
    for number, place in enumerate(shape, 1):
        await stage.append(f"t{number}", after=f"t{place % number}")
    tips = sorted(set(filter(None, await stage.tips())))
    if len(tips) > 1:
        await stage.merge(tips[:2], user("m", "m"))


_EDGES = """
SELECT child.key, parent.key FROM turn AS child JOIN turn AS parent ON parent.id = child.predecessor
UNION ALL SELECT child.key, parent.key FROM merge_parent JOIN turn AS child
    ON child.id = merge_parent.turn JOIN turn AS parent ON parent.id = merge_parent.parent
"""
