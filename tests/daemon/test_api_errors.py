"""Errors and bad input over the socket of a real daemon: each a clear answer, and it serves on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.served import Daemon, Wire, fresh, listing, serving

METHODS = (
    *("hello", "status", "session.open", "session.list", "session.show", "session.branch"),
    *("session.rewind", "session.checkout", "session.merge", "session.archive", "session.close"),
    *("session.delete", "session.export", "session.import", "turn.append", "turn.sync"),
    *("memory.owed", "memory.flush", "memory.recall", "memory.context", "memory.core"),
    *("memory.topics", "memory.show", "memory.organize"),
    *("memory.edit", "memory.remember", "memory.history", "memory.undo", "memory.adopt"),
    *("events.subscribe", "events.unsubscribe"),
)
KINDS = {
    -32700: {"parse_error"},
    -32600: {"invalid_request", "too_large"},
    -32601: {"method_not_found"},
    -32602: {"invalid_params"},
    -32001: {"not_found"},
    -32002: {"conflict"},
    -32003: {"stale"},
    -32004: {"busy"},
    -32005: {"refused"},
    -32006: {"unavailable"},
    -32007: {"gone"},
    -32008: {"forgotten"},
}
MIB = 1 << 20


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for all of these tests; what it holds is outside of nothing but its places."""
    with serving('[memory]\nnightly = "off"\n') as running:
        yield running


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[Wire]:
    """A connection."""
    with daemon.wire() as connection:
        yield connection


def user(text: str, **fields: object) -> dict[str, Any]:
    """A turn of a user."""
    return {"role": "user", "text": text, **fields}


def check(answer: dict[str, Any]) -> dict[str, Any]:
    """An error that has a known code, its kind, and a sentence."""
    error: dict[str, Any] = answer["error"]
    assert set(error) == {"code", "message", "data"}
    assert error["data"]["kind"] in KINDS[error["code"]]
    assert error["message"]
    return error


# The protocol.


@pytest.mark.parametrize("method", METHODS)
def test_unknown_parameters_are_named(wire: Wire, method: str) -> None:
    """Every method refuses what it does not know, by name, and does nothing."""
    error = check(wire.ask(method, sessoin="s", 另一个=1))
    assert error["code"] == -32602
    assert set(error["data"]["unknown"]) == {"sessoin", "另一个"}
    assert "sessoin" in error["message"]
    assert "另一个" in error["message"]


@pytest.mark.parametrize(
    "turn",
    [
        user("a", txet="b"),
        user("a", speaker={"id": "u-1", "txet": "b"}),
        user("a", caller={"session": "s", "turn": "t", "txet": "b"}),
    ],
)
def test_unknown_fields_of_a_turn_are_named(wire: Wire, turn: dict[str, Any]) -> None:
    """A typo inside a turn, its speaker or its caller is an error with its name and place."""
    error = check(wire.ask("turn.append", session="s", turns=[user("a"), turn]))
    assert (error["code"], error["data"]["unknown"]) == (-32602, ["txet"])
    assert "turns" in error["message"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session.open", {}),
        ("session.open", {"session": 1}),
        ("session.open", {"session": "s", "memory": "maybe"}),
        ("turn.append", {"session": "s"}),
        ("turn.append", {"session": "s", "turns": [{"text": "x"}]}),
        ("turn.append", {"session": "s", "turns": [{"role": "robot", "text": "x"}]}),
        ("turn.append", {"session": "s", "turns": [{"role": "user", "text": "x", "kind": "?"}]}),
        ("turn.append", {"session": "s", "turns": [{"role": "user", "text": None}]}),
        ("turn.append", {"session": "s", "turns": "x"}),
        ("turn.append", {"session": "s", "turns": [user("x")], "move_head": 1}),
        ("session.merge", {"session": "s", "tips": "a", "turn": user("x")}),
        ("memory.flush", {"wait": "yes"}),
        ("memory.show", {"ref": ["b-1"]}),
    ],
)
def test_wrong_params_are_minus_32602(wire: Wire, method: str, params: dict[str, Any]) -> None:
    """A missing or wrong parameter is told with its name."""
    assert check(wire.ask(method, **params))["code"] == -32602


