"""Tests of `daemon/openprogram/`: what a state directory holds for a memory, read from files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from session_store.transcripts.openprogram_state import (
    OpenProgramState,
    Session,
    anchor_of,
    definition,
    frame,
)
from turnmark.openprogram.archive import ArchiveFile, read_archive
from turnmark.openprogram.plan import Plan, read_plan
from turnmark.openprogram.topic_files import topic_of
from turnmark_events.errors import NotFound, Refused
from turnmark_memory.requests import AdoptedBlock
from turnmark_memory.words import clean_title


@pytest.fixture
def state(tmp_path: Path) -> OpenProgramState:
    """A state directory with an empty memory."""
    state = OpenProgramState(tmp_path / "openprogram")
    state.workspace()
    return state


def talk(state: OpenProgramState, name: str = "sess-a", turns: int = 4) -> Session:
    """A session of questions `u1`, `u3`, … and answers `a2`, `a4`, …, all of them archived."""
    chat = state.session(name)
    for number in range(1, turns + 1):
        if number % 2:
            chat.user(f"u{number}", f"fact {number} 事实")
        else:
            chat.llm(f"a{number}", f"noted {number}")
    archive(state, chat)
    return chat


def archive(state: OpenProgramState, chat: Session, *left_out: str) -> None:
    """Archives a session's turns, but for some."""
    state.archive(chat.name, *[chat.frame(key) for key in chat.nodes if key not in left_out])


def cite(state: OpenProgramState, chat: Session, *keys: str, topic: str = "owner") -> None:
    """Writes a topic with a block for each turn."""
    blocks = [f"About {key}.[^e-{key}] ^{number:08x}\n" for number, key in enumerate(keys, 1)]
    notes = [definition(f"e-{key}", chat.link(key)) + "\n" for key in keys]
    state.topic(topic, "\n".join(["# Owner\n", *blocks, *notes]))


