"""Tests of what embeds in the background and answers recall."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import anyio
import pytest

from memory.embedding.hashed import DIMENSION, Hashed
from memory.indexed import block, turn
from turnmark_events.errors import Unavailable
from turnmark_memory.dense import DocRef
from turnmark_memory.embedding import e5
from turnmark_memory.embedding.documents import RECIPE, of_turn
from turnmark_memory.embedding.frame import Frame
from turnmark_memory.embedding.meaning import Meaning
from turnmark_memory.embedding.space import Space
from turnmark_memory.embedding.vector_file import VectorFile
from turnmark_memory.index import Index

NOTHING: list[DocRef] = []


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Gives an empty index."""
    made = Index.open(tmp_path / "index.db")
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[VectorFile]:
    """Gives vectors beside it."""
    made = VectorFile(tmp_path / "vectors.db")
    yield made
    made.close()


@asynccontextmanager
async def running(meaning: Meaning) -> AsyncGenerator[None, None]:
    """Runs it beside the test."""
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(60):
            await tasks.start(meaning_run(meaning))
            yield
            tasks.cancel_scope.cancel()


def meaning_run(meaning: Meaning):
    """Returns its task."""

    async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        await meaning.run(task_status=task_status)

    return run


def quick(index: Index, file: VectorFile, embedder: Hashed | None, **options) -> Meaning:
    """Returns one that does not rest."""
    return Meaning(index, file, embedder, rest_seconds=0, **options)


async def best(meaning: Meaning, query: str) -> str | None:
    """Returns the ref of what is nearest, if it is near enough to answer."""
    scores = await meaning.scores(query, limit=10, also=NOTHING)
    top = max(scores.items(), key=lambda one: one[1], default=None)
    return None if top is None or top[1] < 0.5 else top[0][1]


@pytest.mark.anyio
async def test_embeds_what_is_there_and_what_comes(index: Index, file: VectorFile) -> None:
    """Turns and blocks, at the start and after each write; turns as said and bare, each once."""
    embedder = Hashed()
    index.add_turns([turn("s-1", "我用Python写后端服务"), turn("s-2", "the violin teacher", 1)])
    meaning = quick(index, file, embedder)
    assert await meaning.scores("violin", limit=10, also=NOTHING) == {}
    async with running(meaning):
        await meaning.wait_until_current()
        assert await best(meaning, "the violin teacher") == "s-2"
        index.set_topic("people/dana", "", 1, [block("b-1", "Dana paints boats", "s-1")])
        await meaning.wait_until_current()
        assert await best(meaning, "Dana paints boats") == "b-1"
        await meaning.wait_until_current()
    ends = ("the violin teacher", "我用Python写后端服务", "Dana paints boats")
    assert sorted(text for text in embedder.embedded if text.endswith(ends)) == [
        "[9 August 2026] Dana: the violin teacher",
        "[9 August 2026] Dana: 我用Python写后端服务",
        "dana: Dana paints boats",
        "the violin teacher",
        "我用Python写后端服务",
    ]
    status = meaning.status()
    assert (status.name, status.state, status.embedded, status.documents) == (
        "hashed/1",
        "current",
        3,
        3,
    )


@pytest.mark.anyio
async def test_says_how_much_there_is_before_anything_is_embedded(
    index: Index, file: VectorFile
) -> None:
    """Until it is counted it waits: `0 of 0` would be taken for an empty memory."""
    index.add_turns([turn("s-1", "tea"), turn("s-2", "茶", 1)])
    seen: list[tuple[str, int]] = []

    class Watching(Hashed):
        def passage(self, text: str) -> bytes:
            if text.endswith(("tea", "茶")):
                seen.append((meaning.status().state, meaning.status().documents))
            return super().passage(text)

    meaning = quick(index, file, Watching())
    assert meaning.status().state == "waiting"
    async with running(meaning):
        await meaning.wait_until_current()
    assert set(seen) == {("embedding", 2)}