@pytest.mark.parametrize("params", [[], ["s"], "s", 1, True, None])
def test_params_are_an_object(wire: Wire, params: object) -> None:
    """Positional and other params are refused."""
    frame = {"jsonrpc": "2.0", "id": 1, "method": "session.show", "params": params}
    wire.send(json.dumps(frame).encode() + b"\n")
    assert check(wire.answer(1))["code"] == -32602


def test_params_may_be_left_out(wire: Wire) -> None:
    """A request without params is one with none."""
    wire.send(b'{"jsonrpc":"2.0","id":"x","method":"hello"}\n')
    assert wire.frame()["id"] == "x"


def test_unknown_methods_are_minus_32601(wire: Wire) -> None:
    """Also those that are for later versions, those in another case and the empty one."""
    for method in ("memory.dream", "Hello", "", "session", "turn.", "会话", "__init__"):
        assert check(wire.ask(method))["code"] == -32601


def test_arrays_are_minus_32600(wire: Wire) -> None:
    """JSON arrays (batches) are not taken, whatever is in them."""
    for frame in (b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"hello"}]', b" [1]"):
        wire.send(frame + b"\n")
        answer = wire.frame()
        assert (answer["id"], check(answer)["code"]) == (None, -32600)


BAD_JSON = [
    b'{"jsonrpc":"2.0","id":1,"method":"hel\xff\xfelo"}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello\xc0\xaf"}',
    b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}',
    b'{"jsonrpc":"2.0","id":1,"method":"turn.append","params":{"session":"\\ud800"}}',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"hello"}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"client":NaN}}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello"} trailing',
    b'{"jsonrpc":"2.0","id":1,"method":"hello","params":' + b"[" * 100_000,
    b"\x00\x01\x02\x03garbage\xff",
    b"nonsense",
    b'"text"',
    b"{",
    b"}",
    b"null",
    b"12",
    b'{"id":1,"method":"hello"}',
    b'{"jsonrpc":"1.0","id":1,"method":"hello"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":{},"method":"hello"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"hello"}',
    b'{"jsonrpc":"2.0","id":1,"method":17}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"hello"}',
]


@pytest.mark.parametrize("frame", BAD_JSON, ids=range(len(BAD_JSON)))
def test_what_is_no_request_is_answered_and_the_connection_lives(wire: Wire, frame: bytes) -> None:
    """Bad bytes get a JSON-RPC error; the next request on the same connection is answered."""
    wire.send(frame + b"\n")
    assert check(wire.frame())["code"] in (-32700, -32600, -32602)
    assert wire.call("hello")["protocol"] == 1


def test_deep_nesting_inside_what_is_kept_is_bounded(wire: Wire) -> None:
    """Metadata and content nested without end are refused or stored, never fatal."""
    session = fresh()
    for depth in (500, 5_000, 100_000):
        nested = '{"a":' * depth + "1" + "}" * depth
        frame = (
            f'{{"jsonrpc":"2.0","id":1,"method":"turn.append","params":{{"session":"{session}",'
            f'"turns":[{{"role":"user","text":"x","metadata":{nested}}}]}}}}\n'
        )
        wire.send(frame.encode())
        answer = wire.answer(1) if depth == 500 else wire.frame()
        assert "result" in answer or check(answer)["code"] in (-32700, -32602)
    assert wire.call("hello")


def test_blank_lines_and_ends_of_line_are_ignored(wire: Wire) -> None:
    """Empty lines, a million of them, CRLF, and two requests in one write."""
    wire.send(b"\n\r\n \n" + b"\n" * 1_000_000)
    wire.send(b'{"jsonrpc":"2.0","id":1,"method":"hello"}\r\n')
    assert wire.answer(1)["result"]
    wire.send(b'{"jsonrpc":"2.0","id":2,"method":"hello"}\n{"jsonrpc":"2.0","id":3,')
    wire.send(b'"method":"hello"}\n')
    assert {wire.frame()["id"] for _ in range(2)} == {2, 3}


