"""Recall over a real index, for a reader somewhere in the DAG."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from threading import Barrier

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.indexed import block, turn
from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.dense import DocRef
from turnmark_memory.hits import Hit, Source
from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters, Found, Kind
from turnmark_memory.placing import Place, label_of_places
from turnmark_memory.recall import Recall, RecallAnswer
from turnmark_memory.requests import ForgetRequest, RecallRequest

GIVE_UP_SECONDS = 60

OWN = Place(state="live", on_path=True, only_here=True, of_session=True)
SHARED = Place(state="live", on_path=True, only_here=False, of_session=True)
SIBLING = Place(state="live", on_path=False, only_here=False, of_session=True)
ELSEWHERE = Place(state="live", on_path=False, only_here=False, of_session=False)
UNKNOWN = Place(state="unknown", on_path=False, only_here=False, of_session=False)
RETIRED = Place(state="retired", on_path=False, only_here=False, of_session=True)
FORGOTTEN = Place(state="forgotten", on_path=False, only_here=False, of_session=False)


class Told:
    """Relations as told: by turn id, for any reader; without a session all is elsewhere."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.asked: list[tuple[int, str | None, str | None]] = []

    async def place(
        self, turns: Sequence[tuple[str, str]], session: str | None, tip: str | None
    ) -> Sequence[Place]:
        """Returns what was told, else a live turn of another session."""
        self.asked.append((len(turns), session, tip))
        await anyio.lowlevel.checkpoint()
        found = [self.places.get(id_, ELSEWHERE) for _, id_ in turns]
        if session is None:
            return [msgspec.structs.replace(p, of_session=False, on_path=False) for p in found]
        return found


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    opened = Index.open(tmp_path / "index.db")
    yield opened
    opened.close()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def recall(index: Index, told: Told) -> Recall:
    return Recall(index, told, words)


async def ask(recall: Recall, query: str, **given_fields: object) -> RecallAnswer:
    request = msgspec.convert({"query": query, **given_fields}, RecallRequest)
    with anyio.fail_after(GIVE_UP_SECONDS):
        return await recall.recall(request)


def refs(answer: RecallAnswer) -> list[str]:
    return [hit.ref for hit in answer.hits]


@pytest.mark.anyio
async def test_a_hit_carries_its_provenance_to_the_line(index: Index, recall: Recall) -> None:
    """Who said it, when, in which session, and where the archive holds the words."""
    index.add_turns([turn("s-1", "I lead the billing team.", 2)])
    index.set_topic("people/dana", "", 1, [block("b-1", "Dana leads the billing team.", "s-1")])
    answer = await ask(recall, "who leads the billing team?", kinds=["block"])
    turns = await ask(recall, "who leads the billing team?", kinds=["turn"])
    source = Source(
        turn="id-s-1",
        label="s-1",
        session="s1",
        speaker="Dana",
        time="2026-08-09T14:04:00.000Z",
        path="sources/claude-code/s1.jsonl",
        line=3,
    )
    by_ref = {hit.ref: hit for hit in (*answer.hits, *turns.hits)}
    assert by_ref["b-1"] == Hit(
        ref="b-1",
        kind="block",
        text="Dana leads the billing team.",
        score=by_ref["b-1"].score,
        branch="other-session",
        sources=(source,),
        topic="people/dana",
        time=source.time,
    )
    assert by_ref["s-1"] == Hit(
        ref="s-1",
        kind="turn",
        text="I lead the billing team.",
        score=by_ref["s-1"].score,
        branch="other-session",
        sources=(source,),
        session="s1",
        speaker="Dana",
        time=source.time,
    )
    assert (answer.tokens, turns.tokens) == (5, 5)


@pytest.mark.anyio
@pytest.mark.parametrize("query", ["Python", "后端", "后端用什么写的", "what is written in python"])
async def test_mixed_text_is_recalled_in_either_language(
    index: Index, recall: Recall, query: str
) -> None:
    """A Chinese turn with an English word in it answers questions in both."""
    index.add_turns([turn("s-1", "我用Python写后端服务"), turn("s-2", "see you tomorrow", 1)])
    assert refs(await ask(recall, query, kinds=["turn"], k=1)) == ["s-1"]