_KILLED = """
import os, sys
from pathlib import Path
import anyio
from memory.embedding.hashed import Hashed
from turnmark_memory.embedding import e5
from turnmark_memory.embedding.meaning import Meaning
from turnmark_memory.embedding.vector_file import VectorFile
from turnmark_memory.index import Index

class Killed(Hashed):
    def passage(self, text):
        if len(self.embedded) == 48 + 2 * 20:  # the probes, one slice, and a little
            os._exit(9)
        return super().passage(text)

place = Path(sys.argv[1])
meaning = Meaning(
    Index.open(place / "index.db"), VectorFile(place / "vectors.db"), Killed(), rest_seconds=0
)

async def run():
    async with anyio.create_task_group() as tasks:
        await tasks.start(meaning.run)

anyio.run(run)
"""


@pytest.mark.anyio
async def test_goes_on_after_a_kill_where_it_was(index: Index, tmp_path: Path) -> None:
    """What was kept is not embedded again, and it was the newest."""
    index.add_turns([turn(f"s-{n:02}", f"word{n} thing{n}", n) for n in range(40)])
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    with anyio.fail_after(60):
        killed = await anyio.run_process(
            command, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        )
    assert killed.returncode == 9, killed.stderr
    file = VectorFile(tmp_path / "vectors.db")
    assert sorted(ref for _, (_, ref) in file.refs_after(1, -1, 99)) == [
        f"s-{n}" for n in range(24, 40)
    ]
    embedder = Hashed()
    meaning = quick(index, file, embedder)
    async with running(meaning):
        await meaning.wait_until_current()
        assert await best(meaning, "word3 thing3") == "s-03"
    assert file.count() == 40
    assert len(embedder.embedded) == 2 * 24  # no probe again
    file.close()


@pytest.mark.anyio
async def test_what_changed_is_embedded_anew_and_what_is_gone_erased(
    index: Index, file: VectorFile
) -> None:
    """A block's new words count, its old ones don't; a removed topic leaves no vector."""
    embedder = Hashed()
    meaning = quick(index, file, embedder)
    async with running(meaning):
        index.set_topic("people/dana", "", 1, [block("b-1", "paints boats"), block("b-2", "sings")])
        await meaning.wait_until_current()
        index.set_topic("people/dana", "", 1, [block("b-1", "climbs hills"), block("b-2", "sings")])
        await meaning.wait_until_current()
        assert await best(meaning, "climbs hills") == "b-1"
        assert await best(meaning, "paints boats") is None
        assert sum("sings" in text for text in embedder.embedded) == 1
        index.remove_topic("people/dana")
        await meaning.wait_until_current()
        assert file.count() == 0


@pytest.mark.anyio
async def test_a_rebuilt_index_costs_no_embedding(index: Index, file: VectorFile) -> None:
    """Words that are the same keep their vectors; what the rebuild left out goes."""
    turns = [turn("s-1", "the violin teacher"), turn("s-2", "a red boat", 1)]
    embedder = Hashed()
    index.add_turns(turns)
    meaning = quick(index, file, embedder)
    async with running(meaning):
        await meaning.wait_until_current()
        embedded = len(embedder.embedded)
        index.rebuild(turns[:1], [], 1)
        await meaning.wait_until_current()
    assert len(embedder.embedded) == embedded
    assert file.count() == 1


@pytest.mark.anyio
async def test_what_was_forgotten_meanwhile_is_not_kept(index: Index, file: VectorFile) -> None:
    """A turn that is being embedded when it is erased leaves no vector behind."""
    embedder = Hashed()
    index.add_turns([turn("s-1", "a secret")])
    meaning = quick(index, file, embedder)
    async with running(meaning):
        await meaning.wait_until_current()
        embedder.gate = Event()
        index.add_turns([turn("s-2", "another secret", 1)])
        index.forget(["s-2"])
        file.erase([("turn", "s-2")])
        embedder.gate.set()
        await meaning.wait_until_current()
    assert file.slots_of(1, [("turn", "s-1"), ("turn", "s-2")]) == {("turn", "s-1"): 0}


