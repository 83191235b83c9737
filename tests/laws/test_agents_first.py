"""Law 9: what takes long rides behind agents' appends, one slice in each group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from session_store.stage import Stage, scratch
from turnmark_session_store import erase, imports

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase, "SLICE_TURNS", 2)
    monkeypatch.setattr(imports, "SLICE_TURNS", 2)


def asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Returns a list that is told of each write from now on whether it is in the background."""
    told: list[bool] = []
    submit: Callable[..., None] = stage.store._writer.submit_to

    def submit_to(*given: Any, background: bool = False, **more: Any) -> None:
        told.append(background)
        submit(*given, background=background, **more)

    monkeypatch.setattr(stage.store._writer, "submit_to", submit_to)
    return told


async def test_imports_and_erasures_go_in_slices_behind_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent's own write is the only one that does not wait."""
    with scratch() as place, scratch() as other:
        async with Stage(place / "sessions.db") as stage:
            await stage.append("a", "b", "c", "d", "e")
            lines = await stage.export()
            told = asked(stage, monkeypatch)
            await stage.append("f")
            assert told == [False]
            await stage.delete()
            assert told[1] is False
            assert len(told) > 5
            assert all(told[2:])
            await stage.store.trim_events()
            assert told[-1]
        async with Stage(other / "sessions.db") as stage:
            told = asked(stage, monkeypatch)
            await stage.bring(lines)
            assert len(told) == 5
            assert all(told)
