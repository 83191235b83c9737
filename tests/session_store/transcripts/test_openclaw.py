"""Tests of `transcripts/openclaw/` on databases."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from session_store.transcripts.openclaw_gateway import (
    GENERATED,
    MAIN,
    Gateway,
    line_to,
    said,
    sessions_in,
    text_of_turns,
)
from session_store.transcripts.zstd_frames import compressed
from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts.openclaw.reader import OpenClawReader
from turnmark_session_store.transcripts.openclaw.tables import NAME
from turnmark_session_store.transcripts.reader import ReadSession


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    """The program, with an empty database."""
    return Gateway(tmp_path / "agents" / "main" / "agent" / NAME)


def _only(gateway: Gateway) -> ReadSession:
    (found,) = sessions_in(gateway.path).values()
    return found


def test_the_generated_database_gives_five_rows_of_a_user_and_one_is_a_command() -> None:
    """The expected counts: what a released OpenClaw wrote."""
    (read,) = sessions_in(GENERATED).values()
    users = [one.turn for one in read.turns if one.turn.role == "user"]
    assert [turn.text for turn in users if turn.kind == "turn"] == [
        "My name is Robin and I moved from Oslo to Bergen last month.",
        "Please list files here.",
        "I prefer two spaces.",
        "Which city do I live in?",
    ]
    assert [turn.text for turn in users if turn.kind == "runtime"] == ["/new"]
    assert len(read.turns) == 10
    assert read.session == "79bdeefb-fc44-47dd-93a7-14d226357979"
    assert read.project == "/home/user/.openclaw/workspace"
    assert read.tips == (read.turns[-1].turn.id,) == (read.head,)
    assert users[0].time == "2026-11-29T21:11:49.748Z"  # when it came in, not when it was stored


def test_entries_without_words_only_carry_the_chain(gateway: Gateway) -> None:
    """Tools, thoughts and the program's notes are collapsed."""
    gateway.begin()
    gateway.note()
    gateway.user("I moved to Bergen.")
    gateway.tool()
    gateway.answer("How is it?")
    gateway.note()
    gateway.user("我喜欢咖啡。")
    read = _only(gateway)
    assert line_to(read, read.head) == ["I moved to Bergen.", "How is it?", "我喜欢咖啡。"]
    assert read.namespace == "openclaw"


def test_a_rewind_takes_back_what_came_after(gateway: Gateway) -> None:
    """A window of reason `rewind` is a record of a take-back, and the session goes on."""
    first = gateway.begin()
    gateway.user("I live in Bergen.")
    gateway.answer("Noted.")
    again = gateway.user("I prefer tabs.")
    gateway.answer("Tabs it is.")
    gateway.rewind(MAIN, again)
    read = _only(gateway)
    assert read.session == first
    assert text_of_turns(read, read.taken_back) == ["I prefer tabs.", "Tabs it is."]
    assert line_to(read, read.head) == ["I live in Bergen.", "Noted."]
    gateway.user("I prefer two spaces.")
    read = _only(gateway)
    assert text_of_turns(read, read.taken_back) == ["I prefer tabs.", "Tabs it is."]
    assert read.tips == (read.head,)
    assert line_to(read, read.head) == ["I live in Bergen.", "Noted.", "I prefer two spaces."]


def test_a_rewind_to_the_start_leaves_another_root(gateway: Gateway) -> None:
    """Everything that was said is taken back, and nothing is live until more is said."""
    gateway.begin()
    first = gateway.user("I live in Bergen.")
    gateway.answer("Noted.")
    gateway.rewind(MAIN, first)
    read = _only(gateway)
    assert (read.tips, read.head) == ((), None)
    assert len(read.taken_back) == 2
    gateway.user("I live in Oslo.")
    read = _only(gateway)
    assert line_to(read, read.head) == ["I live in Oslo."]
    assert [one.predecessor for one in read.turns if not one.lost_predecessor].count(None) == 2


def test_rewinds_of_rewinds_take_back_each_their_own(gateway: Gateway) -> None:
    """Older records of where to go on are copied into each newer window."""
    gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    second = gateway.user("two")
    gateway.rewind(MAIN, second)
    third = gateway.user("three")
    gateway.answer("b")
    gateway.rewind(MAIN, third)
    gateway.user("four")
    read = _only(gateway)
    assert text_of_turns(read, read.taken_back) == ["two", "three", "b"]
    assert line_to(read, read.head) == ["one", "a", "four"]


