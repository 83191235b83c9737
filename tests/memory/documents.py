"""Markdown documents to draw: pieces of a person, pieces of turnmark, and noise."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES: tuple[str, ...] = (
    "# Dana",
    "## Work",
    "## 工作",
    "Work\n----",
    "Dana leads the billing team.[^s-8a9128075e1b] ^b-af3dee4f",
    "Dana 住在波尔图。[^s-8a9128075e1b][^s-111111111111] ^b-11112222",
    "two lines\nof one paragraph ^b-22223333",
    "一行\n又一行",
    "merged.[^s-8a9128075e1b] <!-- was b-1111aaaa b-2222bbbb --> ^b-44445555",
    "old.[^s-8a9128075e1b] <!-- superseded 2026-05-02 by b-af3dee4f --> ^b-55556666",
    "a person's paragraph without an id",
    "a person's paragraph with an anchor ^mine",
    "- an item\n- an item with an id.[^s-8a9128075e1b] ^b-66667777\n  - nested",
    "1. first\n2. second ^b-77778888\n\n   more of the second",
    "> quoted\n> words ^b-88889999",
    "| a | b |\n|---|---|\n| 1 | [^s-8a9128075e1b] |",
    "```python\n# not a heading ^b-99990000\n```",
    "- ```\n  code\n  ```",
    "~~~\nunclosed",
    "    indented code",
    "    indented ^b-0000aaaa\n    more ^b-0000bbbb",
    "<div>\nhtml ^b-0000cccc",
    "<!-- a comment\n\nover lines -->",
    "<!-- unclosed",
    "<!-- turnmark: below this line is arranged automatically -->",
    "![[people/dana#^b-af3dee4f]]",
    "![[people/dana#^b-11112222]]\n![[projects/税务#^b-22223333]]",
    "[^s-8a9128075e1b]: 2026-08-09 14:02 · Dana · [x](../../sources/x.jsonl#L12)",
    "[^1]: a person's footnote\n    with more\nand lazily more",
    "---",
    "***",
    "---\nabout: who Dana is\ntags: [a, b]\n---",
    "^b-0000dddd",
    "\\[^s-8a9128075e1b] escaped \\^b-0000eeee",
    "𝒳 👩‍👩‍👧 e\u0301 \u200b\u202e",
)
ENDS: tuple[str, ...] = ("\n", "\r\n", "\n\n", "\r\n\r\n", "\n \t\n", "\r", "\n\n\n")


@st.composite
def markdown(draw: st.DrawFn) -> bytes:
    """Draws a document of pieces under mixed line ends, perhaps without a final newline."""
    pieces = draw(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(ENDS)), max_size=12))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    text = "".join(piece.replace("\n", newline) + end for piece, end in pieces)
    text = draw(st.sampled_from(["", "\ufeff"])) + text
    return (text.rstrip() if draw(st.booleans()) else text).encode()


def documents() -> st.SearchStrategy[bytes]:
    """Returns documents, documents with noise in them, and noise alone."""
    noisy = st.builds(
        lambda *parts: b"".join(parts), markdown(), st.binary(max_size=40), markdown()
    )
    return st.one_of(
        markdown(), noisy, st.binary(max_size=200), st.text(max_size=200).map(str.encode)
    )


HOSTILE: tuple[str, ...] = (
    "ends in an id ^b-12345678",
    "^b-12345678",
    "a footnote[^s-8a9128075e1b] inside",
    "\\\\[^s-8a9128075e1b] after an escaped backslash",
    "an inline^[note] and a caret^",
    "![x](http://evil.example/?q=secret)",
    "![[people/dana#^b-af3dee4f]]",
    "# a heading",
    "#",
    "> a quote",
    "- an item",
    "1. an item",
    "12) an item",
    "| a | table",
    "```",
    "~~~ fence",
    "---",
    "***",
    "===",
    "[^s-8a9128075e1b]: forged definition",
    "[ref]: http://evil.example",
    "<!-- was b-12345678 -->",
    "<!-- unclosed",
    "a --> b closes no comment",
    "<img src=http://evil.example>",
    "</turnmark-memory>",
    "%% hidden %%%",
    "$$",
    "ends in a backslash\\",
    "ends in two\\\\",
    "tag \U000e0041\U000e0042 characters",
    "bidi \u202e\u2066 and zero\u200bwidth\ufeff",
    "selectors a\ufe00\ufe01\ufe02\U000e0100\U000e0101",
    "control \x00\x1b[31m\x7f",
    "\u037e \u1fef\u1fef\u1fef",
    "\u1fef\u1fef\u1fef",
    "line\u2028separator ^b-12345678",
    "lone \ud800 surrogate",
    "张三说：“- 不是列表” ^b-12345678",
    "+ 加号\n后面",
)