def test_a_character_may_be_split_between_writes(wire: Wire) -> None:
    """Half of a character at the end of a chunk is put together again."""
    frame = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "turn.append",
            "params": {"session": fresh(), "turns": [user("波尔图 🦊", id="é")]},
        },
        ensure_ascii=False,
    ).encode()
    for byte in frame + b"\n":
        wire.send(bytes([byte]))
    assert wire.answer(1)["result"]["turns"] == ["é"]


def sized(method: str, params: dict[str, Any], at: list[Any], key: Any, size: int) -> bytes:
    """A request whose frame has exactly `size` bytes, by padding one text of its params."""
    frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    place: Any = params
    for step in at:
        place = place[step]
    place[key] = ""
    bare = len(json.dumps(frame, separators=(",", ":")))
    place[key] = "a" * (size - bare)
    return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


def test_frames_have_the_limits_of_the_interface(wire: Wire) -> None:
    """1 MiB for all, 16 MiB for `turn.*` and `session.import`, to the byte."""
    hello: dict[str, Any] = {"client": ""}
    wire.send(sized("hello", hello, [], "client", MIB))
    assert wire.answer(1)["result"]
    wire.send(sized("hello", hello, [], "client", MIB + 1))
    error = check(wire.answer(1))
    assert (error["code"], error["data"]["position"]) == (-32600, MIB)
    session = fresh()
    turns: dict[str, Any] = {"session": session, "turns": [user("")]}
    wire.send(sized("turn.append", turns, ["turns", 0], "text", 16 * MIB))
    assert wire.answer(1)["result"]["new"] == 1
    wire.send(sized("turn.append", turns, ["turns", 0], "text", 16 * MIB + 1))
    assert check(wire.frame())["data"]["position"] == 16 * MIB
    assert wire.call("session.show", session=session)["turns"] == 1
    lines: dict[str, Any] = {"lines": [""]}
    wire.send(sized("session.import", lines, ["lines"], 0, 16 * MIB))
    assert "upload" in wire.answer(1)["result"]


def test_http_is_told_what_this_is_and_the_next_frame_is_read(daemon: Daemon) -> None:
    """Its lines end, so the connection stays: each is an error with its position."""
    with daemon.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        error = check(wire.frame())
        assert (error["code"], error["data"]["position"]) == (-32700, 0)
        assert "not HTTP" in error["message"]
        assert check(wire.frame())["code"] == -32700
        assert wire.call("hello")


def test_tls_gets_one_clear_line_and_is_closed(daemon: Daemon) -> None:
    """No end of a frame can be found in it."""
    with daemon.wire() as wire:
        wire.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20)
        assert "not TLS" in check(wire.frame())["message"]
        assert wire.frame() == {}
    with daemon.wire() as wire:
        assert wire.call("hello")


def test_an_unfinished_frame_before_the_end_is_told(daemon: Daemon) -> None:
    """No newline, then close: an error with the position, then the end."""
    with daemon.wire() as wire:
        wire.send(b'{"jsonrpc":"2.0","id":1,"method":"hello"}')
        wire.socket.shutdown(socket.SHUT_WR)
        error = check(wire.frame())
        assert (error["code"], error["data"]["position"]) == (-32700, 41)
        assert wire.frame() == {}


def test_the_peer_is_known_to_be_this_user(daemon: Daemon) -> None:
    """The socket and its directory are private; peer credentials are checked in test_rpc."""
    assert daemon.socket.stat().st_mode & 0o777 == 0o600
    assert daemon.root.stat().st_mode & 0o777 == 0o700


def test_a_cancelled_wait_is_not_answered_and_others_are(wire: Wire) -> None:
    """`notifications/cancelled` ends a wait; unknown and malformed ones are ignored."""
    session = fresh()
    wire.append(session, *(f"I live in town {number}." for number in range(50)))
    waiting = wire.request("memory.flush", {"session": session})
    wire.tell("notifications/cancelled", {"requestId": waiting, "reason": "不要了"})
    wire.tell("notifications/cancelled", {"requestId": 10_000})
    wire.tell("notifications/cancelled", {"requestId": None})
    wire.tell("notifications/cancelled", {})
    number = wire.request("hello")
    seen = [wire.frame()["id"] for _ in range(1)]
    # Either the flush was done before the word reached it, or it has no answer at all.
    assert seen in ([number], [waiting])
    assert wire.call("hello")


