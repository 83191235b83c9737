"""Law 1: every turn of every live branch is offered, and a shared prefix is offered once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_store.stage import Stage, scratch

pytestmark = pytest.mark.anyio


@given(
    shape=st.lists(st.integers(0, 50), min_size=1, max_size=14),
    order=st.lists(st.integers(0, 50), min_size=1, max_size=20),
    size=st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
async def test_each_turn_is_written_once_whichever_tip_comes_first(
    shape: list[int], order: list[int], size: int
) -> None:
    """Tips are looked at in any order, batches are of any size: each turn is in one batch."""
    with scratch() as place:
        async with Stage(place / "sessions.db") as stage:
            await stage.workspace()
            await stage.append("t0")
            for number, where in enumerate(shape, 1):
                await stage.append(f"t{number}", after=f"t{where % number}")
            written: Counter[str] = Counter()
            looks = 0
            while rows := (await stage.owed()).tips:
                row = rows[order[looks % len(order)] % len(rows)]
                looks += 1
                batch = await stage.batch(*(row.turns or [])[:size])
                written.update(await stage.close_batch(batch))
            assert written == Counter({f"t{number}" for number in range(len(shape) + 1)})
