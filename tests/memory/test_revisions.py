"""Records of what installs changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from turnmark_events.errors import NotFound, Unavailable
from turnmark_memory.revisions import (
    RecordedChange,
    RevisionRecord,
    history,
    read_record,
    replace_record,
    revision_numbers,
    write_record,
)
from turnmark_memory.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace."""
    with Workspace.open(tmp_path) as opened:
        yield opened


def record(revision: int, text: str = "Dana 住在波尔图。") -> RevisionRecord:
    return RevisionRecord(
        revision=revision,
        at=datetime(2026, 8, 9, 14, 2, tzinfo=UTC),
        cause="write",
        blocks=("b-af3dee4f",),
        topics=("people/dana",),
        changes=(RecordedChange(topic="people/dana", block="b-af3dee4f", before=None, after=text),),
        turns=3,
    )


def test_record_comes_back_as_written(workspace: Workspace) -> None:
    """Also after being written twice, as a recovery does."""
    write_record(workspace, record(1))
    write_record(workspace, record(1))
    assert read_record(workspace, 1) == record(1)


def test_history_is_newest_first_and_paged(workspace: Workspace) -> None:
    """Numbers are compared as numbers, and pages neither overlap nor leave a gap."""
    for number in (1, 2, 9, 10, 11, 100):
        write_record(workspace, record(number))
    seen: list[int] = []
    before: int | None = None
    while True:
        page = history(workspace, before=before, limit=2)
        seen += [found.revision for found in page.records]
        before = page.next
        if before is None:
            break
    assert seen == [100, 11, 10, 9, 2, 1]
    assert history(workspace, limit=6).next is None


def test_empty_history_is_a_page(workspace: Workspace) -> None:
    """No record, no next."""
    page = history(workspace)
    assert (page.records, page.next) == ((), None)


def test_damaged_record_hides_no_other(workspace: Workspace) -> None:
    """It is left out of the history; asked for by number, it says so."""
    write_record(workspace, record(1))
    write_record(workspace, record(2))
    (workspace.root / ".turnmark/revisions/2.json").write_bytes(b'{"revision": 2')
    (workspace.root / ".turnmark/revisions/notes.txt").write_bytes(b"x")
    assert [found.revision for found in history(workspace).records] == [1]
    with pytest.raises(Unavailable, match=r"2\.json"):
        read_record(workspace, 2)
    with pytest.raises(NotFound, match="revision 3"):
        read_record(workspace, 3)
    assert revision_numbers(workspace) == [2, 1]


def test_forgotten_words_leave_a_record(workspace: Workspace) -> None:
    """The record keeps its number, blocks and cause."""
    write_record(workspace, record(1, "secret words"))
    replaced = replace_record(workspace, 1, ())
    assert replaced.blocks == ("b-af3dee4f",)
    assert read_record(workspace, 1) == replaced
    assert b"secret" not in (workspace.root / ".turnmark/revisions/1.json").read_bytes()
