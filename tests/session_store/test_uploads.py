"""Uploads: parts in, the whole out once, and never more than fits."""

from __future__ import annotations

import pytest

from turnmark_events.errors import NotFound, Refused
from turnmark_session_store import uploads as uploads_module
from turnmark_session_store.requests import ImportLines
from turnmark_session_store.uploads import Uploads


def test_the_last_part_brings_all_of_it_once() -> None:
    """Whoever sends on is told by name; afterwards nobody knows that name."""
    uploads = Uploads()
    name, lines = uploads.collect(ImportLines(lines=["头", "1"]))
    assert lines is None
    assert uploads.header_of(name) == "头"
    assert uploads.collect(ImportLines(lines=["2"], upload=name, last=True)) == (
        name,
        ["头", "1", "2"],
    )
    assert uploads.header_of(name) is None
    with pytest.raises(NotFound, match="begin again"):
        uploads.collect(ImportLines(lines=["3"], upload=name, last=True))


def test_a_line_may_come_in_parts() -> None:
    """But for the header, by which rules are looked up before all of it is here."""
    uploads = Uploads()
    name, _ = uploads.collect(ImportLines(lines=["头", "a"]))
    uploads.collect(ImportLines(lines=["中"], upload=name, continued=True))
    last = ImportLines(lines=["b", "end"], upload=name, continued=True, last=True)
    assert uploads.collect(last)[1] == ["头", "a中b", "end"]
    for lines in (["头"], []):
        name, _ = uploads.collect(ImportLines(lines=lines))
        with pytest.raises(Refused, match="no line after the header"):
            uploads.collect(ImportLines(lines=["x"], upload=name, continued=True))
    name, _ = uploads.collect(ImportLines(lines=["头", "a"]))
    with pytest.raises(Refused, match="no line after the header"):
        uploads.collect(ImportLines(lines=[], upload=name, continued=True))


def test_what_comes_whole_is_not_kept() -> None:
    """One part is both the first and the last."""
    uploads = Uploads()
    name, lines = uploads.collect(ImportLines(lines=["a"], last=True))
    assert lines == ["a"]
    assert uploads.header_of(name) is None


def test_too_many_are_refused_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one that is too long: it is given up."""
    monkeypatch.setattr(uploads_module, "_LIMIT", 2)
    monkeypatch.setattr(uploads_module, "_LIMIT_CHARACTERS", 10)
    uploads = Uploads()
    first, _ = uploads.collect(ImportLines(lines=["a"]))
    second, _ = uploads.collect(ImportLines(lines=["b"]))
    with pytest.raises(Refused, match="finish one"):
        uploads.collect(ImportLines(lines=["c"]))
    assert uploads.collect(ImportLines(lines=["d"], upload=first)) == (first, None)
    with pytest.raises(Refused, match="finish one"):
        uploads.collect(ImportLines(lines=["0123456789"], upload=second))
    assert uploads.header_of(second) is None
    assert uploads.collect(ImportLines(lines=["e"], upload=first, last=True))[1] == ["a", "d", "e"]
