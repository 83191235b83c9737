"""Edits carried out: the right blocks, the right topics, and nothing else."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest

from turnmark_events.errors import NotFound, Refused, Stale
from turnmark_memory.apply import Applied, Sources, apply_edits
from turnmark_memory.labels import block_id_of
from turnmark_memory.model import (
    Add,
    Edit,
    Merge,
    Move,
    Pin,
    Retire,
    Revise,
    Split,
    SplitPart,
    Unpin,
)
from turnmark_memory.topic import Topic, block_hash
from turnmark_memory.topic_format import parse, render

TODAY = date(2026, 5, 2)
A, B, C = "s-aaaaaaaaaaaa", "s-bbbbbbbbbbbb", "s-cccccccccccc"
DANA = f"""---
about: Dana
---
# Dana

## Work

Dana leads billing.[^{A}] ^b-00000001

她负责税务。[^{B}] ^b-00000002

A person's own words.
"""
TAX = f"# Tax\n\nThe report is due in May.[^{C}] <!-- was b-000000ff --> ^b-00000003\n"


class Memory:
    """Topics in memory, with a count of what was read."""

    def __init__(self, **topics: str) -> None:
        self.topics: dict[str, Topic] = {
            name.replace("_", "/"): parse(text.encode()) for name, text in topics.items()
        }
        self.loaded: list[str] = []

    def load(self, path: str) -> Topic | None:
        """Reads a topic."""
        self.loaded.append(path)
        return self.topics.get(path)

    def where(self, name: str) -> str | None:
        """Finds a block by id or alias."""
        return next((path for path, topic in self.topics.items() if topic.block(name)), None)

    def apply(self, *edits: Edit, keep_history: bool = False) -> Applied:
        """Applies the edits with ids that follow from their places."""
        sources = Sources(
            load=self.load,
            where=self.where,
            resolve=lambda cite: {"t1": A}.get(cite, cite),
            ids=lambda number, part: block_id_of("seed", str(number), str(part)),
            abouts={"people/li": "用户的同事"},
        )
        return apply_edits(edits, sources=sources, today=TODAY, keep_history=keep_history)


@pytest.fixture
def memory() -> Memory:
    """A memory of two topics."""
    return Memory(people_dana=DANA, projects_tax=TAX)


def test_add_makes_a_block_with_a_derived_id(memory: Memory) -> None:
    """The cite is resolved, the id the caller's, and only the one topic is read."""
    done = memory.apply(
        Add(topic="People/Dana.md", heading="Work", text="She codes.", cites=("t1",))
    )
    (name,) = done.blocks[0]
    assert name == block_id_of("seed", "0", "0")
    block = done.topics["people/dana"].block(name)
    assert (block.text, block.cites, block.section) == ("She codes.", (A,), "Work")
    assert memory.loaded == ["people/dana"]
    (change,) = done.changes
    assert (change.before, change.after) == (None, f"She codes.[^{A}] ^{name}".encode())
    assert change.heading == "Work"


def test_add_to_an_unknown_topic_begins_it(memory: Memory) -> None:
    """Front matter with the caller's about, a title, the heading, the block."""
    done = memory.apply(Add(topic="people/li", heading="工作", text="李工在北京。", cites=(A,)))
    name = done.blocks[0][0]
    assert render(done.topics["people/li"]).decode() == (
        f"---\nabout: 用户的同事\n---\n# Li\n\n## 工作\n\n李工在北京。[^{A}] ^{name}\n"
    )


def test_taken_id_is_derived_again(memory: Memory) -> None:
    """A clash never gives two blocks one id."""
    taken = block_id_of("seed", "0", "0")
    memory.topics["subjects/x"] = parse(f"x.[^{A}] ^{taken}\n".encode())
    done = memory.apply(Add(topic="people/dana", text="y", cites=(A,)))
    assert done.blocks[0] == (block_id_of(taken),)