def test_a_fork_keeps_alive_what_its_origin_took_back(gateway: Gateway) -> None:
    """A turn is taken back only where no live branch of any session reaches it."""
    gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    second = gateway.user("two")
    gateway.answer("b")
    third = gateway.user("three")
    gateway.fork(MAIN, third, "agent:main:fork")
    gateway.user("other", "agent:main:fork")
    gateway.rewind(MAIN, second)
    reads = sessions_in(gateway.path)
    main, fork = reads.values()
    assert text_of_turns(main, main.taken_back) == ["three"]
    assert said(fork) == ["other"]
    assert fork.forked_from is not None
    assert text_of_turns(main, [fork.forked_from.turn or ""]) == ["b"]


def test_a_switch_moves_the_head_and_takes_nothing_back(gateway: Gateway) -> None:
    """Both branches are live, and the words that were rewound are so again."""
    gateway.begin()
    gateway.user("one")
    left = gateway.answer("a")
    second = gateway.user("two")
    gateway.rewind(MAIN, second)
    gateway.user("three")
    gateway.switch(MAIN, second)
    read = _only(gateway)
    assert read.taken_back == ()
    assert text_of_turns(read, read.tips) == ["two", "three"]
    assert read.head == second
    assert left in [one.turn.id for one in read.turns]


def test_a_second_prompt_under_one_entry_is_a_fork(gateway: Gateway) -> None:
    """A record of where to go on, without a rewind, takes nothing back."""
    gateway.begin()
    gateway.user("one")
    answer = gateway.answer("a")
    gateway.user("two")
    leaf = {"type": "leaf", "id": "12ab34cd", "parentId": answer, "targetId": answer}
    gateway.append(leaf)
    read = _only(gateway)
    assert read.head == answer
    gateway.leaves[gateway.current[MAIN]] = answer
    gateway.user("three")
    read = _only(gateway)
    assert read.taken_back == ()
    assert text_of_turns(read, read.tips) == ["two", "three"]


def test_a_leaf_beside_the_conversation_moves_nothing(gateway: Gateway) -> None:
    """Mode `side` notes something, and a leaf whose target is nowhere is none."""
    gateway.begin()
    first = gateway.user("one")
    last = gateway.answer("a")
    side = {"type": "leaf", "id": "s", "parentId": last, "targetId": first, "appendMode": "side"}
    gateway.append(side)
    gateway.append({"type": "leaf", "id": "t", "parentId": last, "targetId": "nowhere"})
    assert _only(gateway).head == last


def test_a_reset_begins_a_new_session_and_no_fork(gateway: Gateway) -> None:
    """Daily, idle or asked for: chained by the metadata of the first turn alone."""
    first = gateway.begin()
    gateway.user("I live in Bergen.")
    second = gateway.reset()
    gateway.user("I like tea.")
    third = gateway.reset(reason="rollover")
    gateway.user("我喜欢茶。")
    reads = sessions_in(gateway.path)
    assert list(reads) == [first, second, third]
    assert [read.forked_from for read in reads.values()] == [None, None, None]
    metadata = [read.turns[0].turn.metadata or {} for read in reads.values()]
    assert [one.get("previous_session") for one in metadata] == [None, first, second]
    assert all(read.turns[0].predecessor is None for read in reads.values())


def test_a_window_may_have_no_header(gateway: Gateway) -> None:
    """A reset once left them out."""
    gateway.begin(header=False)
    gateway.user("I live in Bergen.")
    read = _only(gateway)
    assert (said(read), read.project) == (["I live in Bergen."], None)


def test_a_compaction_goes_on_in_the_same_session(gateway: Gateway) -> None:
    """What is kept is written again behind the summary, and said once."""
    first = gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    gateway.user("two")
    gateway.answer("b")
    gateway.compact()
    gateway.user("three")
    read = _only(gateway)
    assert read.session == first
    assert line_to(read, read.head) == ["one", "a", "two", "b", "three"]
    assert len(read.turns) == 5


def test_entries_that_were_written_again_are_the_same_turns(gateway: Gateway) -> None:
    """Shortening what a tool gave back writes all that follows again, under other ids."""
    gateway.begin()
    gateway.user("one")
    result = gateway.tool()
    gateway.answer("a")
    gateway.user("two")
    gateway.shorten(MAIN, result)
    gateway.answer("b")
    read = _only(gateway)
    assert said(read) == ["one", "a", "two", "b"]
    assert read.tips == (read.head,)
    assert line_to(read, read.head) == ["one", "a", "two", "b"]


