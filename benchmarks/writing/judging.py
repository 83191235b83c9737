"""Compares what was written with what was worth keeping. Pure: no memory, no files.

Words are compared as letters and digits alone. A statement is found where all its quotes survive in
blocks that cite its turn (or one that the label names as evidence too); its home is the block that
holds most of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

import msgspec

from writing.labelled import Gold, Turn
from writing.written import Block

MEASURES = (
    *("turns", "statements", "topic", "standing alone", "own words"),
    *("superseding", "said again"),
)

# A piece of fewer letters is an abbreviation or an interjection, and belongs to what follows it.
_SHORTEST_SENTENCE = 5
_SENTENCE_END = re.compile(
    r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bvs\.)"
    r"(?<=[.!?])\s+|(?<=[。！？])|\s*…\s*|\n+"
)
_FRAME = re.compile(r'^[^"“]{1,120}?(?:: "|：“)(?P<body>.*)["”]$', re.DOTALL)
_DAY = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?")
_ENGLISH_PRONOUNS = (
    "i we you he she it they this that these those my our your his her its their me us him them"
)
_ENGLISH_START = re.compile(rf"(?:{'|'.join(_ENGLISH_PRONOUNS.split())})\b(?!-)", re.IGNORECASE)
_CHINESE_START = re.compile("[我你您他她它咱这那其]")
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|my|we|our)\b|[我咱]")
_CHINESE_NAMES = re.compile("其他|其中|其实")


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """Right ones among those that there are (`given`) and those that there should be (`wanted`)."""

    right: int = 0
    given: int = 0
    wanted: int = 0
    found: int = 0
    """Right ones counted from the side of what there should be, where that may differ."""

    def __add__(self, other: Count) -> Count:
        return Count(
            right=self.right + other.right,
            given=self.given + other.given,
            wanted=self.wanted + other.wanted,
            found=self.found + other.found,
        )

    @property
    def precision(self) -> float | None:
        """The share of what there is that is right, None where there is nothing."""
        return self.right / self.given if self.given else None

    @property
    def recall(self) -> float | None:
        """The share of what there should be that is there, None where nothing should be."""
        return self.found / self.wanted if self.wanted else None


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it should be."""

    measure: str
    turn: str
    problem: str
    text: str


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one conversation by measure, and all that is wrong in it."""

    counts: dict[str, Count]
    misses: tuple[Miss, ...]


def judge(turns: Sequence[Turn], states: Sequence[Sequence[Block]]) -> Judged:
    """Returns how the blocks of `states` (after each session) compare with the labels.

    `own words` has no recall: how many could be told safely is not labelled.
    """
    return _Judge(turns, states).judged()


def letters(text: str) -> str:
    """Returns the letters and digits of `text`, case folded."""
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def sentences(text: str) -> list[str]:
    """Returns the sentences of a block, without the frame of a quotation."""
    framed = _FRAME.match(text)
    found: list[str] = []
    short = ""
    for piece in _SENTENCE_END.split(framed["body"] if framed else text):
        whole = f"{short} {piece}".strip()
        short = whole if len(letters(whole)) < _SHORTEST_SENTENCE else ""
        if whole and not short:
            found.append(whole)
    if short and found:
        found[-1] = f"{found[-1]} {short}"
    return found or [short]


def begins_with_pronoun(text: str) -> bool:
    """Tells whether the first word of `text` points at something outside of it."""
    start = text.lstrip(" \"'“”‘’*_-")
    if _CHINESE_NAMES.match(start):
        return False
    return bool(_ENGLISH_START.match(start) or _CHINESE_START.match(start))


def holds(text: str, need: str) -> bool:
    """Tells whether `text` holds a word or a day, the latter in any usual writing."""
    if not (day := _DAY.fullmatch(need)):
        return letters(need) in letters(text)
    year, month = int(day[1]), int(day[2])
    named = f"{date(year, month, 1):%B}"
    if not day[3]:
        forms = [
            rf"{year}-{month:02}",
            rf"(?:{named}|{named[:3]}\.?),? {year}",
            rf"{year} ?年 ?0?{month} ?月",
        ]
    else:
        on = int(day[3])
        forms = [
            rf"{year}[-/.]0?{month}[-/.]0?{on}(?!\d)",
            rf"(?:{named}|{named[:3]}\.?) {on}(?:st|nd|rd|th)?,? {year}",
            rf"(?<!\d){on}(?:st|nd|rd|th)?(?: of)? (?:{named}|{named[:3]}\.?),? {year}",
            rf"{year} ?年 ?0?{month} ?月 ?0?{on} ?[日号號]",
        ]
    return any(re.search(form, text, re.IGNORECASE) for form in forms)


def is_filed(topics: Iterable[str], block: Block) -> bool:
    """Tells whether a block stands in one of `topics`; a part of the name is enough."""
    kind, _, stem = block.topic.partition("/")
    names = {letters(stem), letters(block.title)} - {""}
    for topic in topics:
        wanted_kind, _, name = topic.partition("/")
        wanted = letters(name)
        if kind == wanted_kind and any(wanted in one or one in wanted for one in names):
            return True
    return False


class _Home(msgspec.Struct, frozen=True):
    """Where a statement stands: all blocks that hold a part of it, best first."""

    blocks: tuple[Block, ...]
    is_whole: bool


class _Judge:
    def __init__(self, turns: Sequence[Turn], states: Sequence[Sequence[Block]]) -> None:
        self._turns = turns
        self._states = states
        self._live = [block for block in states[-1] if not block.superseded]
        self._gold = [(turn, one) for turn in turns for one in turn.keep]
        self._stated = [(turn, one) for turn, one in self._gold if one.duplicate_of is None]
        self._by_id = {one.id: (turn, one) for turn, one in self._gold}
        self._replaced = {one.supersedes for _, one in self._gold} - {None}
        self._misses: list[Miss] = []
        self._homes = {one.id: self._home_at_end(turn, one) for turn, one in self._stated}

    def judged(self) -> Judged:
        counts = (
            self._kept_turns(),
            self._statements(),
            self._topics(),
            self._standing(),
            self._own_words(),
            self._superseding(),
            self._said_again(),
        )
        return Judged(counts=dict(zip(MEASURES, counts, strict=True)), misses=tuple(self._misses))

    def _miss(self, measure: str, turn: str, problem: str, text: str) -> None:
        self._misses.append(Miss(measure=measure, turn=turn, problem=problem, text=text))

    def _home_at_end(self, turn: Turn, one: Gold) -> _Home:
        """A statement that another replaces may be gone or superseded at the end, no other may."""
        if one.id not in self._replaced:
            return _home(turn, one, self._live)
        for state in reversed(self._states):
            home = _home(turn, one, state)
            if home.is_whole:
                return home
        return _home(turn, one, self._states[-1])

    def _kept_turns(self) -> Count:
        cited = {turn for state in self._states for block in state for turn in block.cites}
        neutral = {turn for _, one in self._gold for turn in one.also}
        neutral |= {t.id for t in self._turns if t.keep and all(g.duplicate_of for g in t.keep)}
        count = Count()
        for turn in self._turns:
            if turn.id in neutral and not any(one.duplicate_of is None for one in turn.keep):
                continue
            kept = not cited.isdisjoint(
                (turn.id, *(other for one in turn.keep for other in one.also))
            )
            wanted = bool(turn.keep)
            hit = int(kept and wanted)
            count += Count(right=hit, found=hit, given=int(kept), wanted=int(wanted))
            if kept != wanted:
                problem = "kept, nothing is worth it" if kept else "not kept"
                self._miss("turns", turn.id, problem, turn.text)
        return count

    def _statements(self) -> Count:
        count = Count()
        for turn, one in self._stated:
            found = self._homes[one.id].is_whole
            count += Count(wanted=1, found=int(found))
            if not found:
                self._miss("statements", turn.id, "not found", one.what)
        for block in self._live:
            quotes = self._letters_about(block)
            for sentence in sentences(block.text):
                said = letters(sentence)
                right = any(quote in said or said in quote for quote in quotes)
                count += Count(given=1, right=int(right))
                if not right:
                    where = ", ".join(sorted(block.cites))
                    self._miss("statements", where, "is not worth keeping", sentence)
        return count

    def _letters_about(self, block: Block) -> list[str]:
        """Returns letters that a block may hold; an acceptance may stand beside what it accepts."""
        return [
            letters(words)
            for turn, one in self._gold
            if not block.cites.isdisjoint(_evidence(turn, one))
            for words in (*one.quotes, *one.may, *([turn.text] if one.also else []))
        ]

    def _topics(self) -> Count:
        count = Count()
        for turn, one in self._stated:
            home = self._homes[one.id]
            right = home.is_whole and is_filed(one.topics, home.blocks[0])
            count += Count(wanted=1, found=int(right), given=int(home.is_whole), right=int(right))
            if home.is_whole and not right:
                problem = f"filed under {home.blocks[0].topic}, not {' or '.join(one.topics)}"
                self._miss("topic", turn.id, problem, home.blocks[0].text)
        return count

    def _standing(self) -> Count:
        count = Count()
        for turn, one in self._stated:
            home = self._homes[one.id]
            problem = _leans(one, home) if home.is_whole else None
            right = home.is_whole and problem is None
            count += Count(wanted=1, found=int(right), given=int(home.is_whole), right=int(right))
            if problem:
                self._miss("standing alone", turn.id, problem, home.blocks[0].text)
        return count

    def _own_words(self) -> Count:
        """Right: found, no quotation and nobody's "I"; how much is told in place of quoted."""
        homes = [home for home in self._homes.values() if home.is_whole]
        told = [home for home in homes if _is_told(home.blocks[0].text)]
        return Count(given=len(homes), right=len(told))

    def _superseding(self) -> Count:
        """Right: what holds now is live, and what it replaces was written and is live no more."""
        count = Count()
        for turn, one in self._stated:
            if one.supersedes is None:
                continue
            old_turn, old = self._by_id[one.supersedes]
            was = any(_home(old_turn, old, state).is_whole for state in self._states)
            still = _home(old_turn, old, self._live).is_whole
            now = self._homes[one.id].is_whole
            right = now and was and not still
            count += Count(wanted=1, found=int(right))
            if not right:
                problem = (
                    ("" if was else "the old one was not written; ")
                    + ("the old one is live; " if still else "")
                    + ("" if now else "the new one was not found; ")
                )
                self._miss("superseding", turn.id, problem.rstrip("; "), f"{old.what} → {one.what}")
        return count + self._wrongly_gone()

    def _wrongly_gone(self) -> Count:
        """Counts what was superseded, revised away or taken out, and what of it should be."""
        count = Count()
        for turn, one in self._gold:
            evidence = one.duplicate_of or one.id
            seen = any(_home(turn, one, state).is_whole for state in self._states)
            if one.duplicate_of or not seen or _home(turn, one, self._live).is_whole:
                continue
            right = evidence in self._replaced
            count += Count(given=1, right=int(right))
            if not right:
                self._miss("superseding", turn.id, "is gone, and nothing replaced it", one.what)
        return count

    def _said_again(self) -> Count:
        """Right: the block that holds it cites this turn too; of those that were kept at first."""
        count = Count()
        for turn, one in self._gold:
            if one.duplicate_of is None:
                continue
            first_turn, first = self._by_id[one.duplicate_of]
            home = _home(first_turn, first, self._live)
            if not home.is_whole:
                continue
            right = any(turn.id in block.cites for block in home.blocks)
            count += Count(wanted=1, found=int(right))
            if not right:
                self._miss(
                    "said again", turn.id, "is not cited by the block that says it", one.what
                )
            apart = [
                block
                for block in self._live
                if turn.id in block.cites
                and block not in home.blocks
                and any(letters(quote) in letters(block.text) for quote in one.quotes)
            ]
            if apart:
                self._miss("said again", turn.id, "has a block of its own", apart[0].text)
            count += Count(given=int(right or bool(apart)), right=int(right and not apart))
        return count


