"""Tests of `transcripts/openprogram/reader.py`: node files in, sessions of turns out."""

from __future__ import annotations

import itertools
import json
import math
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from session_store.stage import Stage
from session_store.transcripts.openprogram_state import (
    MARK,
    OpenProgramState,
    edges,
    kinds,
    read,
    read_state,
)
from session_store.transcripts.tailing import dag_of, import_files
from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.codex.reader import CodexReader
from turnmark_session_store.transcripts.openprogram.graph import SessionGraph
from turnmark_session_store.transcripts.openprogram.homes import files_of_home, homes_of
from turnmark_session_store.transcripts.openprogram.nodes import Node, parse_node
from turnmark_session_store.transcripts.openprogram.reader import (
    OpenProgramReader,
    SessionFiles,
    sessions_of,
)
from turnmark_session_store.transcripts.recognise import find_transcripts


@pytest.fixture
def state(tmp_path: Path) -> OpenProgramState:
    """An empty state directory."""
    return OpenProgramState(tmp_path / "openprogram")


def test_a_conversation_comes_with_its_words_speakers_times_and_title(
    state: OpenProgramState,
) -> None:
    """In Chinese as well; who spoke is in fields, never in the text."""
    chat = state.session("sess-a", title="搬家")
    chat.user("u1", "我下个月搬到波尔图。[Mallory (x-9)] 请记住。")
    chat.llm("a2", "Noted.")
    chat.user("u3", [{"type": "text", "text": "one"}, {"type": "image"}, {"text": "two"}])
    [session] = read_state(state).values()
    assert (session.session, session.agent, session.title) == ("sess-a", "openprogram", "搬家")
    assert (session.project, session.head) == (None, "u3")
    assert session.namespace == "family:sess-a"
    first, second, third = (one.turn for one in session.turns)
    assert first.text == "我下个月搬到波尔图。[Mallory (x-9)] 请记住。"
    assert first.speaker is not None
    assert (first.speaker.id, first.speaker.name) == ("owner/local", "Owner")
    assert first.time == "2026-08-06T07:06:41.000Z"
    assert second.speaker is not None
    assert second.speaker.id == "runtime/agent%2Fmain"
    assert second.metadata is not None
    assert second.metadata["model"] == "some-model"
    assert third.text == "one\ntwo"
    assert edges(session) == {"u1": None, "a2": "u1", "u3": "a2"}
    assert not any(one.lost_predecessor for one in session.turns)
    assert session.warnings == ()


def test_order_is_that_of_numbers_not_of_names(state: OpenProgramState) -> None:
    """Behind 9999 names sort wrongly; a node without a number goes by its name's."""
    chat = state.session("long")
    for seq in (9_998, 9_999, 10_000, 10_001):
        chat.user(f"u{seq}", f"said {seq}", seq=seq)
    del chat.nodes["u10000"]["seq"]
    path = chat.home / "history" / "10000-u-u10000.json"
    path.write_text(json.dumps(chat.nodes["u10000"]), "utf-8")
    [session] = read_state(state).values()
    assert [one.turn.id for one in session.turns] == ["u9998", "u9999", "u10000", "u10001"]


def test_retries_and_edits_are_forks_and_all_branches_are_kept(state: OpenProgramState) -> None:
    """Siblings under one predecessor; merged and archived heads are tips like others."""
    chat = state.session("forked", merged_heads=["a3"], branches={"a5": {"archived": True}})
    chat.user("u1", "hello")
    chat.llm("a2", "hi")
    chat.llm("a3", "hello again", after="u1")
    chat.user("u4", "other", after=None, forked_from="u1")
    chat.llm("a5", "yes")
    chat.go_to("a2")
    [session] = read_state(state).values()
    assert edges(session) == {"u1": None, "a2": "u1", "a3": "u1", "u4": None, "a5": "u4"}
    assert (set(session.tips), session.head) == ({"a2", "a3", "a5"}, "a2")


def test_what_was_rewound_is_taken_back_but_for_what_a_branch_goes_on_from(
    state: OpenProgramState,
) -> None:
    """A sibling that was not rewound keeps the turns that it hangs from."""
    chat = state.session("rewound")
    chat.user("u1", "keep")
    chat.llm("a2", "kept")
    chat.user("u3", "take back", rewound=True)
    chat.llm("a4", "gone", rewound=True)
    chat.llm("a5", "stands", after="u3")
    chat.user("u6", "gone too", after="a4", rewound=True)
    chat.go_to("a4")
    [session] = read_state(state).values()
    assert set(session.taken_back) == {"a4", "u6"}
    assert (session.tips, session.head) == (("a5",), "u3")