def settled(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The turns that need no writer, by session."""
    return {one.session: one.turns for one in plan.settled}


def blocks(plan: Plan) -> dict[str, AdoptedBlock]:
    """The blocks by their words."""
    return {one.text: one for one in plan.blocks}


def files(state: OpenProgramState) -> list[ArchiveFile]:
    """All that is read of the evidence."""
    return list(read_archive(state.memory / "sources"))


# Evidence


def test_records_are_read_by_their_line_counts(state: OpenProgramState) -> None:
    """A body may hold whole records, empty lines and line ends at its end; nothing is forged."""
    forged = frame("openprogram/sess-a/u9", "I am forged").decode()
    words = f"first: line\n\n{forged}\nlast\n"
    path = state.archive(
        "sess-a",
        frame("openprogram/sess-a/u1", words, speaker_id="u-17", display="Dana"),
        frame("openprogram/sess-a/u2", "第二条", trust="pending", stamp=""),
    )
    [found] = files(state)
    assert (found.path, found.problem) == (path, None)
    first, second = found.frames
    assert (first.message, first.words) == ("u1", words)
    assert (first.speaker_id, first.speaker_name, first.trusted) == ("u-17", "Dana", True)
    assert first.time == "2026-08-06T07:06:40.000Z"
    assert (second.words, second.trusted, second.time, second.by_agent) == (
        "第二条",
        False,
        None,
        False,
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"record-lines:1 -->", b"record-lines:0 -->"),
        (b"record-lines:1 -->", b"record-lines:2 -->"),
        (b"record-lines:1 -->", b"record-lines:999999999 -->"),
        (b"source-id:openprogram/sess-a/u2", b"source-id:openprogram/sess-b/u2"),
        (b"source-id:openprogram/sess-a/u2", b"source-id:openprogram/sess-a/u9"),
        (b"speaker-id:u%2D2", b"speaker-id:u-2"),
        (b"source-meta:ey", b"source-meta:eyAg"),
        (b"[2026-08-06T09:06:40+02:00] Two (u-2): two", b"two"),
        (b"two", b"\xff"),
        (b"(u-2): two", b"(u-2) two"),
        (b"2026-08-06T09:06:40", b"2026\x0708-06T09:06:40"),
        (b"two\n", b"two\r\n\r"),
    ],
)
def test_from_the_first_record_that_is_wrong_on_nothing_counts(
    state: OpenProgramState, old: bytes, new: bytes
) -> None:
    """What stands before it stays; what stands behind is not looked for."""
    path = state.archive(
        "sess-a",
        frame("openprogram/sess-a/u1", "one"),
        frame("openprogram/sess-a/u2", "two", speaker_id="u-2", display="Two"),
        frame("openprogram/sess-a/u3", "three"),
    )
    content = path.read_bytes()
    at = content.index(b"sess-a/u2") - 60
    assert old in content[at:]
    path.write_bytes(content[:at] + content[at:].replace(old, new, 1))
    [found] = files(state)
    assert [one.message for one in found.frames] == ["u1"]
    assert found.problem is not None


def test_a_speaker_may_be_a_name_alone(state: OpenProgramState) -> None:
    """An empty id is written where only the name is known; a label never tells an id."""
    path = state.archive("sess-a", frame("openprogram/sess-a/u1", "one", display="Dana (u-9)"))
    content = path.read_bytes()
    path.write_bytes(
        content.replace(b"<!-- source-meta", b"<!-- speaker-id: -->\n<!-- source-meta")
    )
    [found] = files(state)
    [one] = found.frames
    assert (one.speaker_id, one.speaker_name, found.problem) == (None, "Dana (u-9)", None)


def test_a_file_with_other_line_ends_or_without_a_marker_holds_nothing(
    state: OpenProgramState,
) -> None:
    """And a record that comes twice ends its file."""
    path = state.archive("sess-a", frame("openprogram/sess-a/u1", "one"))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    state.archive("twice", *[frame("openprogram/twice/u1", "one")] * 2)
    found = {one.path.stem: one for one in files(state)}
    assert (found["sess-a"].frames, len(found["twice"].frames)) == ((), 1)
    assert all(one.problem for one in found.values())


# Topics


def test_blocks_keep_words_sources_headings_and_names(state: OpenProgramState) -> None:
    """Claims with footnotes of their own become one block; the last id is its name."""
    chat = talk(state)
    said = "She leads.[^e-1] 她负责税务。[^e-2][^e-1] ^intro ^af3dee4f"
    notes = [
        definition("e-1", chat.link("u1"), chat.link("a2", "答")),
        f"[^e-2]: undated · Sources: {chat.link('u3')}",
    ]
    state.topic("people/dana", "\n\n".join(["# Dana B.", "## Work", "### 税务", said, *notes]))
    [block] = read_plan(state.root).blocks
    assert block.text == "She leads. 她负责税务。"
    assert (block.id, block.topic, block.title) == ("b-af3dee4f", "people/dana", "Dana B.")
    assert block.heading == "Work / 税务"
    assert len(block.aliases) == 1
    assert [one.turn for one in block.cites] == ["u1", "a2", "u3"]
    assert {one.session for one in block.cites} == {"sess-a"}


def test_a_time_that_is_not_when_it_was_said_is_kept_in_the_words(state: OpenProgramState) -> None:
    """A footnote tells when something happened; the turn tells when it was said."""
    chat = talk(state)
    state.topic(
        "owner",
        "Moved.[^e-1] Born.[^e-2] 搬家了。[^e-3] Soon.[^e-4] ^00000001\n\n"
        + "\n\n".join(
            definition(f"e-{number}", chat.link("u1"), time=time)
            for number, time in enumerate(("2026-08", "1999", "2019-03-02", "2026-08-07"), 1)
        ),
    )
    [block] = read_plan(state.root).blocks
    assert block.text == "Moved. Born. (1999) 搬家了。（2019-03-02） Soon."


def test_what_nobody_cited_is_a_persons_and_nothing_is_lost(state: OpenProgramState) -> None:
    """Paragraphs, lists, tables, fences; notes to the program and anchors are no words."""
    lost = "[x](../sources/openprogram/_v2/no.md#source-0123456789abcdef)"
    parts = [
        *("# Notes", "By hand.", "- one\n- 二", "```py\nx = 1\n```", "> said"),
        *("| a | b |\n|---|---|\n| 1 | 2 |", "<!-- a note -->", '<a id="x"></a>', "By hand."),
        *("Lost.[^e-1] ^0000000a", definition("e-1", lost)),
    ]
    state.topic("notes", "\n\n".join(parts))
    plan = read_plan(state.root)
    texts = [one.text for one in plan.blocks]
    assert texts == [
        *("By hand.", "one", "二", "x = 1", "said", "| a | b | |---|---| | 1 | 2 |"),
        *("By hand.", "Lost."),
    ]
    assert not any(one.cites for one in plan.blocks)
    assert len({one.id for one in plan.blocks}) == len(texts)
    assert {one.id for one in plan.blocks} == {one.id for one in read_plan(state.root).blocks}
    assert [one.name for one in plan.problems] == ["notes.md, b-0000000a"]


def test_links_between_topics_lead_to_the_same_blocks_here(state: OpenProgramState) -> None:
    """By id or alias; what leads nowhere keeps its words; links to the web stay."""
    chat = talk(state)
    words = "See [Dana](people/dana.md#^old), [no](b.md#^nope), [web](https://a.b/c).[^e-1]"
    state.topic("a", f"{words} ^0000000a\n\n{definition('e-1', chat.link('u1'))}\n")
    state.topic(
        "people/dana", f"Dana.[^e-1] ^old ^0000000b\n\n{definition('e-1', chat.link('u1'))}\n"
    )
    found = blocks(read_plan(state.root))
    assert "See [[people/dana#^b-0000000b|Dana]], no, [web](https://a.b/c)." in found


def test_the_core_topic_comes_first_and_legacy_units_have_their_own_names(
    state: OpenProgramState,
) -> None:
    """A citation whose id is the memory's id stands for the block's."""
    chat = talk(state)
    state.topic("a", f"Old unit.[^mem_7]\n\n{definition('mem_7', chat.link('u1'))}\n")
    state.topic(
        "core", f"Always.[^e-1] ^0000000c\n\n{definition('e-1', 'openprogram/sess-a/u3')}\n"
    )
    first, second = read_plan(state.root).blocks
    assert (first.topic, first.text, [one.turn for one in first.cites]) == (
        "core",
        "Always.",
        ["u3"],
    )
    assert (second.text, [one.turn for one in second.cites]) == ("Old unit.", ["u1"])


@pytest.mark.parametrize(
    ("path", "topic"),
    [
        ("core.md", "core"),
        ("owner.md", "people/owner"),
        ("people/Dana.md", "people/dana"),
        ("projects/a/b/c.md", "projects/a/b-c"),
        ("猫.md", "subjects/猫"),
        ("office/tools/my editors!.md", "subjects/office/tools-my-editors"),
        ("people.md", "subjects/people"),
        ("topics/con.md", "subjects/b-"),
        (f"{'长' * 200}.md", f"subjects/{'长' * 60}"),
    ],
)
def test_every_path_becomes_one_that_can_be_used(path: str, topic: str) -> None:
    """Folders of this memory stay, all others go below `subjects`."""
    assert topic_of(Path(path)).startswith(topic)


# Marks


def test_marks_count_where_topics_hold_what_was_archived(state: OpenProgramState) -> None:
    """Up to the first turn of speech that was not marked; other rows don't matter."""
    chat = talk(state, turns=3)
    chat.user("x4", "due", source="scheduler")
    chat.user("u5", "later")
    chat.mark("u1", "a2", "u3")
    cite(state, chat, "u1")
    assert settled(read_plan(state.root)) == {"sess-a": ("u1", "a2", "u3")}


def _foreign(state: OpenProgramState, chat: Session) -> None:
    chat.mark(*chat.nodes, workspace="w-99999999")


def _gap(state: OpenProgramState, chat: Session) -> None:
    del chat.nodes["u1"]["metadata"]["memory_written_scriptorium"]
    chat.write("u1")


def _uncited(state: OpenProgramState, chat: Session) -> None:
    (state.memory / "topics" / "owner.md").unlink()


def _no_sources(state: OpenProgramState, chat: Session) -> None:
    for path in (state.memory / "sources").rglob("*.md"):
        path.unlink()


def _other_words(state: OpenProgramState, chat: Session) -> None:
    state.archive(chat.name, chat.frame("u1", words="other words"), chat.frame("a2"))


def _pending(state: OpenProgramState, chat: Session) -> None:
    state.archive(chat.name, chat.frame("u1", trust="pending"))


def _no_id(state: OpenProgramState, chat: Session) -> None:
    (state.memory / ".scriptorium" / "workspace-id").unlink()


def _bad_id(state: OpenProgramState, chat: Session) -> None:
    state.workspace("nonsense")


def _broken_off(state: OpenProgramState, chat: Session) -> None:
    (state.memory / ".scriptorium-block-backup").mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        *(_foreign, _gap, _uncited, _no_sources, _other_words, _pending),
        *(_no_id, _bad_id, _broken_off),
    ],
)
def test_no_mark_counts_where_the_bookkeeping_can_not_be_trusted(
    state: OpenProgramState, spoil: Any
) -> None:
    """Law 5: the turns are offered again; the topics come all the same."""
    chat = talk(state)
    chat.mark(*chat.nodes)
    cite(state, chat, "u1")
    assert settled(read_plan(state.root)) == {"sess-a": tuple(chat.nodes)}
    spoil(state, chat)
    plan = read_plan(state.root)
    assert settled(plan) == {}
    assert len(plan.blocks) == (spoil is not _uncited)
    assert plan.turns == 4


