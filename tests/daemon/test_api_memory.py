"""`memory.*` and `status` over the socket of a real daemon, and the Python of INTERFACE."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import turnmark
from daemon.api_shapes import CORE, FLUSHED, HIT, OWED_TIP, SOURCE, TEXT_OR_NULL, TURN
from daemon.served import SECONDS, Daemon, Wire, fresh, has_shape, serving


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for all of these tests."""
    with serving('[memory]\nnightly = "off"\n') as running:
        yield running


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[Wire]:
    """A connection."""
    with daemon.wire() as connection:
        yield connection


@pytest.fixture
def session() -> str:
    """A session's name that nobody used."""
    return fresh("会话")


def owed(wire: Wire, session: str, **params: object) -> Any:
    """What a session owes."""
    answer = wire.call("memory.owed", session=session, **params)
    has_shape(answer, {"tips": [OWED_TIP], "turns": int, "tokens": int})
    return answer


def test_owes_one_row_a_live_tip(wire: Wire, session: str) -> None:
    """Each row has that tip's whole share; the totals count each turn once."""
    wire.append(session, "a", "b")
    wire.append(session, "c", after="a")
    answer = owed(wire, session, ids=True)
    assert [(row["tip"], row["head"], row["n"]) for row in answer["tips"]] == [
        ("c", True, 2),
        ("b", False, 2),
    ]
    assert [row["turns"] for row in answer["tips"]] == [["a", "c"], ["a", "b"]]
    assert {row["state"] for row in answer["tips"]} == {"waiting"}
    assert answer["turns"] == 3
    assert answer["tokens"] < sum(row["tokens"] for row in answer["tips"])
    assert all("turns" not in row for row in owed(wire, session)["tips"])
    found = wire.call("session.list")["sessions"]
    assert next(row for row in found if row["session"] == session)["owed_turns"] == 3
    page = wire.call("memory.owed", session=session, limit=1)
    assert (len(page["tips"]), page["turns"]) == (1, 3)
    rest = wire.call("memory.owed", session=session, limit=1, cursor=page["next"])
    assert [row["tip"] for row in rest["tips"]] == ["b"]
    assert "next" not in rest
    assert wire.error("memory.owed", session=fresh())["code"] == -32001


def test_owes_nothing_that_is_not_recordable_or_live(wire: Wire, session: str) -> None:
    """Tool rows and what was taken back are never owed."""
    wire.append(session, "a", "b")
    wire.append(session, "t", role="tool")
    wire.call("session.rewind", session=session, to="a")
    answer = owed(wire, session, ids=True)
    assert [row["turns"] for row in answer["tips"]] == [["a"]]


def test_flush_writes_all_that_is_owed_in_its_scope(wire: Wire, session: str) -> None:
    """A dry run and `wait: false` say the plan with `left` = all; a flush leaves nothing."""
    wire.append(session, "I live in Porto.", "b")
    wire.append(session, "I work for the railway.", after="b")
    plan = wire.call("memory.flush", session=session, dry_run=True)
    has_shape(plan, FLUSHED)
    assert (plan["turns"], plan["left"], plan["blocks"], plan["failures"]) == (3, 3, 0, [])
    assert plan["tokens"] == owed(wire, session)["tokens"]
    assert owed(wire, session)["turns"] == 3
    done = wire.call("memory.flush", session=session)
    has_shape(done, FLUSHED)
    assert (done["turns"], done["tokens"], done["left"]) == (3, plan["tokens"], 0)
    assert done["batches"] >= 1
    assert done["blocks"] >= 1
    assert owed(wire, session)["tips"] == []
    again = wire.call("memory.flush", session=session)
    assert again == {"batches": 0, "turns": 0, "tokens": 0, "blocks": 0, "left": 0, "failures": []}
    assert wire.error("memory.flush", session=fresh())["code"] == -32001


def test_flush_need_not_be_waited_for(wire: Wire, session: str) -> None:
    """`wait: false` answers the plan; the writing goes on beside."""
    wire.call("events.subscribe", types=["TurnsWritten"], session=session)
    wire.append(session, "I have a cat called 小黑.")
    plan = wire.call("memory.flush", session=session, wait=False)
    assert (plan["turns"], plan["left"]) == (1, 1)
    assert wire.events(1)[0]["turns"] == ["I have a cat called 小黑."]