def test_a_forks_copies_are_its_origins_turns(gateway: Gateway) -> None:
    """Also where the fork stands alone: then it says them itself, and names its origin."""
    origin = gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    last = gateway.user("two")
    fork = gateway.fork(MAIN, last, "agent:main:fork")
    gateway.user("other", "agent:main:fork")
    reads = sessions_in(gateway.path)
    assert [said(read) for read in reads.values()] == [["one", "a", "two"], ["other"]]
    gateway.run("DELETE FROM session_windows WHERE session_id = ?", origin)
    read = _only(gateway)
    assert (read.session, said(read)) == (fork, ["one", "a", "other"])
    assert read.forked_from is not None
    assert read.forked_from.session == origin
    assert text_of_turns(read, [read.forked_from.turn or ""]) == ["a"]


def test_a_sub_agent_is_no_person(gateway: Gateway) -> None:
    """Its task hangs from the turn that spawned it, which the tool's result names."""
    gateway.begin()
    gateway.user("one")
    asked = gateway.answer("I'll ask somebody.")
    child = "agent:main:subagent:1"
    gateway.tool(details={"status": "accepted", "childSessionKey": child})
    gateway.begin(child, spawned_by=MAIN, created_via="spawn")
    gateway.user("Count the files.", child)
    gateway.answer("There are 4.", child)
    gateway.answer("4 files.")
    main, agent = sessions_in(gateway.path).values()
    task, answer = agent.turns
    assert (task.turn.kind, answer.turn.kind) == ("runtime", "turn")
    assert task.turn.caller == agent.caller
    assert agent.caller is not None
    assert (agent.caller.session, agent.caller.turn) == (main.session, asked)
    assert agent.forked_from is None


def test_a_sub_agent_that_no_record_names_was_spawned_by_what_was_last(gateway: Gateway) -> None:
    """Then the time tells, of what stands in the conversation that spawned it."""
    gateway.begin()
    gateway.user("before")
    gateway.reset()
    asked = gateway.user("one")
    gateway.begin("agent:main:subagent:1", spawned_by=MAIN)
    gateway.user("Count the files.", "agent:main:subagent:1")
    gateway.answer("4 files.")
    *_, agent = sessions_in(gateway.path).values()
    assert agent.caller is not None
    assert agent.caller.turn == asked


def test_a_sub_agent_that_was_given_what_was_said_begins_with_its_task(gateway: Gateway) -> None:
    """The copies stay with the session that said them, and the task has a caller."""
    gateway.begin()
    asked = gateway.user("one")
    child = "agent:main:subagent:1"
    gateway.begin(child, spawned_by=MAIN)
    for event in gateway.path_to(gateway.current[MAIN], asked):
        gateway.append(event, child)
    gateway.user("Count the files.", child)
    gateway.answer("4 files.", child)
    main, agent = sessions_in(gateway.path).values()
    assert (said(main), said(agent)) == (["one"], ["Count the files.", "4 files."])
    assert (agent.turns[0].predecessor, agent.turns[0].lost_predecessor) == (None, False)
    assert agent.turns[0].turn.caller == agent.caller
    assert (agent.tips, agent.head) == ((agent.turns[-1].turn.id,), agent.turns[-1].turn.id)


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("agent:main:cron:job-1", {}),
        ("agent:main:report", {"created_via": "cron"}),
        ("agent:main:main:heartbeat", {}),
        ("hook:7b7b", {}),
        ("agent:main:mail", {"hook_external_content_source": "gmail"}),
        ("agent:main:subagent:9", {}),
    ],
)
def test_what_programs_and_third_parties_write_is_no_persons(
    gateway: Gateway, key: str, columns: dict[str, Any]
) -> None:
    """Jobs, hooks and mail; a message that says that a person wrote it is one all the same."""
    gateway.begin(key, **columns)
    gateway.user("Summarise the mail.", key)
    gateway.answer("There is none.", key)
    gateway.user("Thanks!", key, provenance={"kind": "external_user"})
    read = _only(gateway)
    assert [one.turn.kind for one in read.turns] == ["runtime", "turn", "turn"]
    external = (read.turns[0].turn.metadata or {}).get("external")
    assert external == columns.get("hook_external_content_source")


@pytest.mark.parametrize("key", ["agent:cron:main", "agent:main:telegram:group:hook:7", "main"])
def test_an_agent_may_be_called_what_it_likes(gateway: Gateway, key: str) -> None:
    """Only the part of a key that says what began the conversation is looked at."""
    gateway.begin(key)
    gateway.user("hi", key)
    assert _only(gateway).turns[0].turn.kind == "turn"