def test_a_token_of_the_wrong_type_is_an_error(wire: Wire) -> None:
    """A progress token is a string or a whole number, as in MCP; other `_meta` is ignored."""
    tokens: tuple[Any, ...] = ([], {}, 1.5, True, None)
    for token in tokens:
        asked = wire.request("hello", {"_meta": {"progressToken": token}})
        error = check(wire.answer(asked))
        assert error["code"] == -32602
        assert "progressToken" in error["message"]
        assert "unknown" not in error["data"]
    assert wire.answer(wire.request("hello", {"_meta": {"other": 1}}))["result"]
    assert wire.answer(wire.request("hello", {"_meta": {"progressToken": "t"}}))["result"]


# Ids, paths and shapes.

NAMES = [
    *("../x", "..", ".", "/etc/passwd", "a/b", "a\\b", "a%2fb", "con", "-rf", ".git", "~root"),
    *("trailing.", "trailing ", " leading", "\u202egnp.exe", "раураl", "e\u0301", "\xe9"),
    *("CASE", "case", "长" * 150, "b-af3dee4f", "s-8a9128075e1b", "people/dana", "#", "a#b", "'"),
    *('";--', "%s%n", "$(id)", "<script>", "🦊", "\u200b"),
]
BAD_NAMES = ["", "\n", "a\nb", "\x00", "a\x00b", "\x1b[2J", "长" * 200, "x" * 513]


def test_any_printable_name_stays_inside_the_places(daemon: Daemon, wire: Wire) -> None:
    """Sessions, agents and turns of any printable name are told apart and written inside."""
    beside = {path.name for path in daemon.root.parent.iterdir()}
    for name in NAMES:
        wire.call("session.open", session=name, agent=name, project=name, title=name)
        wire.call("turn.append", session=name, turns=[user(f"I live in {name}.", id=name)])
    for name in NAMES:
        assert wire.call("memory.flush", session=name)["left"] == 0
        (found,) = wire.call("session.branch", session=name)["turns"]
        assert (found["id"], found["session"], found["text"]) == (name, name, f"I live in {name}.")
    within = [Path(path) for path in listing(daemon.root)]
    assert all(not path.is_symlink() for path in within)
    top = {path.name for path in daemon.root.iterdir()}
    assert top == {"state", "memory", "s", "log", "config.toml"}
    ours = {path.name for path in daemon.workspace.iterdir()}
    assert ours <= {"core.md", "topics", "sources", "timeline", ".turnmark"}
    beside_now = {path.name for path in daemon.root.parent.iterdir()}
    assert not (beside_now - beside) & set(NAMES)


@pytest.mark.parametrize("name", BAD_NAMES, ids=range(len(BAD_NAMES)))
def test_names_that_are_none_are_refused(wire: Wire, name: str) -> None:
    """Empty, too long, or with control characters: refused, and nothing is made."""
    before = wire.call("status")["sessions"]
    assert check(wire.ask("session.open", session=name))["code"] == -32005
    assert check(wire.ask("turn.append", session=name, turns=[user("x")]))["code"] == -32005
    assert check(wire.ask("turn.sync", session=name, messages=[user("x")]))["code"] == -32005
    answer = wire.ask("turn.append", session="known", turns=[user("x", id=name)])
    assert check(answer)["code"] == -32005
    for method in ("session.show", "session.branch", "session.close", "session.export"):
        assert check(wire.ask(method, session=name))["code"] == -32001
    assert wire.call("status")["sessions"] == before


def test_nul_is_kept_in_texts(wire: Wire) -> None:
    """A body may hold any character; it comes back as it went in."""
    session = fresh()
    text = "a\x00b\x1b[2J\u202e\U000e0041\x7f"
    wire.call("turn.append", session=session, turns=[user(text)])
    assert wire.call("session.branch", session=session)["turns"][0]["text"] == text


