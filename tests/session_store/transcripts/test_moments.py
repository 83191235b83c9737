"""Tests of `transcripts/moments.py`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_session_store.transcripts.moments import moment_ms, written_time

NOON = 1_786_276_800_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    "value",
    [NOON, NOON / 1_000, "2026-08-09T12:00:00Z", "2026-08-09T14:00:00.000+02:00", float(NOON)],
)
def test_a_moment_is_told_in_all_its_forms(value: Any) -> None:
    """A written time without a zone is one in UTC."""
    assert moment_ms(value, seconds=True) == NOON
    assert written_time(NOON) == "2026-08-09T12:00:00.000Z"


def test_small_numbers_are_milliseconds_unless_seconds_may_stand_there() -> None:
    """The same number means two moments in two programs."""
    assert (moment_ms(1_500), moment_ms(1_500, seconds=True)) == (1_500, 1_500_000)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, [], {}, "", "soon", "0000-00-00", "99999-01-01"),
        *(0, -1, 1e400, -1e400, float("nan"), 10**400, -(10**400), NOON * 1_000),
    ],
)
def test_what_can_be_no_moment_is_none(value: Any) -> None:
    """Numbers of hundreds of digits stand in real files."""
    assert moment_ms(value) is None
    assert moment_ms(value, seconds=True) is None


@given(JSON, st.booleans())
def test_a_moment_always_has_a_date(value: Any, seconds: bool) -> None:
    """Whatever stands there, nothing is raised and what comes out can be written."""
    at_ms = moment_ms(value, seconds=seconds)
    assert at_ms is None or (written_time(at_ms) or "").endswith("Z")
