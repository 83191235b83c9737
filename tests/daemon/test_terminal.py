"""`turnmark.terminal`: widths, cutting, tables, colour and the progress bar."""

from __future__ import annotations

import io
import os
import pty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark.terminal import (
    Ink,
    ProgressBar,
    clip,
    columns_of,
    one_line,
    pad,
    printable,
    table,
    wants_color,
    width_of,
)


@pytest.mark.parametrize(
    ("text", "cells"),
    [("abc", 3), ("我住在", 6), ("한글", 4), ("e\u0301", 1), ("a\u200bb", 2), ("…", 1), ("", 0)],
)
def test_counts_cells_as_a_terminal_draws_them(text: str, cells: int) -> None:
    """Chinese and Korean take two cells, combining and invisible characters none."""
    assert width_of(text) == cells


@given(st.text(max_size=40), st.integers(0, 40))
def test_cuts_to_the_width_and_never_inside_a_character(text: str, columns: int) -> None:
    """What is cut fits, begins as the text did, and says that something is missing."""
    cut = clip(text, columns)
    assert width_of(cut) <= columns
    assert cut == text or columns == 0 or cut.endswith("…")
    assert text.startswith(cut.removesuffix("…"))


@given(st.text(max_size=40))
def test_lets_no_control_character_through(text: str) -> None:
    """Text on one line has no character that moves a cursor or begins a sequence."""
    assert not any(
        ord(character) < 32 or 127 <= ord(character) < 160 for character in one_line(text)
    )


def test_keeps_the_lines_of_longer_texts() -> None:
    """Newlines and tabs stay, a lone carriage return can't overwrite its line."""
    assert printable("a\r\n\tb\rc\x1b[2J") == "a\n\tb\\u000dc\\u001b[2J"


def test_aligns_a_table_by_what_is_seen() -> None:
    """Columns stand below each other whatever the script; only the last is cut."""
    rows = [("名", "N"), ("会话", "a long last one"), ("s", "b")]
    assert table(rows) == ["名    N", "会话  a long last one", "s     b"]
    assert table(rows, columns=12)[1] == "会话  a lon…"
    assert table([("s", "b"), ("x" * 50, "c")]) == [f"s{' ' * 35}  b", f"{'x' * 50}  c"]
    assert table([]) == []
    assert pad("会", 3) == "会 "


def test_paints_only_where_colour_is() -> None:
    """Without colour every style is the text itself."""
    assert {Ink().bold("x"), Ink().struck("x"), Ink().good("x")} == {"x"}
    assert Ink(color=True).bold("x") == "\x1b[1mx\x1b[0m"
    assert not Ink(color=True).bold("")


def test_asks_a_terminal_for_its_width_and_colours() -> None:
    """`COLUMNS` goes before the terminal, `NO_COLOR` before its colours; a pipe has neither."""
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream, os.fdopen(controller, "rb"):
        assert columns_of(stream, {"COLUMNS": "132"}) == 132
        assert columns_of(stream, {"COLUMNS": "1"}) == 20
        assert columns_of(stream, {"COLUMNS": "wide"}) == 80
        assert wants_color(stream, {"TERM": "xterm"})
        assert not wants_color(stream, {"NO_COLOR": "1"})
        assert not wants_color(stream, {"TERM": "dumb"})
    assert columns_of(io.StringIO(), {}) == 80
    assert not wants_color(io.StringIO(), {})


def test_shows_progress_on_a_terminal_and_clears_it() -> None:
    """The bar is one line that is drawn over and gone at the end."""
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream, os.fdopen(controller, "rb", buffering=0) as screen:
        with ProgressBar(stream, "导入", columns=60) as bar:
            bar.show(1, 4, "会话-1\nx")
            bar.show(1, 4, "会话-1\nx")
            bar.show(5, None)
        shown = b""
        while shown.count(b"\x1b[K") < 3:
            shown += screen.read(4096)
    first, second, last, rest = shown.decode().split("\x1b[K")
    assert first == f"\r导入 {'█' * 6}{'░' * 18}  25% 会话-1 x"
    assert second == "\r导入 5"
    assert (last, rest) == ("\r", "")


def test_shows_no_progress_in_a_pipe() -> None:
    """Where nobody watches nothing is written."""
    stream = io.StringIO()
    with ProgressBar(stream, "x") as bar:
        bar.show(1, 2)
    assert not stream.getvalue()