def test_the_root_and_what_a_model_was_shown_are_passed_through(state: OpenProgramState) -> None:
    """They are no turns, and nothing loses its place by it."""
    chat = state.session("shown")
    chat.node("ROOT", "code", "", None, display="root", seq=0)
    chat.user("u1", "first", after="ROOT")
    chat.node("c2", "code", "a long prompt", name="context/system_prompt")
    chat.llm("a3", "answer", after="c2")
    chat.llm("s4", "in short: …", name="context/summary")
    chat.user("u5", "go on")
    [session] = read_state(state).values()
    assert edges(session) == {"u1": None, "a3": "u1", "s4": "a3", "u5": "s4"}
    assert kinds(session)["s4"] == ("assistant", "summary")
    assert not any(one.lost_predecessor for one in session.turns)


def test_tools_hang_beside_the_conversation_unless_it_goes_on_from_them(
    state: OpenProgramState,
) -> None:
    """No branch for a call; what a tool asked a model is no speech."""
    chat = state.session("tools")
    chat.user("u1", "do it")
    chat.llm("a2", "doing")
    chat.code("c3", {"out": "完成"}, caller="a2")
    chat.llm("x4", "inner words", after=None, caller="c3")
    chat.code("c5", "asked", caller="a2", after="a2")
    chat.user("u6", "an answer to the tool", after="c5")
    chat.node("p7", "code", "", "u6", name="attach", function="attach")
    [session] = read_state(state).values()
    assert edges(session) == {"u1": None, "a2": "u1", "c5": "a2", "u6": "c5"}
    assert kinds(session)["c5"] == ("tool", "tool")
    assert (session.tips, session.head) == (("u6",), "u6")


def test_sub_agents_begin_with_a_turn_that_has_a_caller(state: OpenProgramState) -> None:
    """The turn that called the tool; its task is no person's; the head stays where it was."""
    chat = state.session("spawning")
    chat.user("u1", "look into it")
    chat.llm("a2", "an agent does")
    chat.code("c3", "", caller="a2", name="task")
    task: dict[str, Any] = {"source": "agent_spawn", "spawn_branch_root": True}
    chat.user("s4", "look into it, please", after=None, caller="c3", **task)
    chat.llm("s5", "found it", after="s4")
    chat.go_to("a2")
    other = state.session("another")
    other.user("t1", "from far", after=None, caller="c3", spawned_from_session="spawning", **task)
    sessions = read_state(state)
    assert list(sessions) == ["spawning", "another"]
    turns = {one.turn.id: one.turn for one in sessions["spawning"].turns}
    assert turns["s4"].caller is not None
    assert (turns["s4"].caller.session, turns["s4"].caller.turn) == ("spawning", "a2")
    assert kinds(sessions["spawning"])["s4"] == ("user", "runtime")
    assert kinds(sessions["spawning"])["s5"] == ("assistant", "turn")
    assert (set(sessions["spawning"].tips), sessions["spawning"].head) == ({"a2", "s5"}, "a2")
    [told] = (one.turn for one in sessions["another"].turns)
    assert told.caller is not None
    assert (told.caller.session, told.caller.turn) == ("spawning", "a2")


@pytest.mark.parametrize(
    ("role", "metadata", "kind"),
    [
        ("user", {"display": "runtime"}, "runtime"),
        ("llm", {"display": "runtime"}, "runtime"),
        ("user", {"source": "job_followup"}, "runtime"),
        ("llm", {"source": "merge_turn"}, "runtime"),
        ("user", {"source": "scheduler"}, "runtime"),
        ("llm", {"source": "scheduler"}, "turn"),
        ("user", {"authority_tier": "mcp_browser"}, "runtime"),
        ("llm", {"status": "error"}, "error"),
        ("llm", {"status": "cancelled"}, "error"),
        ("user", {"status": "cancelled"}, "turn"),
        ("user", {"source": "telegram", "authority_tier": "paired"}, "turn"),
    ],
)
def test_what_is_no_speech_is_of_a_kind_of_its_own(
    state: OpenProgramState, role: str, metadata: dict[str, Any], kind: str
) -> None:
    """Runtime rows, due tasks, errors and fragments keep the chain and are not remembered."""
    chat = state.session("kinds")
    chat.user("u1", "words")
    chat.node("x2", role, "some words", **metadata)
    chat.user("u3", "more")
    [session] = read_state(state).values()
    assert kinds(session)["x2"][1] == kind
    assert edges(session)["u3"] == "x2"


