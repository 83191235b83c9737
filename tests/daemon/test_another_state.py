"""Whoever names a state reaches the daemon of that state, or is told that it is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from turnmark import DaemonNotRunning, agent_hook, connect, connect_sync

pytestmark = pytest.mark.anyio


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> Iterator[DaemonPlace]:
    """A daemon at the socket of the runtime directory."""
    with daemon_place() as place:
        runtime = place.root / "run"
        (runtime / "turnmark").mkdir(parents=True)
        place.socket = runtime / "turnmark" / "turnmark.sock"
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        for name in ("TURNMARK_SOCKET", "TURNMARK_STATE", "RUNTIME_DIRECTORY"):
            monkeypatch.delenv(name, raising=False)
        place.start()
        yield place


def pid_of(state: Path | None = None) -> int:
    with connect_sync(state=state) as memory:
        pid: int = memory.call("hello")["pid"]
        return pid


async def test_passes_over_the_daemon_of_another_state(
    usual: DaemonPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, with its state; a link to the right state is as good as its name."""
    mine = pid_of()
    link = tmp_path / "链接"
    link.symlink_to(usual.state)
    assert pid_of(usual.state) == pid_of(link) == mine
    other = tmp_path / "other"
    with pytest.raises(DaemonNotRunning, match="serves another state") as refused:
        pid_of(other)
    assert str(usual.state.resolve()) in refused.value.message
    monkeypatch.setenv("TURNMARK_STATE", str(other))
    with pytest.raises(DaemonNotRunning, match="serve` with the same --state"):
        async with connect():
            pytest.fail("it reached the daemon of another state")
    with pytest.raises(FileNotFoundError):
        agent_hook._connect(
            {}, {"XDG_RUNTIME_DIR": str(usual.root / "run")} | {"TURNMARK_STATE": str(other)}
        )
    monkeypatch.setenv("TURNMARK_SOCKET", str(usual.socket))
    assert pid_of() == mine


async def test_goes_on_to_the_daemon_that_the_state_wrote_down(
    usual: DaemonPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the runtime directory comes first; what it wrote down may be another's by now."""
    mine = pid_of()
    with daemon_place() as second:
        second.start()
        monkeypatch.setenv("TURNMARK_STATE", str(second.state))
        theirs = pid_of()
        assert theirs not in {mine, None}
        async with connect() as memory:
            assert (await memory.call("hello"))["pid"] == theirs
        environ = {"TURNMARK_STATE": str(second.state), "XDG_RUNTIME_DIR": str(usual.root / "run")}
        with agent_hook._connect({}, environ) as found:
            assert found.getpeername() == str(second.socket)
        second.stop()
        (second.state / "socket.path").write_text(f"{usual.socket}\n")
        with pytest.raises(DaemonNotRunning, match="serves another state"):
            pid_of(second.state)
