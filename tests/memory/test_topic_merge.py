"""Merging a person's saved topic with an install's: by block, the person first, and repeatable."""

from __future__ import annotations

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.documents import documents
from turnmark_memory.file_exchange import MergeInput
from turnmark_memory.topic_edit import add_block, remove_block, replace_block, supersede_block
from turnmark_memory.topic_format import parse, render
from turnmark_memory.topic_merge import merge_topics

BASE = b"""---
about: Dana
---
# Dana

## Work

One.[^s-111111111111] ^b-11111111

Two.[^s-222222222222] ^b-22222222

Three.[^s-333333333333] ^b-33333333
"""


def merged(base: bytes | None, theirs: bytes | None, ours: bytes | None, path: str = "") -> bytes:
    return merge_topics(
        MergeInput(path=path or "topics/people/dana.md", base=base, theirs=theirs, ours=ours)
    )


def installed() -> bytes:
    """Returns what an install made of the base: two revised, one taken out, one new."""
    topic = parse(BASE)
    topic = replace_block(topic, "b-11111111", text="One anew.", cites=("s-444444444444",))
    topic = replace_block(topic, "b-22222222", text="Two anew.", cites=("s-444444444444",))
    topic = remove_block(topic, "b-33333333")
    topic = add_block(
        topic, heading="Work", text="Four.", cites=("s-444444444444",), id="b-44444444"
    )
    return render(topic)


def test_takes_the_installs_blocks_where_the_person_touched_nothing() -> None:
    """Saved without a change of a block: the install's words stand, the person's prose stays."""
    theirs = BASE.replace(b"# Dana\n", "# Dana\n\nMy words. 我的话。\n".encode())
    text = merged(BASE, theirs, installed()).decode()
    assert "One anew." in text
    assert "Two anew." in text
    assert "Three." not in text
    assert text.count("Four.") == 1
    assert "My words. 我的话。" in text


def test_lets_the_persons_words_win_block_by_block() -> None:
    """A block that both changed is the person's; one they removed stays removed."""
    theirs = BASE.replace(b"One.", b"One, says I.").replace(
        b"Two.[^s-222222222222] ^b-22222222\n\n", b""
    )
    theirs = theirs.replace(b"Three.", b"Three, says I.")
    text = merged(BASE, theirs, installed()).decode()
    assert "One, says I." in text
    assert "One anew." not in text
    assert "Two" not in text
    assert "Three, says I." in text
    assert "Four." in text


def test_keeps_the_persons_line_ends() -> None:
    """A file saved with CRLF keeps them, and what is merged in has them too."""
    theirs = BASE.replace(b"\n", b"\r\n") + b"\r\nMine.\r\n"
    result = merged(BASE, theirs, installed())
    assert b"Mine.\r\n" in result
    assert b"Four." in result
    assert result.count(b"\n") == result.count(b"\r\n")


def test_puts_only_new_blocks_where_the_person_removed_the_file() -> None:
    """What they removed stays removed with the file; what is new is kept."""
    text = merged(BASE, None, installed()).decode()
    assert "Four." in text
    assert "One" not in text
    assert "Two" not in text


def test_arranges_the_core_below_the_line_and_leaves_the_person_above() -> None:
    """The part above is the person's save; below it are the install's embeds."""
    line = "<!-- turnmark: below this line is arranged automatically -->"
    base = f"# Core\n\n{line}\n\n![[people/dana#^b-11111111]]\n".encode()
    ours = f"# Core\n\n{line}\n\n![[people/eve#^b-22222222]]\n".encode()
    theirs = f"# Core\n\nI am 李雷.\n\n{line}\n\n![[people/dana#^b-11111111]]\n".encode()
    text = merged(base, theirs, ours, "topics/core.md").decode()
    assert "I am 李雷." in text
    assert "people/eve#^b-22222222" in text
    assert "people/dana" not in text


@st.composite
def installs(draw: st.DrawFn) -> tuple[bytes | None, bytes | None]:
    """Draws a base and what an install makes of it: blocks revised, taken out, superseded, new."""
    base = draw(st.none() | documents())
    topic = parse(base or b"")
    for block in topic.blocks():
        if block.id is None or [one.id for one in topic.blocks()].count(block.id) != 1:
            continue
        match draw(st.sampled_from(["keep", "keep", "revise", "remove", "supersede"])):
            case "revise":
                topic = replace_block(topic, block.id, text="anew 新", cites=("s-444444444444",))
            case "remove":
                topic = remove_block(topic, block.id)
            case "supersede":
                topic = supersede_block(topic, block.id, by="b-eeee0000", on=date(2026, 8, 9))
            case _:
                pass
    for number in range(draw(st.integers(0, 2))):
        topic = add_block(
            topic,
            heading=draw(st.sampled_from([None, "Work", "工作"])),
            text=f"new {number}",
            cites=("s-555555555555",),
            id=f"b-eeee000{number}",
        )
    return base, render(topic)


@settings(max_examples=400, deadline=None)
@given(install=installs(), theirs=st.none() | documents(), core=st.booleans())
def test_merging_again_changes_nothing(
    install: tuple[bytes | None, bytes | None], theirs: bytes | None, core: bool
) -> None:
    """`merge(b, t, merge(b, t, o)) == merge(b, t, o)`, whatever was saved: a redo needs it."""
    base, ours = install
    path = "topics/core.md" if core else ""
    once = merged(base, theirs, ours, path)
    assert merged(base, theirs, once, path) == once
    for number in range(2):
        name = f"b-eeee000{number}"
        if core is False and parse(ours or b"").block(name) is not None:
            assert parse(once).block(name) is not None


@settings(max_examples=200, deadline=None)
@given(base=documents(), theirs=documents())
def test_gives_the_persons_blocks_back_where_the_install_changed_nothing(
    base: bytes, theirs: bytes
) -> None:
    """Without a change of ours the person's blocks and order are what they saved."""
    before = [(one.id, one.text) for one in parse(theirs).blocks()]
    after = [(one.id, one.text) for one in parse(merged(base, theirs, base)).blocks()]
    assert after == before