def test_of_a_key_given_twice_the_last_counts(wire: Wire) -> None:
    """Duplicate keys of an object are read as most parsers read them."""
    session = fresh()
    frame = (
        '{"jsonrpc":"2.0","id":5,"id":6,"method":"session.open",'
        f'"params":{{"session":"never-{session}","session":"{session}"}}}}\n'
    )
    wire.send(frame.encode())
    assert wire.frame()["id"] == 6
    assert wire.call("session.show", session=session)
    assert wire.error("session.show", session=f"never-{session}")["code"] == -32001


# The DAG.


def test_the_dag_takes_no_cycle_and_no_gap(wire: Wire) -> None:
    """Cycles, itself, what is missing, and what is another session's are typed errors or no-ops."""
    session, other = fresh(), fresh()
    wire.append(session, "a", "b", "c")
    wire.append(other, "x")
    again = wire.append(session, "a", after="c")
    assert (again["new"], again["head"]) == (0, "a")
    assert wire.call("session.show", session=session)["turns"] == 3
    assert wire.append(session, "b", after="b")["new"] == 0
    for after in ("missing", "x"):
        error = check(wire.ask("turn.append", session=session, turns=[user("y")], after=after))
        assert error["code"] == -32001
    error = check(wire.ask("turn.append", session=session, turns=[user("y", id="a")]))
    assert error["code"] == -32002
    for field, value in (
        ("supersedes", "missing"),
        ("caller", {"session": session, "turn": "missing"}),
        ("caller", {"session": fresh(), "turn": "a"}),
    ):
        turns = [user("y", **{field: value})]
        assert check(wire.ask("turn.append", session=session, turns=turns))["code"] == -32001
    point = {"session": session}
    assert check(wire.ask("session.open", session=session, forked_from=point))["code"] == -32005
    assert check(wire.ask("session.open", session=other, forked_from=point))["code"] == -32002
    line = wire.call("session.branch", session=session, tip="c")["turns"]
    assert [turn["predecessor"] for turn in line] == [None, "a", "b"]


def test_long_chains_and_many_heads_are_walked(wire: Wire) -> None:
    """Ten thousand turns in a row and a thousand branches are shown and owed in bounded time."""
    session = fresh()
    for start in range(0, 10_000, 2_500):
        turns = [user("x", id=str(number)) for number in range(start, start + 2_500)]
        wire.call("turn.append", session=session, turns=turns)
    for number in range(1_000):
        turns = [user("y", id=f"y{number}")]
        wire.request("turn.append", {"session": session, "turns": turns, "after": "0"})
        wire.frame()
    found = wire.call("session.show", session=session)
    assert (found["turns"], len(found["branches"])) == (11_000, 1_001)
    page = wire.call("memory.owed", session=session, limit=1_000)
    assert (page["turns"], len(page["tips"])) == (11_000, 1_000)
    assert wire.call("session.branch", session=session, tip="9999", limit=3)["next"]
    answer = wire.call("session.rewind", session=session, to="0")
    assert answer == {"head": "0", "retired": 1}
    assert wire.call("session.delete", session=session) == {}


BOMBS = [
    "a" * 2_000_000,
    "[" * 100_000,
    "# 头\n" * 100_000,
    "a" * 50_000 + "!",
    "=" * 200_000,
    "\u202e" * 50_000,
    "。" * 200_000,
    "AKIA" * 100_000,
    "<turnmark-memory>" * 20_000,
    "eyJ" + "A" * 300_000 + ".",
    "-----BEGIN RSA PRIVATE KEY-----" * 10_000,
    "http://" + "a." * 100_000,
    "&a " * 50_000 + "*a" * 50_000,
    "I live in " + "very " * 100_000 + "Porto.",
    "password = " * 20_000,
]


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_bombs_are_stored_written_and_recalled(wire: Wire, text: str) -> None:
    """Long lines, repeated openings and what makes regexes slow: bounded, answered, settled."""
    session = fresh()
    wire.call("turn.append", session=session, turns=[user(text)])
    answer = wire.call("memory.flush", session=session)
    assert (answer["left"], answer["failures"]) == (0, [])
    assert isinstance(wire.call("memory.recall", query=text[:5_000])["hits"], list)
    assert wire.call("session.branch", session=session)["turns"]