def _evidence(turn: Turn, one: Gold) -> frozenset[str]:
    return frozenset((turn.id, *one.also))


def _home(turn: Turn, one: Gold, blocks: Iterable[Block]) -> _Home:
    evidence = _evidence(turn, one)
    quotes = [letters(quote) for quote in one.quotes]
    holding: list[tuple[tuple[int, int], Block]] = []
    missing = set(quotes)
    for block in blocks:
        if block.cites.isdisjoint(evidence):
            continue
        said = letters(block.text)
        held = {quote for quote in quotes if quote in said}
        if held:
            missing -= held
            met = sum(any(holds(block.text, way) for way in need) for need in one.needs)
            holding.append(((-len(held), -met), block))
    holding.sort(key=lambda pair: pair[0])
    return _Home(tuple(block for _, block in holding), is_whole=not missing)


def _is_told(text: str) -> bool:
    return _FRAME.match(text) is None and _FIRST_PERSON.search(text) is None


def _leans(one: Gold, home: _Home) -> str | None:
    """Returns why a statement does not stand alone, None where it does."""
    text = home.blocks[0].text
    lacking = [need for need in one.needs if not any(holds(text, way) for way in need)]
    if lacking:
        return "does not say " + ", ".join(" or ".join(need) for need in lacking)
    if any(begins_with_pronoun(block.text) for block in home.blocks):
        return "begins with a pronoun"
    return None