def test_revise_replaces_words_and_cites_and_checks_the_hash(memory: Memory) -> None:
    """With the right hash it is done, with another it is stale and names what is there."""
    old = memory.topics["people/dana"].block("b-00000001")
    edit = Revise(block="^b-00000001", text="Dana left.", cites=(A, B), expect=block_hash(old))
    done = memory.apply(edit)
    text = render(done.topics["people/dana"]).decode()
    assert text == DANA.replace(f"leads billing.[^{A}]", f"left.[^{A}][^{B}]")
    with pytest.raises(Stale) as caught:
        memory.apply(msgspec.structs.replace(edit, expect="0" * 16))
    assert caught.value.facts["hash"] == block_hash(old)


def test_revise_on_new_evidence_can_keep_the_old_words_as_history(memory: Memory) -> None:
    """The id stays with what holds now; the old words are superseded by it, dated."""
    edit = Revise(block="b-00000001", text="Dana left.", cites=(A, B))
    done = memory.apply(edit, keep_history=True)
    name, old_name = done.blocks[0]
    topic = done.topics["people/dana"]
    old = topic.block(old_name)
    assert name == "b-00000001"
    assert topic.block(name).text == "Dana left."
    assert (old.text, old.superseded_by, old.superseded_on) == ("Dana leads billing.", name, TODAY)
    same = Revise(block="b-00000001", text="Dana leads the billing.", cites=(A,))
    assert memory.apply(same, keep_history=True).blocks == (("b-00000001",),)


def test_retire_with_a_successor_keeps_the_block_dated(memory: Memory) -> None:
    """The successor may be a block that an earlier edit of the same answer makes."""
    done = memory.apply(
        Add(topic="people/dana", heading="Work", text="Dana left.", cites=(C,)),
        Retire(block="b-00000001", reason="she left", successor="+0"),
    )
    block = done.topics["people/dana"].block("b-00000001")
    assert (block.superseded_by, block.superseded_on) == (done.blocks[0][0], TODAY)
    assert block.text == "Dana leads billing."


def test_retire_without_a_successor_removes_with_a_reason(memory: Memory) -> None:
    """The block goes, the line and the reason stay in the change."""
    done = memory.apply(Retire(block="b-00000001", reason="was a joke"))
    assert render(done.topics["people/dana"]).decode() == DANA.replace(
        f"Dana leads billing.[^{A}] ^b-00000001\n\n", ""
    )
    (change,) = done.changes
    assert (change.after, change.reason, change.heading) == (None, "was a joke", "Work")
    assert change.before == f"Dana leads billing.[^{A}] ^b-00000001".encode()


def test_move_keeps_words_id_and_aliases(memory: Memory) -> None:
    """Out of one topic, to the end of a heading of another: two changes."""
    done = memory.apply(Move(block="b-000000ff", topic="people/dana", heading="Work"))
    block = done.topics["people/dana"].block("b-00000003")
    assert (block.text, block.aliases) == ("The report is due in May.", ("b-000000ff",))
    assert render(done.topics["projects/tax"]) == b"# Tax\n\n"
    assert {(c.topic, c.before is None) for c in done.changes} == {
        ("projects/tax", False),
        ("people/dana", True),
    }


def test_merge_keeps_the_first_id_and_all_names_and_cites(memory: Memory) -> None:
    """Merged ids stay as aliases, those they had included; cites are united in order."""
    done = memory.apply(Merge(blocks=("b-00000002", "b-00000003"), text="她五月交税务报告。"))
    block = done.topics["people/dana"].block("b-000000ff")
    assert (block.id, block.text) == ("b-00000002", "她五月交税务报告。")
    assert block.aliases == ("b-00000003", "b-000000ff")
    assert block.cites == (B, C)
    assert list(done.topics["projects/tax"].blocks()) == []


