"""The socket: bad input answered, writes in order, progress, cancel, slow readers, shutdown."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from daemon.wire import Anything, Serving, place, serving
from turnmark.rpc import Method, Server
from turnmark.rpc.framing import FRAME_LIMIT_BYTES, LARGE_FRAME_LIMIT_BYTES
from turnmark.rpc.socket_path import check_socket_path
from turnmark_events import TipMoved
from turnmark_events.errors import Refused

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


async def error_for(data: bytes) -> dict[str, Any]:
    """The error that one bad frame gets, on a connection that lives on."""
    async with serving() as served, await served.connect() as client:
        await client.send(data + b"\n")
        answer = await client.read()
        await client.assert_alive()
        error: dict[str, Any] = answer["error"] | {"id": answer["id"]}
        return error


def frame(params: bytes) -> bytes:
    """The beginning of a request up to a place inside its params."""
    return b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{' + params


# What no client should send, and its code. Where a byte is to be named, it is the first of the
# second part.
BAD_FRAMES = [
    (b"{", None, -32700),
    (frame(b'"text":'), b"NaN}}", -32700),
    (frame(b'"number":-'), b"Infinity}}", -32700),
    (b"", b"\xef\xbb\xbf{}", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"echo"} ', b"x", -32700),
    (frame(b'"text":"'), b'\xff"}}', -32700),
    (frame(b'"text":"'), b'\xc0\xaf"}}', -32700),
    (frame(b'"text":"'), b'\xed\xa0\x80"}}', -32700),
    (frame('"text":"好'.encode()), b'\\ud800"}}', -32700),
    (frame(b'"text":"'), b'\\udc00x"}}', -32700),
    (frame(b'"text":"'), b'\x00"}}', -32700),
    (frame(b'"names":' + b"[" * 5000 + b"]" * 5000 + b"}}"), None, -32700),
    (b"\x00\x01\x02garbage\xfe", None, -32700),
    (b"[" * 5000 + b"]" * 5000, None, -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"echo"}]', None, -32600),
    (b"[]", None, -32600),
    (b"17", None, -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"echo"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"echo"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"no.such"}', None, -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}', None, -32602),
    (frame(b'"number":' + b"9" * 5000 + b"}}"), None, -32602),
]


@pytest.mark.parametrize(("good", "bad", "code"), BAD_FRAMES)
async def test_bad_frame_gets_an_error_and_the_connection_lives(
    good: bytes, bad: bytes | None, code: int
) -> None:
    """Each row is answered with its code, and the byte where one can be named."""
    error = await error_for(good + (bad or b""))
    assert error["code"] == code
    assert error["message"]
    if bad is not None:
        assert error["data"]["position"] == len(good)
        assert f"byte {len(good)}" in error["message"]


async def test_good_escapes_are_not_taken_for_half_pairs() -> None:
    """A surrogate pair is a character, and an escaped backslash before `ud800` is text."""
    async with serving() as served, await served.connect() as client:
        await client.send(
            rb'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"\ud83d\ude00\\ud800"}}'
            b"\n"
        )
        assert (await client.read())["result"]["text"] == "😀\\ud800"


async def test_unknown_parameters_are_all_named() -> None:
    """A typo is found at once: the names, and those that exist."""
    async with serving() as served, await served.connect() as client:
        error = (await client.call("echo", {"sesion": "a", "texte": "b"}))["error"]
        assert error["code"] == -32602
        assert error["data"]["unknown"] == ["sesion", "texte"]
        assert "session" in error["message"]


async def test_wrong_type_names_the_path() -> None:
    """The place inside the params is in the message."""
    async with serving() as served, await served.connect() as client:
        error = (await client.call("echo", {"names": ["好", 3]}))["error"]
        assert error["code"] == -32602
        assert "`params.names[1]`" in error["message"]


async def test_blank_lines_crlf_and_two_in_one_write() -> None:
    """Blank lines mean nothing, even a hundred thousand; CRLF ends a frame as LF does."""
    async with serving() as served, await served.connect() as client:
        await client.send(b"\n" * 100_000 + b"  \r\n")
        one = b'{"jsonrpc":"2.0","id":%d,"method":"echo"}\r\n'
        await client.send(one % 1 + one % 2)
        assert {(await client.read())["id"], (await client.read())["id"]} == {1, 2}


async def test_character_split_between_writes() -> None:
    """Half of a character at the border of two chunks decodes right."""
    async with serving() as served, await served.connect() as client:
        frame = '{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"记忆"}}\n'.encode()
        for byte in frame:
            await client.send(bytes([byte]))
        assert (await client.read())["result"]["text"] == "记忆"


def padded(method: str, size: int) -> bytes:
    """A frame of exactly `size` bytes."""
    head = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"text":"'.encode()
    return head + b"a" * (size - len(head) - 3) + b'"}}'


@pytest.mark.parametrize(
    ("method", "limit"),
    [
        ("echo", FRAME_LIMIT_BYTES),
        ("turn.echo", LARGE_FRAME_LIMIT_BYTES),
        ("session.import", LARGE_FRAME_LIMIT_BYTES),
    ],
)
async def test_frame_limit_is_exact(method: str, limit: int) -> None:
    """The limit itself passes (the answer is then too long); one byte more names the position."""
    async with serving() as served, await served.connect() as client:
        await client.send(padded(method, limit) + b"\n")
        passed = await client.read()
        assert "result" in passed or passed["error"]["code"] == -32005
        await client.send(padded(method, limit + 1) + b"\n")
        error = (await client.read())["error"]
        assert (error["code"], error["data"]["position"]) == (-32600, limit)
        await client.assert_alive()


async def test_oversize_without_an_end_is_told_then_closed() -> None:
    """The error comes as soon as the limit is passed; a line that never ends closes."""
    async with serving() as served, await served.connect() as client:
        with pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):  # noqa: PT012 - the pipe breaks while sending
            for _ in range(80):
                await client.send(b"a" * (1 << 20))
            await client.read()
            await client.read()
            await client.read()
        async with await served.connect() as other:
            await other.assert_alive()


@pytest.mark.parametrize("hello", [b"GET / HTTP/1.1\r\n\r\n", b"POST /x HTTP/1.1\r\n\r\n"])
async def test_http_is_told_what_this_is_and_goes_on(hello: bytes) -> None:
    """A line of HTTP is a bad frame with an end, like any other."""
    async with serving() as served, await served.connect() as client:
        await client.send(hello)
        error = (await client.read())["error"]
        assert "not HTTP" in error["message"]
        assert error["data"]["position"] == 0
        await client.assert_alive()


async def test_tls_gets_one_clear_line_and_is_closed() -> None:
    """A TLS client is told what this is, once: its frames have no end."""
    async with serving() as served, await served.connect() as client:
        await client.send(b"\x16\x03\x01")
        assert "JSON" in (await client.read())["error"]["message"]
        with pytest.raises(anyio.EndOfStream):
            await client.read()


async def test_frame_without_newline_before_the_end_is_an_error() -> None:
    """A stream that ends inside a frame is told so: the request was not run."""
    async with serving() as served, await served.connect() as client:
        await client.send(b'{"jsonrpc":"2.0","id":1,"method":"echo"}')
        await client.stream.send_eof()
        error = (await client.read())["error"]
        assert (error["code"], error["data"]["position"]) == (-32700, 40)


async def test_half_closed_client_still_gets_its_answers() -> None:
    """`printf … | nc -U` works: what was asked before the end is answered."""
    async with serving() as served, await served.connect() as client:
        number = await client.request("held", {"text": "a"})
        await client.stream.send_eof()
        await served.stage.wait_started("a")
        served.stage.gate("a").set()
        assert (await client.read())["id"] == number
        with pytest.raises(anyio.EndOfStream):
            await client.read()


async def test_notification_runs_and_is_not_answered() -> None:
    """Without an id there is no answer, neither a result nor an error."""
    async with serving() as served, await served.connect() as client:
        for method in ("stale", "no.such", "broken"):
            frame = {"jsonrpc": "2.0", "method": method}
            await client.send(json.dumps(frame).encode() + b"\n")
        frame = {"jsonrpc": "2.0", "method": "held", "params": {"text": "n"}}
        await client.send(json.dumps(frame).encode() + b"\n")
        await served.stage.wait_started("n")
        served.stage.gate("n").set()
        await client.assert_alive()


async def test_own_errors_carry_kind_and_facts() -> None:
    """The code goes by kind; facts travel, even those that JSON does not know."""
    async with serving() as served, await served.connect() as client:
        error = (await client.call("stale"))["error"]
        assert error["code"] == -32003
        assert error["data"] == {"kind": "stale", "head": "t-9", "place": "/x"}


async def test_a_bug_is_answered_with_an_id_that_the_log_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The client learns no detail, the log has the traceback, the daemon serves on."""
    async with serving() as served, await served.connect() as client:
        error = (await client.call("broken"))["error"]
        await client.assert_alive()
    assert error["code"] == -32603
    assert "secret detail" not in json.dumps(error)
    logged = capsys.readouterr().out
    assert error["data"]["error_id"] in logged
    assert "ZeroDivisionError" in logged


