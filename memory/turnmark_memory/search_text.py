"""Text as the index sees it: terms of documents and of questions, in any script.

Terms are made here and not by SQLite, so that a document, a question and the ranking agree on
what a word is. A term never holds a blank, a quote or other ASCII punctuation: FTS5's `ascii`
tokenizer gives it back whole, and nothing that a user types can become query syntax.

Words of spaced scripts are case-folded, stripped of accents and stemmed (Porter, English; other
languages pass nearly unchanged). Runs of unspaced scripts (Chinese, Japanese, Korean, Thai, ...)
become overlapping pairs, and single characters for the second chance. Dates become terms of
their own, so that `9 August 2026`, `2026-08-09` and `2026年8月9日` meet.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from itertools import pairwise
from threading import Lock
from typing import cast

import apsw
import msgspec

from turnmark_memory.kinds import KINDS
from turnmark_memory.synonyms import SYNONYMS
from turnmark_memory.traits import Wants, wants_of
from turnmark_memory.translations import TRANSLATIONS
from turnmark_memory.word_forms import BASE_FORMS, STAND_INS

_LONGEST_TERM_CHARS = 40
"""A longer run is an encoded blob: its beginning is enough to find it again."""

_LONGEST_QUERY_CHARS = 20_000
"""What follows in a longer question (a pasted file) adds time and no aim."""

_REMEMBERED_STEMS = 32_768
"""Distinct words a busy memory meets; about 5 MB."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"  # Thai, Lao, Burmese, Jamo, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana and marks of repetition
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"  # Han, Hangul
    "\U00020000-\U0003ffff"
)
_UNSPACED_SIGN = re.compile(f"[{_UNSPACED}]")
_DAYS_OF_A_MONTH = 31
_SHORTEST_STRIPPED = 2
"""Stripping that leaves one character (和平) took part of a word: then nothing is stripped."""

# A word of megabytes is matched in parts: one match holds the interpreter, and the daemon with it.
_PIECE = re.compile(
    rf"(?P<run>[{_UNSPACED}]{{1,1024}})|(?P<word>(?:[^\W_{_UNSPACED}]|[\u0900-\u0dff]){{1,1024}})"
)
_ACCENT = re.compile("[\u0300-\u036f]")
_APOSTROPHE = re.compile("[\u2018\u2019\u02bc]")

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in _MONTHS)
# A date may touch characters of an unspaced script (于2026-08-09), but no letter or digit.
_BEGIN = rf"(?<![^\W{_UNSPACED}])"
_END = rf"(?![^\W{_UNSPACED}])"
_ORDINAL = "(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"""{_BEGIN}(?:
     (?P<y1>\d{{4}})[-/.](?P<m1>\d{{1,2}})[-/.](?P<d1>\d{{1,2}})
    |(?:(?P<y2>\d{{4}})年)?(?P<m2>\d{{1,2}})月(?:(?P<d2>\d{{1,2}})[日号號])?
    |(?P<d3>\d{{1,2}}){_ORDINAL}\ (?:of\ )?(?P<m3>{_MONTH})(?:,?\ (?P<y3>\d{{4}}))?
    |(?P<m4>{_MONTH})\.?\ (?P<d4>\d{{1,2}}){_ORDINAL}(?:,?\ (?P<y4>\d{{4}}))?
    |(?P<m5>{_MONTH}),?\ (?P<y5>\d{{4}})
    |(?:in|since|until|of|by|during|last|next|this)\ (?P<m6>{_MONTH})
    ){_END}""",
    re.VERBOSE,
)

_FUNCTION_WORD_LIST = """
    a about above after again against all am an and any are aren as at be because been before
    being below between both but by can could couldn d did didn do does doesn doing don down during
    each few for from further had hadn has hasn have haven having he her here hers herself him
    himself his how i if in into is isn it its itself just let ll m may me might more most must
    mustn my myself no nor not now of off on once only or other ought our ours ourselves out over
    own please re s same shall shan she should shouldn so some such t than that the their theirs
    them themselves then there these they this those through to too under until up us ve very was
    wasn we were weren what when where which while who whom whose why will with won would wouldn
    yes you your yours yourself yourselves
"""
_FUNCTION_WORDS = frozenset(_FUNCTION_WORD_LIST.split())
"""Source: the usual English list of about 175 words; dropping them is worth 5 points of recall@10
on LoCoMo (27.1 to 33.4 at 1, 55.7 to 62.3 at 10, together with dates in the document)."""

_COMMON_WORD_LIST = """
    ask best bit call can come day do ever favorite favourite feel find get give go going good
    got happen help keep kind know last left like live long look lot made make many mean mention
    much name need new one people place put really recently remember right said say see show sort
    start stuff take talk tell thing think time tried try type use want way week went work year
    开始 现在 知道 觉得 喜欢 使用 需要 可以 事情 东西 时候 工作 最近 记得