@pytest.mark.anyio
@pytest.mark.parametrize("query", ["", "   ", "\x00", "?!", "what is the capital of France"])
async def test_nothing_to_say_is_no_hit(index: Index, recall: Recall, query: str) -> None:
    """An empty question and an unrelated one get an empty answer."""
    index.add_turns([turn("s-1", "We raised capital last week."), turn("s-2", "Nice!", 1)])
    assert await ask(recall, query) == RecallAnswer(hits=(), tokens=0)


FIRST_DAYS = (
    "我上个月搬到了苏州，在园区租了一套两居室。",
    "I moved to Porto in March and rent a flat near the river.",
    "我对花生过敏，吃了会起疹子。",
    "My sister Anna works as a nurse in Lyon.",
    "We decided to use PostgreSQL for the billing service.",
    "我的狗叫豆豆，今年三岁。",
    "Our deploy window is Thursday at 14:00.",
    "I prefer tabs over spaces in Go code.",
    "我女儿在学钢琴，每周三上课。",
)
"""What a memory may hold after some days: so little that nearly every word is rare in it."""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("我住在哪个城市？", 0),
        ("我现在住哪", 0),
        ("Which city do I live in?", 1),
        ("where do I live?", 1),
        ("我对什么食物过敏？", 2),
        ("What does my sister do?", 3),
        ("Which database do we use for billing?", 4),
        ("我的狗叫什么名字？", 5),
        ("我的狗多大了", 5),
        ("On which day do we deploy?", 6),
        ("tabs or spaces?", 7),
        ("我女儿学什么乐器？", 8),
        ("孩子周几上课", 8),
        ("What is my blood type?", None),
        ("我喜欢什么颜色", None),
        ("Which cloud provider do we use?", None),
        ("我哪天结婚的", None),
        ("how do I boil an egg?", None),
    ],
)
async def test_a_young_memory_answers_and_knows_what_it_was_not_told(
    index: Index, recall: Recall, query: str, answer: int | None
) -> None:
    """Everyday questions in everyday words, by words alone."""
    index.add_turns([turn(f"s-{i}", text, session=f"x{i}") for i, text in enumerate(FIRST_DAYS)])
    found = refs(await ask(recall, query, k=1))
    assert found == ([] if answer is None else [f"s-{answer}"])


@pytest.mark.anyio
async def test_an_empty_memory_answers_nothing(recall: Recall) -> None:
    """Before the first install there is nothing, and that is no error."""
    assert refs(await ask(recall, "where does Dana work?")) == []


@pytest.mark.anyio
async def test_hits_are_labelled_by_the_branch_and_own_ones_come_first(
    index: Index, recall: Recall, told: Told
) -> None:
    """A reader at a tip sees what is of its branch before the alternatives."""
    names = {"own": OWN, "shared": SHARED, "sibling": SIBLING, "elsewhere": ELSEWHERE}
    index.add_turns([turn(f"s-{n}", "violin lessons", i, session=n) for i, n in enumerate(names)])
    told.places = {f"id-s-{name}": place for name, place in names.items()}
    answer = await ask(recall, "violin lessons", session="s1", tip="t9")
    assert answer.hits[0].ref == "s-own"
    assert {hit.ref: hit.branch for hit in answer.hits} == {
        "s-own": "own",
        "s-shared": "shared",
        "s-sibling": "other-branch",
        "s-elsewhere": "other-session",
    }
    assert told.asked == [(4, "s1", "t9")]
    anonymous = await ask(recall, "violin lessons")
    assert {hit.branch for hit in anonymous.hits} == {"other-session"}


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], "other-session"),
        ([OWN], "own"),
        ([OWN, SHARED], "own"),
        ([SHARED, SHARED], "shared"),
        ([OWN, SIBLING], "other-branch"),
        ([OWN, ELSEWHERE], "own"),
        ([SHARED, UNKNOWN], "shared"),
        ([ELSEWHERE, UNKNOWN], "other-session"),
        ([UNKNOWN], "other-session"),
        ([RETIRED], None),
        ([RETIRED, FORGOTTEN], None),
        ([RETIRED, OWN], "own"),
        ([RETIRED, ELSEWHERE], "other-session"),
    ],
)
def test_a_label_follows_from_the_cites(places: list[Place], expected: str | None) -> None:
    """The four labels of DAG and session; None where all was taken back."""
    assert label_of_places(places) == expected


