"""The topic format: nothing lost in reading, nothing else touched in writing, nothing forged."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.documents import HOSTILE, documents
from turnmark_events.errors import NotFound, Refused
from turnmark_memory.footnotes import definition, with_definitions
from turnmark_memory.topic import Block, Definition, Raw, Segment, Topic, block_hash
from turnmark_memory.topic_edit import (
    add_block,
    insert_after,
    mark_person,
    new_topic,
    put_block,
    remove_block,
    replace_block,
    restore_block,
    set_about,
    supersede_block,
    with_ids,
)
from turnmark_memory.topic_format import parse, render
from turnmark_memory.topic_path import topic_path
from turnmark_memory.words import clean_words, words_problem

DANA = b"""---
about: who Dana is to the user; her role and preferences
---
# Dana

## Work

Dana leads the billing team since May 2026.[^s-8a9128075e1b] ^b-af3dee4f

## Home

She lives in Porto.[^s-111111111111][^s-222222222222] <!-- was b-0000aaaa --> ^b-22223333

[^s-8a9128075e1b]: 2026-08-09 14:02 \xc2\xb7 Dana
[^s-111111111111]: x
[^s-222222222222]: y
"""
NEW = "b-fedcba98"
LABEL = "s-abcdefabcdef"


def others(topic: Topic, *ids: str) -> Counter[str]:
    """Returns the exact lines of all segments but blanks and the blocks `ids`."""
    return Counter(
        part.raw.strip("\r\n")
        for part in topic.segments
        if not (isinstance(part, Raw) and part.kind == "blank")
        and not (isinstance(part, Block) and part.id in ids)
    )


def first_numbered(topic: Topic) -> Block | None:
    """Returns a block that can be named without doubt."""
    named = Counter(block.id for block in topic.blocks())
    return next((b for b in topic.blocks() if b.id and named[b.id] == 1), None)


@given(documents())
def test_round_trip_is_exact_for_any_bytes(data: bytes) -> None:
    """Reading and writing gives the same bytes, and the segments' lines add up."""
    topic = parse(data)
    assert render(topic) == data
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for line, part in topic.lines():
        first, *_ = render(Topic(segments=(part,))).split(b"\n")
        assert lines[line - 1].startswith(first) or _is_mark(part)


def _is_mark(part: Segment) -> bool:
    return isinstance(part, Raw) and part.kind == "mark"


def test_example_of_the_design_is_understood() -> None:
    """About, title, headings, words, cites, aliases and definitions are read."""
    topic = parse(DANA)
    first, second = topic.blocks()
    assert topic.about == "who Dana is to the user; her role and preferences"
    assert topic.title == "Dana"
    assert (first.id, first.text) == ("b-af3dee4f", "Dana leads the billing team since May 2026.")
    assert (first.section, first.headings) == ("Work", ("Dana", "Work"))
    assert second.cites == ("s-111111111111", "s-222222222222")
    assert second.aliases == ("b-0000aaaa",)
    assert topic.block("b-0000aaaa") == second
    assert topic.warnings == ()


@given(documents(), st.sampled_from([None, "Work", "工作", "A new one"]), st.sampled_from(HOSTILE))
def test_added_block_reads_back_and_leaves_the_rest(
    data: bytes, heading: str | None, words: str
) -> None:
    """Whatever the document and the words, the block is there and all else is as it was."""
    before = parse(data)
    try:
        after = add_block(before, text=words, cites=[LABEL], id=NEW, heading=heading)
    except Refused:
        assert not clean_is_possible(words)
        return
    block = after.block(NEW)
    assert block is not None
    assert (block.text, block.cites, block.aliases) == (clean_words(words), (LABEL,), ())
    if heading is not None:
        assert block.headings[-1].casefold() == heading.casefold()
    added = others(after, NEW) - others(before)
    assert added - Counter([f"## {heading}"]) == Counter()
    assert others(before) - others(after, NEW) == Counter()


def clean_is_possible(words: str) -> bool:
    """Tells whether `words` can be cleaned at all."""
    try:
        clean_words(words)
    except Refused:
        return False
    return True