@pytest.mark.anyio
async def test_old_vectors_serve_until_another_embedder_has_made_its_own(
    index: Index, file: VectorFile
) -> None:
    """Asked through their own embedder; then the new ones serve and the old ones are gone."""
    old, new = Hashed("old/1"), Hashed("new/1")
    index.add_turns([turn("s-1", "the violin teacher"), turn("s-2", "a red boat", 1)])
    before = quick(index, file, old)
    async with running(before):
        await before.wait_until_current()
    new.gate = Event()
    meaning = quick(index, file, new, before={"old/1": old}.get)
    async with running(meaning):
        assert await best(meaning, "a red boat") == "s-2"
        new.gate.set()
        await meaning.wait_until_current()
        assert await best(meaning, "a red boat") == "s-2"
        assert [generation.space for generation in file.generations()] == ["new/1"]
    assert [one.asked.count("a red boat") for one in (old, new)] == [1, 1]


@pytest.mark.anyio
async def test_old_vectors_serve_until_documents_are_embedded_in_the_new_way(
    index: Index, file: VectorFile
) -> None:
    """Another recipe of one embedder: the vectors of before answer, then they are gone."""
    embedder = Hashed()
    index.add_turns([turn("s-1", "the violin teacher")])
    document = of_turn("s-1", "a red boat", speaker=None, at=turn("s-1", "").time)
    before = file.begin(embedder.space, RECIPE - 1, DIMENSION, Frame.of(embedder).to_bytes())
    file.put(before.id, [Space(file, embedder, before).make(document)])
    file.complete(before.id)
    embedder.gate = Event()
    meaning = quick(index, file, embedder)
    async with running(meaning):
        assert await best(meaning, "a red boat") == "s-1"
        embedder.gate.set()
        await meaning.wait_until_current()
        assert await best(meaning, "a red boat") is None
        assert await best(meaning, "the violin teacher") == "s-1"
        assert [generation.recipe for generation in file.generations()] == [RECIPE]


@pytest.mark.anyio
async def test_vectors_of_an_embedder_that_is_gone_do_not_answer(
    index: Index, file: VectorFile
) -> None:
    """Numbers of two spaces can't be compared: words alone answer until there are new ones."""
    index.add_turns([turn("s-1", "the violin teacher")])
    before = quick(index, file, Hashed("old/1"))
    async with running(before):
        await before.wait_until_current()
    meaning = quick(index, file, Hashed("new/1"))
    assert await meaning.scores("the violin teacher", limit=5, also=NOTHING) == {}
    async with running(meaning):
        await meaning.wait_until_current()
        assert await best(meaning, "the violin teacher") == "s-1"


