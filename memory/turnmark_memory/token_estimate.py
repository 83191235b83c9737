"""An estimate of tokens for where no vocabulary is at hand: never below the real number.

A budget that holds under the estimate holds in truth. The text is split roughly as o200k_base
splits it; each piece costs what it can cost at worst. For that to stay near the truth on ordinary
text, 3,000 words and 2,000 Chinese, Japanese and Korean characters that o200k_base holds whole
are known (`o200k_common.txt`, taken from its vocabulary; MIT, OpenAI).

Measured against o200k_base: 1.7 to 1.9 times on English, 1.9 to 2.2 on Python code, 1.5 to 1.6 on
Chinese and Japanese; never below on 20,000 random texts of each of eleven kinds (words, base64,
hex, printable ASCII, all of Unicode, white space, punctuation, Chinese, …). Not proven: a text
made to defeat it can.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

# Alternatives as in o200k_base; what it treats further is counted by the character.
_PIECE = re.compile(
    # An indent leaves its last space to the word or mark after it.
    r" {1,10}(?= [A-Za-z!-/:-@\[-`{-~])"
    r"| ?[A-Za-z]+|[0-9]{1,3}|[^\S\r\n]*[\r\n]+|[^\S\r\n]+| ?[^\sA-Za-z0-9]+"
)
# A capital begins a piece of its own, as in camelCase.
_HUMP = re.compile(r"[A-Z]*[a-z]+|[A-Z]+")
# Runs of one of these, up to this length, are single tokens.
_RUN = " \n\t"
_RUN_LIMIT = 10
# Shorter parts of a word are not looked for: they are rarely how it is split.
_PART_MIN = 3


class Estimate:
    """Counts tokens without a vocabulary; see the module for how well."""

    name = "estimate"

    def count(self, text: str) -> int:
        """Returns a number that is hardly ever below o200k_base's; linear in the length."""
        found = _PIECE.finditer(text)
        return sum(_cost(match.group(), text[match.end() : match.end() + 1]) for match in found)


def _cost(piece: str, after: str) -> int:
    body = piece.removeprefix(" ")
    if not body or body.isspace():
        return _space_cost(piece, after)
    if body.isascii() and body.isalpha():
        return min(_word_cost(body), len(body))
    if piece.isascii() and piece.isdigit():
        return 1
    _, characters = _common()
    total = sum(1 if c.isascii() or c in characters else _bytes(c) for c in body)
    # A space joins a single mark for free; before several it may be left alone.
    return total + (1 if len(piece) > len(body) > 1 else 0)


def _space_cost(piece: str, after: str) -> int:
    if piece != piece[0] * len(piece) or piece[0] not in _RUN or len(piece) > _RUN_LIMIT:
        return _bytes(piece)
    # The last of several is split off for what comes after; a space, for a word, comes with it.
    return 1 if len(piece) == 1 or piece[0] == "\n" or after in ("", " ") else 2


def _word_cost(word: str) -> int:
    words, _ = _common()
    if _is_plain(word):
        return 1 if word.lower() in words else _parts(word.lower()) + 1
    humps = (hump for hump in _HUMP.findall(word))
    return sum(1 + (_parts(h.lower()) + 1 if _is_plain(h) else len(h)) for h in humps)


def _parts(word: str) -> int:
    """Returns the number of known parts and single letters that greedily make up `word`."""
    words, _ = _common()
    at = count = 0
    while at < len(word):
        ends = range(min(len(word), at + _longest()), at + _PART_MIN - 1, -1)
        at = next((end for end in ends if word[at:end] in words), at + 1)
        count += 1
    return count


def _is_plain(word: str) -> bool:
    return word.islower() or (len(word) > 1 and word[1:].islower())


def _bytes(text: str) -> int:
    # No token is shorter than a byte; half a surrogate pair is replaced by a character of three.
    return len(text.encode("utf-8", "surrogatepass"))


@functools.cache
def _common() -> tuple[frozenset[str], frozenset[str]]:
    text = resources.files("turnmark_memory").joinpath("o200k_common.txt").read_text("utf-8")
    words, characters = text.split("\n\n")
    return frozenset(words.split()), frozenset(characters.replace("\n", ""))


@functools.cache
def _longest() -> int:
    words, _ = _common()
    return max(map(len, words))
