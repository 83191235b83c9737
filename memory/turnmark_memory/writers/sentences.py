"""Cuts a turn into sentences, in English and Chinese, without code, logs, quotes and links.

Where a sentence ends, `sentencex` says: it knows the abbreviations of both languages. What is no
sentence at all is ours to find. Everything here is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import cast

import sentencex  # type: ignore[import-untyped]  # a compiled module without annotations

from turnmark_memory.words import is_chinese

__all__ = ["is_chinese", "split_sentences"]

# Its rules of English hold for Chinese marks too, and mixed text is common.
_segment = cast(
    "Callable[[str, str], list[str]]",
    sentencex.segment,  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
)

# Wrapped lines are joined up to here, so that a paste without full stops stays linear to read.
_LONGEST_PASSAGE = 4000
# A sentence longer than this is cut at a word; a block stays a paragraph that a person can read.
_LONGEST_SENTENCE = 480

_FENCE = re.compile(r"^\s*(```|~~~)")
_BULLET = re.compile(r"^\s*(?:[-*+•·]|\d{1,2}[.)、]|[（(]\d{1,2}[)）])\s+")
_LINK = re.compile(r"https?://\S+")
_LOG_LINE = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"  # a timestamp
    r"|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b"
    r"|Traceback \(|File \"|at \S+ ?\(|\w*(?:Error|Exception): "
    r"|\$ |>>> |\.\.\. |\+\+\+ |--- |@@ |diff --git |commit [0-9a-f]{7}"
    r"|(?:E|W|I|D)/\w+|(?:error|warning)(?:\[\w+\])?: |\s*-->\s|(?:DETAIL|HINT|CONTEXT|NOTE): "
    r"|(?:\w+\.)+\w*(?:Error|Exception|Warning)\b|<\w+ 0x|\s*(?:\d+ )?\|(?: |$)|FAILED |panicked"
    r" at "
    r"|\s*(?:test |running \d+ test)|thread '|panic: |goroutine \d|exit status|\t/"
    r"|.*\b0x[0-9a-f]{4}|[├└│╰╭✕✗✖]|ERR_\w+|E[A-Z]{5,}\b|(?:FAIL|PASS) )"
)
# A line below a line of a log that goes on with it: "index out of bounds: the len is 0".
_LOG_MORE = re.compile(r"^\s*[a-z][\w ]{2,40}: ")
_CODE_LINE = re.compile(
    r"(?:[;{}]\s*$|^\s*[})\]]|=>|&&|\|\||^\s*[\w.]+\s*=\s*\S|^\s*[\w.]+\([^)]*\)\s*$"
    r"|^\s*(?:def|fn|func|function)\s+\w+\s*\(|^\s*class\s+\w+\s*[:({]"
    r"|^\s*(?:from\s+\S+\s+)?import\s+[\w.*]+(?:\s*,.*)?$|^\s*(?:const|let|var)\s+\w+\s*="
    r"|^\s*return\b.*[();=]|^\s*(?:if|for|while|elif|with|else|try|except)\b[^,]*:\s*$"
    r"|^\s*#include|^\s*(?:SELECT|INSERT INTO|UPDATE|CREATE TABLE)\s)"
)
_CODE_SIGNS = re.compile(r"[{}<>;=|\\$\[\]]")
# More than this share of code signs makes a line code, whatever its words are.
_CODE_SHARE = 0.15

# What a line is shows in its beginning; a line of megabytes would hold the interpreter meanwhile.
_LOOKED_AT_CHARS = 4_000

_TERMINAL = frozenset(".!?。！？；;:：…")
# Chinese chats put spaces where full stops belong.
_PAUSE = re.compile(
    r"(?<=[；;！!？?])(?=\S)(?<![A-Za-z0-9&][;])(?![；;！!？?”’」』）)\"'])"
    r"|(?<=[\u3400-\u9fff\U0001f300-\U0001faff])\s+(?=[\u3400-\u9fff])"
    r"|(?<=……)(?=\s)"
)
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


def split_sentences(text: str) -> list[str]:
    """Returns the sentences of `text` in order, each on one line, with its closing mark.

    Left out: fenced and plain code, log lines, tables, headings, quoted lines and bare links.
    """
    return [
        _shortened(sentence)
        for passage in _passages(text)
        for sentence in _sentences_of(passage)
        if _has_words(sentence)
    ]


def _passages(text: str) -> Iterator[str]:
    """Yields the prose of `text`; wrapped lines of one paragraph come joined."""
    open_passage = ""
    for line in _prose_lines(text):
        stripped = _BULLET.sub("", line).strip()
        if open_passage and _continues(open_passage, line):
            open_passage = f"{open_passage} {stripped}"
            continue
        if open_passage:
            yield open_passage
        open_passage = stripped
    if open_passage:
        yield open_passage


def _continues(passage: str, line: str) -> bool:
    """Returns whether `line` is the wrapped rest of `passage`."""
    if _BULLET.match(line) or not line.strip():
        return False
    if len(passage) > _LONGEST_PASSAGE:
        return False
    return passage[-1] not in _TERMINAL and line.lstrip()[0].islower()


def _prose_lines(text: str) -> Iterator[str]:
    """Yields the lines that somebody said, and "" where a passage must end."""
    fenced = logged = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            yield ""
        elif not fenced:
            is_more = logged and _LOG_MORE.match(line) is not None
            noise = is_more or _is_noise(line)
            logged = is_more or _LOG_LINE.match(line[:_LOOKED_AT_CHARS]) is not None
            yield "" if noise else line


def _is_noise(line: str) -> bool:
    line = line[:_LOOKED_AT_CHARS]
    if not line.strip():
        return True
    if line.lstrip().startswith((">", "#", "|", "</", "<!", "[^")):
        return True
    return bool(_LOG_LINE.match(line)) or _is_link(line) or _is_code(line)


def _is_link(line: str) -> bool:
    return bool(_LINK.search(line)) and not _has_words(_BULLET.sub("", _LINK.sub("", line)))


def _is_code(line: str) -> bool:
    if _HAN.search(line):
        return False
    if _CODE_LINE.search(line):
        return True
    without_links = _LINK.sub("", line).strip()
    return len(_CODE_SIGNS.findall(without_links)) > _CODE_SHARE * len(without_links)


def _sentences_of(passage: str) -> Iterator[str]:
    for sentence in _segment("en", passage):
        for part in _PAUSE.split(sentence):
            yield part.strip()


def _has_words(sentence: str) -> bool:
    return any(sign.isalnum() for sign in sentence)


def _shortened(sentence: str) -> str:
    if len(sentence) <= _LONGEST_SENTENCE:
        return sentence
    head = sentence[:_LONGEST_SENTENCE]
    cut = max(head.rfind(sign) for sign in " ，,、")
    # A sentence without a place to cut (one endless word) is cut where it is too long.
    return f"{head[: cut if cut > 0 else _LONGEST_SENTENCE].rstrip()} …"