def test_a_shared_prefix_is_written_once(wire: Wire, session: str) -> None:
    """However many branches and sessions share it."""
    wire.call("memory.flush")
    wire.call("events.subscribe", types=["TurnsWritten"])
    wire.append(session, "I live in Lisbon.", "b")
    wire.append(session, "c", after="b")
    other = fresh()
    wire.call("session.open", session=other, forked_from={"session": session, "turn": "b"})
    wire.append(other, "d")
    wire.call("memory.flush")
    written = [turn for event in wire.drained() for turn in event["turns"]]
    assert sorted(written) == ["I live in Lisbon.", "b", "c", "d"]


def test_flush_tells_how_far_it_is_on_request(wire: Wire, session: str) -> None:
    """With a token it tells turns done and turns in all, before the answer; without, nothing."""
    wire.append(session, "I play the cello.", "x", "y")
    wire.call("memory.flush", session=session, dry_run=True)
    assert wire.notes == []
    asked = wire.request("memory.flush", {"session": session, "_meta": {"progressToken": 7}})
    wire.answer(asked)
    told = [note["params"] for note in wire.notes]
    assert {note["method"] for note in wire.notes} == {"notifications/progress"}
    for one in told:
        shape = {"progressToken": int, "progress": float, "total?": float, "message?": str}
        has_shape(one, shape)
        assert set(one) <= {"progressToken", "progress", "total", "message"}
    assert (told[-1]["progressToken"], told[-1]["progress"], told[-1]["total"]) == (7, 3, 3)


def test_recall_gives_hits_with_their_provenance(wire: Wire, session: str) -> None:
    """Each hit says what, where from, by whom, when, and how it stands to the reader."""
    said = "I keep my bicycle at the lighthouse."
    turn = {"id": "t-1", "role": "user", "text": said, "speaker": {"id": "u-1", "name": "Dana"}}
    wire.call("turn.append", session=session, turns=[turn])
    wire.call("memory.flush", session=session)
    answer = wire.call("memory.recall", query="where is the bicycle?", session=session)
    has_shape(answer, {"hits": [HIT], "tokens": int})
    assert answer["tokens"] > 0
    block = next(hit for hit in answer["hits"] if hit["kind"] == "block")
    found = next(hit for hit in answer["hits"] if hit["kind"] == "turn")
    assert block["ref"].startswith("b-")
    assert block["topic"]
    assert found["text"] == said
    assert (found["session"], found["branch"], found["speaker"]) == (session, "own", "Dana")
    (source,) = found["sources"]
    has_shape(source, SOURCE)
    assert (source["turn"], source["label"]) == ("t-1", found["ref"])
    assert found["ref"].startswith("s-")
    elsewhere = wire.call("memory.recall", query="where is the bicycle?", session=fresh_in(wire))
    assert {hit["branch"] for hit in elsewhere["hits"]} == {"other-session"}


def fresh_in(wire: Wire) -> str:
    """Another session that is open."""
    name = fresh()
    wire.call("session.open", session=name)
    return name


def test_recall_filters(wire: Wire, session: str) -> None:
    """`k`, `kinds`, `topic`, `speaker`, `since`, `until`, `project` and `budget_tokens` hold."""
    wire.call("session.open", session=session, project="/灯塔")
    old = {
        "role": "user",
        "text": "I keep the harbour crane green.",
        "time": "2020-02-03T04:05:06Z",
    }
    new = {
        "role": "user",
        "text": "I keep the harbour crane yellow.",
        "time": "2024-02-03T04:05:06Z",
    }
    wire.call("turn.append", session=session, turns=[old, new])
    wire.call("memory.flush", session=session)

    def texts(**params: object) -> list[str]:
        params = {"query": "harbour crane", "kinds": ["turn"], **params}
        answer = wire.call("memory.recall", **params)
        return [hit["text"] for hit in answer["hits"]]

    assert set(texts()) >= {old["text"], new["text"]}
    assert texts(since="2023-01-01") == [new["text"]]
    assert texts(until="2021-01-01T00:00:00Z") == [old["text"]]
    assert set(texts(project="/灯塔")) == {old["text"], new["text"]}
    assert texts(project="/elsewhere") == []
    assert texts(speaker="nobody") == []
    assert len(texts(k=1)) == 1
    kinds = wire.call("memory.recall", query="harbour crane", kinds=["block"])["hits"]
    assert {hit["kind"] for hit in kinds} == {"block"}
    small = wire.call("memory.recall", query="harbour crane", budget_tokens=8)
    assert small["tokens"] <= 8
    for mode in ("hybrid", "lexical"):
        assert wire.call("memory.recall", query="harbour crane", mode=mode)["hits"]
    for bad in ({"k": 0}, {"k": 1001}, {"mode": "magic"}, {"kinds": ["topic"]}):
        assert wire.error("memory.recall", query="x", **bad)["code"] == -32602
    assert wire.error("memory.recall")["code"] == -32602
    assert wire.error("memory.recall", query="x", since="soon")["data"]["kind"] == "refused"


