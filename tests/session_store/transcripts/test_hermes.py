"""Tests of `transcripts/hermes/`: what Hermes' databases and files say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_store.stage import Stage, scratch
from session_store.transcripts.hermes_store import END_OF_SUMMARY, SUMMARY, HermesStore
from session_store.transcripts.tailing import dag_of, import_files
from turnmark_events.errors import Unavailable
from turnmark_session_store.model import Speaker
from turnmark_session_store.transcripts.hermes.reader import HermesReader
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn
from turnmark_session_store.transcripts.recognise import HEAD_BYTES, find_transcripts

DATA = Path(__file__).resolve().parents[2] / "data" / "hermes" / "generated-v0.19" / "state.db"
HERMES = HermesReader()
S = "20260921_101500_a1b2c3"
B = "20260921_105000_b7b7b7"
C = "20260921_104000_d4e5f6"
SKILL = (
    '[IMPORTANT: The user has invoked the "x" skill, indicating they want it.]\n\nBODY\n\n'
    "The user has provided the following instruction alongside the skill invocation: "
)
Said = list[tuple[str, str]]


@pytest.fixture
def hermes(tmp_path: Path) -> Iterator[HermesStore]:
    """Hermes' program, at work on a database with one session."""
    made = HermesStore(tmp_path / "hermes" / "state.db")
    made.begin(S)
    yield made
    made.close()


def read(*paths: Path) -> dict[str, ReadSession]:
    """The sessions by name."""
    return {session.session: session for session in HERMES.read(paths)}


def said(session: ReadSession, kind: str = "turn") -> Said:
    """Who said what, without what was taken back."""
    return [
        (one.turn.role, str(one.turn.text))
        for one in session.turns
        if one.turn.kind == kind and one.turn.id not in session.taken_back
    ]


def prompts(session: ReadSession) -> list[str]:
    """What people said."""
    return [text for role, text in said(session) if role == "user"]


def path_to(sessions: dict[str, ReadSession], session: str) -> list[str]:
    """The words from the root to a session's head."""
    turns = {one.turn.id: one for found in sessions.values() for one in found.turns}
    at, words = sessions[session].head, list[str]()
    while at is not None:
        words.append(str(turns[at].turn.text))
        at = turns[at].predecessor
    return words[::-1]


def turn(sessions: dict[str, ReadSession], words: str) -> ReadTurn:
    """The one turn that says something."""
    every = [one for session in sessions.values() for one in session.turns]
    [found] = [one for one in every if one.turn.text == words]
    return found


# The program's own database.


def test_reads_what_the_program_wrote() -> None:
    """Each turn of each branch once: archived, carried, rewound, branched and gone on with."""
    found = read(DATA)
    assert prompts(found[S]) == [
        "My name is Robin and I moved from Oslo to Bergen last month.",
        "What is in this picture?",
        "Actually I prefer two spaces.",
        "Which city do I live in?",
    ]
    assert [turn(found, "I prefer tabs.").turn.id, turn(found, "Noted: tabs.").turn.id] == list(
        found[S].taken_back
    )
    assert prompts(found[C]) == ["Plan a weekend trip."]
    assert prompts(found[B]) == ["On this branch plan Sunday instead."]
    assert path_to(found, B)[-3:] == [
        "Hike up Floyen on Saturday.",
        "On this branch plan Sunday instead.",
        "Visit the fish market.",
    ]
    assert path_to(found, B)[0].startswith("My name is Robin")
    assert [found[name].project for name in (S, C, B)] == ["/home/user/demo"] * 3
    assert found[S].title == "Bergen talk"
    assert not any(session.warnings for session in found.values())


def test_what_is_no_speech_there_is_none(tmp_path: Path) -> None:
    """A sub-agent's task, all that a schedule set off; summaries and tools not at all."""
    del tmp_path
    found = read(DATA)
    assert said(found["20260921_105500_deadbe"]) == [("assistant", "Ferries leave hourly.")]
    assert said(found["20260921_060000_c0c0c0"]) == []
    assert len(said(found["20260921_060000_c0c0c0"], "runtime")) == 2
    every = " ".join(str(one.turn.text) for session in found.values() for one in session.turns)
    assert "COMPACTION" not in every
    assert "base64" not in every