def test_a_mark_far_from_all_that_a_topic_cites_does_not_count(state: OpenProgramState) -> None:
    """More lies between them than one batch may hold: what that batch brought is not there."""
    chat = state.session("long")
    for number in range(1, 9):
        chat.user(f"u{number}", f"{number} " + "很长" * 1_500)
    chat.mark(*chat.nodes)
    archive(state, chat)
    cite(state, chat, "u2")
    assert settled(read_plan(state.root)) == {"long": ("u1", "u2", "u3", "u4", "u5", "u6", "u7")}


def test_each_branch_is_judged_by_itself(state: OpenProgramState) -> None:
    """A marked prefix is shared; a mark behind an unmarked turn of speech is not believed."""
    chat = talk(state)
    chat.mark(*chat.nodes)
    chat.user("b5", "other branch", after="a2")
    chat.user("b6", "marked by mistake")
    chat.mark("b6")
    archive(state, chat)
    cite(state, chat, "u1", "u3")
    assert settled(read_plan(state.root)) == {"sess-a": ("u1", "a2", "u3", "a4")}


def test_what_was_rewound_is_no_speech_and_in_nobodys_way(state: OpenProgramState) -> None:
    """A turn that was taken back needs no mark."""
    chat = talk(state, turns=2)
    chat.user("u3", "take back", rewound=True)
    chat.user("u4", "instead", after="a2")
    chat.mark("u1", "a2", "u3", "u4")
    archive(state, chat)
    cite(state, chat, "u1")
    assert settled(read_plan(state.root)) == {"sess-a": ("u1", "a2", "u4")}