@given(documents(), st.sampled_from([word for word in HOSTILE if clean_is_possible(word)]))
def test_replaced_block_keeps_its_place_and_leaves_the_rest(data: bytes, words: str) -> None:
    """Other words stand where the old ones stood."""
    before = parse(data)
    old = first_numbered(before)
    if old is None or old.id is None:
        return
    after = replace_block(before, old.id, text=words, cites=[LABEL])
    new = after.block(old.id)
    assert new is not None
    assert (new.text, new.cites, new.aliases) == (clean_words(words), (LABEL,), old.aliases)
    assert new.headings == old.headings
    assert others(after, old.id) == others(before, old.id)
    assert [b.id for b in after.blocks()] == [b.id for b in before.blocks()]


@given(documents())
def test_removed_block_leaves_the_rest(data: bytes) -> None:
    """Only the block goes, however close its neighbours stand."""
    before = parse(data)
    old = first_numbered(before)
    if old is None or old.id is None:
        return
    after = remove_block(before, old.id)
    assert others(after) == others(before, old.id)
    assert after.about == before.about


@given(documents())
def test_superseded_moved_and_followed_blocks_leave_the_rest(data: bytes) -> None:
    """A note, a move and a block after another change their own line only."""
    before = parse(data)
    old = first_numbered(before)
    if old is None or old.id is None:
        return
    noted = supersede_block(before, old.id, by=NEW, on=date(2026, 5, 2))
    block = noted.block(old.id)
    assert block is not None
    assert (block.superseded_by, block.superseded_on) == (NEW, date(2026, 5, 2))
    assert block.text == clean_words(block.text) or block.text == old.text
    assert others(noted, old.id) == others(before, old.id)
    part = parse(f"x.[^{LABEL}] ^{NEW}".encode()).block(NEW)
    assert part is not None
    followed = insert_after(before, old.id, part)
    ids = [b.id for b in followed.blocks()]
    assert ids[ids.index(old.id) + 1] == NEW
    assert others(followed, NEW) == others(before)
    moved = put_block(remove_block(before, old.id), old, "Elsewhere")
    assert others(moved, old.id) - Counter(["## Elsewhere"]) <= others(before, old.id)


@given(documents())
def test_numbering_adds_ids_and_nothing_else(data: bytes) -> None:
    """Paragraphs have ids afterwards; words, hashes and anchors are as before."""
    before = parse(data)
    count = iter(range(1000))
    after = with_ids(before, lambda _: f"b-{next(count):08x}")
    assert all(block.id or block.raw.rstrip()[-1] in "-+*.)" for block in after.blocks())
    assert [block_hash(b) for b in after.blocks()] == [block_hash(b) for b in before.blocks()]
    assert [b.anchor for b in after.blocks()] == [b.anchor for b in before.blocks()]


@given(documents(), st.sampled_from(["who Dana is", "a: b # c", "'引号'", "是谁", "true"]))
def test_about_is_set_and_read_back(data: bytes, about: str) -> None:
    """Setting `about` changes its line alone, in any document."""
    before = parse(data)
    after = set_about(before, about)
    assert after.about == clean_words(about)
    assert [b.raw for b in after.blocks()] == [b.raw for b in before.blocks()]
    assert render(set_about(after, about)) == render(after)


@given(documents())
def test_definitions_are_exact_and_stable(data: bytes) -> None:
    """Ours are those used, in order of first use; foreign ones and all blocks stay."""
    before = parse(data)
    known = {"s-8a9128075e1b": "[^s-8a9128075e1b]: one", "s-111111111111": "[^s-111111111111]: two"}
    after = with_definitions(before, known)
    ours = [
        p.raw.strip() for p in after.segments if isinstance(p, Definition) and p.label[:2] == "s-"
    ]
    assert [line for line in ours if line in known.values()] == ours
    assert len(set(ours)) == len(ours)
    foreign = [p.raw for p in before.segments if isinstance(p, Definition) and p.label[:2] != "s-"]
    kept = [p.raw for p in after.segments if isinstance(p, Definition) and p.label[:2] != "s-"]
    assert [raw.strip("\r\n") for raw in kept] == [raw.strip("\r\n") for raw in foreign]
    assert [b.raw.strip("\r\n") for b in after.blocks()] == [
        b.raw.strip("\r\n") for b in before.blocks()
    ]
    assert render(with_definitions(after, known)) == render(after)


