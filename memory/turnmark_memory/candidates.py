"""What may answer a question: documents by word and by meaning, and the turns around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from turnmark_memory.dense import DocRef
from turnmark_memory.index import Index
from turnmark_memory.index_likely import MANY
from turnmark_memory.index_schema import Filters, Found, Kind
from turnmark_memory.matching import Matching
from turnmark_memory.search_text import Query

DEPTH = 200
"""Candidates of each kind that are ranked. Source: 50 / 100 / 200 / 500 candidates find 73.7 /
73.9 / 74.2 / 74.2 % of LoCoMo's evidence in the first ten."""

_DEPTH_OF_MANY = 250
_LOOKED_AROUND = 50
_RANKED_BLOCKS = 100
"""In a large memory more candidates are looked at, and only the most promising ranked, with the
turns around them: those are not the same ones there, and cost the most. Source:
`benchmarks/recall_crowded.py --every 1`, asked about the first three conversations: 40 / 50 / 70 /
100 turns looked around find 69.6 / 70.3 / 70.4 / 70.9 % of the evidence in the first ten, the last
in a sixth more time; 200 / 250 / 350 candidates find 70.3 / 70.3 / 70.6 %, of all conversations 200
find 0.3 points less than 250."""

_SPEAKER_PROMISE = 1.6

_SECOND_CHANCE_BELOW = 8
"""With fewer matches than this, single characters of unspaced scripts are looked for as well."""


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """What may answer, by row of each kind, and how turns follow each other.

    `before` and `after` map rows of `turns` to the turn beside them, which is in `turns` or, if it
    is further away, in `context`. `named` are the question's terms that are a speaker's name.
    """

    turns: Mapping[int, Found]
    blocks: Mapping[int, Found]
    before: Mapping[int, int]
    after: Mapping[int, int]
    context: Mapping[int, Found]
    matching: Matching
    named: frozenset[str]

    def documents(self) -> list[DocRef]:
        """Returns the kinds and refs of what may answer."""
        turns: list[DocRef] = [("turn", turn.ref) for turn in self.turns.values()]
        return [*turns, *(("block", block.ref) for block in self.blocks.values())]

    def match(self) -> None:
        """Matches all of them with the question: ranked later, they cost a third less then.

        For who waits for something else meanwhile, as recall does for the question's vector.
        """
        for some in (self.turns, self.blocks, self.context):
            for one in some.values():
                self.matching.match(one.terms)


def gather(
    index: Index,
    asked: Query,
    filters: Filters,
    kinds: Sequence[Kind],
    *,
    words: bool = True,
) -> Candidates:
    """Returns what may answer by words; nothing yet (see `with_near`) if `words` is false.

    Blocks for the search.
    """
    turns: list[Found] = []
    blocks: list[Found] = []
    if words and "turn" in kinds:
        turns = _find(index, "turn", asked, filters)
    if words and "block" in kinds:
        blocks = _find(index, "block", asked, filters)
    terms = {term for unit in asked.units for term in unit.all}
    of_turns, of_blocks = index.frequencies("turn", terms), index.frequencies("block", terms)
    frequencies = {term: of_turns[term] + of_blocks[term] for term in terms}
    named = index.speaker_terms(asked.terms)
    size = index.size("turn") + index.size("block")
    matching = Matching(asked, frequencies, size, named)
    if index.size("turn") > MANY:
        turns = _promising(turns, _LOOKED_AROUND, matching, named)
    if index.size("block") > MANY:
        blocks = _promising(blocks, _RANKED_BLOCKS, matching, named)
    nothing = Candidates(
        turns={}, blocks={}, before={}, after={}, context={}, matching=matching, named=named
    )
    return _joined(index, nothing, turns, blocks, filters)


def with_near(
    index: Index, found: Candidates, near: Sequence[DocRef], filters: Filters
) -> Candidates:
    """Returns the candidates with those of `near` that are not among them, and what is around.

    Costs what is new; blocks for the search.
    """
    turns = _missing(index, "turn", found.turns.values(), near, filters)
    blocks = _missing(index, "block", found.blocks.values(), near, filters)
    return _joined(index, found, turns, blocks, filters)


