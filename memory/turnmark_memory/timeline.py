"""The timeline: what was learnt on which day, derived from the blocks and rebuilt, never repaired.

`timeline/YYYY/MM/DD.md` has a line for each block whose newest cited turn is of that day *in UTC*,
as in the footnotes: so the same memory gives the same pages on every machine. Each shows the block
as it stands now. Blocks that cite no turn have no day. A page is cut at its first thousand blocks;
so what an install rewrites does not grow with the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

import structlog

from turnmark_events.errors import Refused
from turnmark_memory import durable
from turnmark_memory.index import Index
from turnmark_memory.index_rows import moment
from turnmark_memory.index_schema import LearntRow
from turnmark_memory.rooted import names_in
from turnmark_memory.shelf import DAY_US
from turnmark_memory.workspace import STAGING, Workspace

log = structlog.get_logger(__name__)

FOLDER: Final = "timeline"
PAGE_LIMIT: Final = 1_000
"""Blocks on one page: more than anybody reads, few enough to write with each install."""

_NOTE: Final = "<!-- turnmark: derived from the topics; what is changed here is not kept -->"
_MORE: Final = f"- … more than {PAGE_LIMIT:,} blocks; the others stand in their topics only."
_EPOCH: Final = date(1970, 1, 1)


class Timeline:
    """Writes the pages of one workspace; every function blocks on disk."""

    def __init__(self, workspace: Workspace, index: Index) -> None:
        self._workspace = workspace
        self._index = index
        self._left: dict[int, str] = {}
        """Digests of pages as this process left them: one that differs, somebody changed."""

    def refresh(self, days: Iterable[int]) -> None:
        """Writes the pages of `days` (since 1970) anew; one with nothing on it goes.

        A page whose place something else has taken is logged and left out.

        Raises:
            Unavailable: if the disk fails.
        """
        for day in sorted(set(days)):
            try:
                self._write(day)
            except Refused as error:
                log.warning("timeline_page_refused", day=page_path(day), reason=error.message)

    def complete(self) -> None:
        """Writes pages that are missing and takes away those of days on which nothing was learnt.

        Costs a look at each page's name, not its bytes.
        """
        known, there = set(self._index.learnt_steps(DAY_US)), set(self._pages())
        self.refresh(known ^ there)

    def rebuild(self) -> None:
        """Writes every page whose bytes are not what they should be."""
        self.refresh({*self._index.learnt_steps(DAY_US), *self._pages()})

    def _write(self, day: int) -> None:
        rows = self._index.learnt_between(day * DAY_US, (day + 1) * DAY_US, PAGE_LIMIT + 1)
        path = page_path(day)
        tree = self._workspace.tree
        content = self._page(day, rows).encode("utf-8", "replace") if rows else None
        there = tree.read(path)
        if there != content:
            self._warn_of_edit(day, there)
            if content is None:
                tree.remove(path)
            else:
                tree.replace(path, content, staging=STAGING)
        self._left.pop(day, None)
        if content is not None:
            self._left[day] = durable.digest_of(content)

    def _warn_of_edit(self, day: int, there: bytes | None) -> None:
        """Says where changes belong before a page that somebody changed is written over."""
        if there is not None and self._left.get(day, "") not in ("", durable.digest_of(there)):
            log.warning(
                "derived_file_overwritten",
                path=page_path(day),
                what_to_do="change the topics instead; the timeline is made from them",
            )

    def _page(self, day: int, rows: list[LearntRow]) -> str:
        lines = [self._line(row) for row in rows[:PAGE_LIMIT]]
        lines += [_MORE] if len(rows) > PAGE_LIMIT else []
        head = f"{_NOTE}\n# {_date(day).isoformat()}\n"
        return "\n".join([head, *lines]) + "\n"

    def _line(self, row: LearntRow) -> str:
        at = moment(row.learnt_us).astimezone(UTC)
        line = f"- {at:%H:%M} {row.text} [[{row.topic}#^{row.block}]]"
        if row.superseded_by is None:
            return line
        topic = self._index.where(row.superseded_by)
        holds = row.superseded_by if topic is None else f"[[{topic}#^{row.superseded_by}]]"
        return f"{line} (superseded by {holds})"

    def _pages(self) -> Iterator[int]:
        for year in self._names(FOLDER):
            for month in self._names(f"{FOLDER}/{year}"):
                for name in self._names(f"{FOLDER}/{year}/{month}"):
                    day = _day_of(year, month, name)
                    if day is not None:
                        yield day

    def _names(self, folder: str) -> list[str]:
        with durable.disk_errors(f"list {folder}"):
            try:
                with self._workspace.tree.directory(folder) as fd:
                    return sorted(names_in(fd))
            except (FileNotFoundError, Refused):
                return []


def page_path(day: int) -> str:
    """Returns the file of a day, counted since 1970."""
    return f"{FOLDER}/{_date(day):%Y/%m/%d}.md"


def _date(day: int) -> date:
    return _EPOCH + timedelta(days=day)


def _day_of(year: str, month: str, name: str) -> int | None:
    try:
        found = datetime.strptime(f"{year}/{month}/{name}", "%Y/%m/%d.md").replace(tzinfo=UTC)
    except ValueError:
        return None
    day = (found.date() - _EPOCH).days
    return day if page_path(day) == f"{FOLDER}/{year}/{month}/{name}" else None