def test_a_name_in_the_text_of_a_group_is_no_speaker() -> None:
    """Who wrote a row there is in no field; the text is kept as it was written."""
    group = read(DATA)["20260921_110000_9a9a9a"]
    assert [(one.turn.text, one.turn.speaker) for one in group.turns] == [
        ("[Kim] lunch at noon?", None),
        ("[Robin] @bot remind us at 11:50", None),
        ("I will.", None),
    ]
    assert [bool((one.turn.metadata or {}).get("observed")) for one in group.turns] == [
        True,
        False,
        False,
    ]


def test_leaves_the_program_s_files_as_they_were(tmp_path: Path) -> None:
    """Nothing is written, and nothing is made beside it."""
    copy = tmp_path / "state.db"
    shutil.copyfile(DATA, copy)
    before = copy.read_bytes()
    read(copy)
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]
    assert copy.read_bytes() == before


@pytest.mark.anyio
async def test_two_imports_are_one(stage: Stage) -> None:
    """The same history, read twice, adds nothing the second time."""
    await import_files(stage, [DATA], HERMES)
    once = await dag_of(stage)
    await import_files(stage, [DATA], HERMES)
    assert await dag_of(stage) == once


# What the flags and the relations mean.


def test_carried_rows_are_the_turns_that_they_were(hermes: HermesStore) -> None:
    """Over any number of compactions; what follows hangs from the last of them."""
    hermes.exchange(S, "one")
    hermes.exchange(S, "two")
    hermes.compact(S, 2)
    hermes.exchange(S, "three")
    hermes.compact(S, 4)
    hermes.exchange(S, "four")
    found = read(hermes.path)
    assert prompts(found[S]) == ["one", "two", "three", "four"]
    assert path_to(found, S)[::2] == ["one", "two", "three", "four"]
    assert len(found[S].tips) == 1


@pytest.mark.parametrize("kept", [2, 4])
def test_carried_rows_with_a_new_time_are_copies_as_well(hermes: HermesStore, kept: int) -> None:
    """Written at once with the summary, they repeat the end of what was shown."""
    hermes.exchange(S, "yes")
    hermes.exchange(S, "yes")
    hermes.compact(S, kept, restamped=True)
    hermes.exchange(S, "yes")
    assert prompts(read(hermes.path)[S]) == ["yes"] * 3


def test_what_is_said_again_is_no_copy(hermes: HermesStore) -> None:
    """A yes is said many times, and so is its answer, also right behind a compaction."""
    hermes.exchange(S, "yes")
    hermes.exchange(S, "yes")
    hermes.compact(S, 0)
    hermes.exchange(S, "yes")
    assert prompts(read(hermes.path)[S]) == ["yes"] * 3


def test_rows_that_were_put_back_hundreds_of_times_are_one_turn(hermes: HermesStore) -> None:
    """A bug of some versions: each compaction wrote the whole talk again."""
    hermes.exchange(S, "one")
    hermes.exchange(S, "two")
    for _ in range(50):
        hermes.compact(S, 1000)
    found = read(hermes.path)[S]
    assert prompts(found) == ["one", "two"]
    assert len(found.tips) == 1


def test_a_carried_row_that_is_rewound_takes_its_turn_back(hermes: HermesStore) -> None:
    """The last row decides; what follows hangs from what still holds."""
    hermes.exchange(S, "one")
    hermes.exchange(S, "two")
    hermes.compact(S, 2)
    hermes.rewind(S, hermes.live_rows(S)[1][0])
    hermes.exchange(S, "three")
    found = read(hermes.path)
    assert path_to(found, S)[::2] == ["one", "three"]
    assert len(found[S].taken_back) == 2


def test_a_question_behind_a_summary_in_one_row_is_a_turn(hermes: HermesStore) -> None:
    """The end mark tells where it begins."""
    hermes.exchange(S, "one")
    hermes.say(S, f"{SUMMARY}\n- Robin lives in Bergen.\n\n{END_OF_SUMMARY}\n\n接下来呢？")
    assert prompts(read(hermes.path)[S]) == ["one", "接下来呢？"]