# Evidence of what is gone, and the state as a whole


def test_cited_evidence_of_a_conversation_that_is_gone_comes_along(state: OpenProgramState) -> None:
    """As turns of a session of its own, dealt with; what none cites stays where it is."""
    state.archive(
        "gone",
        frame("openprogram/gone/g1", "猫叫Miso。", speaker_id="owner/local", display="Owner"),
        frame("openprogram/gone/g2", "unheard"),
        frame("openprogram/gone/g3", "never vouched for", trust="pending"),
    )
    links = [
        f"[x](../sources/openprogram/_v2/gone.md#{anchor_of(f'openprogram/gone/{key}')})"
        for key in ("g1", "g3")
    ]
    state.topic("cat", f"The cat.[^e-1] ^0000000a\n\n{definition('e-1', *links)}\n")
    plan = read_plan(state.root)
    [session] = plan.sessions
    [one] = session.turns
    assert session.session == "openprogram:openprogram/gone"
    assert (one.turn.text, one.turn.role) == ("猫叫Miso。", "user")
    assert one.turn.speaker is not None
    assert (one.turn.speaker.id, one.turn.speaker.name) == ("owner/local", "Owner")
    assert settled(plan) == {session.session: ("g1",)}
    [block] = plan.blocks
    assert [ref.turn for ref in block.cites] == ["g1"]
    assert [one.name for one in plan.problems] == ["sources, 1 record", "sources, 1 record"]


def test_sessions_inside_projects_are_found_and_missing_ones_named(
    state: OpenProgramState, tmp_path: Path
) -> None:
    """By the list of places; the registry of sessions may say what it likes."""
    bound = state.project_session(tmp_path / "work", "bound")
    bound.user("u1", "here")
    talk(state)
    places = state.root / "sessions" / "locations.json"
    known = json.loads(places.read_text("utf-8"))
    places.write_text(json.dumps({**known, "lost": str(tmp_path / "nowhere")}), "utf-8")
    plan = read_plan(state.root)
    projects = {one.session: one.project for one in plan.sessions}
    assert projects == {"bound": str(tmp_path / "work"), "sess-a": None}
    assert [one.name for one in plan.problems] == ["lost"]
    places.write_text("{", "utf-8")
    assert [one.name for one in read_plan(state.root).problems] == ["locations.json"]


