"""The derived index on disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.indexed import START, block, turn
from turnmark_events.errors import Unavailable
from turnmark_memory.index import Index
from turnmark_memory.index_file import DamagedIndex
from turnmark_memory.index_rows import microseconds
from turnmark_memory.index_schema import BlockDoc, Filters, Kind, TopicDoc, TurnDoc
from turnmark_memory.search_text import query_of

ALL = Filters()
DAY_US = 86_400_000_000
KINDS: tuple[Kind, ...] = ("turn", "block")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture
def index(path: Path) -> Iterator[Index]:
    opened = Index.open(path)
    yield opened
    opened.close()


def turns(index: Index, question: str, filters: Filters = ALL) -> set[str]:
    return {found.ref for found in index.search("turn", query_of(question).terms, 50, filters)}


def blocks(index: Index, question: str, filters: Filters = ALL) -> set[str]:
    return {found.ref for found in index.search("block", query_of(question).terms, 50, filters)}


@pytest.mark.parametrize("question", ["Python", "后端", "服务", "pythonの後", "August 9, 2026"])
def test_a_mixed_turn_is_found_by_each_of_its_scripts(index: Index, question: str) -> None:
    """English words, Chinese pairs and the date all lead to the turn."""
    index.add_turns([turn("s-1", "我用Python写后端服务"), turn("s-2", "nothing", day=40)])
    assert turns(index, question) == {"s-1"}


def test_a_turn_given_again_replaces_the_first(index: Index) -> None:
    """Adding is by label; the old words find nothing any more."""
    index.add_turns([turn("s-1", "apples"), turn("s-1", "pears")])
    assert turns(index, "apples") == set()
    assert turns(index, "pear") == {"s-1"}
    assert index.counts().turns == 1


def test_a_turn_comes_back_as_it_went_in(index: Index) -> None:
    """Lookup by label and by id gives every field."""
    given_turn = turn("s-1", "words\x00and 字", 3, project="/p", day=1)
    index.add_turns([given_turn])
    assert index.turn("s-1") == given_turn
    assert index.turns_of_id("id-s-1") == [given_turn]
    assert index.turns_of_id("id-s-1", "family:x") == []
    assert index.turn("s-2") is None


def test_neighbours_are_those_of_the_session(index: Index) -> None:
    """The turns beside one in its own session, over gaps, and none beyond its ends."""
    index.add_turns(
        [turn("a", "1", 0), turn("b", "2", 5), turn("x", "3", 6, session="s2"), turn("c", "4", 9)]
    )
    before, after = index.neighbours("b")
    assert before is not None
    assert after is not None
    assert (before.label, after.label) == ("a", "c")
    assert index.neighbours("x") == (None, None)
    assert index.neighbours("unknown") == (None, None)


def test_setting_a_topic_replaces_its_blocks_alone(index: Index) -> None:
    """What stood in the topic goes, other topics stay, in the order of the file."""
    index.set_topic("people/dana", "who Dana is", 9, [block("b-1", "old"), block("b-2", "kept")])
    index.set_topic("projects/x", "", 1, [block("b-9", "elsewhere", topic="projects/x")])
    index.set_topic("people/dana", "Dana", 7, [block("b-2", "kept"), block("b-3", "new")])
    assert [doc.block for doc in index.blocks_of("people/dana")] == ["b-2", "b-3"]
    assert blocks(index, "old") == set()
    assert blocks(index, "elsewhere") == {"b-9"}
    rows = [(row.topic, row.about, row.blocks, row.tokens) for row in index.topics()]
    assert rows == [("people/dana", "Dana", 2, 7), ("projects/x", "", 1, 1)]
    assert [row.topic for row in index.topics(after="people/dana", limit=1)] == ["projects/x"]
    assert index.abouts(9) == [("people/dana", "Dana"), ("projects/x", "")]
    assert index.abouts(1) == [("people/dana", "Dana")]


@pytest.mark.parametrize("new_first", [True, False])
def test_a_moved_block_stands_in_one_topic(index: Index, new_first: bool) -> None:
    """Whichever of the two topics is set first, the block ends where it moved to."""
    moved = block("b-1", "Dana moved", "s-1", topic="projects/x")
    index.set_topic("people/dana", "", 1, [block("b-1", "Dana moved", "s-1"), block("b-2", "x")])
    steps = [("projects/x", [moved]), ("people/dana", [block("b-2", "x")])]
    for topic, docs in steps if new_first else reversed(steps):
        index.set_topic(topic, "", 1, docs)
    assert index.where("b-1") == "projects/x"
    assert index.blocks_citing("s-1") == ["b-1"]
    assert blocks(index, "moved") == {"b-1"}


def test_a_block_is_found_by_its_old_names(index: Index) -> None:
    """Aliases of merged blocks and Obsidian's caret lead to the block that lives on."""
    index.set_topic("t", "", 1, [block("b-1", "x", "s-2", "s-1", topic="t", aliases=("b-old",))])
    for name in ("b-1", "^b-1", "b-old", "^b-old"):
        found = index.block(name)
        assert found is not None
        assert (found.block, found.aliases) == ("b-1", ("b-old",))
        assert index.cites(name) == ("s-2", "s-1")
        assert index.where(name) == "t"
    index.remove_topic("t")
    assert index.block("b-old") is None
    assert index.where("b-1") is None
    assert index.cites("b-1") == ()