def test_a_branch_shares_what_it_copied(hermes: HermesStore) -> None:
    """Each turn is listed once; the point of the fork is the last that both have."""
    hermes.exchange(S, "one")
    hermes.branch(S, B)
    hermes.exchange(S, "here")
    hermes.exchange(B, "there")
    found = read(hermes.path)
    assert (prompts(found[S]), prompts(found[B])) == (["one", "here"], ["there"])
    point = found[B].forked_from
    assert point is not None
    assert (point.session, point.turn) == (S, turn(found, "You said: one").turn.id)


def test_a_branch_whose_copies_have_a_new_time_shares_them_as_well(hermes: HermesStore) -> None:
    """They repeat what its origin showed when it began, whatever was said there since."""
    hermes.exchange(S, "one")
    hermes.exchange(S, "one")
    hermes.branch(S, B, restamped=True)
    hermes.exchange(S, "here")
    hermes.exchange(B, "there")
    found = read(hermes.path)
    assert (prompts(found[S]), prompts(found[B])) == (["one", "one", "here"], ["there"])


def test_a_branch_in_the_middle_begins_there(hermes: HermesStore) -> None:
    """Where the program says behind which row, and copied nothing yet."""
    row = hermes.say(S, "one")
    hermes.say(S, "two")
    hermes.begin(B, S, model_config={"_branched_from": S, "_branched_from_message": row})
    hermes.say(B, "instead")
    assert path_to(read(hermes.path), B) == ["one", "instead"]


def test_what_a_branch_holds_is_not_taken_back(hermes: HermesStore) -> None:
    """Its origin was rewound past the fork."""
    hermes.exchange(S, "one")
    row = hermes.say(S, "two")
    hermes.branch(S, B)
    hermes.rewind(S, row)
    hermes.exchange(B, "three")
    found = read(hermes.path)
    assert found[S].taken_back == ()
    assert path_to(found, B)[2] == "two"
    assert path_to(found, S)[-1] == "You said: one"


def test_a_session_goes_on_behind_a_compaction(hermes: HermesStore) -> None:
    """It begins with a summary, and hangs from where the other ended."""
    hermes.exchange(S, "one")
    hermes.go_on(S, C)
    hermes.exchange(C, "two")
    found = read(hermes.path)
    assert path_to(found, C)[::2] == ["one", "two"]
    assert prompts(found[C]) == ["two"]


def test_a_session_behind_a_reset_is_one_of_its_own(hermes: HermesStore) -> None:
    """A new talk, with a pointer to the old one."""
    hermes.exchange(S, "one")
    hermes.end(S, "session_reset")
    hermes.begin(C, S, model_config={"_reset_from": S})
    hermes.exchange(C, "two")
    found = read(hermes.path)
    assert path_to(found, C)[0] == "two"
    assert found[C].forked_from is None


@pytest.mark.parametrize("marker", ["_branched_from", "_delegate_from", None])
def test_an_origin_that_is_gone_is_not_missed(hermes: HermesStore, marker: str | None) -> None:
    """Pruned sessions leave their children behind; two that point at each other end nowhere."""
    hermes.begin(B, "gone", model_config={marker: "gone"} if marker else "{broken")
    hermes.exchange(B, "one")
    hermes.begin("x", "y")
    hermes.begin("y", "x")
    hermes.exchange("x", "round")
    hermes.exchange("y", "and round")
    found = read(hermes.path)
    assert found[B].head is not None
    assert {"x", "y"} <= found.keys()


def test_a_sub_agent_hangs_from_the_turn_that_called_it(hermes: HermesStore) -> None:
    """The task is nobody's words; what it found is its own."""
    hermes.say(S, "Find me a ferry.")
    hermes.delegate(S, B, "Research ferry times.")
    found = read(hermes.path)
    caller = found[B].caller
    assert caller is not None
    assert (caller.session, caller.turn) == (S, turn(found, "Find me a ferry.").turn.id)
    assert [one.turn.kind for one in found[B].turns] == ["runtime", "turn"]
    assert found[B].turns[0].turn.caller == caller


def test_a_branch_from_what_was_taken_back_keeps_it(hermes: HermesStore) -> None:
    """It goes on from there: the turn holds in the branch."""
    hermes.say(S, "one")
    row = hermes.say(S, "two")
    hermes.rewind(S, row)
    hermes.begin(B, S, model_config={"_branched_from": S, "_branched_from_message": row})
    hermes.say(B, "three")
    found = read(hermes.path)
    assert path_to(found, B) == ["one", "two", "three"]
    assert path_to(found, S) == ["one"]
    assert found[S].taken_back == ()