def blocks_within(
    index: Index, asked: Query, topics: Sequence[str], filters: Filters
) -> Candidates:
    """Returns all blocks of `topics` that satisfy `filters`."""
    refs = [block.block for topic in topics for block in index.blocks_of(topic)]
    found = index.found("block", refs, filters)
    terms = {term for unit in asked.units for term in unit.all}
    matching = Matching(asked, index.frequencies("block", terms), index.size("block"))
    return Candidates(
        turns={},
        blocks={block.row: block for block in found},
        before={},
        after={},
        context={},
        matching=matching,
        named=frozenset(),
    )


def _promising(
    found: Sequence[Found], count: int, matching: Matching, named: frozenset[str]
) -> list[Found]:
    """Returns the `count` that are best by words and speaker."""
    if len(found) <= count:
        return list(found)
    between = [f" {name} " for name in named]

    def promise(one: Found) -> float:
        words = 0.0
        for weight, _ in matching.match(one.terms).times:
            words += weight
        for name in between:
            if name in one.speaker_terms:
                return words * _SPEAKER_PROMISE
        return words

    return sorted(found, key=lambda one: (-promise(one), one.ref))[:count]


def _joined(
    index: Index,
    found: Candidates,
    turns: Iterable[Found],
    blocks: Iterable[Found],
    filters: Filters,
) -> Candidates:
    """Returns candidates with more of them, and with the turns on either side of the new ones.

    Two on each side: the first are candidates, too, the second their context.
    """
    before, after = dict(found.before), dict(found.after)
    new = {turn.row: turn for turn in turns}
    ranked = {**found.turns, **new}
    known = {**found.context, **ranked}
    beside = _look_around(index, new, known, filters, before, after)
    beside = {row: one for row, one in beside.items() if row not in ranked}
    _look_around(index, beside, known, filters, before, after)
    ranked.update(beside)
    return msgspec.structs.replace(
        found,
        turns=ranked,
        blocks={**found.blocks, **{block.row: block for block in blocks}},
        before=before,
        after=after,
        context={row: one for row, one in known.items() if row not in ranked},
    )


def _look_around(
    index: Index,
    rows: Iterable[int],
    known: dict[int, Found],
    filters: Filters,
    before: dict[int, int],
    after: dict[int, int],
) -> dict[int, Found]:
    """Returns the turns beside those in `rows`; notes how they follow, and that they are known.

    Only those that are not known yet are read.
    """
    pairs = index.beside(rows)
    beside = {row for pair in pairs.values() for row in pair if row is not None}
    read = index.found_at("turn", sorted(beside.difference(known)), filters)
    known.update((one.row, one) for one in read)
    for row, (previous, following) in pairs.items():
        if previous in known:
            before[row] = previous
        if following in known:
            after[row] = following
    return {row: known[row] for row in sorted(beside.intersection(known))}


def _find(index: Index, kind: Kind, asked: Query, filters: Filters) -> list[Found]:
    # Synonyms would crowd out a large memory's rarer words: recall_crowded.py finds 4 points less.
    is_small = index.size(kind) <= MANY
    depth = DEPTH if is_small else _DEPTH_OF_MANY
    terms = (*asked.terms, *asked.kin, *(asked.synonyms if is_small else ()))
    found = index.likely(kind, terms, depth, filters) if terms else []
    if asked.second and len(found) < _SECOND_CHANCE_BELOW:
        known = {one.row for one in found}
        more = index.likely(kind, asked.second, depth, filters)
        found = found + [one for one in more if one.row not in known]
    return found


def _missing(
    index: Index, kind: Kind, found: Iterable[Found], near: Sequence[DocRef], filters: Filters
) -> list[Found]:
    known = {one.ref for one in found}
    refs = [ref for of, ref in near if of == kind and ref not in known]
    return index.found(kind, refs, filters) if refs else []