def test_a_block_is_found_by_the_topic_that_it_stands_in(index: Index) -> None:
    """A paragraph about Dana seldom repeats her name."""
    index.set_topic("people/dana", "", 1, [block("b-1", "Leads the billing team.")])
    assert blocks(index, "Dana") == {"b-1"}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(since_us=microseconds(START) + DAY_US), {"b"}),
        (Filters(until_us=microseconds(START) + DAY_US), {"a", "c"}),
        (Filters(speaker="dana"), {"a", "b"}),
        (Filters(speaker="u-dana"), {"a", "b"}),
        (Filters(speaker="assistant"), {"c"}),
        (Filters(project="/p"), {"b"}),
        (Filters(topic="people"), {"a"}),
        (Filters(topic="people/dana", speaker="assistant"), set()),
        (Filters(topic="peop"), set()),
    ],
)
def test_turns_are_filtered(index: Index, filters: Filters, expected: set[str]) -> None:
    """Time, speaker by id, name or role, project, and the topics that cite a turn."""
    index.add_turns(
        [
            turn("a", "apples"),
            turn("b", "apples", 1, project="/p", day=1),
            turn("c", "apples", 2, speaker=None, role="assistant"),
        ]
    )
    index.set_topic("people/dana", "", 1, [block("b-1", "apples", "a")])
    assert turns(index, "apples", filters) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (ALL, {"b-1", "b-2", "b-3"}),
        (Filters(history=True), {"b-1", "b-2", "b-3", "b-4"}),
        (Filters(since_us=microseconds(START) + DAY_US), {"b-2"}),
        (Filters(speaker="dana"), {"b-1"}),
        (Filters(topic="people/dana"), {"b-1", "b-3"}),
        (Filters(topic="projects"), {"b-2"}),
    ],
)
def test_blocks_are_filtered_by_what_they_cite(
    index: Index, filters: Filters, expected: set[str]
) -> None:
    """Superseded blocks are history; a person's block without cites has no speaker."""
    index.add_turns([turn("a", "x"), turn("b", "x", 1, speaker="Ana", day=1)])
    index.set_topic(
        "people/dana",
        "",
        1,
        [
            block("b-1", "apples", "a"),
            block("b-3", "apples"),
            block("b-4", "apples", "a", superseded_by="b-1"),
        ],
    )
    index.set_topic("projects/x", "", 1, [block("b-2", "apples", "b", topic="projects/x")])
    assert blocks(index, "apples", filters) == expected


def test_a_word_that_just_came_in_is_found_at_once(index: Index) -> None:
    """Remembered frequencies never hide a new word."""
    index.add_turns([turn(f"s-{i}", "apples and pears", i) for i in range(300)])
    assert turns(index, "Porto") == set()
    index.add_turns([turn("s-new", "moved to Porto", 300)])
    assert turns(index, "Porto") == {"s-new"}


def test_a_frequent_word_alone_behind_a_filter_is_still_looked_for(index: Index) -> None:
    """Dropping frequent words for speed must not cost the few documents that a filter leaves."""
    many = [turn(f"s-{i}", "apples", i, session=f"x{i}") for i in range(3_100)]
    index.add_turns([*many, turn("s-ana", "apples", 0, speaker="Ana"), turn("s-rare", "quinces")])
    assert turns(index, "apples quinces", Filters(speaker="ana")) == {"s-ana"}