"""
_COMMON_WORDS = frozenset(_COMMON_WORD_LIST.split())
"""Words so general that sharing them says little, and missing them says little as well."""

_ANSWERED_BY = {
    "live": ("move", "reloc", "resid"),
    "resid": ("live", "move", "reloc"),
    "住在": ("搬到", "搬去", "搬家"),
    "住": ("住在", "搬到", "搬去", "搬家"),
}
"""Stems, pairs and characters of a question that people answer in other words: who is asked where
they live says that they moved. One way only: a question about a move is not about living there."""

_HAN_FUNCTION_WORDS = re.compile(
    "为什么|為什麼|什么时候|什麼時候|什么|什麼|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣|如何|哪里|哪裡|哪儿|哪兒"
    "|哪[个個些家位座款]|哪"
    "|多少|多久|几个|幾個|是不是|有没有|有沒有|是否|请问|請問|告诉|告訴|一下|一个|一個|我们|我們|你们|你們|他们|他們|她们|她們"
    "|这个|這個|那个|那個|这些|這些|那些|关于|關於|以及|但是|因为|因為|所以|谁|誰|吗|嗎|呢"
    "|ですか|ますか|でしょうか|は何|どこ|いつ|だれ|誰|なぜ|どう"
)
_ASKED_KIND = re.compile(r"\b(?:which|what) (?:(?:kind|sort|type)s? of )?(\w+)")
_HAN_KIND_FOLLOWS = re.compile("什[么麼]|哪.?")
_HAN_KIND_CHARS = 2
"""A noun of some two characters names the kind of answer that is asked for: 什么颜色, 哪个城市."""
_HAN_LEADING = "我你您他她它的是在有和与與跟对對把被也都就又还還这這那让讓请請给給"
_HAN_TRAILING = "的了吧啊呀嘛么麼着著过過是在はがをにでともへ"
_HAN_WEAK = frozenset("的了吧啊是在我你您他她它这這那和与與就都也很はがをにでともの")


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a question asks about: a word, or one character of an unspaced run.

    `full` are the terms of which any one shows that a document has it, `half` those that show it
    in part (the character alone, without its neighbour), and `kin` other words that the answer may
    say in its place; `members`, which no index is asked for, are of the kind that it names.
    `common` marks general words, `asked` the kind of what is asked for ("which city"), `name` what
    is written like a name or a number.
    """

    full: tuple[str, ...]
    half: tuple[str, ...] = ()
    kin: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    common: bool = False
    asked: bool = False
    name: bool = False

    @property
    def all(self) -> tuple[str, ...]:
        """Whatever is looked for to find out that a document speaks of it."""
        return self.full + self.half + self.kin


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A question, taken apart.

    `terms` and `kin` are looked for first (in a small memory `synonyms`, too); `second` (single
    characters) when those find too little. `units` are what coverage is measured over. `phrases`
    are two terms between blanks that stand side by side in a document that says it in the same
    words. Empty `terms` and `second`: nothing can be found.
    """

    terms: tuple[str, ...]
    kin: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    second: tuple[str, ...]
    units: tuple[Unit, ...]
    phrases: tuple[str, ...] = ()
    wants: Wants = Wants()


def fold(text: str) -> str:
    """Returns `text` as names are compared: NFKC, case-folded, blanks at the ends removed."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def is_unspaced(text: str) -> bool:
    """Tells whether a text has a sign of a script that sets no blanks between words."""
    return not text.isascii() and _UNSPACED_SIGN.search(text) is not None


def terms_of(text: str) -> list[str]:
    """Returns the terms of a document in the order of the text, repeats included."""
    plain = _plain(text)
    found = [term for date in _dates(plain) for term in _terms_of_date(*date, months=True)]
    for run, word in _pieces(plain):
        found += _run_terms(run) if run else [_stem(word)]
    return found


def time_terms(moment: datetime) -> list[str]:
    """Returns the terms by which a question about `moment`'s date finds a document."""
    date = _terms_of_date(moment.year, moment.month, moment.day, months=True)
    return [str(moment.year), _stem(_MONTHS[moment.month - 1]), *date]