def test_nothing_related_is_no_hit(wire: Wire) -> None:
    """Under the floor nothing comes back rather than something unrelated."""
    assert wire.call("memory.recall", query="quantum chromodynamics") == {"hits": [], "tokens": 0}


def test_recall_says_how_a_hit_stands_to_the_readers_branch(wire: Wire, session: str) -> None:
    """Own, shared and another branch's are told apart, and own comes first."""
    wire.append(session, "The telescope stands in the garden.")
    wire.append(session, "The telescope was sold to Olga.")
    wire.append(
        session,
        "The telescope was lent to Pavel.",
        after="The telescope stands in the garden.",
    )
    wire.call("memory.flush", session=session)
    hits = wire.call("memory.recall", query="telescope", session=session, kinds=["turn"])["hits"]
    assert {hit["text"]: hit["branch"] for hit in hits} == {
        "The telescope was lent to Pavel.": "own",
        "The telescope stands in the garden.": "shared",
        "The telescope was sold to Olga.": "other-branch",
    }
    assert hits[0]["branch"] == "own"
    other = "The telescope was sold to Olga."
    hits = wire.call(
        "memory.recall", query="telescope", session=session, tip=other, kinds=["turn"]
    )["hits"]
    assert {hit["text"] for hit in hits if hit["branch"] == "own"} == {other}
    for query in ("telescope", "quantum chromodynamics"):
        answer = wire.ask("memory.recall", query=query, session=session, tip="nope")
        assert answer["error"]["code"] == -32001


def test_context_packs_a_fenced_text(wire: Wire, session: str) -> None:
    """Core, then hits, within a budget, between turnmark's own fence."""
    wire.append(session, "My sister Ines plays the oboe.")
    wire.call("memory.flush", session=session)
    answer = wire.call("memory.context", session=session, query="who plays the oboe?")
    assert set(answer) >= {"text", "tokens"}
    has_shape(answer, {"text": str, "tokens": int})
    assert answer["text"].startswith("<turnmark-memory>\n")
    assert answer["text"].rstrip().endswith("</turnmark-memory>")
    assert "oboe" in answer["text"]
    small = wire.call("memory.context", query="who plays the oboe?", budget_tokens=60)
    assert small["tokens"] <= 60
    has_shape(wire.call("memory.context"), {"text": str, "tokens": int})


def test_core_is_the_page_itself(daemon: Daemon, wire: Wire, session: str) -> None:
    """The text is that of `core.md` to the byte, with its tokens, blocks and what was left out."""
    wire.append(session, "My name is Dana and I always drink green tea.")
    wire.call("memory.flush", session=session)
    answer = wire.call("memory.core")
    has_shape(answer, CORE)
    assert answer["text"] == (daemon.workspace / "core.md").read_text(encoding="utf-8")


def test_topics_are_listed_and_shown(wire: Wire, session: str) -> None:
    """Each topic has its name, what it is about, its blocks and its size; pages join."""
    wire.append(session, "I am a nurse in Faro.")
    wire.call("memory.flush", session=session)
    rows = wire.call("memory.topics")["topics"]
    shape = {"topic": str, "about": str, "blocks": int, "tokens": int, "updated_at": TEXT_OR_NULL}
    has_shape(rows, [shape])
    names = [row["topic"] for row in rows]
    paged: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = wire.call("memory.topics", limit=1, **cursor)
        paged += [row["topic"] for row in page["topics"]]
        if "next" not in page:
            break
        cursor = {"cursor": page["next"]}
    assert paged == names == sorted(names)
    shown = wire.call("memory.show", ref=names[-1])
    has_shape(shown, {"kind": "topic", "text": str})
    assert shown["topic"] == names[-1]
    assert wire.call("memory.show", ref=shown["path"]) == shown