async def test_answer_over_the_limit_says_to_page() -> None:
    """An answer that no frame takes becomes an error that says how to ask for less."""
    async with serving() as served, await served.connect() as client:
        error = (await client.call("long", {"number": FRAME_LIMIT_BYTES}))["error"]
        assert error["code"] == -32005
        assert "limit" in error["message"]


async def test_id_in_flight_may_not_be_used_again() -> None:
    """Two answers with one id could not be told apart."""
    async with serving() as served, await served.connect() as client:
        await client.request("held", {"text": "a"}, id="x")
        await client.request("echo", {}, id="x")
        assert (await client.read())["error"]["code"] == -32600
        served.stage.gate("a").set()
        assert (await client.read())["result"] == "a"
        await client.request("echo", {}, id="x")
        assert "result" in await client.read()


async def test_writes_to_one_session_run_in_the_order_sent() -> None:
    """The second write of a session waits for the first; another session's does not."""
    async with serving() as served, await served.connect() as client:
        stage = served.stage
        first = await client.request("write", {"text": "1"})
        second = await client.request("write", {"text": "2"})
        other = await client.request("write", {"text": "other", "session": "别的"})
        await stage.wait_started("other")
        assert stage.ran == ["begin 1", "begin other"]
        stage.gate("other").set()
        assert (await client.read())["id"] == other
        stage.gate("2").set()
        stage.gate("1").set()
        assert [(await client.read())["id"] for _ in range(2)] == [first, second]
        assert stage.ran[-3:] == ["end 1", "begin 2", "end 2"]