def query_of(text: str) -> Query:
    """Returns the question taken apart; one of function words alone keeps them.

    Never raises: any text, of any length, with any characters, gives a query.
    """
    plain = _plain(text[:_LONGEST_QUERY_CHARS])
    names = _names(text[:_LONGEST_QUERY_CHARS])
    units = list(dict.fromkeys(_units(plain, names)))
    if not units:
        words = [run or _stem(word) for run, word in _pieces(plain)]
        units = [Unit(full=tuple(_pairs(w)), half=tuple(w) if _is_run(w) else ()) for w in words]
        units = list(dict.fromkeys(units))
    terms = dict.fromkeys(term for unit in units for term in unit.full)
    kin = dict.fromkeys(kin for term in terms for kin in _searched().get(term, ()))
    synonyms = dict.fromkeys(term for unit in units for term in unit.kin if term not in kin)
    second = dict.fromkeys(term for unit in units for term in unit.half if term not in terms)
    return Query(
        terms=tuple(terms),
        kin=tuple(term for term in kin if term not in terms),
        synonyms=tuple(term for term in synonyms if term not in terms),
        second=tuple(second),
        units=tuple(units),
        phrases=tuple(dict.fromkeys(_phrases(units))),
        wants=wants_of(text),
    )


def match_any(terms: Iterable[str]) -> str:
    """Returns the FTS5 expression that finds documents with at least one of `terms`."""
    return " OR ".join(f'"{term}"' for term in terms)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():
        return folded
    stripped = _ACCENT.sub("", unicodedata.normalize("NFD", folded))
    return _APOSTROPHE.sub("'", unicodedata.normalize("NFC", stripped))


def _pieces(plain: str) -> Iterator[tuple[str, str]]:
    """Yields `(run, "")` for unspaced scripts and `("", word)` for others."""
    for piece in _PIECE.finditer(plain):
        yield piece["run"] or "", (piece["word"] or "")[:_LONGEST_TERM_CHARS]


def _is_run(piece: str) -> bool:
    found = _PIECE.match(piece)
    return bool(found and found["run"])


def _run_terms(run: str) -> list[str]:
    return [run] if len(run) == 1 else _pairs(run) + list(run)


def _pairs(run: str) -> list[str]:
    """Returns the overlapping pairs of a run; a word of another script or a lone character stays.

    Source: pairs find 84.9 % of what characters find 86.3 % of, at 1/26 of the time (CMRC2018).
    """
    if len(run) == 1 or not _is_run(run):
        return [run]
    return [run[i : i + 2] for i in range(len(run) - 1)]


@cache
def _stemmer() -> tuple[apsw.FTS5Tokenizer, Lock]:
    connection = apsw.Connection(":memory:")
    return connection.fts5_tokenizer("porter", ["ascii"]), Lock()


@lru_cache(maxsize=_REMEMBERED_STEMS)
def _stem(word: str) -> str:
    """Returns the Porter stem, from the stemmer that SQLite carries."""
    if not word.isascii():
        return word
    word = BASE_FORMS.get(word, word)
    tokenizer, lock = _stemmer()
    with lock:
        found = tokenizer(word.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
    ((term, *_),) = cast("Iterable[tuple[str, ...]]", found)
    return term


def _dates(plain: str) -> Iterator[tuple[int | None, int, int | None]]:
    for found in _DATE.finditer(plain):
        groups = {key[0]: value for key, value in found.groupdict().items() if value}
        month = _month_number(groups["m"])
        day, year = int(groups.get("d", 0)), int(groups.get("y", 0))
        if 1 <= month <= len(_MONTHS) and day <= _DAYS_OF_A_MONTH:
            yield year or None, month, day or None


def _month_number(text: str) -> int:
    if text.isdigit():
        return int(text)
    return next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(text[:3]))


def _terms_of_date(
    year: int | None, month: int, day: int | None, *, months: bool = False
) -> list[str]:
    """Returns `m08d09` and `2026m08d09`; without a day `m08` and `2026m08`; with `months` both."""
    short = [f"m{month:02}d{day:02}"] if day else []
    short += [f"m{month:02}"] if months or not day else []
    return short + [f"{year}{term}" for term in short if year]


def _names(text: str) -> frozenset[str]:
    """Returns the folded words that are written like names.

    Those are words with a capital inside a sentence or with a digit, and in a text of an unspaced
    script every word of a spaced one (`Dana在哪里工作`).
    """
    normal = unicodedata.normalize("NFKC", text)
    foreign = any(run for run, _ in _pieces(normal))
    found: set[str] = set()
    starts = True
    for word in re.findall(r"[^\W_]+|[.!?。！？\n]", normal):
        if not word[0].isalnum():
            starts = True
            continue
        if foreign or (word[0].isupper() and not starts) or any(c.isdigit() for c in word):
            found.update(piece for _, piece in _pieces(_plain(word)))
        starts = False
    return frozenset(found - _FUNCTION_WORDS)


