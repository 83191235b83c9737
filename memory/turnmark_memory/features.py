"""What speaks for a candidate: the numbers that the ranking weighs, all between 0 and about 1.

Turns are not independent documents: the answer follows its question, a session keeps to its
subject, and who is asked about tends to be who said it. A block stands for itself: it is its own
context, and its topic is its session.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import log

import msgspec

from turnmark_memory.candidates import Candidates
from turnmark_memory.dense import DocRef
from turnmark_memory.index_schema import Found, Kind
from turnmark_memory.matching import Match
from turnmark_memory.search_text import Query
from turnmark_memory.traits import Trait

FEATURES = (
    "words",  # BM25, of the best
    "share",  # the share of the question that it speaks about
    "share_with_before",  # ... together with the turn before it
    "share_around",  # ... together with two turns on either side
    "words_before",  # the words of the turn before it, and so on
    "words_after",
    "words_before_that",
    "follows_question",
    "answers",  # follows a question, and that has the words
    "is_question",
    "is_question_unnamed",  # where no speaker is named: people ask each other, agents are asked
    "session_words",  # the words of its session's matches together, of the best session
    "session_best",
    "session_share",
    "speaker",  # said by whom the question names
    "speaker_answers",
    "speaker_words",
    "speaker_of_self",
    "names_speaker",  # said by another, and names them
    "of_self",
    "time",  # a time, where the question wants one, and so on
    "number",
    "name",
    "date",  # of the day or month that the question names
    "question_of_time",
    "opens",  # the first of its session
    "opens_named",  # where a speaker is named: friends begin with their news
    "phrase",  # two of the question's words side by side
    "near",  # in meaning
    "near_named",  # where a speaker is named, whom the embedder is not told of
    "near_of_nearest",  # ... as a part of how near the nearest is
    "near_before",
    "near_after",
    "near_session",
)

_RISE = 0.9
_LENGTH = 0.4
"""BM25's k1 and b. Source: the best of a grid over LoCoMo, where long turns are good turns."""

_MOST_PHRASES = 2

# Plain numbers: asking a flag whether it has another costs ten times as much.
_ASKS, _QUESTION, _SELF = int(Trait.ASKS), int(Trait.QUESTION), int(Trait.SELF)
_TIME, _NUMBER = int(Trait.TIME), int(Trait.NUMBER)
_NAME, _NAMES = int(Trait.NAME), int(Trait.NAMES)

