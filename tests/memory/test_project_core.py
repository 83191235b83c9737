"""The core page for readers whom a rule keeps to their project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memory.indexed import turn
from turnmark_memory.index import Index
from turnmark_memory.project_core import core_within

PROJECT = "/home/dana/税务"
OURS, THEIRS = "s-aaaaaaaaaaaa", "s-bbbbbbbbbbbb"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index with a turn of the project and one of another."""
    found = Index.open(tmp_path / "index.db")
    ours = msgspec.structs.replace(turn(OURS, "We file in May."), project=PROJECT)
    found.add_turns([ours, turn(THEIRS, "林娜住在上海。")])
    yield found
    found.close()


@pytest.mark.parametrize(
    ("page", "stays"),
    [
        (f"# Core\n\nWe file in May.[^{OURS}]\n", f"# Core\n\nWe file in May.[^{OURS}]\n"),
        (f"# Core\n\n林娜住在上海。[^{THEIRS}]\n", ""),
        (f"Both say so.[^{THEIRS}][^{OURS}]\n", f"Both say so.[^{THEIRS}][^{OURS}]\n"),
        ("# Core\n\nAlways answer in Chinese.\n", "# Core\n\nAlways answer in Chinese.\n"),
        ("Nobody knows.[^s-cccccccccccc]\n", ""),
        (f"- a[^{THEIRS}]\n- b[^{OURS}]\n- c\n", f"- b[^{OURS}]\n- c\n"),
        (
            f"# Core\n\n## Home\n\nx[^{THEIRS}]\n\n## Work\n\ny[^{OURS}]\n",
            f"# Core\n\n## Work\n\ny[^{OURS}]\n",
        ),
        ("", ""),
    ],
)
def test_what_rests_on_other_projects_alone_is_left_out(
    index: Index, page: str, stays: str
) -> None:
    """Paragraphs and items go one by one, a heading with the last of them."""
    assert core_within(page, PROJECT, index) == stays