def test_what_a_branch_copied_and_rewound_stays_with_its_origin(hermes: HermesStore) -> None:
    """The branch hangs from what it kept of the copies."""
    hermes.say(S, "one")
    hermes.say(S, "two")
    hermes.branch(S, B)
    hermes.rewind(B, hermes.live_rows(B)[1][0])
    hermes.say(B, "three")
    found = read(hermes.path)
    assert (path_to(found, S), path_to(found, B)) == (["one", "two"], ["one", "three"])
    assert not any(session.taken_back for session in found.values())


@pytest.mark.parametrize(
    "arguments", ["[broken", '[["short"], {"tasks": [{"goal": "elsewhere"}]}]']
)
def test_a_sub_agent_whose_call_is_not_found_begins_by_itself(
    hermes: HermesStore, arguments: str
) -> None:
    """Its task is nobody's words all the same; one without a task is followed as well."""
    hermes.say(S, "Find me a ferry.")
    calls = json.dumps([{"function": {"name": "delegate_task", "arguments": arguments}}])
    hermes.say(S, None, "assistant", tool_calls=calls)
    for name in (B, C):
        hermes.begin(name, S, source="subagent", model_config={"_delegate_from": S})
    hermes.say(B, "Research ferry times.")
    hermes.say(C, "Ferries leave hourly.", "assistant")
    found = read(hermes.path)
    assert found[B].turns[0].turn.kind == "runtime"
    assert [found[name].caller for name in (B, C)] == [None, None]


# What is speech.


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        ("[SYSTEM: The gateway was restarted.]", "runtime", None),
        ("[System note: Your previous turn was interrupted.]", "runtime", None),
        ("[ASYNC DELEGATION RESULT] done", "runtime", None),
        ("[IMPORTANT: Background process 7 ended]", "runtime", None),
        ("Review the conversation above and consider saving to memory.", "runtime", None),
        ("Review the conversation above and tell me what is missing.", "turn", None),
        ('[IMPORTANT: The user has invoked the "x" skill, indicating]\n\nBODY', "runtime", None),
        (
            f"{SKILL}翻译这封信\n\n[Runtime note: y]",
            "turn",
            "翻译这封信",
        ),
        (
            f"{SKILL}[IMPORTANT: You are running as a scheduled cron job. Report.]",
            "runtime",
            "[IMPORTANT: You are running as a scheduled cron job. Report.]",
        ),
        ("[OUT-OF-BAND USER MESSAGE — a direct message]\nstop please", "turn", "stop please"),
        ('[Replying to: "the plan"] do it', "turn", None),
        ("I said [SYSTEM: hello] to you", "turn", None),
    ],
)
def test_tells_the_person_from_the_program(
    hermes: HermesStore, content: str, kind: str, words: str | None
) -> None:
    """Notices by how they begin; what was typed behind some of them is kept."""
    hermes.say(S, content)
    [one] = read(hermes.path)[S].turns
    assert (one.turn.kind, one.turn.text) == (kind, words or content)


@pytest.mark.parametrize(
    "content",
    [
        SUMMARY,
        "[CONTEXT COMPACTION - REFERENCE ONLY] Earlier turns were compacted.",
        "[CONTEXT COMPACTION – REFERENCE ONLY] Earlier turns were compacted.",
        "[CONTEXT SUMMARY]: all that was",
        "[Your active task list was preserved across context compression]\n- [ ] follow up",
        "   ",
    ],
)
def test_what_nobody_said_is_no_turn(hermes: HermesStore, content: str) -> None:
    """Summaries with each dash, lists that are put in again, nothing at all."""
    hermes.say(S, content)
    hermes.say(S, content, "tool")
    hermes.say(S, content, "system")
    hermes.say(S, None, "assistant")
    assert S not in read(hermes.path)


def test_a_summary_may_have_the_assistant_s_role(hermes: HermesStore) -> None:
    """And some versions flag it instead."""
    hermes.say(S, SUMMARY, "assistant")
    hermes.run("ALTER TABLE messages ADD COLUMN _compressed_summary INTEGER")
    hermes.run("ALTER TABLE messages ADD COLUMN display_kind TEXT")
    hermes.say(S, "what was before", _compressed_summary=1)
    hermes.say(S, "for the model alone", display_kind="hidden")
    hermes.say(S, "hello")
    assert said(read(hermes.path)[S]) == [("user", "hello")]


