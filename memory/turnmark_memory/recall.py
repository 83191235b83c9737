"""Recall: from a question to hits with their provenance, as a reader at one tip sees them.

The index finds and ranks; the store says which of the turns behind a candidate are still there
and how they lie to the reader's path (`placing.py`). What rests only on turns that were taken back
is dropped at query time, however old the index is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread
import msgspec
import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.candidates import DEPTH, Candidates, blocks_within, gather, with_near
from turnmark_memory.dense import Dense, DocRef
from turnmark_memory.hits import Hit, collapsed
from turnmark_memory.index import Index
from turnmark_memory.index_rows import microseconds
from turnmark_memory.index_schema import Filters
from turnmark_memory.nameless import nameless
from turnmark_memory.placing import Loaded, Place, TurnRef, hit_of, load
from turnmark_memory.ranking import MEANING_FLOOR, Ranked, rank
from turnmark_memory.requests import HitKind, RecallRequest
from turnmark_memory.search_text import Query, fold, query_of
from turnmark_memory.selecting import MOST_TOPICS, Selecting
from turnmark_memory.together import both

log = structlog.get_logger(__name__)

T = TypeVar("T")

_PLACED_AT_ONCE = 24
"""Candidates whose turns the store is asked about in one go, at least; more only if many fall."""

_NARROWED = 2_000
"""Documents behind a filter that are all asked for their meaning: the nearest of the whole memory
may well lie outside."""

_NEAR = 30
"""Documents that are candidates because they are near in meaning."""

_ASKED_BY_MEANING = 0.25
"""Nearness from which a document is a hit where meaning alone is asked for: who asks so wants what
is nearest, even across languages, and takes some that is not near."""

_CONCURRENT_SEARCHES = 4

_MISSING = {
    "dense": "no embedding model is in use here (pip install 'turnmark[e5]', and don't switch"
    ' `embedder` in [recall] "off")',
    "select": "no model is set up that could pick topics (give [writer.select] one)",
}


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}|\d{4}-?W\d{2}(-?\d)?")
_DAY_US = 24 * 3_600 * 1_000_000


class Relations(Protocol):
    """What recall asks of the session store."""

    async def place(
        self, turns: Sequence[TurnRef], session: str | None, tip: str | None
    ) -> Sequence[Place]:
        """Returns each turn's place for a reader at `tip` (None: the head) of `session`."""
        ...


_ANSWER_CHARS = 200_000
"""All texts of one answer: with their sources they fit a frame of 1 MiB in any script."""


class RecallAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The hits, best first, the reader's own branch before the others; `tokens` of their texts."""

    hits: tuple[Hit, ...]
    tokens: int


class _Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """What may be shown, best first; the best of it are loaded with it, to save a thread's turn."""

    ranked: Sequence[Ranked]
    loaded: Sequence[Loaded]