def test_a_daemon_that_met_all_this_has_lost_nothing(daemon: Daemon, wire: Wire) -> None:
    """What was acknowledged before and after bad input is there after a restart."""
    session = fresh()
    wire.append(session, "before")
    with daemon.wire() as other:
        other.send(b"\xff\xfe nonsense\n[]\n")
        other.frame()
        other.frame()
    wire.append(session, "after")
    seen = wire.call("session.branch", session=session)
    daemon.stop()
    daemon.start()
    with daemon.wire() as again:
        assert again.call("session.branch", session=session) == seen


# Anything at all.

texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["s", "a", "b", "", "user", "on", "turn", "b-00000000", "core", *NAMES[:6]]),
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
turn = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool"]), "text": texts},
    optional={
        "id": texts,
        "kind": st.sampled_from(["turn", "tool", "runtime", "summary", "error", "partial"]),
        "speaker": st.fixed_dictionaries({}, optional={"id": texts, "name": texts}),
        "time": st.one_of(texts, st.datetimes().map(lambda at: at.isoformat() + "Z")),
        "caller": st.fixed_dictionaries({"session": texts, "turn": texts}),
        "supersedes": texts,
        "metadata": st.dictionaries(texts, values, max_size=3),
    },
)
numbers = st.one_of(st.integers(), st.integers(min_value=-2, max_value=1_001))
topics = st.sampled_from(["core", "people/dana", "../x", "", "people/user", "projects/会话"])
cites = st.lists(texts, max_size=2)
parts = st.fixed_dictionaries({"text": texts, "cites": cites})
edits = st.one_of(
    st.fixed_dictionaries({"op": st.just("add"), "topic": topics, "text": texts, "cites": cites}),
    st.fixed_dictionaries({"op": st.just("revise"), "block": texts, "text": texts, "cites": cites}),
    st.fixed_dictionaries({"op": st.just("retire"), "block": texts, "reason": texts}),
    st.fixed_dictionaries({"op": st.just("move"), "block": texts, "topic": topics}),
    st.fixed_dictionaries({"op": st.just("merge"), "blocks": cites, "text": texts}),
    st.fixed_dictionaries(
        {"op": st.just("split"), "block": texts, "parts": st.lists(parts, max_size=2)}
    ),
    st.fixed_dictionaries({"op": st.sampled_from(["pin", "unpin", "?"]), "block": texts}),
)
refs = st.fixed_dictionaries({"session": texts, "turn": texts})
names = st.sampled_from(["b-00000001", "b-00000002", "b-1", ""])
adopted = st.fixed_dictionaries(
    {"id": names, "topic": topics, "text": texts},
    optional={
        **dict.fromkeys(("heading", "title"), texts),
        "cites": st.lists(refs, max_size=2),
        "aliases": st.lists(names, max_size=2),
    },
)
settled = st.fixed_dictionaries({"session": texts, "turns": cites})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "edits": st.lists(edits, max_size=3),
    "origin": st.sampled_from(["other", "Other", "", "a b"]),
    "blocks": st.lists(adopted, max_size=3),
    "settled": st.lists(settled, max_size=2),
    "text": texts,
    "revision": numbers,
    **dict.fromkeys(("pin", "force"), st.booleans()),
    **dict.fromkeys(("session", "tip", "to", "ref", "query", "upload", "subscription"), texts),
    **dict.fromkeys(("agent", "title", "project", "key", "cursor", "branch", "topic"), texts),
    **dict.fromkeys(("speaker", "client", "writer", "mode", "policy", "until"), texts),
    **dict.fromkeys(("expect", "after"), st.one_of(st.none(), texts)),
    **dict.fromkeys(("limit", "k", "budget_tokens", "protocol"), numbers),
    **dict.fromkeys(("restore", "move_head", "ids", "backlog", "removed"), st.booleans()),
    **dict.fromkeys(("dry_run", "wait", "history", "last", "uncited", "continued"), st.booleans()),
    "since": st.one_of(numbers, texts),
    "memory": st.sampled_from(["on", "local", "off", "?"]),
    "caller": st.fixed_dictionaries({"session": texts, "turn": texts}),
    "forked_from": st.fixed_dictionaries({"session": texts}, optional={"turn": texts}),
    "tips": st.lists(texts, max_size=3),
    "turn": turn,
    "turns": st.lists(turn, max_size=3),
    "messages": st.lists(turn, max_size=3),
    "lines": st.lists(st.one_of(texts, values.map(json.dumps)), max_size=3),
    "kinds": st.lists(st.sampled_from(["block", "turn", "x"]), max_size=2),
    "types": st.lists(st.sampled_from(["TipMoved", "TipIdle", "x"]), max_size=2),
}
NEEDED = {
    "turn.append": ("session", "turns"),
    "turn.sync": ("session", "messages"),
    "session.rewind": ("session", "to"),
    "session.checkout": ("session", "tip"),
    "session.merge": ("session", "tips", "turn"),
    "session.import": ("lines",),
    "memory.recall": ("query",),
    "memory.show": ("ref",),
    "memory.edit": ("edits",),
    "memory.remember": ("text",),
    "memory.undo": ("revision",),
    "memory.adopt": ("origin",),
    "events.unsubscribe": ("subscription",),
}
OPTIONAL = {
    "hello": ("client", "protocol"),
    "session.open": ("agent", "title", "project", "caller", "forked_from", "memory"),
    "session.list": ("agent", "project", "limit", "cursor"),
    "session.branch": ("tip", "limit", "cursor"),
    "session.rewind": ("expect",),
    "session.checkout": ("expect", "restore"),
    "session.archive": ("branch",),
    "session.export": ("limit", "cursor"),
    "session.import": ("upload", "last", "continued"),
    "turn.append": ("after", "expect", "key", "move_head"),
    "turn.sync": ("key",),
    "memory.owed": ("session", "ids", "limit", "cursor"),
    "memory.flush": ("session", "backlog", "removed", "dry_run", "wait"),
    "memory.recall": (
        *("k", "session", "tip", "kinds", "topic", "speaker", "since", "until"),
        *("project", "history", "budget_tokens", "mode"),
    ),
    "memory.context": ("session", "query", "budget_tokens"),
    "memory.topics": ("limit", "cursor"),
    "memory.history": ("limit", "cursor"),
    "memory.remember": ("topic", "session", "pin"),
    "memory.undo": ("force",),
    "memory.adopt": ("blocks", "settled"),
    "memory.organize": ("wait", "uncited", "dry_run"),
    "events.subscribe": ("types", "session", "since", "policy"),
}