def test_an_answer_to_the_program_alone_is_the_program_s(hermes: HermesStore) -> None:
    """What it asks for its own memory; what the person says next is theirs again."""
    hermes.exchange(S, "one")
    hermes.say(S, "Review the conversation above and update the skill library.")
    hermes.say(S, "Saved: Robin lives in Bergen.", "assistant")
    hermes.exchange(S, "two")
    found = read(hermes.path)[S]
    assert said(found)[::2] == [("user", "one"), ("user", "two")]
    assert len(said(found, "runtime")) == 2


def test_an_answer_may_stand_in_its_items_alone(hermes: HermesStore) -> None:
    """Where the content is NULL; what was sent besides is never looked at."""
    items = [{"type": "message", "content": [{"type": "output_text", "text": "好的。"}]}]
    hermes.say(S, "hello", api_content="<memory>secret</memory> hello")
    hermes.say(S, None, "assistant", codex_message_items=json.dumps(items))
    assert said(read(hermes.path)[S]) == [("user", "hello"), ("assistant", "好的。")]


def test_an_answer_that_failed_is_an_error_and_silence_is_none(hermes: HermesStore) -> None:
    """What stands in its place is no speech."""
    hermes.say(S, "hello")
    hermes.say(S, "Error 529: overloaded", "assistant", finish_reason="error")
    hermes.say(S, "[SILENT]", "assistant")
    assert [one.turn.kind for one in read(hermes.path)[S].turns] == ["turn", "error", "runtime"]


def test_a_picture_without_words_is_a_turn_without_words(hermes: HermesStore) -> None:
    """Lists of parts stand behind a NUL, in some stores behind another mark."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text = {"type": "text", "text": "half a pair: \ud83d"}
    hermes.say(S, "\x00json:" + json.dumps([picture]))
    hermes.say(S, "\x01json:" + json.dumps([text, picture]))
    hermes.say(S, "\x00json:[broken")
    assert [one.turn.text for one in read(hermes.path)[S].turns] == [
        "",
        "half a pair: \ufffd",
        "\x00json:[broken",
    ]


@pytest.mark.parametrize(
    ("columns", "speaker"),
    [
        ({"user_id": "u-17"}, Speaker(id="u-17")),
        (
            {"user_id": "u-17", "chat_type": "dm", "origin_json": '{"user_name": "Dana"}'},
            Speaker(id="u-17", name="Dana"),
        ),
        ({"user_id": "u-17", "chat_type": "group"}, None),
        (
            {"user_id": "u-17", "chat_type": "group", "session_key": "telegram:group:-1:u-17"},
            Speaker(id="u-17"),
        ),
        ({}, None),
    ],
)
def test_the_speaker_is_who_a_field_names(
    hermes: HermesStore, columns: dict[str, Any], speaker: Speaker | None
) -> None:
    """Where one person talks with the bot; an answer has none."""
    hermes.begin(B, **columns)
    hermes.exchange(B, "[Kim] hello")
    assert [one.turn.speaker for one in read(hermes.path)[B].turns] == [speaker, None]


# What may be wrong with a database.


def test_times_that_are_none_are_left_out(hermes: HermesStore) -> None:
    """Order is that of the rows, whatever their times say."""
    for stamp in (5e246, -1.0, 1_790_000_050.0, 1_790_000_000.0, 1_790_000_001_500):
        hermes.say(S, "same words", timestamp=stamp)
    found = read(hermes.path)[S]
    assert [one.turn.time for one in found.turns] == [
        None,
        None,
        "2026-09-21T14:14:10.000Z",
        "2026-09-21T14:13:20.000Z",
        "2026-09-21T14:13:21.500Z",
    ]
    assert len(path_to({S: found}, S)) == 5


def test_a_database_of_an_early_version_is_read(tmp_path: Path) -> None:
    """Without flags, markers, and most columns."""
    hermes = HermesStore(tmp_path / "state.db")
    hermes.begin(S)
    hermes.exchange(S, "one")
    hermes.run("DROP INDEX idx_messages_session_active")
    for column in ("active", "compacted", "observed", "codex_message_items", "platform_message_id"):
        hermes.run(f"ALTER TABLE messages DROP COLUMN {column}")
    for column in ("model_config", "origin_json", "cwd", "title", "user_id", "rewind_count"):
        hermes.run(f"ALTER TABLE sessions DROP COLUMN {column}")
    hermes.close()
    assert prompts(read(tmp_path / "state.db")[S]) == ["one"]


def test_a_long_talk_is_read_without_a_deep_stack(hermes: HermesStore) -> None:
    """Thousands of turns in one line."""
    with hermes.db:
        for number in range(2500):
            hermes._insert(
                "messages",
                {"session_id": S, "role": "user", "content": f"{number}", "timestamp": 1.8e9},
            )
    assert len(path_to(read(hermes.path), S)) == 2500


# Finding them.


def files_of(directory: Path) -> Sequence[Path]:
    """The transcripts of Hermes that are found there."""
    [found] = find_transcripts([directory], readers=[HERMES]).found
    return [path.relative_to(directory) for path in found.paths]


def test_finds_databases_by_what_they_hold(tmp_path: Path, hermes: HermesStore) -> None:
    """Profiles too; logs, other programs' databases and what is none are passed over."""
    hermes.exchange(S, "one")
    home = hermes.path.parent
    work = HermesStore(home / "profiles" / "office" / "state.db")
    work.begin(B)
    other = HermesStore(home / "other.db")
    other.run("DROP TABLE messages")
    (home / "empty.db").touch()
    (home / "notes.json").write_text("{}")
    assert files_of(home) == [Path("profiles/office/state.db"), Path("state.db")]
    work.close()
    other.close()
    assert not HERMES.recognises(tmp_path / "a.db-wal", b"7\x7f\x06\x82" * 8)