def test_a_forgotten_turn_leaves_no_word_in_the_file(index: Index, path: Path) -> None:
    """Its text, stems and names are gone from the file and its log, and it can't come back."""
    secret = turn("s-1", "zanzibarquux 秘密計画", speaker="Quuxelda")
    index.add_turns([secret, turn("s-2", "apples", 1)])
    index.set_topic("t", "", 1, [block("b-1", "apples", "s-1", topic="t")])
    index.forget(["s-1"])
    index.add_turns([secret])
    assert index.turn("s-1") is None
    assert index.is_forgotten("s-1")
    assert turns(index, "zanzibarquux") == set()
    assert index.speaker_terms(["quuxelda"]) == frozenset()
    for file in path.parent.iterdir():
        held = file.read_bytes().lower()
        for word in ("zanzibarquux", "quuxelda", "秘密"):
            assert word.encode() not in held


def test_the_revision_survives_and_is_missing_in_a_new_index(path: Path) -> None:
    """None says: never built."""
    index = Index.open(path)
    assert index.revision is None
    index.revision = 7
    index.close()
    again = Index.open(path)
    assert again.revision == 7
    again.close()


def spoil_header(path: Path) -> None:
    path.write_bytes(b"no database at all" * 500)


def spoil_schema(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("DROP TABLE cite")
    db.close()


def spoil_version(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.pragma("user_version", 999)
    db.close()


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("spoil", [spoil_header, spoil_schema, spoil_version, empty])
def test_an_index_that_cannot_be_used_is_replaced_by_an_empty_one(
    path: Path, spoil: object
) -> None:
    """Damage and other schemas end as "never built", not as an error."""
    index = Index.open(path)
    index.add_turns([turn("s-1", "apples")])
    index.revision = 3
    index.close()
    assert callable(spoil)
    spoil(path)
    again = Index.open(path)
    assert again.revision is None
    assert again.counts().turns == 0
    again.rebuild([turn("s-1", "apples")], [], 3)
    assert turns(again, "apples") == {"s-1"}
    again.close()


def test_a_database_of_another_program_is_not_replaced(path: Path) -> None:
    """A path given by mistake must not cost somebody's data."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA application_id = 42; CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(Unavailable, match="another program"):
        Index.open(path)
    db = apsw.Connection(str(path))
    assert db.execute("SELECT count(*) FROM theirs").fetchall() == [(0,)]
    db.close()


def test_damage_met_while_reading_is_named_and_mended_by_a_rebuild(path: Path) -> None:
    """A query on a spoiled page says so; a rebuild makes the index whole."""
    index = Index.open(path)
    docs = [turn(f"s-{i}", f"apples {i}", i) for i in range(500)]
    index.add_turns(docs)
    index.close()
    held = bytearray(path.read_bytes())
    page = held.index(b"apples 250") // 4096 * 4096
    held[page : page + 4096] = b"\xff" * 4096
    path.write_bytes(bytes(held))
    index = Index.open(path)

    def read_all() -> None:
        for doc in docs:
            index.turn(doc.label)

    with pytest.raises(DamagedIndex, match="anew"):
        read_all()
    index.rebuild(docs, [], 1)
    assert len(turns(index, "apples")) == 50
    index.close()


def test_a_failed_rebuild_leaves_the_index_as_it_was(index: Index) -> None:
    """The new file takes the old one's place only when it is whole."""
    index.add_turns([turn("s-1", "apples")])

    def broken() -> Iterator[TurnDoc]:
        yield turn("s-2", "pears")
        raise KeyError

    with pytest.raises(KeyError):
        index.rebuild(broken(), [], 2)
    assert turns(index, "apples") == {"s-1"}
    index.rebuild([turn("s-2", "pears")], [], 2)
    assert turns(index, "apples pears") == {"s-2"}
    assert index.revision == 2


def test_a_rebuild_keeps_what_was_forgotten_out(index: Index) -> None:
    """Even if the caller still has the words."""
    index.add_turns([turn("s-1", "apples")])
    index.forget(["s-1"])
    index.rebuild([turn("s-1", "apples")], [], 1)
    assert turns(index, "apples") == set()
    assert index.is_forgotten("s-1")


def test_readers_in_other_threads_go_on_beside_writes_and_rebuilds(index: Index) -> None:
    """Each read sees one whole state: all of a session's turns or none."""
    together = [turn(f"s-{i}", "apples", i) for i in range(20)]
    stop = threading.Event()
    seen: list[int] = []
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not stop.is_set():
                seen.append(len(turns(index, "apples")))
        except BaseException as error:  # noqa: BLE001  reported by the test's own thread
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(6):
        index.add_turns(together)
        index.rebuild([], [], number)
    index.add_turns(together)
    stop.set()
    for reader in readers:
        reader.join(timeout=60)
    assert failures == []
    assert set(seen) <= {0, 20}
    assert len(turns(index, "apples")) == 20


WORDS = st.sampled_from(["apples", "pears", "Porto", "后端服务", "我用Python", "2026-08-09"])
TEXTS = st.lists(WORDS, max_size=4).map(" ".join)
LABELS = [f"s-{i}" for i in range(6)]
TOPICS = ["people/dana", "projects/x", "core"]
NAMES = [f"b-{i}" for i in range(8)]

ADD = st.tuples(st.just("add"), st.sampled_from(LABELS), TEXTS, st.sampled_from(["Dana", None]))
FORGET = st.tuples(st.just("forget"), st.sampled_from(LABELS))
REMOVE = st.tuples(st.just("remove"), st.sampled_from(TOPICS))
SET = st.tuples(
    st.just("set"),
    st.sampled_from(TOPICS),
    st.dictionaries(
        st.sampled_from(NAMES), st.tuples(TEXTS, st.lists(st.sampled_from(LABELS), unique=True))
    ),
)


class Model:
    """What the index should hold, in plain dictionaries."""

    def __init__(self) -> None:
        self.turns: dict[str, TurnDoc] = {}
        self.forgotten: set[str] = set()
        self.topics: dict[str, dict[str, BlockDoc]] = {}

    def apply(self, index: Index, step: tuple[object, ...]) -> None:
        """Does one step in both."""
        match step:
            case ("add", str(label), str(text), speaker):
                assert speaker is None or isinstance(speaker, str)
                doc = turn(label, text, LABELS.index(label), speaker=speaker)
                index.add_turns([doc])
                if label not in self.forgotten:
                    self.turns[label] = doc
            case ("forget", str(label)):
                index.forget([label])
                self.turns.pop(label, None)
                self.forgotten.add(label)
            case ("remove", str(topic)):
                index.remove_topic(topic)
                self.topics.pop(topic, None)
            case ("set", str(topic), dict(given_blocks)):
                docs = {b: block(b, t, *c, topic=topic) for b, (t, c) in given_blocks.items()}
                index.set_topic(topic, f"about {topic}", len(docs), list(docs.values()))
                for other in self.topics.values():
                    for name in docs:
                        other.pop(name, None)
                self.topics[topic] = docs

    def rebuild(self, index: Index) -> None:
        """Builds an index of what the model holds."""
        topics = [
            TopicDoc(topic=topic, about=f"about {topic}", tokens=0, blocks=tuple(docs.values()))
            for topic, docs in self.topics.items()
        ]
        index.rebuild(self.turns.values(), topics, 1, forgotten=self.forgotten)


def contents(index: Index) -> object:
    """Returns all that can be seen from outside, except numbers that a set gives."""
    rows = index.topics()
    question = query_of("apples pears Porto 后端服务 Python Dana 2026-08-09")
    return (
        index.counts(),
        [index.turn(label) for label in LABELS],
        [index.neighbours(label) for label in LABELS],
        [index.is_forgotten(label) for label in LABELS],
        [index.blocks_citing(label) for label in LABELS],
        [index.block(name) for name in NAMES],
        [(row.topic, row.about, row.blocks, index.blocks_of(row.topic)) for row in rows],
        index.frequencies("turn", question.terms),
        index.frequencies("block", question.terms),
        index.speaker_terms(question.terms),
        *(
            sorted((one.ref, round(one.score, 9), one.terms) for one in found)
            for found in (
                index.search("turn", question.terms, 50, ALL),
                index.search("block", question.terms, 50, ALL),
            )
        ),
    )


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.one_of(ADD, SET, SET, FORGET, REMOVE), max_size=14))
def test_an_index_kept_up_to_date_equals_one_built_anew(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
) -> None:
    """After any steps the index is what a rebuild from the same documents would be."""
    directory = tmp_path_factory.mktemp("model")
    kept, built = Index.open(directory / "kept.db"), Index.open(directory / "built.db")
    model = Model()
    for step in steps:
        model.apply(kept, step)
    model.rebuild(built)
    assert contents(kept) == contents(built)
    assert [kept.turn(label) for label in LABELS] == [model.turns.get(label) for label in LABELS]
    kept.close()
    built.close()