class Recall:
    """Answers questions out of one workspace."""

    def __init__(
        self,
        index: Index,
        relations: Relations,
        count_tokens: Callable[[str], int],
        *,
        dense: Dense | None = None,
        selecting: Selecting | None = None,
    ) -> None:
        """Without `dense` the mode `hybrid` is lexical and the mode `dense` unavailable.

        Without `selecting` the mode `select` is unavailable.
        """
        self._index = index
        self._dense = dense
        self._selecting = selecting
        self._relations = relations
        self._count_tokens = count_tokens
        self._limiter = anyio.CapacityLimiter(_CONCURRENT_SEARCHES)

    async def recall(self, request: RecallRequest) -> RecallAnswer:
        """Returns at most `k` hits; none rather than something unrelated. Can be cancelled.

        Raises as `hits`.
        """
        hits = await self.hits(request)
        return await self._in_thread(lambda: _within(hits, request, self._count_tokens))

    async def hits(self, request: RecallRequest) -> list[Hit]:
        """Returns the hits without a look at how long they are: the budget is the reader's.

        Raises:
            Unavailable: if `mode` needs a model that is not set up, or the index can't be read.
            Refused: if `since` or `until` is no time.
        """
        needed = {"dense": self._dense, "select": self._selecting}
        if needed.get(request.mode, self) is None:
            raise Unavailable(
                f"{_MISSING[request.mode]}: mode={request.mode} can't answer; use mode=lexical",
                mode=request.mode,
            )
        ranking = await self._selected(request)
        if ranking is None:
            ranking = await self._ranked(request)
        return await self._hits(ranking, request)

    async def _ranked(self, request: RecallRequest) -> _Ranking:
        """Returns the candidates above the floor, best first, by words, meaning or both."""
        asked, filters = query_of(request.query), filters_of(request)
        by_words = request.mode != "dense"
        search = partial(gather, self._index, asked, filters, request.kinds, words=by_words)
        if self._dense is None or request.mode == "lexical":
            return await self._in_thread(lambda: self._opened(rank(asked, search()), request))

        def searched() -> tuple[Candidates, list[DocRef]]:
            found = search()
            found.match()
            return found, self._narrowed(request.kinds, filters)

        meant = await self._in_thread(partial(self._meant, asked, request))
        near, (found, also) = await both(
            partial(self._nearness, self._dense, meant, limit=DEPTH),
            partial(self._in_thread, searched),
        )
        also = [*(doc for doc in found.documents() if doc not in near), *also]
        nearness = {**near, **await self._nearness(self._dense, meant, also=also)}
        least = MEANING_FLOOR if by_words else _ASKED_BY_MEANING
        nearest = _nearest(nearness, request.kinds, least)

        def ordered() -> _Ranking:
            among = with_near(self._index, found, nearest, filters)
            ranked = rank(asked, among, nearness, floored=by_words)
            if not by_words:
                close = {doc for doc, near in nearness.items() if near >= least}
                ranked = [one for one in ranked if (one.kind, one.found.ref) in close]
            return self._opened(ranked, request)

        return await self._in_thread(ordered)

    async def _selected(self, request: RecallRequest) -> _Ranking | None:
        """Returns the blocks of the topics that a model chose; None: it was not asked, or is late.

        No topic chosen is no block.
        """
        if request.mode != "select" or self._selecting is None or "block" not in request.kinds:
            return None
        topics = await self._in_thread(partial(self._index.abouts, MOST_TOPICS))
        chosen = await self._selecting.choose(request.query, topics)
        if chosen is None:
            return None
        asked, filters = query_of(request.query), filters_of(request)
        found = await self._in_thread(partial(blocks_within, self._index, asked, chosen, filters))
        return await self._in_thread(
            lambda: self._opened(rank(asked, found, floored=False), request)
        )

    def _meant(self, asked: Query, request: RecallRequest) -> RecallRequest:
        """Returns what an embedder is asked: who is named is weighed apart, if words count."""
        if request.mode == "dense":
            return request
        speakers = self._index.speaker_terms(asked.terms)
        query = nameless(request.query, asked, speakers)
        return msgspec.structs.replace(request, query=query)

    async def _nearness(
        self,
        dense: Dense,
        request: RecallRequest,
        *,
        limit: int = 0,
        also: Collection[DocRef] = (),
    ) -> Mapping[DocRef, float]:
        """Returns what is near of the whole memory, and how near `also` is; else words decide."""
        if not limit and not also:
            return {}
        try:
            return await dense.scores(request.query, limit=limit, also=also)
        except Unavailable as error:
            if request.mode == "dense":
                raise
            log.debug("meaning_unavailable", reason=error.message)
            return {}

    def _narrowed(self, kinds: Sequence[HitKind], filters: Filters) -> list[DocRef]:
        """Returns what is filtered for, where that is little; blocks."""
        return [
            (kind, ref) for kind in kinds for ref in self._index.narrowed(kind, _NARROWED, filters)
        ]

    def _opened(self, ranked: Sequence[Ranked], request: RecallRequest) -> _Ranking:
        """Returns what was ranked, the best of it loaded; blocks."""
        return _Ranking(ranked=ranked, loaded=load(self._index, ranked[: _step(request)]))

    async def _hits(self, ranking: _Ranking, request: RecallRequest) -> list[Hit]:
        """Returns the first `k` that still stand."""
        hits: list[Hit] = []
        best: list[Hit] = []
        ranked, loaded, step = ranking.ranked, ranking.loaded, _step(request)
        for start in range(0, len(ranked), step):
            if start:
                chunk = ranked[start : start + step]
                loaded = await self._in_thread(partial(load, self._index, chunk))
            places = await self._places(loaded, request)
            hits += [hit for one in loaded if (hit := hit_of(one, places)) is not None]
            best = collapsed(sorted(hits, key=lambda hit: -hit.score))
            if len(best) >= request.k:
                break
        return sorted(best[: request.k], key=lambda hit: hit.branch != "own")

    async def _places(
        self, candidates: Sequence[Loaded], request: RecallRequest
    ) -> Mapping[TurnRef, Place]:
        turns = (turn for one in candidates for turn in one.turns)
        refs = list(dict.fromkeys((turn.namespace, turn.id) for turn in turns))
        if not refs:
            return {}
        places = await self._relations.place(refs, request.session, request.tip)
        return dict(zip(refs, places, strict=True))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


def _step(request: RecallRequest) -> int:
    return max(2 * request.k, _PLACED_AT_ONCE)


def _nearest(
    nearness: Mapping[DocRef, float], kinds: Sequence[HitKind], least: float
) -> list[DocRef]:
    """Returns the nearest documents of `kinds`, none less near than `least`."""
    near = [doc for doc, score in nearness.items() if score >= least and doc[0] in kinds]
    return sorted(near, key=lambda doc: (-nearness[doc], doc))[:_NEAR]


def lexical(index: Index, asked: Query, filters: Filters, kinds: Sequence[HitKind]) -> list[Ranked]:
    """Returns the candidates above the floor by words alone, best first. Blocks for the search."""
    return rank(asked, gather(index, asked, filters, kinds))


def filters_of(request: RecallRequest) -> Filters:
    """Returns the conditions of a request.

    Raises:
        Refused: if `since` or `until` is neither RFC 3339 nor a date.
    """
    topic = fold(request.topic or "").removesuffix(".md").strip("/").removeprefix("topics/")
    return Filters(
        since_us=_instant(request.since, "since", whole_day=False),
        until_us=_instant(request.until, "until", whole_day=True),
        speaker=None if request.speaker is None else fold(request.speaker).replace("\n", " "),
        topic=topic or None,
        project=request.project,
        history=request.history,
    )


def _within(
    hits: Sequence[Hit], request: RecallRequest, count_tokens: Callable[[str], int]
) -> RecallAnswer:
    """Returns the hits that fit the budget: one that doesn't is left out and the next is tried."""
    kept: list[Hit] = []
    tokens = length = 0
    for hit in hits:
        size = count_tokens(hit.text)
        if request.budget_tokens is not None and tokens + size > request.budget_tokens:
            continue
        if length + len(hit.text) > _ANSWER_CHARS:
            break
        kept.append(hit)
        tokens += size
        length += len(hit.text)
    return RecallAnswer(hits=tuple(kept), tokens=tokens)


def _instant(text: str | None, name: str, *, whole_day: bool) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        at_us = microseconds(moment)
    except ValueError:
        raise Refused(
            f"{name}={text!r} is no time; write 2026-08-09 or 2026-08-09T14:02:00Z"
        ) from None
    return at_us + _DAY_US if whole_day and _DATE.fullmatch(text.strip()) else at_us