async def test_three_hundred_pipelined_writes_keep_their_order() -> None:
    """However many writes come in one go, they run as they stood on the wire."""
    async with serving() as served, await served.connect() as client:
        texts = [str(n) for n in range(300)]
        for text in texts:
            served.stage.gate(text).set()
        frames = [
            {"jsonrpc": "2.0", "id": t, "method": "write", "params": {"text": t}} for t in texts
        ]
        await client.send(b"".join(json.dumps(f).encode() + b"\n" for f in frames))
        for _ in texts:
            await client.read()
        begun = [entry for entry in served.stage.ran if entry.startswith("begin")]
        assert begun == [f"begin {text}" for text in texts]


async def test_a_queued_write_lets_the_next_begin() -> None:
    """A method that has its place in the store's queue need not be waited for."""
    async with serving() as served, await served.connect() as client:
        await client.request("queued", {"text": "1"})
        second = await client.request("queued", {"text": "2"})
        await served.stage.wait_started("2")
        served.stage.gate("2").set()
        assert (await client.read())["id"] == second
        served.stage.gate("1").set()
        await client.read()


async def test_cancelled_write_in_the_queue_keeps_the_order_of_the_rest() -> None:
    """Taking one out of the row lets nobody overtake."""
    async with serving() as served, await served.connect() as client:
        stage = served.stage
        await client.request("write", {"text": "1"})
        second = await client.request("write", {"text": "2"})
        third = await client.request("write", {"text": "3"})
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        cancel |= {"params": {"requestId": second, "reason": "不用了"}}
        await client.send(json.dumps(cancel).encode() + b"\n")
        await client.assert_alive()
        assert stage.ran == ["begin 1"]
        stage.gate("3").set()
        stage.gate("1").set()
        await client.read()
        assert (await client.read())["id"] == third
        assert stage.ran == ["begin 1", "end 1", "begin 3", "end 3"]