@st.composite
def likely_requests(draw: st.DrawFn) -> tuple[str, Any]:
    """A method with params of its own names, most of them of the right type."""
    method = draw(st.sampled_from(METHODS))
    needed = NEEDED.get(method)
    if needed is None:
        needed = ("session",) if method.startswith("session.") and method != "session.list" else ()
    fields = {name: FIELDS[name] for name in needed}
    options = {name: FIELDS[name] for name in OPTIONAL.get(method, ())}
    return method, draw(st.fixed_dictionaries(fields, optional=options))


anything = st.one_of(
    likely_requests(),
    st.tuples(st.sampled_from(METHODS), values),
    st.tuples(st.sampled_from(METHODS), st.dictionaries(st.sampled_from(list(FIELDS)), values)),
)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(requests=st.lists(anything, min_size=1, max_size=8))
def test_no_json_value_makes_a_bug_of_a_request(
    daemon: Daemon, requests: list[tuple[str, Any]]
) -> None:
    """Whatever is asked of any method, the answer is a result or an error of ours; it lives on."""
    with daemon.wire() as wire:
        wire.append("s", "a", "b")
        for method, params in requests:
            frame = {"jsonrpc": "2.0", "id": "q", "method": method, "params": params}
            wire.send(json.dumps(frame, ensure_ascii=True).encode() + b"\n")
            answer = wire.frame()
            while "method" in answer:
                answer = wire.frame()
            if answer.get("id") == "q" and "result" in answer:
                continue
            check(answer)
        assert wire.call("hello")["pid"] == daemon.pid
