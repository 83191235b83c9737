"""Fixtures for every test: the one event loop that turnmark runs on."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Runs async tests on asyncio, the loop that the daemon uses."""
    return "asyncio"