def test_who_spoke_stands_in_a_field_of_the_message(gateway: Gateway) -> None:
    """In groups by id; a direct chat names the one person that it is with."""
    gateway.begin("agent:main:telegram:group:-1", channel="telegram", chat_type="group")
    sender = {"senderId": "84", "senderName": "Dana", "senderUsername": "dana"}
    gateway.user("Dana: hi", "agent:main:telegram:group:-1", __openclaw=sender)
    gateway.user("hi", "agent:main:telegram:group:-1", __openclaw={"senderIsOwner": True})
    gateway.insert(
        "conversations",
        conversation_id="c1",
        channel="telegram",
        account_id="a",
        kind="direct",
        peer_id="85",
        delivery_target="85",
        label="罗宾",
        created_at=0,
        updated_at=0,
    )
    gateway.begin("agent:main:telegram:85", primary_conversation_id="c1")
    gateway.user("你好", "agent:main:telegram:85")
    gateway.begin(primary_conversation_id="c1", session_scope="shared-main")
    gateway.user("I'm not Robin.")
    group, direct, shared = sessions_in(gateway.path).values()
    dana, owner = (one.turn.speaker for one in group.turns)
    assert dana is not None
    assert (dana.id, dana.name, owner) == ("84", "Dana", None)
    robin = direct.turns[0].turn.speaker
    assert robin is not None
    assert (robin.id, robin.name) == (None, "罗宾")
    assert shared.turns[0].turn.speaker is None


def test_a_session_that_was_taken_out_of_memory_is_not_read(gateway: Gateway) -> None:
    """Its turns are taken back wherever they are already; no word of them is given out."""
    gateway.begin()
    secret = gateway.user("My secret.")
    gateway.answer("Noted.")
    before = _only(gateway)
    gateway.insert(
        "memory_session_tombstones",
        session_id=gateway.current[MAIN],
        agent_id="main",
        reason="forgotten",
        created_at=0,
    )
    read = _only(gateway)
    assert (read.turns, read.tips, read.head) == ((), (), None)
    assert list(read.taken_back) == [one.turn.id for one in before.turns]
    assert secret in read.taken_back


def test_what_another_session_holds_as_well_stays(gateway: Gateway) -> None:
    """A fork of a session that was taken out of memory says what it copied itself."""
    gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    last = gateway.user("two")
    gateway.fork(MAIN, last, "agent:main:fork")
    gateway.user("other", "agent:main:fork")
    gateway.insert(
        "memory_session_tombstones",
        session_id=gateway.current[MAIN],
        agent_id="main",
        reason="forgotten",
        created_at=0,
    )
    main, fork = sessions_in(gateway.path).values()
    assert main.taken_back == (last,)
    assert said(fork) == ["one", "a", "other"]
    assert fork.forked_from is None or fork.forked_from.session == main.session


def test_short_ids_are_told_apart_by_their_times(gateway: Gateway) -> None:
    """Two transcripts may draw the same 8 digits; copies keep their time as well."""
    gateway.begin()
    for number, key in enumerate((MAIN, "agent:main:other")):
        if key != MAIN:
            gateway.begin(key)
        event = {"type": "message", "id": "0a1b2c3d", "parentId": None}
        message = {"role": "user", "content": f"number {number}"}
        at = {"timestamp": f"2026-08-09T10:00:0{number}.000Z"}
        gateway.append({**event, **at, "message": message}, key)
    ids = [one.turns[0].turn.id for one in sessions_in(gateway.path).values()]
    assert ids == ["0a1b2c3d.1786269600000", "0a1b2c3d.1786269601000"]


def test_old_entries_without_parents_follow_each_other(gateway: Gateway) -> None:
    """The first versions were lists."""
    gateway.begin()
    for number, role in enumerate(("user", "assistant", "user")):
        content = [{"type": "text", "text": f"number {number}"}]
        gateway.append({"type": "message", "message": {"role": role, "content": content}})
    read = _only(gateway)
    assert line_to(read, read.head) == ["number 0", "number 1", "number 2"]