@given(st.lists(st.sampled_from([OWN, SHARED, SIBLING, ELSEWHERE, UNKNOWN]), min_size=1))
def test_what_was_taken_back_never_changes_the_label_of_what_stands(places: list[Place]) -> None:
    """A retired cite neither hides a block nor makes it another branch's."""
    assert label_of_places([*places, RETIRED, FORGOTTEN]) == label_of_places(places)


@pytest.mark.anyio
async def test_what_rests_only_on_taken_back_turns_is_dropped(
    index: Index, recall: Recall, told: Told
) -> None:
    """Whatever the index still holds: retired and forgotten turns answer nothing."""
    index.add_turns([turn(f"s-{i}", "violin lessons", i) for i in range(3)])
    index.set_topic(
        "people/dana",
        "",
        1,
        [
            block("b-gone", "violin lessons", "s-0", "s-9"),
            block("b-half", "violin lessons", "s-0", "s-1"),
            block("b-person", "violin lessons"),
        ],
    )
    told.places = {"id-s-0": RETIRED, "id-s-1": OWN, "id-s-2": FORGOTTEN}
    index.forget(["s-9"])
    answer = await ask(recall, "violin lessons", session="s1")
    assert sorted(refs(answer)) == ["b-half", "b-person"]
    half = next(hit for hit in answer.hits if hit.ref == "b-half")
    assert [source.label for source in half.sources] == ["s-1"]


@pytest.mark.anyio
async def test_dropped_candidates_make_room_for_the_next(
    index: Index, recall: Recall, told: Told
) -> None:
    """`k` standing hits are found even behind many that fell."""
    index.add_turns([turn(f"s-{i:02}", "violin lessons", i) for i in range(60)])
    told.places = {f"id-s-{i:02}": RETIRED for i in range(10, 60)}
    answer = await ask(recall, "violin lessons", kinds=["turn"], k=5)
    assert len(answer.hits) == 5
    assert all(hit.ref < "s-10" for hit in answer.hits)


@pytest.mark.anyio
async def test_a_block_whose_turns_are_not_here_still_stands(index: Index, recall: Recall) -> None:
    """A copied workspace with a lost source file keeps its topics."""
    index.set_topic("people/dana", "", 1, [block("b-1", "violin lessons", "s-lost")])
    answer = await ask(recall, "violin lessons", session="s1")
    assert [(hit.ref, hit.branch, hit.sources) for hit in answer.hits] == [
        ("b-1", "other-session", ())
    ]


@pytest.mark.anyio
async def test_superseded_blocks_are_history(index: Index, recall: Recall) -> None:
    """What no longer holds is shown only when asked for, with what holds now."""
    index.set_topic(
        "people/dana",
        "",
        1,
        [
            block("b-new", "Dana lives in Porto."),
            block("b-old", "Dana lives in Lisbon.", superseded_by="b-new"),
        ],
    )
    assert refs(await ask(recall, "where does Dana live?")) == ["b-new"]
    answer = await ask(recall, "where does Dana live?", history=True)
    assert {hit.ref: hit.superseded_by for hit in answer.hits} == {"b-new": None, "b-old": "b-new"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "said", "now"),
    [
        ("where does Dana live?", "I live in Lisbon.", "Dana moved to Porto."),
        ("李雷住在哪里？", "我住在成都。", "李雷搬到了杭州。"),
    ],
)
async def test_what_holds_now_comes_before_the_words_that_it_superseded(
    index: Index, recall: Recall, query: str, said: str, now: str
) -> None:
    """The turn stays evidence of its time, and says what holds instead."""
    index.add_turns([turn("s-1", said, speaker="李雷"), turn("s-2", "Porto 杭州 !", 1)])
    blocks = [
        block("b-new", now, "s-2", aliases=("b-next",)),
        block("b-old", said, "s-1", superseded_by="b-next"),
    ]
    index.set_topic("people/dana", "", 1, blocks)
    found = {hit.ref: hit.superseded_by for hit in (await ask(recall, query)).hits}
    assert {"b-new": None, "s-1": "b-new"}.items() <= found.items()
    assert list(found).index("b-new") < list(found).index("s-1")