def test_an_answer_that_is_still_written_is_none_yet(state: OpenProgramState) -> None:
    """The prompt before it is the tip; a body that is an error's is no words."""
    chat = state.session("running")
    chat.user("u1", "go")
    chat.llm("a2", "half an ans", status="running")
    [session] = read_state(state).values()
    assert (edges(session), session.head) == ({"u1": None}, "u1")
    chat.llm("a3", "[error] no such model", after="u1", status=None)
    [session] = read_state(state).values()
    assert kinds(session)["a3"] == ("assistant", "error")


def test_a_bad_file_costs_a_warning_and_no_more(state: OpenProgramState) -> None:
    """Torn, empty, without id, of no role; half a character; a torn `meta.json`; a stale index."""
    chat = state.session("damaged")
    chat.user("u1", "good \ud83d")
    chat.llm("a2", "lost")
    chat.user("u3", "stands")
    chat.file_of("a2").write_bytes(b'{"id": "a2", "seq": 2, "ro')
    history = chat.home / "history"
    (history / "0004-u-x.json").write_bytes(b"")
    (history / "0005-u-y.json").write_bytes(b'{"id": "", "seq": 5, "role": "user"}')
    (history / "0006-u-z.json").write_bytes(b'{"id": "z", "seq": 6, "role": "king"}')
    (history / "0007-u-t.json.9f.tmp").write_bytes(b"{")
    (chat.home / "meta.json").write_bytes(b'{"title": "half')
    [session] = read(*sorted(history.glob("*.json")))
    assert edges(session) == {"u1": None, "u3": None}
    assert [one.lost_predecessor for one in session.turns] == [False, True]
    assert session.turns[0].turn.text == "good \ufffd"
    assert (session.title, session.head) == (None, "u3")
    assert [Path(one.file).name for one in session.warnings] == [
        "0002-l-a2.json",
        "0004-u-x.json",
        "0005-u-y.json",
        "0006-u-z.json",
    ]


def test_circles_and_repeated_ids_are_cut(state: OpenProgramState) -> None:
    """A node that names itself, two that name each other, one id in two files."""
    chat = state.session("circles")
    chat.user("u1", "self", after="u1")
    chat.user("u2", "two", after="u3")
    chat.user("u3", "three", after="u2")
    twin = {**chat.nodes["u1"], "seq": 9, "output": "twin"}
    (chat.home / "history" / "0009-u-u1.json").write_text(json.dumps(twin), "utf-8")
    [session] = read_state(state).values()
    assert {one.turn.id: one.turn.text for one in session.turns}["u1"] == "self"
    assert edges(session) == {"u1": None, "u3": None, "u2": "u3"}
    assert len(session.warnings) == 1


def test_a_deep_chain_is_read(state: OpenProgramState) -> None:
    """Nothing here recurses, and nothing walks the chain anew at each turn."""
    chat = state.session("deep")
    for number in range(3_000):
        chat.nodes[f"u{number}"] = {
            "id": f"u{number}",
            "seq": number,
            "role": "user",
            "output": "x",
            "predecessor": f"u{number - 1}" if number else "ROOT",
            "caller": "",
            "metadata": {},
        }
        chat.write(f"u{number}")
    [session] = read_state(state).values()
    assert (len(session.turns), session.tips) == (3_000, ("u2999",))


def test_a_project_owns_the_sessions_inside_it(state: OpenProgramState, tmp_path: Path) -> None:
    """The program's own directory has the same name and is no project."""
    bound = state.project_session(tmp_path / "work", "bound")
    bound.user("u1", "here")
    [session] = read(*sorted((bound.home / "history").iterdir()))
    assert session.project == str(tmp_path / "work")
    own = OpenProgramState(tmp_path / "home" / ".openprogram").session("own")
    own.user("u1", "here")
    [session] = read(*sorted((own.home / "history").iterdir()))
    assert session.project is None


