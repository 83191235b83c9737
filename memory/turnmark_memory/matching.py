"""How much of a question a document speaks about: its units, weighed by rarity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log

import msgspec

from turnmark_memory.search_text import Query, Unit, is_unspaced

_BACKGROUND = 1_000
"""Documents that the memory is imagined to be part of: in a small memory every word is rare, and
whether one is missing says less than it seems to."""

_NAME_FACTOR = 2.0
_COMMON_FACTOR = 0.3
"""What a name and a general word say of whether a memory knows about something. The kind of what
is asked for says as little: that Porto is a city stands nowhere."""

_COMMON_RARITY = 0.7
"""What a general word says of where in a memory the answer is."""

_CHARACTER_FACTOR = 0.6
"""Two characters make about one word."""

_HALF = 0.35
"""What a character counts for without its neighbour, and a word for one that may stand in for it:
all of a question's characters, in any order,
just pass the floor, half of them don't."""

_IN_PLACE = 0.6
"""The same of where in a memory the answer is, and of a member of the kind that is asked for.
Source: `benchmarks/recall/learn.py`, by words, LoCoMo's first three conversations, each left out
once: 0.35 / 0.5 / 0.6 / 0.75 find 82.3 / 83.1 / 83.1 / 82.7 % of the evidence in the first ten."""

_PART = 64
_MEMBER = 2 * _PART
_MOST_UNITS = 10
"""Units that can be asked for at once: a long question is answered by what covers a part of it."""


class Match(msgspec.Struct, frozen=True, gc=False):
    """What a document has of a question.

    `bits` has a bit for each unit, `_PART` further up one for each that it has in part, and as much
    further one for each that names a kind of which it has a member: what documents have together
    is the union of their bits. `times` are the weights of the units in it
    with how often they stand there; `length` is the number of its terms.
    """

    bits: int
    times: tuple[tuple[float, float], ...] = ()
    length: int = 0


class Matching:
    """A question's units with their weights, ready to be looked for.

    A unit that is the name of a speaker is in every turn of theirs: it counts for the whole
    question (`coverage`), but not for what the question is about (`share`), nor does any other
    name for what is asked about who or what it names (`apart`). `known_names` has the bits of
    those that some document has. A member of a kind says where the answer is, but not whether there
    is one: it counts for `share` alone.
    """

    def __init__(
        self,
        query: Query,
        frequencies: Mapping[str, int],
        size: int,
        speakers: frozenset[str] = frozenset(),
    ) -> None:
        units = _heaviest(query.units, frequencies, size)
        weights = [weight for weight, _ in units]
        topical = [speakers.isdisjoint(unit.full) for _, unit in units]
        names = [unit.name or not counts for (_, unit), counts in zip(units, topical, strict=True)]
        self.topical = tuple(topical if any(topical) else [True] * len(topical))
        self._weights = [_meaning(unit, frequencies, size) for _, unit in units]
        self._topical_weights = [
            weight if counts else 0.0 for weight, counts in zip(weights, self.topical, strict=True)
        ]
        self.units = tuple(
            (
                weight,
                _between_blanks(unit.full),
                _by_script(_between_blanks(unit.half[:1] + unit.kin)),
                _by_script(_between_blanks(unit.members)),
            )
            for weight, (_, unit) in zip(self._topical_weights, units, strict=True)
        )
        self._total = _most(self._weights)
        self.unknown_names, self.unknown_words = _unknown(
            [unit for _, unit in units], self._weights, frequencies
        )
        self._topical_total = _most(self._topical_weights)
        self.at_large = query.wants.at_large
        self.names_somebody = any(names)
        self.unspaced = 2 * sum(is_unspaced(unit.full[0]) for _, unit in units) > len(units)
        self.known_names = sum(
            1 << bit
            for bit, (_, unit) in enumerate(units)
            if names[bit] and any(frequencies.get(term) for term in unit.full)
        )
        self._apart_weights = [
            0.0 if name else weight for weight, name in zip(self._weights, names, strict=True)
        ]
        self._apart_total = _most(self._apart_weights)
        self._aparts: dict[int, float] = {}
        self._shares: dict[int, float] = {}
        self._coverages: dict[int, float] = {}
        self._matches: dict[str, Match] = {}

    def match(self, terms: str) -> Match:
        """Returns what a document with these terms, between blanks, has of the question."""
        found = self._matches.get(terms)
        if found is None:
            found = self._matches[terms] = self._match(terms)
        return found

    def _match(self, terms: str) -> Match:
        """Returns a match; run hundreds of times a question, so without generators."""
        bits = 0
        times: list[tuple[float, float]] = []
        bit = 1
        for weight, wholes, parts, members in self.units:
            count = 0
            for term in wholes:
                if term in terms:
                    count += terms.count(term)
            if count:
                bits |= bit
                times.append((weight, count))
            else:
                plain = terms.isascii()
                for part in parts[plain]:
                    if part in terms:
                        bits |= bit << _PART
                        times.append((_IN_PLACE * weight, 1))
                        break
                else:
                    for member in members[plain]:
                        if member in terms:
                            bits |= bit << _MEMBER
                            times.append((_IN_PLACE * weight, 1))
                            break
            bit <<= 1
        return Match(bits, tuple(times), terms.count(" ") - 1)

    def share(self, bits: int) -> float:
        """Returns the share of what the question is about, without speakers' names, 0 to 1."""
        found = self._shares.get(bits)
        if found is None:
            parts = bits | bits >> _MEMBER << _PART
            found = _share(parts, self._topical_weights, self._topical_total, _IN_PLACE)
            self._shares[bits] = found
        return found

    def coverage(self, bits: int) -> float:
        """Returns the share of the whole question, names of speakers included, 0 to 1."""
        found = self._coverages.get(bits)
        if found is None:
            found = self._coverages[bits] = _share(bits, self._weights, self._total, _HALF)
        return found

    def apart(self, bits: int) -> float:
        """Returns the share of the question apart from all names; all, if it is but a name."""
        found = self._aparts.get(bits)
        if found is None:
            total = self._apart_total
            found = _share(bits, self._apart_weights, total, _HALF) if total else 1.0
            self._aparts[bits] = found
        return found