async def test_cancelled_request_gets_no_answer() -> None:
    """As in MCP: the call ends, and nothing is sent for it."""
    async with serving() as served, await served.connect() as client:
        number = await client.request("held", {"text": "a"})
        await served.stage.wait_started("a")
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        cancel |= {"params": {"requestId": number}}
        await client.send(json.dumps(cancel).encode() + b"\n")
        await client.assert_alive()
        assert served.stage.cancelled == ["a"]


async def test_progress_comes_before_the_answer_and_only_on_request() -> None:
    """A token brings notifications in order; `_meta` is no parameter of the method."""
    async with serving() as served, await served.connect() as client:
        number = await client.request("stepwise", {"number": 2, "_meta": {"progressToken": "令牌"}})
        told = [await client.read() for _ in range(2)]
        assert [t["params"] for t in told] == [
            {"progressToken": "令牌", "progress": n, "total": 2, "message": f"第{n}步"}
            for n in (1, 2)
        ]
        assert (await client.read())["id"] == number
        assert "result" in await client.call("stepwise", {"number": 2})


async def test_a_token_brings_progress_even_of_a_call_without_steps() -> None:
    """Who asks to be told hears once that it is done; a call that failed is not."""
    async with serving() as served, await served.connect() as client:
        meta = {"_meta": {"progressToken": 3}}
        number = await client.request("echo", {"text": "a", **meta})
        told = (await client.read())["params"]
        assert told == {"progressToken": 3, "progress": 1, "total": 1}
        assert (await client.read())["id"] == number
        assert "error" in await client.call("stale", meta)


async def test_two_hundred_connections_at_once() -> None:
    """Each gets its own answers, none waits for another."""
    async with serving() as served:
        clients = [await served.connect() for _ in range(200)]
        texts: list[str] = []

        async def talk(index: int) -> None:
            for turn in range(5):
                answer = await clients[index].call("echo", {"text": f"{index}-{turn}"})
                texts.append(answer["result"]["text"])

        async with anyio.create_task_group() as group:
            for index in range(200):
                group.start_soon(talk, index)
        assert sorted(texts) == sorted(f"{i}-{t}" for i in range(200) for t in range(5))
        assert len(served.server.statistics().connections) == 200
        for client in clients:
            await client.stream.aclose()


async def test_reader_that_never_reads_is_bounded_and_alone() -> None:
    """Its answers stay with it, within a bound; it is not read further; others are served."""
    async with serving() as served:
        mute = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with mute:
            mute.connect(str(served.path))
            mute.setblocking(False)
            frame = b'{"jsonrpc":"2.0","id":%d,"method":"long","params":{"number":500000}}\n'
            sent = 0
            with anyio.move_on_after(20):
                while sent < 100_000:
                    try:
                        mute.send(b"".join(frame % (sent + n) for n in range(100)))
                    except BlockingIOError:
                        break
                    sent += 100
                    async with await served.connect() as other:
                        await other.assert_alive()
            assert 100 <= sent < 100_000, "the daemon read on from a client that does not"
            (statistics,) = [c for c in served.server.statistics().connections if c.waiting_bytes]
            assert statistics.waiting_bytes < 2_000_000
            assert statistics.in_flight <= 128