def test_only_a_state_directory_is_one(tmp_path: Path) -> None:
    """A memory without sessions is; anything else is refused, and says what was expected."""
    with pytest.raises(NotFound):
        read_plan(tmp_path / "nowhere")
    with pytest.raises(Refused, match="neither sessions/ nor memory/"):
        read_plan(tmp_path)
    (tmp_path / "memory").mkdir()
    assert read_plan(tmp_path).sessions == ()


# Whatever stands in topics


def test_a_copied_paragraph_keeps_its_words_under_a_name_of_its_own(
    state: OpenProgramState,
) -> None:
    """Two paragraphs with one id: the words of both come; the same words come once."""
    state.topic(
        "a", "One thing. ^0000000a\n\nThe same. ^0000000b\n\n猫叫小黑。 ^0000000b ^0000000b\n"
    )
    state.topic("b", "Another thing. ^0000000a\n\nThe same. ^0000000c ^0000000a ^0000000b\n")
    plan = read_plan(state.root)
    found = blocks(plan)
    assert set(found) == {"One thing.", "Another thing.", "The same.", "猫叫小黑。"}
    assert found["One thing."].id == "b-0000000a"
    assert len({block.id for block in plan.blocks}) == 4
    assert [block.aliases for block in plan.blocks] == [(), (), (), ()]
    assert sorted(problem.name for problem in plan.problems) == ["a.md", "b.md"]
    assert [block.id for block in read_plan(state.root).blocks] == [one.id for one in plan.blocks]


@pytest.mark.parametrize(
    "text",
    [
        b"# \xff\n\nWords \xff \xe4 \xed\xa0\x80. ^0000000a\n",
        "# \u200b\n\n## \u202e\n\n### # \n\nWords. ^0000000a\n".encode(),
        b"# T\n\n## [^a]: x ^0000000b\n\nWords. ^0000000a\n",
        b"Words[^" + b"[^" * 3_000 + b" ^0000000a\n",
        b"Words.[^a] ^0000000a\n\n[^a]: Time: " + b" " * 30_000 + b"x\n",
        b"Words.[^a] ^0000000a\n\n[^a]:" + b" `" * 30_000 + b"; Sources\n",
        b"Words" + b" ^0000000b" * 30_000 + b" ^0000000a\n",
        b"Words " + b"[a](" * 30_000 + b" ^0000000a\n",
        b"Words. ^0000000a\n\n" * 3_000,
    ],
)
def test_no_text_of_a_topic_keeps_its_words_away(state: OpenProgramState, text: bytes) -> None:
    """What is read can be sent and is taken, whatever bytes and signs stand there, at once."""
    state.topic("odd", "").write_bytes(text)
    found = read_plan(state.root).blocks
    assert any(block.text.startswith("Words") for block in found)
    for block in found:
        assert msgspec.json.encode(block)
        for title in (block.title, block.heading):
            assert title is None or clean_title(title)


def test_a_name_that_is_not_utf8_is_named_as_it_can_be(state: OpenProgramState) -> None:
    """A topic's words come; the names of what can't be taken can be printed."""
    topic = state.topic("x", "Words.[^e] ^0000000a\n\n[^e]: Time: undated; Sources: [a](b.md#c)\n")
    topic.rename(os.fsdecode(bytes(topic.parent) + b"/\xff.md"))
    evidence = state.archive("t", b"")
    evidence.rename(os.fsdecode(bytes(evidence.parent) + b"/\xfe.md"))
    plan = read_plan(state.root)
    assert [block.text for block in plan.blocks] == ["Words."]
    assert msgspec.json.encode(plan.problems)


@pytest.mark.parametrize("said", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_the_first_and_the_last_day_are_days(state: OpenProgramState, said: str) -> None:
    """A footnote's time is compared with the days around its source's."""
    chat = state.session("sess-a")
    chat.user("u1", "long ago")
    chat.nodes["u1"]["created_at"] = said
    chat.write("u1")
    note = definition("e", chat.link("u1"), time="2026-08")
    state.topic("owner", f"Words.[^e] ^0000000a\n\n{note}\n")
    assert [block.text for block in read_plan(state.root).blocks] == ["Words. (2026-08)"]
