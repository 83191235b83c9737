"""`turnmark.notify`: what a service manager is told, over real datagram sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnmark.notify import Notifier


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A service manager that listens on a path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(60)
        yield receiver


def test_tells_each_step_of_a_life(manager: socket.socket) -> None:
    """Ready, status, watchdog and stopping arrive as systemd reads them."""
    notifier = Notifier(manager.getsockname())
    assert notifier.listening
    notifier.ready("3 turns owed")
    notifier.status("正在写入")
    notifier.watchdog()
    notifier.extend_start(1.5)
    notifier.stopping()
    assert [manager.recv(4096).decode() for _ in range(5)] == [
        "READY=1\nSTATUS=3 turns owed",
        "STATUS=正在写入",
        "WATCHDOG=1",
        "EXTEND_TIMEOUT_USEC=1500000",
        "STOPPING=1",
    ]


def test_reaches_an_abstract_socket() -> None:
    """An address that begins with `@` is a name, not a path."""
    name = f"turnmark-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("\0" + name)
        receiver.settimeout(60)
        Notifier("@" + name).ready()
        assert receiver.recv(100) == b"READY=1"


def test_keeps_a_status_from_setting_another_variable(manager: socket.socket) -> None:
    """A newline in a status becomes a blank; a blank status is not sent."""
    notifier = Notifier(manager.getsockname())
    notifier.status(" \n ")
    notifier.status("fine\nMAINPID=1")
    assert manager.recv(100) == b"STATUS=fine MAINPID=1"


@pytest.mark.parametrize("address", [None, ""])
def test_says_nothing_without_a_manager(address: str | None) -> None:
    """Outside systemd nothing is sent and nothing fails."""
    notifier = Notifier(address)
    notifier.ready()
    assert not notifier.listening


def test_survives_a_manager_that_is_gone_or_full(manager: socket.socket, tmp_path: Path) -> None:
    """Neither a missing socket nor a full one stops or holds the daemon."""
    Notifier(str(tmp_path / "nobody")).ready()
    notifier = Notifier(manager.getsockname())
    for _ in range(1000):
        notifier.watchdog()
    assert manager.recv(100) == b"WATCHDOG=1"
