"""A machine whose clock is set, as a deadline timer tells of it."""

from __future__ import annotations

from datetime import datetime

import pytest

from turnmark_session_store.deadline import DeadlineTimer, Wake


def say_set(timer: DeadlineTimer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the next wait of a timer end as it does where the clock was set, and the wait now."""
    wait_until = timer.wait_until

    async def set_once(deadline: datetime | None) -> Wake:
        monkeypatch.setattr(timer, "wait_until", wait_until)
        del deadline
        return Wake.CLOCK_SET

    monkeypatch.setattr(timer, "wait_until", set_once)
    timer.set_changed()