def _units(plain: str, names: frozenset[str]) -> Iterator[Unit]:
    kinds = frozenset(_ASKED_KIND.findall(plain))
    for date in _dates(plain):
        yield Unit(full=tuple(_terms_of_date(*date)), name=True)
    for run, word in _pieces(_DATE.sub(" ", plain)):
        if run:
            yield from _run_units(run)
        elif word not in _FUNCTION_WORDS:
            full = _with_answers((_stem(word),))
            yield Unit(
                full=full,
                kin=_kin_of(full),
                members=_members_of(full),
                common=word in _COMMON_WORDS,
                asked=word in kinds,
                name=word in names,
            )


def _phrases(units: Sequence[Unit]) -> Iterator[str]:
    for one, other in pairwise(units):
        if one.full[0] != other.full[0]:
            yield f" {one.full[0]} {other.full[0]} "


def _run_units(run: str) -> Iterator[Unit]:
    """Yields the content characters of a run, each with the pairs that it is part of.

    Question words are cut out and function characters at the ends count for nothing (我 in front,
    了 behind), nor do those inside; all stay in the pairs of their neighbours, because some words
    are made with them (吉他, 都柏林).
    """
    for part, kind_until in _parts(run):
        first = len(part) - len(part.lstrip(_HAN_LEADING))
        last = max(len(part.rstrip(_HAN_TRAILING)), first + 1)
        if last - first < _SHORTEST_STRIPPED:
            first, last = 0, len(part) if first < len(part) else 0
        for i in range(first, min(last, len(part))):
            if part[i] not in _HAN_WEAK:
                yield _character_unit(part, i, is_asked=i < kind_until)


def _parts(run: str) -> Iterator[tuple[str, int]]:
    """Yields what stands between question words, and up to which character it names a kind."""
    begin, kind_until = 0, 0
    for word in _HAN_FUNCTION_WORDS.finditer(run):
        yield run[begin : word.start()], kind_until
        begin = word.end()
        kind_until = _HAN_KIND_CHARS if _HAN_KIND_FOLLOWS.fullmatch(word[0]) else 0
    yield run[begin:], kind_until


def _character_unit(part: str, i: int, *, is_asked: bool = False) -> Unit:
    around = part[max(i - 1, 0) : i + 2]
    if len(around) == 1:
        return Unit(full=(around,))
    pairs = tuple(_pairs(around))
    return Unit(
        full=_with_answers(pairs, part[i]),
        half=(part[i],),
        kin=_kin_of(pairs),
        members=_members_of(pairs),
        common=any(p in _COMMON_WORDS for p in pairs),
        asked=is_asked,
    )


def _with_answers(terms: tuple[str, ...], *characters: str) -> tuple[str, ...]:
    answers = (one for term in terms + characters for one in _ANSWERED_BY.get(term, ()))
    return tuple(dict.fromkeys((*terms, *answers)))


@cache
def _searched() -> Mapping[str, tuple[str, ...]]:
    """Returns what is always looked for beside a term: stand-ins and the other language."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for word, others in STAND_INS.items():
        found[_stem(word)].update(dict.fromkeys(map(_stem, others)))
    for word, others in TRANSLATIONS.items():
        found[_stem(word)].update(dict.fromkeys(others))
        for other in others:
            found[other][_stem(word)] = None
    return {term: tuple(kin) for term, kin in found.items()}


@cache
def _kin() -> Mapping[str, tuple[str, ...]]:
    """Returns the terms that may stand for a term in what was found, synonyms among them."""
    found = {term: dict.fromkeys(kin) for term, kin in _searched().items()}
    for word, others in SYNONYMS.items():
        found.setdefault(_stem(word), {}).update(dict.fromkeys(map(_stem, others)))
    return {term: tuple(kin) for term, kin in found.items()}


def _kin_of(terms: Iterable[str]) -> tuple[str, ...]:
    return tuple(kin for term in terms for kin in _kin().get(term, ()) if kin != term)


@cache
def _members() -> Mapping[str, tuple[str, ...]]:
    """Returns the terms of a kind's members by the terms that name the kind."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for names, members in KINDS:
        for name in names:
            found[_stem(name)].update(dict.fromkeys(map(_stem, members)))
    return {term: tuple(members) for term, members in found.items()}


def _members_of(terms: Iterable[str]) -> tuple[str, ...]:
    return tuple(one for term in terms for one in _members().get(term, ()))