def test_a_damaged_database_is_told_of(tmp_path: Path) -> None:
    """By its name, and why."""
    bad = tmp_path / "state.db"
    bad.write_bytes(b"SQLite format 3\0" + b"x" * 4000)
    with pytest.raises(Unavailable, match=r"state\.db"):
        HERMES.recognises(bad, bad.read_bytes()[:HEAD_BYTES])
    with pytest.raises(Unavailable, match=r"state\.db"):
        read(bad)
    other = bad.rename(tmp_path / "another-program.sqlite")
    assert not HERMES.recognises(other, other.read_bytes()[:HEAD_BYTES])


def test_own_sessions_are_left_out(hermes: HermesStore) -> None:
    """Turnmark's writer may be a Hermes: its directory is none of a talk."""
    hermes.begin(B, cwd="/state/writer")
    hermes.exchange(B, "write this up")
    hermes.exchange(S, "one")
    reader = HermesReader(skip_directories=[Path("/state")])
    assert [session.session for session in reader.read([hermes.path])] == [S]
    copies = [hermes.path.parent / f"{name}.jsonl" for name in (B, S, "old")]
    for path in copies:  # an older version's file of the same session doesn't say where it began
        path.write_text(f"{json.dumps(META)}\n{line('user', 'write this up')}")
    found = [session.session for session in reader.read([hermes.path, *copies])]
    assert found == [S, "old"]


# Older versions' files.

META = {"role": "session_meta", "platform": "cli", "model": "m", "tools": []}


def line(role: str, content: Any, **more: Any) -> str:
    """One line of an older version's file."""
    return json.dumps({"role": role, "content": content, **more}, ensure_ascii=False) + "\n"


def test_reads_the_files_of_older_versions(tmp_path: Path) -> None:
    """Lines, and snapshots of a session whole; one bad line costs a warning."""
    lines = tmp_path / f"{S}.jsonl"
    lines.write_text(
        json.dumps(META)
        + "\n"
        + line("user", "我住在卑尔根。", timestamp="2026-02-01T10:00:00+00:00")
        + "not json\n"
        + line("assistant", "Noted.", timestamp="2026-02-01T10:00:05+00:00")
        + line("tool", "{}")
    )
    snapshot = tmp_path / f"session_{B}.json"
    messages = [{"role": "user", "content": [{"type": "text", "text": "yes"}]}] * 2
    snapshot.write_text(
        json.dumps(
            {
                "session_id": B,
                "platform": "telegram",
                "session_start": "2026-02-01T10:00:00",
                "last_updated": "2026-02-01T10:00:00",
                "messages": messages,
            }
        )
    )
    (tmp_path / "sessions.json").write_text("{}")
    assert files_of(tmp_path) == [Path(lines.name), Path(snapshot.name)]
    found = read(lines, snapshot)
    assert said(found[S]) == [("user", "我住在卑尔根。"), ("assistant", "Noted.")]
    assert found[S].turns[0].turn.time == "2026-02-01T10:00:00.000Z"
    assert [(warning.line, warning.file) for warning in found[S].warnings] == [(3, str(lines))]
    assert prompts(found[B]) == ["yes", "yes"]