def test_definitions_are_rewritten_in_order_of_first_use() -> None:
    """Unused ones go, missing ones come, and a second rewrite changes nothing."""
    topic = parse(b"# D\n\na.[^s-222222222222] ^b-11111111\n\n"
                  b"b.[^s-111111111111][^s-222222222222]\n"
                  b"\n[^s-111111111111]: old\n[^s-999999999999]: unused\n[^1]: mine\n")  # fmt: skip
    after = with_definitions(
        topic,
        {"s-111111111111": "[^s-111111111111]: new", "s-222222222222": "[^s-222222222222]: two"},
    )
    assert render(after).endswith(b"[^1]: mine\n\n[^s-222222222222]: two\n[^s-111111111111]: new\n")


def test_definition_line_is_the_one_of_the_design() -> None:
    """Time in UTC, speaker with id, a link relative to the topic."""
    line = definition(
        label="s-8a9128075e1b",
        time=datetime(2026, 8, 9, 16, 2, tzinfo=timezone(timedelta(hours=2))),
        speaker_name="Dana",
        speaker_id="u-17",
        role="user",
        agent="claude-code",
        session="3b1f",
        topic_path="people/dana",
        source_path="sources/claude-code/3b1f.jsonl",
        line=12,
    )
    assert line == (
        "[^s-8a9128075e1b]: 2026-08-09 14:02 · Dana (u-17) · "
        "[claude-code/3b1f](../../sources/claude-code/3b1f.jsonl#L12)"
    )


def test_definition_falls_back_and_cannot_be_forged() -> None:
    """Without a name the id, without both the role; marks in a name are escaped, on one line."""

    def line(name: str | None, ident: str | None) -> str:
        return definition(
            label=LABEL, time=datetime(2026, 1, 2, tzinfo=UTC), speaker_name=name, speaker_id=ident,
            role="assistant", agent="codex", session="会话 1", topic_path="core",
            source_path="sources/codex/会话 1.jsonl", line=1,
        )  # fmt: skip

    assert "· u-17 ·" in line(None, "u-17")
    assert "· assistant ·" in line(None, None)
    assert "· 张伟 ·" in line("张伟", None)
    hostile = line("x](http://e)\n[^s-8a9128075e1b]: y ^b-12345678 <!-- z", None)
    assert "\n" not in hostile
    assert "\\]" in hostile
    assert hostile.count(": ") == 2
    assert len(list(parse(f"{hostile}\n".encode()).segments)) == 1
    assert "(../sources/codex/%E4%BC%9A" in hostile


@pytest.mark.parametrize("words", [word for word in HOSTILE if clean_is_possible(word)])
def test_hostile_words_stay_words(words: str) -> None:
    """A block of hostile words has their one id, their one cite, and no structure."""
    topic = add_block(new_topic("people/dana"), text=words, cites=[LABEL], id=NEW)
    (block,) = topic.blocks()
    assert (block.id, block.cites, block.aliases) == (NEW, (LABEL,), ())
    assert (block.kind, block.superseded_by, block.anchor) == ("paragraph", None, None)
    assert list(topic.embeds()) == []
    raw = block.raw
    assert "![" not in raw
    assert "-->" not in raw
    assert not any(ord(c) < 32 and c != "\n" for c in raw)
    assert not any(c in raw for c in "\u202e\u2066\u200b\ufeff\U000e0041\u2028")


@given(st.one_of(st.text(max_size=80), st.text("\\[^]!<-# >`|*_%$b1.a\n中", max_size=40)))
def test_cleaning_twice_is_cleaning_once(words: str) -> None:
    """A writer that is shown cleaned words and gives them back changes nothing."""
    if clean_is_possible(words):
        once = clean_words(words)
        assert clean_words(once) == once
        block = add_block(parse(b""), text=words, cites=[LABEL], id=NEW).block(NEW)
        assert block is not None
        assert (block.text, block.cites) == (once, (LABEL,))