@pytest.mark.anyio
async def test_damaged_vectors_are_made_anew(index: Index, file: VectorFile) -> None:
    """A search that meets the damage answers by words, and starts the repair."""
    index.add_turns([turn(f"s-{n}", f"word{n}", n) for n in range(150)])
    meaning = quick(index, file, Hashed())
    async with running(meaning):
        await meaning.wait_until_current()
        file.close()
        file.count()
        content = bytearray(file.path.read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        file.path.write_bytes(content)
        assert await meaning.scores("word7", limit=5, also=NOTHING) == {}
        await meaning.wait_until_current()
        assert await best(meaning, "word7") == "s-7"
        assert file.count() == 150


@pytest.mark.anyio
@pytest.mark.parametrize("loses", ["deleted", "cut"])
async def test_numbers_that_go_missing_are_made_anew(
    index: Index, file: VectorFile, loses: str
) -> None:
    """Whoever deletes them while the daemon runs loses nothing: the next write finds out."""
    index.add_turns([turn("s-1", "the violin teacher"), turn("s-2", "a red boat", 1)])
    meaning = quick(index, file, Hashed())
    async with running(meaning):
        await meaning.wait_until_current()
        numbers = file.numbers(1)
        numbers.unlink()
        if loses == "cut":
            numbers.write_bytes(bytes(10))
            fresh = quick(index, file, Hashed())
            assert await fresh.scores("a red boat", limit=5, also=NOTHING) == {}
        index.add_turns([turn("s-3", "a green train", 2)])
        await meaning.wait_until_current()
        if loses == "deleted":
            assert await best(meaning, "the violin teacher") == "s-1"
            assert await best(meaning, "a green train") == "s-3"
    assert meaning.status().state == "current"


@pytest.mark.anyio
async def test_an_embedder_that_fails_is_said_and_tried_again(
    index: Index, file: VectorFile
) -> None:
    """The status has the reason; the next write is a reason to try once more."""
    embedder = Hashed(broken=True)
    index.add_turns([turn("s-1", "the violin teacher")])
    meaning = quick(index, file, embedder)
    async with running(meaning):
        await meaning.wait_until_current()
        assert (meaning.status().state, meaning.status().reason) == (
            "failed",
            "the model is damaged; install it anew",
        )
        embedder.broken = False
        index.add_turns([turn("s-2", "a red boat", 1)])
        await meaning.wait_until_current()
        assert meaning.status().state == "current"
        assert meaning.status().reason is None
        assert await best(meaning, "the violin teacher") == "s-1"


@pytest.mark.anyio
async def test_without_an_embedder_vectors_are_only_erased(index: Index, file: VectorFile) -> None:
    """Those of what is gone; asking says what to install."""
    index.add_turns([turn("s-1", "the violin teacher"), turn("s-2", "a red boat", 1)])
    before = quick(index, file, Hashed())
    async with running(before):
        await before.wait_until_current()
    meaning = quick(index, file, None)
    async with running(meaning):
        index.forget(["s-2"])
        await meaning.wait_until_current()
        assert file.count() == 1
    assert meaning.status().state == "off"
    with pytest.raises(Unavailable, match=r"pip install 'turnmark\[e5\]'"):
        await meaning.scores("violin", limit=5, also=NOTHING)


@pytest.mark.anyio
async def test_scores_what_is_asked_for_however_far(index: Index, file: VectorFile) -> None:
    """The nearest, and each of `also` that has a vector."""
    index.add_turns([turn(f"s-{n}", f"word{n} thing{n}", n) for n in range(30)])
    meaning = quick(index, file, Hashed())
    async with running(meaning):
        await meaning.wait_until_current()
        also: list[DocRef] = [("turn", "s-9"), ("turn", "s-none"), ("block", "b-none")]
        scores = await meaning.scores("word3 thing3", limit=1, also=also)
        assert set(scores) == {("turn", "s-3"), ("turn", "s-9")}
        assert scores["turn", "s-3"] > 0.5 > scores["turn", "s-9"]


@pytest.mark.anyio
async def test_a_question_is_embedded_once(index: Index, file: VectorFile) -> None:
    """Though it is asked for what is near, for what words found, and again by the next recall."""
    index.add_turns([turn(f"s-{n}", f"word{n} 第{n}句话", n) for n in range(30)])
    embedder = Hashed()
    meaning = quick(index, file, embedder)
    async with running(meaning):
        await meaning.wait_until_current()
        near = await meaning.scores("word3 \ud800", limit=30, also=NOTHING)
        also = await meaning.scores("word3 \ud800", limit=0, also=[("turn", "s-9")])
        assert also == {("turn", "s-9"): near["turn", "s-9"]}
        assert embedder.asked.count("word3 \ud800") == 1
        for number in range(40):
            await meaning.scores(f"question {number}", limit=1, also=NOTHING)
        assert await meaning.scores("word3 \ud800", limit=30, also=NOTHING) == near
        assert embedder.asked.count("word3 \ud800") == 2


@pytest.mark.anyio
@pytest.mark.skipif(e5.why_not() is not None, reason=f"{e5.why_not()}")
async def test_finds_in_one_language_what_was_said_in_another(
    index: Index, file: VectorFile
) -> None:
    """With the real model: no word is shared, and what nobody spoke about is near nothing."""
    said = ["我用Python写后端服务。", "明天早上八点去机场。", "Dana plays the violin in a quartet."]
    index.add_turns([turn(f"s-{at}", text, at) for at, text in enumerate(said)])
    meaning = Meaning(index, file, e5.E5(), rest_seconds=0)
    async with running(meaning):
        await meaning.wait_until_current()
        found = {"backend service": "s-0", "谁会拉小提琴？": "s-2", "airport": "s-1"}
        for query, ref in found.items():
            scores = await meaning.scores(query, limit=5, also=NOTHING)
            assert max(scores, key=lambda doc: scores[doc]) == ("turn", ref), (query, scores)
        assert await best(meaning, "What is the capital of France?") is None