def test_a_broken_graph_costs_no_turn(gateway: Gateway) -> None:
    """Missing, own and circular parents, an id twice, and a child before its parent."""
    session = gateway.begin()
    message = {"role": "user", "content": "hi"}

    def add(entry: str, parent: str | None) -> None:
        text = {**message, "content": entry}
        gateway.append({"type": "message", "id": entry, "parentId": parent, "message": text})

    def key(entry: str) -> str:
        return f"{entry}.{session}"

    add("root", session)
    add("lost", "call_1")
    add("self", "self")
    add("early", "late")
    add("late", "root")
    add("one", "two")
    add("two", "one")
    gateway.append({"type": "message", "id": "root", "parentId": "late", "message": message})
    read = _only(gateway)
    above = {one.turn.id: one.predecessor for one in read.turns}
    assert above == {
        key("root"): None,
        key("lost"): None,
        key("self"): None,
        key("early"): key("late"),
        key("late"): key("root"),
        key("one"): key("two"),
        key("two"): None,
    }
    assert [one.turn.id for one in read.turns if one.lost_predecessor] == [key("lost")]


def test_rows_that_are_no_entries_are_counted_and_passed_over(gateway: Gateway) -> None:
    """Broken JSON, what is no object, strange types and times; the chain holds where it is told."""
    session = gateway.begin()
    gateway.user("one")
    gateway.user("two")
    last = gateway.user("three")
    gateway.run("UPDATE transcript_events SET event_json = '{\"a' WHERE seq = 2")
    gateway.append({"type": "message", "id": "x", "parentId": last, "timestamp": 5e246})
    gateway.append({"type": "surprise", "id": 7, "message": {"role": "user", "content": "no"}})
    gateway.append({"type": "message", "id": "y", "parentId": "x", "message": ["no"]})
    gateway.run(
        "INSERT INTO transcript_events (session_id, seq, event_json, created_at)"
        " VALUES (?, 90, '[1]', 0), (?, 91, '\"\\ud83d\"', 0)",
        session,
        session,
    )
    read = _only(gateway)
    assert line_to(read, read.head) == ["one", "three"]
    assert [(one.line, one.reason) for one in read.warnings] == [
        (2, "not JSON"),
        (90, "JSON, but no object"),
        (91, "JSON, but no object"),
    ]


@pytest.mark.parametrize("has_decoder", [True, False])
def test_compressed_rows_are_read_where_a_decoder_is_installed(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, has_decoder: bool
) -> None:
    """Without one they are counted, and keep their place in the chain."""
    gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    gateway.user("two")
    text = gateway.value("SELECT event_json FROM transcript_events WHERE seq = 2").encode()
    gateway.run(
        "UPDATE transcript_events SET event_json = NULL, event_zstd = ?, event_utf8_bytes = ?,"
        " navigation_json = ? WHERE seq = 2",
        compressed(text),
        len(text),
        _NAVIGATION,
    )
    if not has_decoder:
        for name in ("compression.zstd", "backports.zstd"):
            monkeypatch.setitem(sys.modules, name, None)
    read = _only(gateway)
    assert line_to(read, read.head) == ["one", *(["a"] if has_decoder else []), "two"]
    assert len(read.warnings) == (0 if has_decoder else 1)


# What the program notes beside a compressed entry; its schema insists on it.
_NAVIGATION = json.dumps(
    {
        "version": 1,
        "report": {"kind": "canonical"},
        **{name: {} for name in ("navigation", "reset", "model")},
        **dict.fromkeys(("modelBytes", "modelWithoutCheckpointBytes"), 0),
        "withoutCustomDataBytes": 0,
    }
)


def test_strange_characters_stay_or_are_replaced(gateway: Gateway) -> None:
    """NUL and U+2028 stand inside strings; half a pair can't be encoded, a bad byte not decoded."""
    gateway.begin()
    gateway.user("a\u2028b\0c")
    gateway.append(
        {"type": "message", "id": "s", "parentId": None, "message": {"role": "user", "content": ""}}
    )
    half = (
        '{"type":"message","id":"s","parentId":null,"message":{"role":"user","content":"x\\ud83d"}}'
    )
    gateway.run("UPDATE transcript_events SET event_json = ? WHERE seq = 2", half)
    assert said(_only(gateway)) == ["a\u2028b\0c", "x\ufffd"]
    bad = b'{"type":"message","id":"s","parentId":null,"message":{"role":"user","content":"x\xff"}}'
    gateway.run("UPDATE transcript_events SET event_json = CAST(? AS TEXT) WHERE seq = 2", bad)
    assert said(_only(gateway)) == ["a\u2028b\0c", "x\ufffd"]