def test_merge_may_go_elsewhere_and_needs_two(memory: Memory) -> None:
    """A topic and heading of its own; one block twice is no merge."""
    done = memory.apply(
        Merge(blocks=("b-00000001", "b-00000002"), text="x", topic="projects/tax", heading="Team")
    )
    block = done.topics["projects/tax"].block("b-00000001")
    assert (block.section, block.aliases, block.cites) == ("Team", ("b-00000002",), (A, B))
    with pytest.raises(Refused, match="two"):
        memory.apply(Merge(blocks=("b-00000003", "b-000000ff"), text="x"))


def test_split_keeps_the_id_at_the_first_part(memory: Memory) -> None:
    """The others follow it with new ids, in order."""
    parts = tuple(SplitPart(text=text, cites=(A,)) for text in ("one", "二", "three"))
    done = memory.apply(Split(block="b-00000001", parts=parts))
    blocks = [block for block in done.topics["people/dana"].blocks() if block.id]
    assert [block.text for block in blocks] == ["one", "二", "three", "她负责税务。"]
    assert tuple(block.id for block in blocks[:3]) == done.blocks[0]
    assert done.blocks[0][0] == "b-00000001"


def test_pin_and_unpin_change_the_persons_part_of_the_core(memory: Memory) -> None:
    """The core topic is made if missing; pinning twice is pinning once."""
    done = memory.apply(Pin(block="b-00000001"), Pin(block="b-00000001"), Pin(block="b-00000003"))
    text = render(done.topics["core"]).decode()
    assert text.endswith("# Core\n\n![[people/dana#^b-00000001]]\n![[projects/tax#^b-00000003]]\n")
    memory.topics["core"] = done.topics["core"]
    done = memory.apply(Unpin(block="b-00000001"))
    assert render(done.topics["core"]).decode() == text.replace(
        "![[people/dana#^b-00000001]]\n", ""
    )


def test_pin_takes_the_embed_from_below_the_line(memory: Memory) -> None:
    """A pinned block is not shown twice."""
    line = "<!-- turnmark: below this line is arranged automatically -->"
    memory.topics["core"] = parse(f"# Core\n\n{line}\n\n![[people/dana#^b-00000001]]\n".encode())
    text = render(memory.apply(Pin(block="b-00000001")).topics["core"]).decode()
    assert text.count("b-00000001") == 1
    assert text.index("b-00000001") < text.index(line)


def test_embeds_follow_a_block_that_moves(memory: Memory) -> None:
    """A pin keeps working after a move and after a merge."""
    memory.topics["core"] = parse(
        b"![[people/dana#^b-00000001]]\n![[projects/tax.md#^b-00000003]]\n"
    )
    done = memory.apply(
        Move(block="b-00000001", topic="subjects/staff"),
        Merge(blocks=("b-00000002", "b-00000003"), text="x"),
    )
    assert render(done.topics["core"]) == (
        b"![[subjects/staff#^b-00000001]]\n![[people/dana#^b-00000003]]\n"
    )


def test_what_is_changed_back_is_no_change(memory: Memory) -> None:
    """Topics and changes hold the net result."""
    done = memory.apply(
        Revise(block="b-00000001", text="x", cites=(A,)),
        Revise(block="b-00000001", text="Dana leads billing.", cites=(A,)),
    )
    assert (done.topics, done.changes) == ({}, ())


def test_missing_block_and_unsafe_path_are_refused_and_change_nothing(memory: Memory) -> None:
    """An error leaves the caller's topics as they were."""
    before = dict(memory.topics)
    with pytest.raises(NotFound, match="b-99999999"):
        memory.apply(Retire(block="b-00000001", reason="x"), Retire(block="b-99999999", reason="x"))
    with pytest.raises(NotFound):
        memory.apply(
            Retire(block="b-00000001", reason="x"), Move(block="b-00000001", topic="people/x")
        )
    with pytest.raises(Refused):
        memory.apply(Add(topic="people/../../etc", text="x", cites=(A,)))
    with pytest.raises(Refused, match="successor"):
        memory.apply(Retire(block="b-00000001", reason="x", successor="+7"))
    assert memory.topics == before
