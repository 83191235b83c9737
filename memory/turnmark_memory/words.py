"""The words of a block: one paragraph that shows what it says and can't pose as structure.

Words come from people and models, by way of conversations that anyone may have written into.
Cleaned words are one line of Markdown in which nothing is invisible and nothing is a heading, a
list, a footnote, a block id, an image, an embed or HTML. Emphasis, links and code stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from turnmark_events.errors import Refused
from turnmark_memory.labels import BLOCK_PATTERN

# A block is a paragraph about one thing; longer ones crowd out the core page and recall.
WORDS_LIMIT_CHARACTERS: Final = 2000

_JOINERS: Final = "\u200c\u200d"
# Letters by category, but nothing to see: Hangul fillers, blank Braille, the grapheme joiner.
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028]")
# A run of backslashes that leaves the next character unescaped; `\1` keeps it.
_UNESCAPED: Final = r"(?<!\\)((?:\\\\)*)"
_MARKER: Final = r"[-+*](?=\s|$)|\d{1,9}[.)](?=\s|$)"
_STRUCTURE: Final = (
    rf"#{{1,6}}(?=\s|$)|>|\||`{{3}}|~{{3}}|\$\$|{_MARKER}|=+\s*$|-+\s*$"
    r"|([-*_])(?:\s*\1){2,}\s*$|\[[^\]]*\]:"
)
_LEADING_STRUCTURE = re.compile(_STRUCTURE)
_LEADING_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_FOOTNOTE = re.compile(_UNESCAPED + r"(?=\[\^)")
_INLINE_FOOTNOTE = re.compile(_UNESCAPED + r"(?=\^(?:\[|$))")
_ANCHOR = re.compile(r"(?:^|(?<=\s))((?:\\\\)*)(?=\^)")
_TAG = re.compile(_UNESCAPED + r"(?=<[A-Za-z/!?])")
_HIDDEN = re.compile(r"%(?=%)")
_FORGED_ID = re.compile(rf"(?:^|\s)(?:\\\\)*\^{BLOCK_PATTERN}(?=\s|$)")
_FORGED_FOOTNOTE = re.compile(_UNESCAPED + r"\[\^[^\]]*\]")
_TRAILING_BACKSLASHES = re.compile(r"(?<!\\)\\(?:\\\\)*$")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")
_SPACES = re.compile(r"[ \t]{2,}|\t")


def is_wide(character: str) -> bool:
    """Tells whether `character` is of a script written without spaces (Han, kana, their marks)."""
    hangul = "\uac00" <= character <= "\ud7a3" or "\u1100" <= character <= "\u11ff"
    return not hangul and unicodedata.east_asian_width(character) in "WF"


def is_chinese(text: str) -> bool:
    """Tells whether most of the words of `text` are Chinese characters."""
    return len(_HAN.findall(text)) > len(_LATIN_WORD.findall(text))


def join_lines(lines: Sequence[str]) -> str:
    """Returns the lines of one paragraph as one: with a space, or none between wide characters."""
    joined = ""
    for line in filter(None, (line.strip(" \t\r\n") for line in lines)):
        close = not joined or (is_wide(joined[-1]) and is_wide(line[0]))
        joined += line if close else f" {line}"
    return _SPACES.sub(" ", joined)


def visible(text: str) -> str:
    r"""Returns `text` in NFC without characters that show nothing: controls, bidi marks, tags.

    A joiner stays after an emoji or a letter of a script that needs it, a variation selector
    after a character of its own; line ends become `\n`, other white space a space.
    """
    text = _LINE_ENDS.sub("\n", unicodedata.normalize("NFC", text)).replace("\u2029", "\n\n")
    kept: list[str] = []
    for character in text:
        shown = _shown(character, kept[-1] if kept else " ")
        if shown:
            kept.append(shown)
    return unicodedata.normalize("NFC", "".join(kept))


def _shown(character: str, before: str) -> str:
    if character in "\n\t":
        return character
    if _is_selector(character):
        return character if not (before.isspace() or _is_selector(before)) else ""
    category = unicodedata.category(character)
    if character in _JOINERS:
        return character if _takes_joiner(before) else ""
    if category[0] == "C" or character in _UNSEEN:
        return ""
    if category[0] == "Z":
        return character if character == "\u3000" else " "
    return character


def _is_selector(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _takes_joiner(before: str) -> bool:
    category = unicodedata.category(before)
    if before in _JOINERS or before in _UNSEEN:
        return False
    return category in ("So", "Sk", "Mn", "Mc") or (category == "Lo" and not is_wide(before))


def words_problem(text: str) -> str | None:
    """Returns why `text` can't be a block's words, as the end of a sentence; None if it can.

    Stricter than `clean_words`: what would have to be neutralised is refused, since a writer that
    forges an id or a footnote has not understood the rules or was talked into it.
    """
    lines = visible(text).strip().split("\n")
    if not any(line.strip() for line in lines):
        return "is empty; say one thing in one paragraph"
    if len(text) > WORDS_LIMIT_CHARACTERS:
        return f"has {len(text)} characters; {WORDS_LIMIT_CHARACTERS} are allowed, so split it"
    if not all(line.strip() for line in lines):
        return "has several paragraphs; make it one, or several edits"
    if any(_LEADING_STRUCTURE.match(line.strip()) for line in lines[1:]):
        return "holds a list or other structure; make it one paragraph"
    return _forgery(" ".join(lines))


def _forgery(text: str) -> str | None:
    if _FORGED_ID.search(text):
        return "holds a block id; ids are given by the runtime, leave them out"
    if _FORGED_FOOTNOTE.search(text):
        return "holds a footnote; name the turns in `cites` instead"
    return None


def clean_words(text: str) -> str:
    """Returns `text` as one line of Markdown that can't pose as structure; twice is as once.

    Raises:
        Refused: if nothing visible is left, or `text` has several paragraphs.
    """
    lines = visible(text).strip().split("\n")
    if not any(line.strip() for line in lines):
        raise Refused("the text is empty; give one paragraph")
    if not all(line.strip() for line in lines):
        raise Refused("the text has several paragraphs; give one paragraph, or several edits")
    return _neutral(join_lines(lines).strip())


def clean_title(text: str) -> str:
    """Returns `text` as a heading's title: cleaned words without the marks of a heading.

    Raises:
        Refused: as `clean_words`.
    """
    words = clean_words(text.strip().lstrip("#"))
    bare = words.rstrip("#")
    return bare.rstrip() if bare.endswith(" ") else words


def _neutral(words: str) -> str:
    words = words.replace("![", "!\\[").replace("-->", "--\\>")
    for pattern in (_FOOTNOTE, _INLINE_FOOTNOTE, _ANCHOR, _TAG):
        words = pattern.sub(r"\1\\", words)
    words = _HIDDEN.sub(r"%\\", words)
    if _LEADING_NUMBER.match(words):
        words = _LEADING_NUMBER.sub(r"\1\\\2", words, count=1)
    elif _LEADING_STRUCTURE.match(words):
        words = f"\\{words}"
    # A backslash at the end would escape the footnote that follows it.
    return f"{words}\\" if _TRAILING_BACKSLASHES.search(words) else words