@pytest.mark.parametrize(
    "method",
    [
        *("session.list", "session.branch", "session.export"),
        *("memory.owed", "memory.topics", "memory.history"),
    ],
)
def test_a_cursor_that_was_not_given_is_refused(wire: Wire, session: str, method: str) -> None:
    """No list takes one for another, or answers with an empty page."""
    wire.append(session, "I am a nurse in Faro.")
    of = (
        {}
        if method in {"session.list", "memory.topics", "memory.history"}
        else {"session": session}
    )
    answer = wire.ask(method, cursor="people/nobody", **of)
    assert answer["error"]["code"] == -32005
    assert "cursor" in answer["error"]["message"]


def test_show_reads_refs_in_their_order(wire: Wire, session: str) -> None:
    """A block with and without `^`, a label, a topic, `SESSION#ID`, then a bare id."""
    said = "I was born in Évora."
    wire.append(session, said)
    wire.call("events.subscribe", types=["TurnsWritten"], session=session, since=0)
    wire.call("memory.flush", session=session)
    (block, *_) = wire.events(1)[0]["blocks"]
    for ref in (block, f"^{block}"):
        shown = wire.call("memory.show", ref=ref)
        has_shape(shown, {"kind": "block", "text": str, "topic": str, "sources": [SOURCE]})
        assert "born in Évora" in shown["text"]
    (source,) = wire.call("memory.show", ref=block)["sources"]
    assert (source["turn"], source["session"]) == (said, session)
    shown = wire.call("memory.show", ref=source["label"])
    has_shape(shown, {"kind": str, "text": said, "sources": [SOURCE]})
    for ref in (f"{session}#{said}", said):
        shown = wire.call("memory.show", ref=ref)
        has_shape(shown, {"kind": "turn", "text": said, "turn": TURN})
    other = fresh()
    wire.append(other, said)
    error = wire.error("memory.show", ref=said)
    assert (error["code"], error["data"]["kind"]) == (-32005, "refused")
    assert set(error["data"]["candidates"]) == {f"{session}#{said}", f"{other}#{said}"}
    for ref in ("b-00000000", "s-000000000000", "people/nobody", f"{session}#no", "nope", "", "^"):
        assert wire.error("memory.show", ref=ref)["code"] == -32001, ref


def test_organize_does_what_the_night_does(wire: Wire, session: str) -> None:
    """Writes what is owed, rebuilds the core page, says the date; on request it tells progress."""
    wire.append(session, "I swim every morning.", "x")
    wire.answer(wire.request("memory.organize", {"_meta": {"progressToken": "o"}}))
    assert wire.notes[-1]["params"]["progressToken"] == "o"
    wire.append(session, "I swim every evening.")
    answer = wire.call("memory.organize")
    shape = {"date": str, "changed": int, "core": CORE, "owed": 0, "report": [str]}
    has_shape(answer, shape)
    assert "Nothing is owed." in answer["report"]
    assert date.fromisoformat(answer["date"]).isoformat() == answer["date"]
    held = {"pass": str, "removes": int, "blocks": int}
    has_shape(answer, {"held?": (held, None)})
    assert owed(wire, session)["turns"] == 0


def test_organize_need_not_be_waited_for(wire: Wire, session: str) -> None:
    """`wait: false` answers how things are; the night's work goes on beside."""
    wire.append(session, "I sing in a choir.")
    wire.call("events.subscribe", types=["NightDone"])
    answer = wire.call("memory.organize", wait=False)
    has_shape(answer, {"date": str, "changed": int, "core": CORE, "owed": int})
    assert wire.events(1)[0]["date"] == answer["date"]
    assert owed(wire, session)["turns"] == 0


RULES = """
[memory]
nightly = "off"
[[rules]]
match = { project = "/秘密" }
memory = "off"
[[rules]]
match = { project = "/projects" }
recall = "project"
[[rules]]
match = { session = "scratch-*" }
memory = "off"
"""