def test_a_turn_is_superseded_with_the_last_block_that_rests_on_it(index: Index) -> None:
    """Through all that came after; not by a circle, and not by what is gone."""
    blocks = [
        block("b-1", "one", "s-1", "s-2", superseded_by="b-2"),
        block("b-2", "two", superseded_by="b-3"),
        block("b-3", "three"),
        block("b-4", "four", "s-2"),
        block("b-5", "five", "s-3", superseded_by="b-6"),
        block("b-6", "six", superseded_by="b-5"),
        block("b-7", "seven", "s-4", superseded_by="b-gone"),
    ]
    index.set_topic("people/dana", "", 1, blocks)
    assert index.successors(["s-1", "s-2", "s-3", "s-4", "s-5"]) == {"s-1": "b-3"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"since": "2026-08-10"}, ["s-1"]),
        ({"until": "2026-08-09"}, ["s-0"]),
        ({"until": "2026-08-09T14:02:00Z"}, []),
        ({"since": "2026-08-09T16:02:00+02:00", "until": "2026-08-09"}, ["s-0"]),
        ({"speaker": "ANA"}, ["s-1"]),
        ({"speaker": "u-dana"}, ["s-0"]),
        ({"speaker": "nobody"}, []),
        ({"topic": "/people/"}, ["b-1"]),
        ({"topic": "/people/", "kinds": ["turn"]}, ["s-0"]),
        ({"topic": "people/dana.md", "kinds": ["block"]}, ["b-1"]),
        ({"topic": "People/DANA", "kinds": ["block"]}, ["b-1"]),
        ({"topic": "people", "kinds": ["block"]}, ["b-1"]),
        ({"topic": "people/da", "kinds": ["block"]}, []),
        ({"project": "/other"}, ["s-1"]),
        ({"kinds": []}, []),
    ],
)
async def test_hits_are_filtered(
    index: Index, recall: Recall, filters: dict[str, object], expected: list[str]
) -> None:
    """By time with whole days, speaker in any case, topic or folder, project and kind."""
    index.add_turns(
        [
            turn("s-0", "violin lessons"),
            turn("s-1", "violin lessons", 1, speaker="Ana", project="/other", day=1, session="x"),
        ]
    )
    index.set_topic("people/dana", "", 1, [block("b-1", "violin lessons", "s-0")])
    kinds = filters.get("kinds", ["block", "turn"] if "topic" in filters else ["turn"])
    answer = await ask(recall, "violin lessons", **{**filters, "kinds": kinds})
    assert sorted(refs(answer)) == expected


@pytest.mark.anyio
@pytest.mark.parametrize("wrong", ["yesterday", "", "2026-13-01", "昨天", "9999-99-99"])
async def test_a_time_that_is_none_is_refused(recall: Recall, wrong: str) -> None:
    """The message shows how to write one."""
    with pytest.raises(Refused, match="2026-08-09"):
        await ask(recall, "x", since=wrong)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["dense", "select"])
async def test_modes_that_need_a_model_say_so(recall: Recall, mode: str) -> None:
    """Missing models are named, not answered with no hits."""
    with pytest.raises(Unavailable, match="mode=lexical"):
        await ask(recall, "violin", mode=mode)


@pytest.mark.anyio
async def test_the_budget_leaves_out_what_does_not_fit(index: Index, recall: Recall) -> None:
    """A long hit makes room for shorter ones behind it; tokens are those of what is returned."""
    index.add_turns(
        [turn("s-0", "violin lessons " + "violin lessons again " * 20), turn("s-1", "violin", 50)]
    )
    answer = await ask(recall, "violin lessons", budget_tokens=5)
    assert refs(answer) == ["s-1"]
    assert answer.tokens == 1


@pytest.mark.anyio
async def test_no_more_than_k_hits(index: Index, recall: Recall) -> None:
    """Eight unless said otherwise."""
    index.add_turns([turn(f"s-{i}", "violin lessons", i) for i in range(30)])
    assert len((await ask(recall, "violin")).hits) == 8
    assert len((await ask(recall, "violin", k=3)).hits) == 3
    assert len((await ask(recall, "violin", k=100)).hits) == 30