async def test_subscription_over_the_socket() -> None:
    """The answer comes first, then events in order; unsubscribing ends them."""
    async with serving() as served, await served.connect() as client:
        answer = (await client.call("events.subscribe", {"types": ["TipMoved"]}))["result"]
        assert answer["seq"] == 0
        served.stage.publish(moved(1), moved(2))
        for seq in (1, 2):
            frame = await client.read()
            assert frame["method"] == "event"
            assert frame["params"]["subscription"] == answer["subscription"]
            assert frame["params"]["event"]["seq"] == seq
            assert frame["params"]["event"]["type"] == "TipMoved"
        done = await client.call("events.unsubscribe", {"subscription": answer["subscription"]})
        assert done["result"] == {}
        served.stage.publish(moved(3))
        await client.assert_alive()
        assert served.stage.bus.statistics().subscribers == ()


async def test_subscription_errors_are_answers() -> None:
    """An unknown type, a seq that is gone and a foreign subscription are told at the request."""
    async with serving() as served, await served.connect() as client:
        unknown = (await client.call("events.subscribe", {"types": ["Tip"]}))["error"]
        assert unknown["code"] == -32005
        assert "TipMoved" in unknown["message"]
        served.stage.publish(*(moved(n) for n in range(1, 9)))
        served.stage.rows, served.stage.oldest = served.stage.rows[4:], 5
        gone = (await client.call("events.subscribe", {"since": 1}))["error"]
        assert (gone["code"], gone["data"]) == (-32007, {"kind": "gone", "oldest": 5})
        foreign = await client.call("events.unsubscribe", {"subscription": "sub-99"})
        assert foreign["error"]["code"] == -32001


async def test_slow_subscriber_is_told_and_misses_nothing() -> None:
    """A client that stops reading falls behind on the bus, hears Lagged, and gets every event."""
    async with serving() as served, await served.connect() as client:
        await client.call("events.subscribe", {"since": 0})
        total = 20_000
        for seq in range(1, total + 1, 50):
            served.stage.publish(*(moved(n) for n in range(seq, seq + 50)))
            await anyio.lowlevel.checkpoint()
        assert served.stage.bus.statistics().subscribers[0].lagged == 1
        seen: list[int] = []
        lagged = 0
        while len(seen) < total:
            event = (await client.read())["params"]["event"]
            if event["type"] == "Lagged":
                lagged += 1
                assert event["seq"] == event["last"] == seen[-1]
            else:
                seen.append(event["seq"])
        assert seen == list(range(1, total + 1))
        assert lagged == 1


async def test_client_that_vanishes_takes_its_waits_and_streams_with_it() -> None:
    """A wait for somebody who has gone is cancelled; a write is finished."""
    async with serving() as served:
        stage = served.stage
        async with await served.connect() as client:
            await client.call("events.subscribe", {})
            await client.request("held", {"text": "wait"})
            await client.request("write", {"text": "write"})
            await stage.wait_started("wait")
            await stage.wait_started("write")
        while stage.cancelled != ["wait"]:
            await anyio.lowlevel.checkpoint()
        assert stage.bus.statistics().subscribers == ()
        stage.gate("write").set()
        while served.server.statistics().connections:
            await anyio.lowlevel.checkpoint()
        assert "end write" in stage.ran


async def test_shutdown_answers_what_is_in_flight_then_says_why() -> None:
    """A call that ends within the grace period is answered; one that does not is told."""
    async with serving(grace_seconds=0.3) as served, await served.connect() as client:
        quick = await client.request("held", {"text": "quick"})
        slow = await client.request("held", {"text": "slow"})
        await served.stage.wait_started("slow")
        served.server.stop("turnmark is shutting down")
        served.stage.gate("quick").set()
        assert (await client.read())["id"] == quick
        refused = await client.read()
        assert (refused["id"], refused["error"]["code"]) == (slow, -32006)
        closing = await client.read()
        assert closing["params"] == {"reason": "turnmark is shutting down"}
        with pytest.raises(anyio.EndOfStream):
            await client.read()
        assert not served.path.exists()


async def test_socket_is_private() -> None:
    """The directory that was made is 0700, the socket 0600, whatever the umask."""
    before = os.umask(0)
    try:
        async with serving() as served:
            assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
            assert stat.S_IMODE(served.path.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)