def test_rules_of_the_configuration_hold() -> None:
    """`off` stores nothing, by project or by session's name; `recall = "project"` keeps to it."""
    with serving(RULES) as daemon, daemon.wire() as wire:
        wire.call("session.open", session="hidden", project="/秘密")
        assert wire.append("hidden", "I live in Atlantis.")["new"] == 0
        assert wire.append("scratch-1", "I live in Atlantis.")["new"] == 0
        messages = [{"role": "user", "text": "I live in Atlantis."}]
        assert wire.call("turn.sync", session="scratch-2", messages=messages)["new"] == 0
        assert wire.call("status")["turns"] == 0
        wire.call("session.open", session="hidden", memory="on")
        assert wire.append("hidden", "I keep the key under the mat.")["new"] == 1
        wire.call("session.open", session="a", project="/projects/a")
        wire.call("session.open", session="b", project="/projects/b")
        wire.append("a", "I keep the key in the drawer.")
        wire.append("b", "I keep the key on the shelf.")
        wire.call("memory.flush")
        asked = {"query": "where is the key?", "session": "a", "kinds": ["turn"]}
        hits = wire.call("memory.recall", **asked)["hits"]
        assert {hit["session"] for hit in hits} == {"a"}
        for asked in ({"query": "where is the key?", "core": False}, {}):
            assert "shelf" in wire.call("memory.context", **asked, session="hidden")["text"]
            kept = wire.call("memory.context", **asked, session="a")["text"]
            assert "drawer" in kept
            assert "shelf" not in kept
            assert "mat" not in kept
        everything = wire.call("memory.recall", query="where is the key?", kinds=["turn"])["hits"]
        assert {hit["session"] for hit in everything} == {"a", "b", "hidden"}


def test_status_says_all_that_the_table_names(daemon: Daemon, wire: Wire) -> None:
    """One answer from which a person sees whether all is well."""
    answer = wire.call("status")
    shape = {
        "version": str,
        "uptime": float,
        "workspace": wire.call("hello")["workspace"],
        "revision": int,
        "sessions": int,
        "turns": int,
        "tips": int,
        "owed": {"turns": int, "tokens": int},
        "writer": str,
        "last_success": TEXT_OR_NULL,
        "last_failure": ({"at": str, "reason": str}, None),
        "what_to_do": [str],
        "next_night": TEXT_OR_NULL,
        "held": [str],
        "last_report": TEXT_OR_NULL,
        "subscribers": list,
        "transcripts": dict,
        "counter": str,
    }
    has_shape(answer, shape)
    assert answer["what_to_do"] == []
    assert answer["next_night"] is None
    if answer["last_success"] is not None:
        assert datetime.fromisoformat(answer["last_success"]).tzinfo == UTC
    assert Path(answer["workspace_path"]) == daemon.workspace


def test_the_python_of_the_interface(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """What INTERFACE prints for Python runs as it stands."""
    monkeypatch.setenv("TURNMARK_SOCKET", str(daemon.socket))
    from turnmark import connect

    async def run() -> tuple[object, Any]:
        async with connect() as memory:
            async with memory.subscribe(types=["TurnsWritten"]) as events:
                await memory.append("sess-1", role="user", text="I moved to Porto.")
                await memory.flush("sess-1")
                event = await anext(events)
            hits = await memory.recall("where do I live?", session="sess-1")
            return event, hits

    event, hits = asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert type(event).__name__ == "TurnsWritten"
    assert getattr(event, "session", None) == "sess-1"
    assert "Porto" in hits[0]["text"]


def test_the_blocking_python_of_the_interface(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`connect_sync` does the same for the rest, and finds the daemon through its state too."""
    monkeypatch.delenv("TURNMARK_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(daemon.root / "nothing"))
    monkeypatch.setenv("TURNMARK_STATE", str(daemon.state))
    with turnmark.connect_sync() as memory:
        answer = memory.append("sess-2", role="user", text="我搬到了里斯本。")
        assert answer["new"] == 1
        memory.flush("sess-2")
        assert "里斯本" in memory.recall("里斯本", session="sess-2")[0]["text"]


def test_the_first_event_comes_without_async_with(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`async for event in memory.subscribe(...)` subscribes by itself."""
    monkeypatch.setenv("TURNMARK_SOCKET", str(daemon.socket))

    async def run() -> object:
        async with turnmark.connect() as memory:
            async for event in memory.subscribe(types=["TipMoved"], since=0):
                return event
        return None

    assert type(asyncio.run(asyncio.wait_for(run(), SECONDS))).__name__ == "TipMoved"