def test_neighbours_are_those_of_the_branch(index: Index) -> None:
    """Lines of sibling branches lie between each other in the archive; what was said after tells.

    A turn of which nobody noted it (an older line) goes by its place.
    """
    said = [("s-1", "", 0), ("s-2", "s-1", 1), ("s-3", "s-1", 2), ("s-4", "s-2", 3)]
    index.add_turns(
        [
            msgspec.structs.replace(turn(label, "words", place), after=after)
            for label, after, place in said
        ]
    )

    def beside(label: str) -> list[str | None]:
        return [None if one is None else one.label for one in index.neighbours(label)]

    assert beside("s-1") == [None, "s-2"]
    assert beside("s-3") == ["s-1", None]
    assert beside("s-4") == ["s-2", None]
    index.add_turns([turn("s-5", "words", 4)])
    assert beside("s-5") == ["s-4", None]


def _segments(path: Path, kind: str) -> int:
    """Returns in how many places a word has to be looked for."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    ((number,),) = db.execute(f"SELECT count(DISTINCT segid) FROM {kind}_words_idx")
    db.close()
    return number


def test_what_was_written_bit_by_bit_is_merged(tmp_path: Path) -> None:
    """Into one piece for each kind; what is found stays the same, forgotten words stay out."""
    path = tmp_path / "index.db"
    index = Index.open(path)
    for at in range(70):
        index.add_turns([turn(f"s-{at}", f"word{at} 第{at}句话 apples", at)])
        index.set_topic(f"people/p{at}", "", 1, [block(f"b-{at}", f"likes apples {at}", f"s-{at}")])
    index.forget(["s-3"])
    assert all(_segments(path, kind) > 1 for kind in KINDS)
    found = [index.likely(kind, ["appl", "word3", "word4"], 99, ALL) for kind in KINDS]
    index.compact()
    assert [_segments(path, kind) for kind in KINDS] == [1, 1]
    assert [index.likely(k, ["appl", "word3", "word4"], 99, ALL) for k in KINDS] == found
    assert index.frequencies("turn", ["word3", "word4"]) == {"word3": 0, "word4": 1}
    heard: list[str] = []
    index.on_change(lambda: heard.append("write"))
    index.compact()
    assert not heard
    index.close()


def test_a_rebuilt_index_is_in_one_piece(tmp_path: Path) -> None:
    """However much was written into it at once."""
    index = Index.open(tmp_path / "index.db")
    long = " ".join(f"w{n}" for n in range(4_000))
    index.rebuild([turn(f"s-{at}", f"{long} {at}", at) for at in range(80)], [], 1)
    assert _segments(tmp_path / "index.db", "turn") == 1
    index.close()


def test_the_sizes_are_those_of_what_is_there(index: Index, path: Path) -> None:
    """Whatever was replaced, moved, removed, forgotten or rebuilt."""

    def counted() -> dict[str, int]:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        sizes = {kind: next(db.execute(f"SELECT count(*) FROM {kind}"))[0] for kind in KINDS}
        db.close()
        assert {kind: index.size(kind) for kind in KINDS} == sizes
        return sizes

    assert counted() == {"turn": 0, "block": 0}
    index.add_turns([turn("s-1", "早上好"), turn("s-2", "good morning", 1)])
    index.add_turns([turn("s-2", "good evening", 1)])
    index.set_topic("people/dana", "", 1, [block("b-1", "one", "s-1"), block("b-2", "two")])
    assert counted() == {"turn": 2, "block": 2}
    index.set_topic("people/ana", "", 1, [block("b-2", "two", topic="people/ana")])
    index.set_topic("people/dana", "", 1, [block("b-1", "one more", "s-1"), block("b-3", "three")])
    assert counted() == {"turn": 2, "block": 3}
    index.forget(["s-1", "s-9"])
    index.remove_topic("people/dana")
    assert counted() == {"turn": 1, "block": 1}
    index.rebuild([turn(f"s-{at}", "again", at) for at in range(4)], [], 2)
    assert counted() == {"turn": 3, "block": 0}
