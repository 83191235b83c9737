"""Fixtures for every test: the one event loop that turnmark runs on, and signals that arrive."""

from __future__ import annotations

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: what these tests start would never see a Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    """Runs async tests on asyncio, the loop that the daemon uses."""
    return "asyncio"
