"""Tests of `session_store/fences.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_session_store.fences import cut_fences

OPEN = "<turnmark-memory>"
CLOSE = "</turnmark-memory>"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("no fence at all", "no fence at all"),
        (f"a {OPEN}recalled{CLOSE} b", "a  b"),
        (f"{OPEN}一{OPEN}二{CLOSE}三{CLOSE}我住在卑尔根。", "我住在卑尔根。"),
        (f"before {OPEN}never closed", "before "),
        ('x<turnmark-memory tokens="12" mode=full>y</turnmark-memory >z', "xz"),
        (f"x<turnmark-memory\n>y{CLOSE}z", "xz"),
        ("x<turnmark-memory />y", "xy"),
        (f"{OPEN}a<turnmark-memory/>b{CLOSE}c", "c"),
        (f"stray {CLOSE} stays", f"stray {CLOSE} stays"),
        ("<Turnmark-Memory>a</Turnmark-Memory>", "<Turnmark-Memory>a</Turnmark-Memory>"),
        ("<turnmark-memory-log>a", "<turnmark-memory-log>a"),
        (f"{OPEN}a{CLOSE}mid{OPEN}b{CLOSE}end", "midend"),
    ],
)
def test_cuts_spans_and_nothing_else(text: str, left: str) -> None:
    """Fenced spans go, whatever stands around them stays byte for byte."""
    assert cut_fences(text) == left


def test_a_cut_does_not_join_two_halves_into_a_new_fence() -> None:
    """Text that would become a fence by the cut is cut as well."""
    assert cut_fences(f"<turnmark-{OPEN}x{CLOSE}memory>y{CLOSE}z") == "z"


def test_halves_nested_deeper_than_the_passes_end_the_text() -> None:
    """What is still a fence after the last pass is treated as unclosed."""
    text = "secret"
    for _ in range(12):
        text = f"<turnmark-{OPEN}x{CLOSE}memory>{text}"
    assert OPEN not in cut_fences(f"kept {text}")
    assert cut_fences(f"kept {text}").startswith("kept ")


pieces = st.sampled_from(
    [OPEN, CLOSE, "<turnmark-memory a=b>", "<turnmark-", "memory>", "<", ">", "字", "word ", "\n"]
)


@given(st.lists(pieces, max_size=40).map("".join))
def test_cutting_twice_is_cutting_once(text: str) -> None:
    """No opening tag is left, so a second cut finds nothing."""
    once = cut_fences(text)
    assert cut_fences(once) == once
    assert OPEN not in once