def test_useful_characters_survive_cleaning() -> None:
    """Emoji sequences, Persian joiners, ideographs with a selector, links and emphasis stay."""
    for words in (
        "👩‍👩‍👧 ok",
        "می‌خواهم",
        "葛\U000e0100飾区",
        "*Dana* likes [tea](http://x.y) & `code`",
        "❤️",
    ):
        assert clean_words(words) == words


def test_lines_of_a_paragraph_are_joined_by_script() -> None:
    """A space between Latin or Korean lines, none between Chinese ones."""
    assert clean_words("a\nb") == "a b"
    assert clean_words("她住在\n波尔图。") == "她住在波尔图。"
    assert clean_words("그는\n서울에") == "그는 서울에"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "empty"),
        ("\u200b \n", "empty"),
        ("a\n\nb", "several paragraphs"),
        ("a\u2029b", "several paragraphs"),
        ("x" * 2001, "2001"),
        ("says it.[^s-8a9128075e1b]", "footnote"),
        ("says it. ^b-12345678", "block id"),
        ("things:\n- a\n- b", "list"),
        ("code:\n```\nx\n```", "list"),
    ],
)
def test_words_that_break_the_rules_are_refused_with_a_reason(words: str, reason: str) -> None:
    """The reason says what is wrong."""
    assert reason in (words_problem(words) or "")


def test_good_words_have_no_problem() -> None:
    """Two lines, an escaped footnote and Chinese are fine."""
    assert words_problem("Dana said\nshe likes \\[^x] and 2 > 1") is None
    assert words_problem("她 2026 年搬到了波尔图。") is None


def test_warnings_name_the_line() -> None:
    """Duplicate ids, undefined footnotes and open front matter are told, with their lines."""
    text = b"---\nabout: x\n\na.[^s-8a9128075e1b] ^b-11111111\n\nb ^b-11111111\n\n```\n"
    found = [(w.line, w.problem) for w in parse(text).warnings]
    assert [line for line, _ in found] == [1, 4, 6, 8]
    assert "front matter" in found[0][1]
    assert "s-8a9128075e1b" in found[1][1]
    assert "b-11111111" in found[2][1]
    assert "fence" in found[3][1]


def test_a_slip_of_the_person_hides_no_block() -> None:
    """An unclosed fence or comment above leaves the blocks below in place."""
    for slip in (b"```", b"<!-- todo", b"<script>"):
        topic = parse(slip + b"\n\na.[^s-8a9128075e1b] ^b-11111111\n")
        assert topic.block("b-11111111") is not None
        assert len(topic.warnings) == 2


def test_code_and_escapes_are_no_structure() -> None:
    """A fence hides ids and headings; an escaped footnote is words."""
    topic = parse(b"```\n# x ^b-11111111\n```\n\nsee \\[^s-8a9128075e1b] here\n")
    (block,) = topic.blocks()
    assert (block.id, block.cites, block.headings) == (None, (), ())


def test_blocks_go_where_they_belong() -> None:
    """Under their heading, before footnotes, above the automatic line; new headings at the end."""
    topic = add_block(parse(DANA), text="She likes tea.", cites=[LABEL], id=NEW, heading="work")
    assert [block.id for block in topic.blocks()] == ["b-af3dee4f", NEW, "b-22223333"]
    topic = add_block(topic, text="Top.", cites=[LABEL], id="b-00000001")
    topic = add_block(topic, text="茶。", cites=[LABEL], id="b-00000002", heading="爱好")
    text = render(topic).decode()
    assert text.index("Top.") < text.index("## Work")
    assert (
        text.index("b-22223333")
        < text.index("## 爱好")
        < text.index("茶。")
        < text.index("[^s-8a9128075e1b]:")
    )
    line = "<!-- turnmark: below this line is arranged automatically -->"
    core = parse(f"# Core\n\n{line}\n\n![[people/dana#^b-af3dee4f]]\n".encode())
    text = render(add_block(core, text="Mine.", cites=[], id=NEW, heading="H")).decode()
    assert text.index("Mine.") < text.index(line)