@pytest.mark.anyio
async def test_single_characters_are_a_second_chance(index: Index, recall: Recall) -> None:
    """One character is enough to ask; without a common pair all of them must be there."""
    index.add_turns([turn("s-1", "家里的猫叫小花"), turn("s-2", "明天见", 1)])
    assert refs(await ask(recall, "猫", k=1)) == ["s-1"]
    assert refs(await ask(recall, "花猫", k=1)) == ["s-1"]
    assert refs(await ask(recall, "猫咪", k=1)) == []


@pytest.mark.anyio
async def test_questions_run_beside_each_other_and_writes(index: Index, recall: Recall) -> None:
    """Many readers at once all get their answer while the index changes."""
    index.add_turns([turn("s-0", "violin lessons")])
    answers: list[list[str]] = []

    async def one() -> None:
        answers.append(refs(await ask(recall, "violin lessons", k=1, kinds=["turn"])))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
        for number in range(5):
            await anyio.to_thread.run_sync(
                index.rebuild, [turn("s-0", "violin lessons")], [], number
            )
    assert answers == [["s-0"]] * 20


@pytest.mark.parametrize("k", [0, 1_001, -1])
def test_k_is_between_one_and_a_thousand(k: int) -> None:
    """A wrong number is a wrong request."""
    with pytest.raises(msgspec.ValidationError, match="k"):
        msgspec.convert({"query": "x", "k": k}, RecallRequest)


@pytest.mark.parametrize("given_fields", [{}, {"block": "b-1", "turn": "t"}])
def test_forgetting_needs_exactly_one_aim(given_fields: dict[str, str]) -> None:
    """Neither nothing nor two things at once can be forgotten."""
    with pytest.raises(msgspec.ValidationError, match="exactly one"):
        msgspec.convert(given_fields, ForgetRequest)


@pytest.mark.anyio
async def test_a_block_stands_for_the_turn_that_it_quotes(index: Index, recall: Recall) -> None:
    """One hit and not two; a turn that says more than its block stays beside it."""
    index.add_turns(
        [
            turn("s-1", "My violin teacher is Mister Petrov."),
            turn("s-2", "My violin cost four hundred, from a shop in Porto by the river.", 1),
        ]
    )
    blocks = [
        block("b-1", "Dana's violin teacher is Mister Petrov. 她的小提琴老师。", "s-1"),
        block("b-2", "Dana owns a violin.", "s-2"),
    ]
    index.set_topic("people/dana", "", 1, blocks)
    assert set(refs(await ask(recall, "violin"))) == {"b-1", "b-2", "s-2"}


class Meant:
    """An embedder as told: the nearness of documents, whatever is asked."""

    def __init__(self, scores: dict[DocRef, float], *, usable: bool = True) -> None:
        self._scores = scores
        self._usable = usable
        self.also: Collection[DocRef] = ()

    async def scores(
        self, query: str, *, limit: int, also: Collection[DocRef]
    ) -> dict[DocRef, float]:
        """Returns what was told, if it is usable."""
        await anyio.lowlevel.checkpoint()
        self.also = also
        if not self._usable:
            raise Unavailable("the embedder is not installed; pip install 'turnmark[e5]'")
        return self._scores


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["hybrid", "dense"])
async def test_what_is_near_in_meaning_is_found_without_a_shared_word(
    index: Index, told: Told, mode: str
) -> None:
    """And what is only somewhat near, or went out of the index, is not."""
    index.add_turns([turn("s-1", "我用Python写后端服务"), turn("s-2", "see you tomorrow", 1)])
    meant = Meant({("turn", "s-1"): 0.9, ("turn", "s-2"): 0.2, ("turn", "s-9"): 1.0})
    recall = Recall(index, told, words, dense=meant)
    assert refs(await ask(recall, "web programming", mode=mode)) == ["s-1"]
    assert refs(await ask(recall, "web programming", mode="lexical")) == []
    assert refs(await ask(recall, "web programming", mode=mode, speaker="Ana")) == []
    assert refs(await ask(recall, "web programming", mode=mode, kinds=["block"])) == []


@pytest.mark.anyio
async def test_a_narrow_filter_asks_for_the_meaning_of_all_behind_it(
    index: Index, told: Told
) -> None:
    """The nearest of the whole memory may all lie outside of the filter."""
    index.add_turns([turn("s-1", "one", speaker="Ana"), turn("s-2", "two", 1, speaker="Ben")])
    meant = Meant({})
    await ask(Recall(index, told, words, dense=meant), "anything", speaker="ana")
    assert set(meant.also) == {("turn", "s-1")}