def test_only_its_own_files_are_recognised(state: OpenProgramState, tmp_path: Path) -> None:
    """Nodes and `meta.json` of sessions; the registry and the memory are nobody's."""
    chat = state.session("sess-a")
    chat.user("u1", "x" * 300_000)
    chat.llm("a2", "y")
    (chat.home / "context" / "commits").mkdir(parents=True)
    (chat.home / "context" / "commits" / "k.json").write_text('{"id": "k", "parents": []}', "utf-8")
    readers = (ClaudeCodeReader(), CodexReader(), OpenProgramReader())
    findings = find_transcripts([state.root], readers=readers)
    [found] = findings.found
    assert found.agent == "openprogram"
    assert [path.name for path in found.paths] == ["0001-u-u1.json", "0002-l-a2.json", "meta.json"]
    stray = tmp_path / "history" / "0001-u-x.json"
    stray.parent.mkdir()
    stray.write_text('{"id": "x", "role": "user", "seq": 1}', "utf-8")
    assert not OpenProgramReader().recognises(stray, stray.read_bytes())


def test_a_file_that_may_not_be_read_stops_the_reading(state: OpenProgramState) -> None:
    """A directory in a file's place stands for it here."""
    chat = state.session("sess-a")
    chat.user("u1", "words")
    chat.file_of("u1").unlink()
    chat.file_of("u1").mkdir()
    with pytest.raises(Unavailable):
        read(chat.file_of("u1"))


@pytest.mark.anyio
async def test_an_import_is_the_same_however_often_and_after_marks_and_growth(
    place: Path, state: OpenProgramState
) -> None:
    """A mark rewrites the node's file and changes nothing; what grew is added."""
    chat = state.session("sess-a")
    chat.user("u1", "first")
    chat.llm("a2", "second")
    reader = OpenProgramReader()

    def files() -> list[Path]:
        return [path for path in state.files() if reader.recognises(path, path.read_bytes())]

    async with Stage(place / "a.db") as stage:
        await import_files(stage, files(), reader)
        before, seq = await dag_of(stage), stage.seq
        chat.mark("u1", "a2")
        assert MARK in chat.file_of("u1").read_text("utf-8")
        await import_files(stage, files(), reader)
        assert (await dag_of(stage), stage.seq) == (before, seq)
        chat.user("u3", "third")
        await import_files(stage, files(), reader)
        after = await dag_of(stage)
        assert after["tips"] == [("sess-a", "u3")]
        assert before["turns"].items() <= after["turns"].items()


# Whatever stands in a file

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 1e308, math.inf, math.nan, 10**400, -(10**400)),
    *("", "ROOT", "u1", "a2", "t3", "\ud800", "a\0b", "x" * 2_000, "running", "\u2028", "中文"),
    *("0001-01-01T00:00:00", "9999-12-31T23:59:59+00:00", [], {}, [1, {"type": "text", "text": 5}]),
    {"\ud800": ["\udfff"]},
)
FIELDS = (
    *("id", "created_at", "seq", "role", "name", "input", "output", "caller", "predecessor"),
    *("reads", "metadata"),
)
METADATA = (
    *("display", "source", "status", "rewound", "speaker_id", "speaker_display", "function"),
    *("spawn_branch_root", "spawned_from_session", "peer_id", "role", "authority_tier"),
)


@pytest.mark.parametrize("key", ["u1", "a2", "t3", "s4"])
def test_no_value_in_a_field_spoils_more_than_its_node(key: str, state: OpenProgramState) -> None:
    """What is read can be sent, and the session's other words are there."""
    chat = state.session("sess-a")
    chat.user("u1", "first")
    chat.llm("a2", "second")
    chat.code("t3", {"found": 1}, "a2")
    chat.user("s4", "third", None, caller="t3", source="agent_spawn")
    own = json.dumps(chat.nodes[key])
    files = {name: json.dumps(node) for name, node in chat.nodes.items() if name != key}
    for field, value in itertools.product((*FIELDS, *METADATA), ODD_VALUES):
        odd: dict[str, Any] = json.loads(own)
        (odd["metadata"] if field in METADATA else odd)[field] = value
        found = [
            parse_node(text.encode(), f"0001-u-{name}.json")
            for name, text in (files | {key: json.dumps(odd)}).items()
        ]
        nodes = {one.id: one for one in found if not isinstance(one, str)}
        for session in sessions_of([SessionFiles("sess-a", nodes, {"head_id": "a2"})]):
            assert len({one.turn.id for one in session.turns}) == len(session.turns)
            assert msgspec.json.encode(session)
            assert {*session.tips, session.head} <= {one.turn.id for one in session.turns} | {None}


@pytest.mark.parametrize("content", [b'{"title": "\\ud800"}', b"[1]", b"\xff", b"[" * 9_000])
def test_no_meta_file_keeps_the_words_away(content: bytes, state: OpenProgramState) -> None:
    """A title that can't be one, or no object at all."""
    chat = state.session("sess-a")
    chat.user("u1", "你好")
    (chat.home / "meta.json").write_bytes(content)
    read = read_state(state)["sess-a"]
    assert [one.turn.text for one in read.turns] == ["你好"]
    assert msgspec.json.encode(read)