def test_new_topic_has_front_matter_and_a_title() -> None:
    """About is the caller's, or says what such a topic holds, in the script of its title."""
    assert render(new_topic("projects/tax-report")).decode() == (
        "---\nabout: the project Tax Report; its decisions, plans and facts\n---\n# Tax Report\n"
    )
    assert new_topic("people/dana").about == "who Dana is; what Dana prefers, decides and plans"
    assert (new_topic("people/user").about or "").startswith("who the user is")
    assert new_topic("people/张伟").about == "张伟是谁；偏好、决定和计划"
    assert new_topic("projects/搬家").about == "项目搬家：决定、计划和事实"
    assert new_topic("subjects/notes").about == "Notes"
    assert new_topic("people/张伟", "用户的同事：张伟").about == "用户的同事：张伟"


def test_hash_follows_words_and_cites_alone() -> None:
    """Rewrapping, moving or numbering keep the hash; words and cites change it."""
    hashes = [
        block_hash(next(parse(text).blocks()))
        for text in (
            b"a b.[^s-8a9128075e1b] ^b-11111111",
            b"# H\n\na\nb.[^s-8a9128075e1b]\n",
            b"a c.[^s-8a9128075e1b] ^b-11111111",
            b"a b.[^s-111111111111] ^b-11111111",
        )
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_person_is_the_origin_without_cites_or_by_mark() -> None:
    """A mark in the file makes a cited block a person's, and leaves its words."""
    topic = parse(DANA)
    assert topic.block("b-af3dee4f").origin == "writer"
    marked = mark_person(topic, "b-af3dee4f")
    assert marked.block("b-af3dee4f").origin == "person"
    assert block_hash(marked.block("b-af3dee4f")) == block_hash(topic.block("b-af3dee4f"))
    assert next(parse("我喜欢茶。".encode()).blocks()).origin == "person"


def test_restored_block_takes_its_place_or_its_heading() -> None:
    """The exact line comes back, in place of newer words or where it was removed."""
    line = "Dana leads the billing team since May 2026.[^s-8a9128075e1b] ^b-af3dee4f"
    topic = parse(DANA)
    reworded = replace_block(topic, "b-af3dee4f", text="x", cites=[LABEL])
    assert render(restore_block(reworded, "b-af3dee4f", line, "Work")) == DANA
    removed = remove_block(topic, "b-af3dee4f")
    assert render(restore_block(removed, "b-af3dee4f", line, "Work")) == DANA


def test_notes_leave_a_persons_line_breaks() -> None:
    """An id on a line of its own stays there, with the note beside it."""
    topic = parse(f"two\nlines[^{LABEL}]\n^b-11111111\n".encode())
    for by in ("b-22222222", "b-33333333"):
        noted = supersede_block(topic, "b-11111111", by=by, on=date(2026, 5, 2))
        assert noted.block("b-11111111").superseded_by == by
        text = f"two\nlines[^{LABEL}]\n<!-- superseded 2026-05-02 by {by} --> ^b-11111111\n"
        assert render(noted).decode() == text
        topic = noted


def test_missing_block_is_not_found() -> None:
    """Changing what isn't there says so."""
    with pytest.raises(NotFound, match="b-00000000"):
        remove_block(parse(DANA), "b-00000000")


@pytest.mark.parametrize(
    ("given_path", "path"),
    [
        ("people/dana", "people/dana"),
        ("People/Dana.md", "people/dana"),
        ("projects/税务/2026 report", "projects/税务/2026-report"),
        ("subjects/e\u0301te\u0301", "subjects/\u00e9t\u00e9"),
        ("core.md", "core"),
        ("topics/people/dana.md", "people/dana"),
    ],
)
def test_topic_path_has_one_form(given_path: str, path: str) -> None:
    """NFC, lower case, neither the folder of topics nor an extension."""
    assert topic_path(given_path) == path


@pytest.mark.parametrize(
    "path",
    [
        "", "people", "people/", "other/x", "/people/dana", "people/../core", "people/.hidden",
        "people/a/b/c", "people/con", "people/com1.txt", "people/a\x00", "people/a:b",
        "people/a\\b", "people/" + "x" * 81, "people/" + "𝒳" * 70, "core/x", "people/a.",
        "people/\u200bx", "people/a..b",
    ],
)  # fmt: skip
def test_unsafe_topic_path_is_refused(path: str) -> None:
    """Nothing leaves the three folders, hides, or names a device."""
    with pytest.raises(Refused):
        topic_path(path)