@pytest.mark.anyio
async def test_an_embedder_that_cannot_be_used_leaves_the_words(index: Index, told: Told) -> None:
    """A hybrid search falls back to words; one by meaning alone says what to install."""
    index.add_turns([turn("s-1", "The violin teacher is Petrov.")])
    recall = Recall(index, told, words, dense=Meant({}, usable=False))
    assert refs(await ask(recall, "violin teacher")) == ["s-1"]
    with pytest.raises(Unavailable, match="pip install"):
        await ask(recall, "violin teacher", mode="dense")


class Watched(Index):
    """An index whose search waits for whom it is told to meet."""

    barrier: Barrier | None = None

    def likely(self, kind: Kind, terms: Sequence[str], k: int, filters: Filters) -> list[Found]:
        """Returns what the index returns, after the meeting."""
        if self.barrier is not None:
            self.barrier.wait(GIVE_UP_SECONDS)
        return super().likely(kind, terms, k, filters)


class Meets(Meant):
    """An embedder whose first answer waits for the search by words."""

    def __init__(self, scores: dict[DocRef, float], barrier: Barrier) -> None:
        super().__init__(scores)
        self._barrier: Barrier | None = barrier

    async def scores(
        self, query: str, *, limit: int, also: Collection[DocRef]
    ) -> dict[DocRef, float]:
        """Returns what was told, after the meeting."""
        barrier, self._barrier = self._barrier, None
        if barrier is not None:
            await anyio.to_thread.run_sync(barrier.wait, GIVE_UP_SECONDS)
        return await super().scores(query, limit=limit, also=also)


@pytest.mark.anyio
async def test_a_question_is_embedded_while_its_words_are_looked_for(
    tmp_path: Path, told: Told
) -> None:
    """Each waits for the other here: one after the other they would never meet."""
    index = Watched.open(tmp_path / "index.db")
    assert isinstance(index, Watched)
    index.add_turns([turn("s-1", "The violin teacher is Petrov."), turn("s-2", "小提琴", 1)])
    index.barrier = Barrier(2)
    recall = Recall(index, told, words, dense=Meets({("turn", "s-2"): 0.9}, index.barrier))
    answer = await ask(recall, "violin teacher", kinds=["turn"])
    assert set(refs(answer)) == {"s-1", "s-2"}
    index.close()


class Hanging(Meant):
    """An embedder that never answers."""

    def __init__(self) -> None:
        super().__init__({})
        self.began = anyio.Event()

    async def scores(
        self, query: str, *, limit: int, also: Collection[DocRef]
    ) -> dict[DocRef, float]:
        """Waits until it is cancelled."""
        del query, limit, also
        self.began.set()
        await anyio.sleep_forever()
        raise AssertionError


@pytest.mark.anyio
async def test_an_embedder_that_hangs_holds_no_answer_by_words(index: Index, told: Told) -> None:
    """However many questions wait for it; and those can be cancelled."""
    index.add_turns([turn("s-1", "The violin teacher is Petrov.")])
    dense = Hanging()
    recall = Recall(index, told, words, dense=dense)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask, recall, "violin teacher")
        with anyio.fail_after(GIVE_UP_SECONDS):
            await dense.began.wait()
            assert refs(await ask(recall, "violin teacher", mode="lexical")) == ["s-1"]
        tasks.cancel_scope.cancel()
    assert refs(await ask(recall, "violin teacher", mode="lexical")) == ["s-1"]


@pytest.mark.anyio
async def test_an_index_that_cannot_be_read_says_so_beside_an_embedder(
    index: Index, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is the index's own, and nobody waits for the embedder."""

    def unreadable(*_given: object) -> frozenset[str]:
        raise Unavailable("the index can't be used; check the free space")

    index.add_turns([turn("s-1", "The violin teacher is Petrov.")])
    monkeypatch.setattr(index, "speaker_terms", unreadable)
    with pytest.raises(Unavailable, match="check the free space"):
        await ask(Recall(index, told, words, dense=Hanging()), "violin teacher")