def _share(bits: int, weights: Sequence[float], total: float, in_part: float) -> float:
    if not total:
        return 0.0
    covered = 0.0
    for bit, weight in enumerate(weights):
        if bits >> bit & 1:
            covered += weight
        elif bits >> (bit + _PART) & 1:
            covered += in_part * weight
    return min(covered / total, 1.0)


def _most(weights: Iterable[float]) -> float:
    return sum(sorted(weights, reverse=True)[:_MOST_UNITS])


def _heaviest(
    units: Iterable[Unit], frequencies: Mapping[str, int], size: int
) -> list[tuple[float, Unit]]:
    """Returns the units that weigh most, in the question's order: a pasted file has thousands."""
    weighed = [(_rarity(unit, frequencies, size), unit) for unit in units]
    least = sorted((weight for weight, _ in weighed), reverse=True)[:_PART][-1:]
    return [one for one in weighed if one[0] >= least[0]][:_PART]


def _rarity(unit: Unit, frequencies: Mapping[str, int], size: int) -> float:
    """Returns what a unit says of where in the memory the answer is."""
    terms = unit.half[:1] or unit.full
    count = min(sum(frequencies.get(term, 0) for term in terms), size)
    rarity = log(1 + (size - count + 0.5) / (count + 0.5))
    factor = _COMMON_RARITY if unit.common else 1.0
    return rarity * factor * (_CHARACTER_FACTOR if unit.half else 1.0)


def _meaning(unit: Unit, frequencies: Mapping[str, int], size: int) -> float:
    """Returns what a unit says of whether the answer is in the memory at all."""
    count = frequencies.get(unit.half[0] if unit.half else unit.full[0], 0)
    rarity = log((size + _BACKGROUND) / (count + 0.5)) / log((size + _BACKGROUND) / 0.5)
    general = unit.common or unit.asked
    factor = _NAME_FACTOR if unit.name else _COMMON_FACTOR if general else 1.0
    return rarity * factor * (_CHARACTER_FACTOR if unit.half else 1.0)


def _unknown(
    units: Sequence[Unit], weights: Sequence[float], frequencies: Mapping[str, int]
) -> tuple[float, float]:
    """Returns the shares of a question that are names, and other words, that no document has."""
    names = words = 0.0
    for unit, weight in zip(units, weights, strict=True):
        if not any(frequencies.get(term) for term in unit.all):
            names, words = (names + weight, words) if unit.name else (names, words + weight)
    total = sum(weights) or 1.0
    return names / total, words / total


def _between_blanks(terms: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f" {term} " for term in terms)


def _by_script(terms: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns all terms, and those that a document in ASCII can have: half as many to look for."""
    return terms, tuple(term for term in terms if term.isascii())
