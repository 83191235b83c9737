"""A change read where it was made: what the whole document would say, to the last segment."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from memory.documents import ENDS, HOSTILE, PIECES, documents
from turnmark_memory import topic_splice
from turnmark_memory.topic import Block, Topic
from turnmark_memory.topic_edit import add_block, cut_segment, insert, remove_block, replace_block
from turnmark_memory.topic_format import parse, parse_text, render_text
from turnmark_memory.topic_splice import reread, spliced

LABEL = "s-abcdefabcdef"
# What a line below may turn into something else, or may itself take in.
EDGES = (
    "",
    "\n",
    "words",
    "words\n",
    "words\n\n",
    "\nwords ^b-12345678\n",
    "===",
    "---\n",
    "|---|\n",
    "    in\n",
    "> ",
    "- ",
    "```\n",
    "```",
    "~~~\n",
    "<!-- ",
    "-->\n",
    "<div>\n",
    "</pre>\n",
    "<pre>\n",
    "# ",
    "## Work\n",
    "[^1]: x\n",
    f"[^{LABEL}]: x\n",
    "\ufeff",
    "\r\n",
    "\r",
    " ",
    "^b-12345678\n",
)


def texts() -> st.SearchStrategy[str]:
    """Returns texts to put in: whole pieces, the edges of pieces, and noise."""
    ended = st.builds("".join, st.tuples(st.sampled_from(PIECES), st.sampled_from(ENDS)))
    one = st.one_of(ended, st.sampled_from([*EDGES, *HOSTILE]), st.text(max_size=20))
    return st.lists(one, max_size=3).map("".join)


def long_documents() -> st.SearchStrategy[bytes]:
    """Returns documents in which a change has something above and below it, few left open."""
    closed = [piece for piece in PIECES if "unclosed" not in piece]
    ended = st.builds("".join, st.tuples(st.sampled_from(closed), st.sampled_from(ENDS)))
    calm = st.lists(ended, min_size=4, max_size=16).map("".join).map(str.encode)
    return st.one_of(calm, calm, st.lists(documents(), min_size=2, max_size=4).map(b"\n".join))


@given(long_documents(), st.data())
def test_a_change_reads_as_the_whole_document_would(data: bytes, draws: st.DataObject) -> None:
    """Any text in place of any segments, again and again: the same segments and the same bytes."""
    topic = parse(data)
    assert topic.names is not None  # looked for, so that it is carried over
    for _ in range(draws.draw(st.integers(1, 4))):
        size = len(topic.segments)
        start = draws.draw(st.integers(0, size))
        end = draws.draw(st.integers(start, min(size, start + 3)))
        text = draws.draw(texts())
        whole = reread(topic, start, end, text)
        near = topic_splice.read_nearby(topic, start, end, text)
        event("read nearby" if near else "read as a whole")
        changed = spliced(topic, start, end, text)
        assert changed == whole
        assert changed.names == whole.names
        assert all(any(one is part for part in changed.segments) for one in _named(changed))
        assert changed.warnings == whole.warnings
        assert near is None or near == whole
        topic = changed
    assert topic == parse_text(render_text(topic))


@given(long_documents(), st.data())
def test_edits_give_what_a_reader_of_the_file_would_see(data: bytes, draws: st.DataObject) -> None:
    """After each add, change, removal and insertion the topic is what its text says."""
    topic = parse(data)
    for number in range(draws.draw(st.integers(1, 5))):
        topic = _edited(topic, number, draws)
        again = parse_text(render_text(topic))
        assert topic == again
        assert topic.names == again.names


def _named(topic: Topic) -> list[Block]:
    names = topic.names
    said = [block for blocks in names.said.values() for block in blocks]
    return [*names.blocks.values(), *names.aliases.values(), *said]


def _edited(topic: Topic, number: int, draws: st.DataObject) -> Topic:
    blocks = [block.id for block in topic.blocks() if block.id is not None]
    words = draws.draw(st.sampled_from(["words", "多喝水", *HOSTILE[2:9]]))
    what = draws.draw(st.sampled_from(["add", "replace", "remove", "cut", "insert"]))
    if what == "add":
        heading = draws.draw(st.sampled_from([None, "Work", "工作", "New"]))
        name = f"b-0000000{number}"
        return add_block(topic, text=f"a {words}", cites=[LABEL], id=name, heading=heading)
    if what in ("replace", "remove") and blocks:
        name = draws.draw(st.sampled_from(blocks))
        if what == "remove":
            return remove_block(topic, name)
        return replace_block(topic, name, text=f"b {words}", cites=[LABEL])
    if what == "cut" and topic.segments:
        return cut_segment(topic, draws.draw(st.integers(0, len(topic.segments) - 1)))
    return insert(topic, draws.draw(st.integers(0, len(topic.segments))), words)


def _topic(blocks: int) -> Topic:
    lines = [f"Thing {number}.[^s-{number:012x}] ^b-{number:08x}\n" for number in range(blocks)]
    ends = [f"[^s-{number:012x}]: 2026-08-09\n" for number in range(blocks)]
    return parse_text("---\nabout: x\n---\n# T\n\n## 工作\n\n" + "\n".join([*lines, *ends]))


@pytest.mark.parametrize("place", ["end", "middle"])
def test_a_change_of_a_large_topic_reads_its_neighbours_alone(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole document is read for none of a hundred edits, and all of them are in it."""
    monkeypatch.setattr(topic_splice, "reread", None)
    topic = _topic(500)
    for number in range(100):
        if place == "end":
            name = f"b-f{number:07x}"
            topic = add_block(topic, text="新的。", cites=[LABEL], id=name, heading="工作")
        else:
            name = f"b-{number + 100:08x}"
            topic = replace_block(topic, name, text="changed", cites=[LABEL])
        found = topic.block(name)
        assert found is not None
        assert (found.cites, found.section) == ((LABEL,), "工作")
    assert topic == parse_text(render_text(topic))


def test_a_heading_between_gives_the_blocks_below_its_name() -> None:
    """Blocks that are not read again stand under the new title, and lose it with it."""
    topic = _topic(50)
    index = next(i for i, part in enumerate(topic.segments) if isinstance(part, Block)) + 20
    titled = spliced(topic, index, index, "### New\n\n")
    last = list(titled.blocks())[-1]
    assert (last.section, last.headings) == ("New", ("T", "工作", "New"))
    assert spliced(titled, index, index + 2, "") == topic


def test_an_open_fence_above_is_closed_by_what_is_put_in_below() -> None:
    """What a person left open hides what comes between, as in the file."""
    topic = parse(b"# T\n\n```\n\na ^b-11111111\n\nb ^b-22222222\n\nc ^b-33333333\n")
    changed = insert(topic, len(topic.segments), "```")
    assert [block.id for block in topic.blocks()] == ["b-11111111", "b-22222222", "b-33333333"]
    assert list(changed.blocks()) == []