_DATE_TERM = re.compile(r" (?:\d{4})?m\d\d(?:d\d\d)? ")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate and what it has of the question.

    `question_bits` are what the question that it answers has, 0 if it answers none.
    """

    kind: Kind
    found: Found
    match: Match
    question_bits: int


class Rated(Seen, frozen=True, kw_only=True):
    """A candidate with what speaks for it, in the order of `FEATURES`."""

    values: tuple[float, ...]


class Ratings:
    """The candidates for one question, seen together; each is rated only when it is asked for.

    To see one costs about 5 us, to rate it 10 us more.
    """

    def __init__(
        self,
        asked: Query,
        candidates: Candidates,
        nearness: Mapping[DocRef, float] | None = None,
    ) -> None:
        near = nearness or {}
        self._of = {
            kind: _Rating(asked, candidates, kind, found, near)
            for kind, found in _by_kind(candidates)
            if found
        }
        best = max((rating.best for rating in self._of.values()), default=0.0) or 1.0
        for rating in self._of.values():
            rating.compare(best)

    def seen(self) -> list[Seen]:
        """Returns all candidates."""
        return [one for rating in self._of.values() for one in rating.seen()]

    def values(self, one: Seen) -> tuple[float, ...]:
        """Returns what speaks for a candidate, in the order of `FEATURES`."""
        return self._of[one.kind].values(one)


def rate(
    asked: Query,
    candidates: Candidates,
    nearness: Mapping[DocRef, float] | None = None,
) -> list[Rated]:
    """Returns every candidate with what speaks for it."""
    ratings = Ratings(asked, candidates, nearness)
    return [
        Rated(
            kind=one.kind,
            found=one.found,
            match=one.match,
            question_bits=one.question_bits,
            values=ratings.values(one),
        )
        for one in ratings.seen()
    ]


def _by_kind(candidates: Candidates) -> tuple[tuple[Kind, Mapping[int, Found]], ...]:
    return ("turn", candidates.turns), ("block", candidates.blocks)


class _Rating:
    """The candidates of one kind, seen together."""

    def __init__(
        self,
        asked: Query,
        candidates: Candidates,
        kind: Kind,
        found: Mapping[int, Found],
        near: Mapping[DocRef, float],
    ) -> None:
        self._asked = asked
        self._matching = candidates.matching
        self._kind: Kind = kind
        self._found = found
        self._before: Mapping[int, int] = candidates.before if kind == "turn" else {}
        self._after: Mapping[int, int] = candidates.after if kind == "turn" else {}
        self._context: Mapping[int, Found] = candidates.context if kind == "turn" else {}
        self._near = {
            row: near.get((kind, one.ref), 0.0) if near else 0.0 for row, one in found.items()
        }
        self._nearest = max(near.values(), default=0.0) or 1.0
        self._matches = {
            row: candidates.matching.match(one.terms)
            for row, one in (*found.items(), *self._context.items())
        }
        self._words = self._bm25()
        self._dates = tuple(
            f" {term} "
            for unit in asked.units
            for term in unit.full
            if _DATE_TERM.fullmatch(f" {term} ")
        )
        self._speaker = _speaker_asked_for(asked, candidates.named, found.values())
        self._names_one = self._speaker is not None and self._speaker[0] is not None
        self._named = tuple(f" {term} " for term in candidates.named)
        self._sessions: dict[str, tuple[float, float, float, float]] = {}

    @property
    def best(self) -> float:
        """The best BM25 of a candidate."""
        return max(self._words[row] for row in self._found)

    def compare(self, best: float) -> None:
        """Sets the words of each candidate as a part of `best`, that of all kinds."""
        self._words = {row: score / best for row, score in self._words.items()}
        self._sessions = self._rate_sessions()

    def seen(self) -> list[Seen]:
        """Returns each candidate with what it has of the question."""
        return [self._seen(row, one) for row, one in self._found.items()]

    def _seen(self, row: int, one: Found) -> Seen:
        before = self._before.get(row)
        return Seen(
            kind=self._kind,
            found=one,
            match=self._matches[row],
            question_bits=self._matches[before].bits
            if before is not None and self._asks(before)
            else 0,
        )

    def _asks(self, row: int) -> bool:
        return bool((self._found.get(row) or self._context[row]).traits & _ASKS)

    def values(self, seen: Seen) -> tuple[float, ...]:
        """Returns what speaks for a candidate, in the order of `FEATURES`."""
        one, match, row = seen.found, seen.match, seen.found.row
        words, matches = self._words, self._matches
        before, after = self._before.get(row), self._after.get(row)
        before_that = None if before is None else self._before.get(before)
        after_that = None if after is None else self._after.get(after)
        with_before = match.bits if before is None else match.bits | matches[before].bits
        around = with_before
        for other in (before_that, after, after_that):
            if other is not None:
                around |= matches[other].bits
        share_of = self._matching.share
        follows = before is not None and self._asks(before)
        words_before = 0.0 if before is None else words[before]
        is_speaker = self._is_speaker(one)
        traits, wants = one.traits, self._asked.wants
        of_self = bool(traits & _SELF)
        named, is_question = self._names_one, 1.0 if traits & _QUESTION else 0.0
        near = self._near[row]
        opens = float(before is None and self._kind == "turn")
        session_words, session_best, session_share, near_session = self._sessions[one.session]
        return (
            words[row],
            share_of(match.bits),
            share_of(with_before),
            share_of(around),
            words_before,
            0.0 if after is None else words[after],
            0.0 if before_that is None else words[before_that],
            float(follows),
            words_before if follows else 0.0,
            is_question,
            0.0 if named else is_question,
            session_words,
            session_best,
            session_share,
            float(is_speaker),
            float(is_speaker and follows),
            words[row] if is_speaker else 0.0,
            float(is_speaker and (of_self or self._kind == "block")),
            float(not is_speaker and self._names_speaker(one)),
            float(of_self),
            1.0 if wants.time and traits & _TIME else 0.0,
            1.0 if wants.number and traits & _NUMBER else 0.0,
            _names_in(traits) if wants.name else 0.0,
            float(any(term in one.terms for term in self._dates)) if self._dates else 0.0,
            1.0 if wants.time and traits & _ASKS else 0.0,
            opens,
            opens if named else 0.0,
            self._phrases_in(one.terms),
            near,
            near if named else 0.0,
            near / self._nearest,
            0.0 if before is None else self._near.get(before, 0.0),
            0.0 if after is None else self._near.get(after, 0.0),
            near_session,
        )

    def _phrases_in(self, terms: str) -> float:
        count = 0
        for phrase in self._asked.phrases:
            if phrase in terms:
                count += 1
        return min(count, _MOST_PHRASES) / _MOST_PHRASES

    def _bm25(self) -> dict[int, float]:
        mean = sum(match.length for match in self._matches.values()) / len(self._matches) or 1.0
        scores: dict[int, float] = {}
        for row, match in self._matches.items():
            score = 0.0
            if match.times:
                rise = _RISE * (1 - _LENGTH + _LENGTH * match.length / mean)
                for weight, times in match.times:
                    score += weight * times * (_RISE + 1) / (times + rise)
            scores[row] = score
        return scores

    def _rate_sessions(self) -> dict[str, tuple[float, float, float, float]]:
        """Returns, of each session: its words, its best match, its share, its nearest."""
        rows: dict[str, list[int]] = defaultdict(list)
        for row, one in self._found.items():
            rows[one.session].append(row)
        matches, topical = self._matches, self._matching.topical
        bits_of = {
            session: [bits for row in members if (bits := matches[row].bits)]
            for session, members in rows.items()
        }
        counts = {session: _times(bits, len(topical)) for session, bits in bits_of.items() if bits}
        having = [0] * len(topical)
        for times in counts.values():
            for unit in times:
                having[unit] += 1
        rarity = [log(1 + (len(rows) - some + 0.5) / (some + 0.5)) for some in having]
        mean = len(self._found) / len(rows)
        words = dict.fromkeys(rows, 0.0)
        for session, times in counts.items():
            rise = _RISE * (1 - _LENGTH + _LENGTH * len(rows[session]) / mean)
            score = 0.0
            for unit, count in times.items():
                if topical[unit]:
                    score += rarity[unit] * count * (_RISE + 1) / (count + rise)
            words[session] = score
        top = max(words.values()) or 1.0
        share, ranked, near = self._matching.share, self._words, self._near
        return {
            session: (
                words[session] / top,
                max([ranked[row] for row in members]),
                share(_together(bits_of[session])),
                max([near[row] for row in members]),
            )
            for session, members in rows.items()
        }

    def _is_speaker(self, one: Found) -> bool:
        if self._kind == "block":
            return any(term in one.terms for term in self._named)
        if self._speaker is None:
            return False
        terms, role = self._speaker
        return one.speaker_terms == terms if terms is not None else one.role == role

    def _names_speaker(self, one: Found) -> bool:
        if self._kind == "block" or self._speaker is None:
            return False
        return any(term in one.terms for term in self._named)


def _times(having: Iterable[int], units: int) -> dict[int, int]:
    """Returns, by unit that any has whole, how many have it."""
    times: dict[int, int] = {}
    whole = (1 << units) - 1
    for bits in having:
        left = bits & whole
        while left:
            lowest = left & -left
            unit = lowest.bit_length() - 1
            times[unit] = times.get(unit, 0) + 1
            left ^= lowest
    return times


def _together(bits: Iterable[int]) -> int:
    union = 0
    for one in bits:
        union |= one
    return union


def _names_in(traits: int) -> float:
    return 1.0 if traits & _NAMES else 1 / 3 if traits & _NAME else 0.0


def _speaker_asked_for(
    asked: Query, named: Iterable[str], found: Iterable[Found]
) -> tuple[str | None, str | None] | None:
    """Returns the terms of the one speaker that a question names; who asks of *I* means a user."""
    between = [f" {term} " for term in named]
    speakers = {
        one.speaker_terms for one in found if any(term in one.speaker_terms for term in between)
    }
    if len(speakers) == 1:
        return speakers.pop(), None
    return (None, "user") if asked.wants.self and not speakers else None