def test_a_long_chain_and_a_large_entry_are_read(gateway: Gateway) -> None:
    """5,000 entries behind each other, and one of many megabytes with a picture in it."""
    gateway.begin()
    for _ in range(2_500):
        gateway.run("SAVEPOINT many")
        gateway.user("u")
        gateway.note()
        gateway.run("RELEASE many")
    picture = {"type": "image", "data": "A" * 20_000_000, "mimeType": "image/png"}
    gateway.user("", content=[{"type": "text", "text": "look"}, picture])
    read = _only(gateway)
    assert len(read.turns) == 2_501
    assert said(read)[-1] == "look"
    assert len(read.tips) == 1


def test_clocks_that_run_backwards_change_no_order(gateway: Gateway) -> None:
    """The order is the chain's; times may be missing as well."""
    gateway.begin()
    gateway.user("one")
    gateway.now_ms -= 90_000
    gateway.user("two")
    read = _only(gateway)
    assert line_to(read, read.head) == ["one", "two"]


def test_all_that_is_new_may_stand_in_the_log(gateway: Gateway) -> None:
    """The file itself is not touched until the program brings the log in."""
    gateway.begin()
    gateway.user("I live in Bergen.")
    assert b"I live in Bergen." not in gateway.path.read_bytes()
    assert b"I live in Bergen." in gateway.path.with_name(NAME + "-wal").read_bytes()
    assert said(_only(gateway)) == ["I live in Bergen."]
    gateway.close()
    assert said(_only(gateway)) == ["I live in Bergen."]


def test_missing_columns_and_tables_are_no_error(gateway: Gateway) -> None:
    """The program adds columns without a word; the first versions had less."""
    gateway.begin()
    gateway.user("one")
    gateway.run("PRAGMA foreign_keys = 0")
    for table in (
        "memory_session_tombstones",
        "conversations",
        "transcript_rewrite_watermarks",
        "session_transcript_archives",
        "transcript_event_identities",
    ):
        gateway.run(f"DROP TABLE {table}")
    gateway.run("ALTER TABLE session_nodes DROP COLUMN fork_source_session_id")
    gateway.run("ALTER TABLE session_windows DROP COLUMN display_name")
    assert said(_only(gateway)) == ["one"]


def test_titles_are_the_conversations(gateway: Gateway) -> None:
    """What a person called it, before what the program shows."""
    gateway.begin(label="Moving", display_name="robin@telegram")
    gateway.user("one")
    assert _only(gateway).title == "Moving"


def test_a_writers_own_sessions_are_passed_over(gateway: Gateway) -> None:
    """Turnmark's writer may be an agent; memory must not feed on itself."""
    gateway.begin()
    gateway.user("one")
    reader = OpenClawReader(skip_directories=[Path("/home/robin/.openclaw")])
    assert list(reader.read([gateway.path])) == []


def test_credentials_are_not_looked_at(gateway: Gateway) -> None:
    """A table that the reader has no business with may be as broken as it likes."""
    gateway.begin()
    gateway.user("one")
    gateway.run("CREATE TABLE auth_profile_store (store_json TEXT)")
    gateway.run("INSERT INTO auth_profile_store VALUES ('secret')")
    asked: list[str] = []

    def note(statement: dict[str, Any]) -> None:
        asked.append(statement["sql"])

    def watch(db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT, note)

    apsw.connection_hooks.append(watch)
    try:
        assert said(_only(gateway)) == ["one"]
    finally:
        apsw.connection_hooks.remove(watch)
    assert asked
    assert not [sql for sql in asked if "auth" in sql]


def test_a_database_is_known_by_its_tables(gateway: Gateway, tmp_path: Path) -> None:
    """Whatever it is called; another program's is none, and neither is what is no database."""
    gateway.begin()
    gateway.close()
    renamed = tmp_path / "backup.db"
    shutil.copyfile(gateway.path, renamed)
    other = tmp_path / "other.db"
    with apsw.Connection(str(other)) as db:
        db.execute("CREATE TABLE message (id TEXT)")
    reader = OpenClawReader()
    assert reader.recognises(renamed, renamed.read_bytes()[:64])
    assert not reader.recognises(other, other.read_bytes()[:64])
    assert not reader.recognises(tmp_path / "x.db", b"SQLite format 3\0")
    assert not reader.recognises(tmp_path / "x.jsonl", b"")


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    """The path and what to look at."""
    broken = tmp_path / NAME
    broken.write_bytes(GENERATED.read_bytes()[:5_000])
    with pytest.raises(Unavailable, match=NAME):
        list(OpenClawReader().read([broken]))
