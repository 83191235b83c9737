"""Both clients against a real socket: results, errors, progress, cancelling, events."""

from __future__ import annotations

import gc
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import UNSET, UnsetType

from daemon.wire import Anything, Serving, place, serving
from turnmark import (
    ConnectionLost,
    DaemonFailed,
    DaemonNotRunning,
    Memory,
    client_wire,
    connect,
    connect_sync,
    verbs,
)
from turnmark.errors import BadRequest
from turnmark.rpc import Call, Method
from turnmark_events import Lagged, TipMoved
from turnmark_events.errors import Busy, Gone, Refused, Stale, Unavailable

pytestmark = pytest.mark.anyio


def moved(seq: int, branch: str = "b") -> TipMoved:
    return TipMoved(
        seq=seq,
        at="2026-08-09T14:02:00.000Z",
        session="会话",
        branch=branch,
        old=None,
        new=f"t-{seq}",
        head_old=None,
        head_new=f"t-{seq}",
        cause="append",
    )


class Hello(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`hello`."""

    client: str | None = None
    protocol: int | None = None


class Append(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`turn.append`, turns unread."""

    session: str
    turns: list[dict[str, Any]]
    after: str | UnsetType | None = UNSET
    expect: str | UnsetType | None = UNSET
    key: str | None = None
    move_head: bool = True


class Recall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`memory.recall`, in part."""

    query: str
    session: str | None = None
    k: int = 8


class Flush(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`memory.flush`, in part."""

    session: str | None = None
    backlog: bool = False


class Export(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`session.export`."""

    session: str
    cursor: str | None = None


class Import(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`session.import`."""

    lines: list[str]
    upload: str | None = None
    last: bool = True


class Api:
    """A few methods in the shape of the interface."""

    def __init__(self) -> None:
        self.uploads: dict[str, list[str]] = {}
        self.frames = 0

    async def hello(self, params: Hello, call: Call) -> Any:
        """Says who it is."""
        return {"server": "turnmark", "client": params.client}

    async def append(self, params: Append, call: Call) -> Any:
        """Answers with what it got."""
        return params

    async def recall(self, params: Recall, call: Call) -> Any:
        """One hit."""
        return {"hits": [{"ref": "b-1", "text": params.query}], "tokens": 3}

    async def flush(self, params: Flush, call: Call) -> Any:
        """Two steps."""
        for step in (1, 2):
            call.progress(step, 2, f"第{step}批")
        return {"left": 0}

    async def export(self, params: Export, call: Call) -> Any:
        """Five lines, two a page, and one in parts."""
        pages: list[dict[str, Any]] = [
            {"lines": ["行0", "行1"], "next": "1"},
            {"lines": ["行2", "行"], "next": "2"},
            {"lines": ["3"], "continued": True, "next": "3"},
            {"lines": ["", "行4"], "continued": True},
        ]
        return pages[int(params.cursor or 0)]

    async def imported(self, params: Import, call: Call) -> Any:
        """Collects the lines of an upload."""
        self.frames += 1
        upload = params.upload or "u-1"
        self.uploads.setdefault(upload, []).extend(params.lines)
        return {"session": "s"} if params.last else {"upload": upload}

    def methods(self) -> dict[str, Method[Any]]:
        """The table."""
        return {
            "hello": Method(params=Hello, call=self.hello),
            "turn.append": Method(params=Append, call=self.append, ordered=True),
            "memory.recall": Method(params=Recall, call=self.recall),
            "memory.flush": Method(params=Flush, call=self.flush),
            "session.export": Method(params=Export, call=self.export),
            "session.import": Method(params=Import, call=self.imported, ordered=True),
        }


@asynccontextmanager
async def memory_of() -> AsyncIterator[tuple[Serving, Api, Memory]]:
    """A server, its methods, and a client of it."""
    api = Api()
    async with serving(api.methods()) as served, connect(served.path) as memory:
        yield served, api, memory


async def in_thread(work: Callable[[], Any]) -> Any:
    """Runs blocking client code beside the server's loop."""
    return await anyio.to_thread.run_sync(work)


async def test_append_sends_only_what_was_given_and_always_a_key() -> None:
    """Left-out parameters stay out, None that means something goes along, keys are fresh."""
    async with memory_of() as (_, _, memory):
        first = await memory.append("会话", role="user", text="我搬到了波尔图。")
        assert first["turns"] == [{"role": "user", "text": "我搬到了波尔图。"}]
        assert set(first) == {"session", "turns", "key", "move_head"}
        second = await memory.append("s", role="user", text="x", after=None, expect=None)
        assert (second["after"], second["expect"]) == (None, None)
        assert first["key"] != second["key"]
        third = await memory.append("s", role="user", text="x", key="mine", move_head=False)
        assert (third["key"], third["move_head"]) == ("mine", False)


async def test_recall_gives_a_list_of_hits() -> None:
    """The example of the interface: hits to go through, their tokens beside."""
    async with memory_of() as (_, _, memory):
        hits = await memory.recall("where do I live?", session="sess-1")
        assert [hit["text"] for hit in hits] == ["where do I live?"]
        assert hits.tokens == 3


async def test_progress_reaches_the_callback() -> None:
    """Each report in order, before the answer."""
    told: list[tuple[float, float | None, str | None]] = []
    async with memory_of() as (_, _, memory):
        assert await memory.flush(progress=lambda *step: told.append(step)) == {"left": 0}
    assert told == [(1, 2, "第1批"), (2, 2, "第2批")]


async def test_export_goes_through_all_pages() -> None:
    """Lines come whole and one by one, whatever the pages, from both clients."""
    wanted = [f"行{n}" for n in range(5)]
    async with memory_of() as (served, _, memory):
        assert [line async for line in memory.export("s")] == wanted

        def again() -> list[str]:
            with connect_sync(served.path) as client:
                return list(client.export("s"))

        assert await in_thread(again) == wanted


async def test_import_is_cut_into_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many lines take several frames of one upload, in order, and none is lost."""
    monkeypatch.setattr(verbs, "IMPORT_CHUNK_BYTES", 100)
    lines = [f"{n}-" + "长" * 20 for n in range(10)]
    async with memory_of() as (served, api, memory):
        assert await memory.import_lines(lines) == {"session": "s"}
        assert api.uploads == {"u-1": lines}
        assert api.frames == 10

        def again() -> Any:
            with connect_sync(served.path) as client:
                return client.import_lines(iter(lines[:1]))

        assert await in_thread(again) == {"session": "s"}


async def test_errors_come_as_their_classes_with_facts() -> None:
    """What the daemon raised is raised here, out of the block as it is, with its facts."""
    async with serving(Api().methods()) as served:
        with pytest.raises(Stale, match="look again") as raised:
            async with connect(served.path) as memory:
                await memory.call("stale")
        assert raised.value.facts["head"] == "t-9"
        async with connect(served.path) as memory:
            with pytest.raises(DaemonFailed) as failed:
                await memory.call("broken")
            assert len(failed.value.facts["error_id"]) == 8
            with pytest.raises(BadRequest, match="unknown parameter nme") as bad:
                await memory.call("echo", {"nme": 1})
            assert bad.value.facts["code"] == -32602
            with pytest.raises(BadRequest, match="no method"):
                await memory.call("no.such")
            with pytest.raises(Refused, match="send less"):
                await memory.call("echo", {"text": "a" * (1 << 20)})
            assert (await memory.call("echo", {"text": "还在"}))["text"] == "还在"


async def test_own_errors_leave_the_block_unwrapped() -> None:
    """An exception of the program is not put into a group."""
    async with serving(Api().methods()) as served:
        with pytest.raises(KeyError):
            async with connect(served.path):
                raise KeyError("mine")


async def test_calls_run_side_by_side() -> None:
    """A long call holds nobody up; answers find their callers in any order."""
    async with memory_of() as (served, _, memory):
        results: dict[str, Any] = {}

        async def hold(text: str) -> None:
            results[text] = await memory.call("held", {"text": text})

        async with anyio.create_task_group() as group:
            for text in ("a", "b"):
                group.start_soon(hold, text)
            await served.stage.wait_started("b")
            assert (await memory.call("echo", {"text": "c"}))["text"] == "c"
            served.stage.gate("b").set()
            served.stage.gate("a").set()
        assert results == {"a": "a", "b": "b"}


async def test_cancelled_call_ends_at_the_daemon_too() -> None:
    """A time limit around a call is enough; the connection stays usable."""
    async with memory_of() as (served, _, memory):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(memory.call, "held", {"text": "a"})
                await served.stage.wait_started("a")
                scope.cancel()
        await memory.call("echo")
        assert served.stage.cancelled == ["a"]


async def test_daemon_that_goes_away_fails_the_calls_in_flight() -> None:
    """Nobody waits for ever, and the reason is the daemon's."""
    api = Api()
    async with serving(api.methods(), grace_seconds=0) as served:  # noqa: SIM117 - two lives
        async with connect(served.path) as memory, memory.subscribe() as events:
            async with anyio.create_task_group() as group:

                async def hold() -> None:
                    with pytest.raises(Unavailable, match="not finished"):
                        await memory.call("held", {"text": "a"})

                group.start_soon(hold)
                await served.stage.wait_started("a")
                served.server.stop("turnmark is shutting down")
            with pytest.raises(ConnectionLost, match="shutting down"):
                await anext(events)
            with pytest.raises(ConnectionLost, match="shutting down"):
                await memory.call("echo")


async def test_no_daemon_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No socket, a dead one and a state without any end the same way."""
    monkeypatch.setenv("TURNMARK_SOCKET", "")
    monkeypatch.setenv("RUNTIME_DIRECTORY", "")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    async with place() as directory:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(directory / "dead.sock"))
        for given in ({"socket": directory / "dead.sock"}, {"state": tmp_path}):
            with pytest.raises(DaemonNotRunning, match="turnmark serve"):
                async with connect(**given):
                    pass
            with pytest.raises(DaemonNotRunning, match="turnmark serve"):
                connect_sync(**given)


async def test_full_backlog_is_retried_then_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """EAGAIN at connect means busy, not absent."""
    monkeypatch.setattr("turnmark.client.CONNECT_TRIES", 3)
    monkeypatch.setattr("turnmark.client_sync.CONNECT_TRIES", 3)
    async with place() as directory:
        path = directory / "t.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(0)
            with socket.socket(socket.AF_UNIX) as first:
                first.connect(str(path))
                with pytest.raises(Busy):
                    async with connect(path):
                        pass
                with pytest.raises(Busy):
                    connect_sync(path)


async def test_subscribe_yields_event_structs_from_since_on() -> None:
    """The example of the interface, from the oldest kept."""
    async with memory_of() as (served, _, memory):
        served.stage.publish(moved(1), moved(2))
        seen: list[int] = []
        async for event in memory.subscribe(types=["TipMoved"], since=0):
            assert isinstance(event, TipMoved)
            seen.append(event.seq)
            if event.seq == 2:
                served.stage.publish(moved(3))
            if event.seq == 3:
                break
        assert seen == [1, 2, 3]


async def test_dropped_stream_is_unsubscribed_at_the_next_event() -> None:
    """`break` without closing does not leave the daemon sending for ever."""
    async with memory_of() as (served, _, memory):
        served.stage.publish(moved(1))
        async for _ in memory.subscribe(since=0):
            break
        gc.collect()
        served.stage.publish(moved(2))
        while served.stage.bus.statistics().subscribers:
            await memory.call("echo")


async def test_closed_stream_is_unsubscribed_and_ends() -> None:
    """Leaving the block ends the subscription at the daemon."""
    async with memory_of() as (served, _, memory):
        async with memory.subscribe(session="会话") as events:
            assert served.stage.bus.statistics().subscribers[0].name.endswith("sub-1")
        await memory.call("echo")
        assert served.stage.bus.statistics().subscribers == ()
        with pytest.raises(StopAsyncIteration):
            await anext(events)


async def test_gone_is_raised_with_the_oldest() -> None:
    """A seq that the daemon has dropped is told before the first event."""
    async with memory_of() as (served, _, memory):
        served.stage.publish(*(moved(n) for n in range(1, 9)))
        served.stage.rows, served.stage.oldest = served.stage.rows[4:], 5
        with pytest.raises(Gone) as raised:
            await anext(memory.subscribe(since=1))
        assert raised.value.facts["oldest"] == 5


async def test_reader_that_falls_behind_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the client's own bound the rest is asked for again, told by a Lagged."""
    monkeypatch.setattr(client_wire, "INBOX_EVENTS", 10)
    async with memory_of() as (served, _, memory):
        async with memory.subscribe() as events:
            served.stage.publish(*(moved(n) for n in range(1, 51)))
            await memory.call("echo")
            seen = [await anext(events)]
            while seen[-1].seq < 50:
                seen.append(await anext(events))
        assert [e.seq for e in seen if not isinstance(e, Lagged)] == list(range(1, 51))
        assert any(isinstance(event, Lagged) for event in seen)


async def test_blocking_client_does_the_same() -> None:
    """Results, hits, progress, pages, errors and events without a loop."""
    api = Api()
    async with serving(api.methods()) as served:
        told: list[Any] = []

        def work() -> None:
            with connect_sync(served.path, client="测试") as memory:
                appended = memory.append("会话", role="user", text="好", after=None)
                assert (appended["after"], len(appended["key"])) == (None, 26)
                assert memory.recall("q")[0]["text"] == "q"
                assert memory.flush(progress=lambda *step: told.append(step)) == {"left": 0}
                assert list(memory.export("s")) == [f"行{n}" for n in range(5)]
                with pytest.raises(Stale, match="look again"):
                    memory.call("stale")
                with memory.subscribe(since=0) as events:
                    assert memory.call("echo", {"text": "zwischen"})["text"] == "zwischen"
                    assert [next(events).seq for _ in range(3)] == [1, 2, 3]
                with pytest.raises(StopIteration):
                    next(events)

        served.stage.publish(moved(1), moved(2), moved(3))
        await in_thread(work)
        assert told == [(1, 2, "第1批"), (2, 2, "第2批")]


async def test_blocking_reader_that_falls_behind_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Events that pile up during calls are bounded and asked for again."""
    monkeypatch.setattr(client_wire, "INBOX_EVENTS", 10)
    async with serving(Api().methods()) as served:
        served.stage.publish(*(moved(n) for n in range(1, 51)))

        def work() -> list[Any]:
            with connect_sync(served.path) as memory:
                events = memory.subscribe(since=0)
                for _ in range(3):
                    memory.call("echo")
                seen: list[Any] = [next(events)]
                while seen[-1].seq < 50:
                    seen.append(next(events))
                return seen

        seen = await in_thread(work)
        assert [e.seq for e in seen if not isinstance(e, Lagged)] == list(range(1, 51))


INTERRUPTED = """
import os, sys
sys.path[:0] = {paths!r}
from turnmark import connect_sync
with connect_sync({path!r}) as memory:
    try:
        memory.call("held", {{"text": "a"}}, progress=lambda *_: os.write(1, b"waits"))
    except KeyboardInterrupt:
        os.write(1, memory.call("echo", {{"text": "after"}})["text"].encode())
"""


async def test_interrupted_call_is_cancelled_and_the_connection_stays() -> None:
    """Ctrl-C in a long call ends it at the daemon; the next call works."""
    async with serving(Api().methods()) as served:
        script = INTERRUPTED.format(paths=sys.path, path=str(served.path))
        async with await anyio.open_process(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=None
        ) as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"waits"
            process.send_signal(signal.SIGINT)
            rest = b"".join([chunk async for chunk in process.stdout])
            assert rest == b"after"
            assert await process.wait() == 0
        assert served.stage.cancelled == ["a"]


def test_anything_is_not_part_of_the_interface() -> None:
    """The params of these tests reject what they do not know, as all params do."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"nme": 1}, Anything)