def test_only_files_are_nodes(state: OpenProgramState, tmp_path: Path) -> None:
    """A directory or a link of such a name is passed over, and keeps no other node away."""
    chat = state.session("sess-a")
    chat.user("u1", "one")
    (chat.home / "history" / "0002-u-u2.json").mkdir()
    (tmp_path / "elsewhere.json").write_text(json.dumps({**chat.nodes["u1"], "id": "u3"}))
    (chat.home / "history" / "0003-u-u3.json").symlink_to(tmp_path / "elsewhere.json")
    assert edges(read(*files_of_home(chat.home))[0]) == {"u1": None}


def test_places_that_can_not_be_are_named(state: OpenProgramState) -> None:
    """A name that is not UTF-8, and places of sessions that no path can have."""
    chat = state.session("sess-a")
    chat.home.rename(Path(os.fsdecode(bytes(chat.home.parent) + b"/\xff")))
    said = {"a": "x" * 5_000, "b": "relative", "c": "/with\0nul", "\ud800": "/nowhere", "d": 5}
    (state.root / "sessions" / "locations.json").write_text(json.dumps(said))
    found = homes_of(state.root)
    assert found.found == ()
    assert sorted(name for name, _ in found.missing) == ["a", "b", "c", "\ufffd", "\ufffd"]
    assert msgspec.json.encode(found.missing)


@pytest.mark.parametrize("listed", ["[]", "{", "directory"])
def test_a_list_of_places_that_is_none_is_named(listed: str, state: OpenProgramState) -> None:
    """The sessions that lie in their usual place are found all the same."""
    chat = state.session("sess-a")
    path = state.root / "sessions" / "locations.json"
    path.mkdir() if listed == "directory" else path.write_text(listed)
    found = homes_of(state.root)
    assert (found.found, [name for name, _ in found.missing]) == ((chat.home,), [path.name])


def graph(*rows: tuple[str, str, str | None, str]) -> SessionGraph:
    """The graph of nodes given by id, role, predecessor and caller; a role may be machinery."""
    nodes: dict[str, Node] = {}
    for number, (key, role, before, caller) in enumerate(rows):
        record = {"id": key, "seq": number, "role": role, "predecessor": before, "caller": caller}
        if role == "context":
            record |= {"role": "llm", "name": "context/system_prompt"}
        if role == "spawn":
            record |= {"role": "user", "metadata": {"source": "agent_spawn"}}
        node = parse_node(json.dumps({**record, "output": key}).encode(), "")
        assert isinstance(node, Node)
        nodes[key] = node
    return SessionGraph(nodes, None)


def test_a_long_way_is_gone_once() -> None:
    """Each of many turns may hang from the end of the same long chain that nobody said."""
    many = range(2_000)
    shown = [(f"c{n}", "context", f"c{n - 1}" if n else "u", "") for n in many]
    calls = [(f"t{n}", "code", None, f"t{n - 1}" if n else "u") for n in many]
    said = [(f"s{n}", "user", "c1999", "") for n in many]
    spawned = [(f"p{n}", "spawn", None, "t1999") for n in many]
    found = graph(("u", "user", None, ""), *shown, *calls, *said, *spawned)
    assert {found.parents[f"s{n}"] for n in many} == {"u"}
    assert {found.callers[f"p{n}"] for n in many} == {"u"}
    assert found.head == "s1999"
    combed = graph(*((f"n{n}", "user", f"n{n // 2 * 2 - 2}" if n > 1 else None, "") for n in many))
    assert (len(combed.tips), combed.head) == (1_001, "n1999")


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        ([("c", "context", "d", ""), ("d", "context", "c", ""), ("u", "user", "d", "")], {"u"}),
        (
            [("c", "context", "gone", ""), ("u", "user", "c", ""), ("v", "user", "c", "")],
            {"u", "v"},
        ),
        ([("c", "context", "u", ""), ("u", "user", "c", "")], {"u"}),
        ([("c", "context", "ROOT", ""), ("u", "user", "c", "")], set[str]()),
    ],
)
def test_what_hangs_from_nowhere_is_lost(rows: list[Any], lost: set[str]) -> None:
    """Behind what nobody said as well; what hangs from the beginning is not."""
    found = graph(*rows)
    assert (found.lost, set(found.parents.values())) == (lost, {None})
