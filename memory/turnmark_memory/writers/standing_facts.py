"""Takes a block apart into the facts that can end one by one, and puts together what is left.

A sentence is a fact, with those behind it that point back at it. A long one of several clauses is
several: what ends one of them says nothing of the others.
"""

from __future__ import annotations

import re
from itertools import dropwhile

from turnmark_memory.writers.changes import leaves
from turnmark_memory.writers.chinese_voice import has_subject
from turnmark_memory.writers.english_voice import is_whole
from turnmark_memory.writers.gists import Gist, gist_of
from turnmark_memory.writers.sameness import terms_of
from turnmark_memory.writers.sentences import is_chinese, split_sentences
from turnmark_memory.writers.values import others

# A sentence of more words that say what it is about is likely to be several facts.
_MANY_WORDS = 6
# What a clause shares with what replaces it counts less than another value of a kind.
_OTHER_VALUE, _LEFT = 4, 2
# Fewer letters are no clause of their own.
_SHORTEST = {False: 12, True: 4}

_POINTS_BACK = re.compile(
    r"(?:it|its|that|this|they|those|these|he|she|so|because)\b|[这那它他她]|所以|因为",
    re.IGNORECASE,
)
_COMMA = re.compile(r"[,;] +|[，；]")
# What begins so belongs to the clause before it.
_GOES_ON = re.compile(
    r"(?:which|who|whose|that|because|so|since|as|if|when|where|while|although|though|but|or|and"
    r"|not|then|than|to|for|with|without|in|on|at|by|from|until|unless|except|even|only|please)\b"
    r"|所以|因为|但|而|才|就|都|也|的|如果|要是|不然|否则|免得|还是|只要|除非|可以|不过|然后|得|要|别|不",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|its|he|him|his|she|her|hers|they|them|their|that|this)\b|[他她它]", re.IGNORECASE
)
_NUMBER_FIRST = re.compile(r"[\d一二两三四五六七八九十]")
_END = re.compile(r"[.!?。！？…]+$")


def parts_of(words: str) -> list[str]:
    """Returns the facts of a block's words, in order; joined they are the words again."""
    parts: list[str] = []
    for sentence in _with_gaps(words, split_sentences(words)):
        if parts and _POINTS_BACK.match(sentence):
            parts[-1] += sentence
        else:
            parts.append(sentence)
    return parts or [words]


def left_of(sentence: str, new: Gist) -> str:
    """Returns what is left of a fact once `new` holds: all but the clause that it is about.

    "" where nothing is left that stands by itself.
    """
    clauses = clauses_of(sentence)
    if len(clauses) == 1:
        return ""
    scores = [_closeness(gist_of(clause), new) for clause in clauses]
    return _without(clauses, scores.index(max(scores)))


def _closeness(clause: Gist, new: Gist) -> float:
    """Returns how much speaks for a clause being what is replaced: another value, a word left."""
    shared = [word for word in new.words if word in clause.text]
    return (
        _OTHER_VALUE * bool(others(new.values, clause.values))
        + _LEFT * any(leaves(new.text, word) for word in shared)
        + len(shared)
        + len(new.concepts & clause.concepts) / 2
    )


def _without(clauses: list[str], gone: int) -> str:
    """Returns a sentence without one clause, "" if none of the others stands by itself."""
    left = clauses[:gone] + clauses[gone + 1 :]
    if gone == 0:  # it said what the others are about
        left = list(dropwhile(lambda clause: not _stands(clause), left))
    words = "".join(left).strip().rstrip(" ,;，；")
    end = _END.search(clauses[-1].strip())
    return words + (end.group() if words and end and not _END.search(words) else "")


def _stands(clause: str) -> bool:
    """Returns whether a clause says by itself what it is about."""
    if _PRONOUN.search(clause) or _NUMBER_FIRST.match(clause):
        return False
    return has_subject(clause) if is_chinese(clause) else is_whole(clause)


def _with_gaps(words: str, sentences: list[str]) -> list[str]:
    """Returns sentences with what stands between them, [] if they are not all in the words."""
    starts: list[int] = []
    at = 0
    for sentence in sentences:
        start = words.find(sentence, at)
        if start < 0:
            return []
        starts.append(start)
        at = start + len(sentence)
    ends = [*starts[1:], len(words)]
    starts[:1] = [0]
    return [words[start:end] for start, end in zip(starts, ends, strict=True)] if at else []


def clauses_of(sentence: str) -> list[str]:
    """Returns the clauses of a long sentence that may end by themselves; joined they are it."""
    if len(terms_of(sentence).words) <= _MANY_WORDS:
        return [sentence]
    clauses: list[str] = []
    start = 0
    ends = [comma.end() for comma in _COMMA.finditer(sentence)]
    for end in (*ends, len(sentence)):
        clause = sentence[start:end]
        start = end
        shortest = _SHORTEST[not clause.isascii()]
        if clauses and (len(clause) < shortest or _GOES_ON.match(clause)):
            clauses[-1] += clause
        else:
            clauses.append(clause)
    return clauses
