"""The fence around recalled memory, and how it is cut from what agents append.

Recalled text is handed out between `<turnmark-memory>` and `</turnmark-memory>`. Agents copy it
into their prompts, so it comes back with the next append; it is no evidence and must be gone
before a turn's key is computed.
"""

from __future__ import annotations

import re

# Every quantifier stops at the next `<`, so that hostile text is scanned once, not once per tag.
_NAME = "turnmark-memory"
_TAG = re.compile(rf"<{_NAME}(?:\s[^<>]*)?/?>|</{_NAME}\s*>")
# A cut can join two halves into a new tag. Honest text needs one pass; the bound keeps cost linear.
_MAX_PASSES = 4


def cut_fences(text: str) -> str:
    """Returns `text` without any fenced span, nested or not; an unclosed span reaches to the end.

    The tag is matched with its case, with or without attributes. A closing tag without an opening
    one stays, a tag that closes itself is cut alone. Linear in the length of `text`; cutting
    twice gives the same as cutting once.
    """
    if _NAME not in text:
        return text
    for _ in range(_MAX_PASSES):
        cut = _cut_once(text)
        if cut == text:
            return text
        text = cut
    left = next((tag for tag in _TAG.finditer(text) if not tag[0].startswith("</")), None)
    return text if left is None else text[: left.start()]


def _cut_once(text: str) -> str:
    kept: list[str] = []
    depth = 0
    outside_from = 0
    for tag in _TAG.finditer(text):
        if tag[0].startswith("</"):
            if depth == 0:
                continue
            depth -= 1
            outside_from = tag.end()
        else:
            if depth == 0:
                kept.append(text[outside_from : tag.start()])
            if not tag[0].endswith("/>"):
                depth += 1
            elif depth == 0:
                outside_from = tag.end()
    if depth == 0:
        kept.append(text[outside_from:])
    return "".join(kept)