def test_the_database_goes_before_a_file_and_the_fuller_file_before_the_other(
    tmp_path: Path, hermes: HermesStore
) -> None:
    """A session is read once, however many files hold it."""
    hermes.exchange(S, "from the database")
    lines = tmp_path / f"{S}.jsonl"
    lines.write_text(json.dumps(META) + "\n" + line("user", "from a file"))
    short, full = tmp_path / f"{B}.jsonl", tmp_path / f"session_{B}.json"
    short.write_text(json.dumps(META) + "\n" + line("user", "one"))
    rows = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    full.write_text(json.dumps({"session_id": B, "session_start": "", "messages": rows}))
    found = read(lines, short, full, hermes.path)
    assert prompts(found[S]) == ["from the database"]
    assert said(found[B]) == [("user", "one"), ("assistant", "two")]


@pytest.mark.anyio
async def test_a_file_that_became_a_database_is_there_once(
    stage: Stage, tmp_path: Path, hermes: HermesStore
) -> None:
    """The program takes its old sessions over, with their times as numbers."""
    lines = tmp_path / f"{B}.jsonl"
    lines.write_text(
        json.dumps(META)
        + "\n"
        + line("user", "我住在卑尔根。", timestamp="2026-09-21T14:13:27.500000+00:00")
        + line("assistant", "Noted.", timestamp="2026-09-21T14:13:35.123456+00:00")
    )
    await import_files(stage, [lines], HERMES)
    before = await dag_of(stage)
    hermes.begin(B)
    hermes.say(B, "我住在卑尔根。", timestamp=1790000007.5)
    hermes.say(B, "Noted.", "assistant", timestamp=1790000015.123456)
    await import_files(stage, [hermes.path], HERMES)
    assert (await dag_of(stage))["turns"] == before["turns"]


def test_a_snapshot_that_is_damaged_costs_a_warning(tmp_path: Path) -> None:
    """And one that is not there is told of."""
    snapshot = tmp_path / f"session_{B}.json"
    snapshot.write_text('{"session_id": "')
    found = read(snapshot)
    assert [warning.line for warning in found[B].warnings] == [0]
    assert found[B].turns == ()
    with pytest.raises(Unavailable, match="absent"):
        read(tmp_path / "absent.json")


# Whatever stands in the columns: SQLite checks no types.

ODD = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.sampled_from(
        [
            S,
            B,
            C,
            "cron",
            "subagent",
            "user",
            "assistant",
            SUMMARY,
            "compression",
            "\x00json:[1]",
            "\x00json:[" * 3,
            '{"_branched_from": 7}',
            f'{{"_branched_from": "{S}"}}',
            "[[" * 2000,
            f'{{"_delegate_from": "{B}"}}',
            '[{"function": {"arguments": "[]"}}]',
        ]
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_value_stops_a_reading(data: st.DataObject) -> None:
    """Sessions come out, whatever their rows are: no error but that of a database."""
    with scratch() as place:
        hermes = HermesStore(place / "state.db")
        for name in (S, B, C):
            hermes.begin(name)
            hermes.exchange(name, "one")
        for table in ("sessions", "messages"):
            columns = [row[1] for row in hermes.db.execute(f"PRAGMA table_info({table})")]
            for column in data.draw(st.lists(st.sampled_from(columns), max_size=6)):
                if column != "id" or table == "sessions":
                    sql = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid % 3 = ?"
                    hermes.run(sql, data.draw(ODD), data.draw(st.integers(0, 2)))
        hermes.close()
        for session in HERMES.read([place / "state.db"]):
            listed = {one.turn.id for one in session.turns}
            assert len(listed) == len(session.turns)
            assert not listed.isdisjoint(session.tips) or not session.tips or session.forked_from