@pytest.mark.parametrize("kind", ["file", "directory", "symlink"])
async def test_what_is_no_socket_is_refused_and_left(kind: str) -> None:
    """Only a socket is removed from the path."""
    async with place() as directory:
        path, target = directory / "t.sock", directory / "target"
        target.write_text("mine")
        if kind == "file":
            path.write_text("mine")
        elif kind == "directory":
            path.mkdir()
        else:
            path.symlink_to(target)
        with pytest.raises(Refused, match="is no socket"):
            await Server(path=path, methods={}).run()
        assert path.is_symlink() == (kind == "symlink")
        assert path.exists()
        assert target.read_text() == "mine"


async def test_stale_socket_is_replaced() -> None:
    """What a killed daemon left does not stop the next one, which holds the lock."""
    async with place() as directory:
        path = directory / "t.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        server = Server(path=path, methods={})
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                await group.start(server.run)
                await (await anyio.connect_unix(path)).aclose()
                server.stop()


async def test_directory_that_others_may_write_is_refused() -> None:
    """A socket in a shared directory could be replaced by somebody else's."""
    async with place() as directory:
        directory.chmod(0o777)
        with pytest.raises(Refused, match="chmod 700"):
            await Server(path=directory / "t.sock", methods={}).run()


def test_path_of_108_bytes_is_refused_with_the_key() -> None:
    """107 bytes pass; the message names what to set. Bytes count, not characters."""
    check_socket_path(Path("/" + "a" * 106))
    for path in ("/" + "a" * 107, "/" + "记" * 36):
        with pytest.raises(Refused, match="TURNMARK_SOCKET"):
            check_socket_path(Path(path))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
async def test_another_user_is_refused() -> None:
    """The kernel's word counts: another uid gets one line and is closed."""
    async with serving() as served:
        served.path.parent.chmod(0o755)
        served.path.parent.parent.chmod(0o755)
        served.path.chmod(0o666)
        script = textwrap.dedent(f"""
            import os, socket
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect({str(served.path)!r})
                print(s.makefile().read())
        """)
        done = await anyio.run_process([sys.executable, "-c", script])
        error = json.loads(done.stdout)["error"]
        assert error["code"] == -32005
        assert "65534" in error["message"]


def test_method_params_must_forbid_unknown_fields() -> None:
    """A method that would swallow a typo can't be put into a table."""

    class Loose(msgspec.Struct):
        text: str = ""

    async def call(params: Loose, call: object) -> None:
        return None

    with pytest.raises(TypeError, match="forbid_unknown_fields"):
        Method(params=Loose, call=call)
    Method(params=Anything, call=call)  # type: ignore[type-var]


EMFILE_SERVER = """
import resource, sys, tempfile, pathlib
import anyio
sys.path[:0] = {paths!r}
from turnmark.rpc import Server
from daemon.wire import Stage

async def main():
    server = Server(path=pathlib.Path({socket!r}), methods=Stage().methods())
    async with anyio.create_task_group() as group:
        await group.start(server.run)
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        print("ready", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)
        server.stop()

anyio.run(main)
"""


async def test_survives_running_out_of_descriptors() -> None:
    """120 clients at a limit of 40 descriptors: those inside go on, later ones get in."""
    async with place() as directory:
        path = directory / "t.sock"
        script = EMFILE_SERVER.format(paths=sys.path, socket=str(path))
        with (
            anyio.fail_after(60),
            subprocess.Popen(  # noqa: ASYNC220 - its pipes are read at the end only
                [sys.executable, "-c", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            assert await anyio.to_thread.run_sync(process.stdout.readline) == b"ready\n"
            served = Serving(path, None, None)  # type: ignore[arg-type]
            clients = [await served.connect() for _ in range(120)]
            await clients[0].assert_alive()
            last = clients[-1]
            number = await last.request("echo")
            for client in clients[1:110]:
                await client.stream.aclose()
            await clients[0].assert_alive()
            assert (await last.read())["id"] == number
            for client in (clients[0], *clients[110:]):
                await client.stream.aclose()
            out, _ = await anyio.to_thread.run_sync(process.communicate)
            assert process.returncode == 0, out
            assert b"accept_paused" in out
