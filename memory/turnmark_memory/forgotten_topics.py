"""What a topic leaves behind that went with forgotten words: its name, which may say who it was.

The name stands in the records of revisions, in the recent contents of topics, beside what models
said that topics are about, and in reports of nights. It goes from all of them, unless something is
left that could be put back there.
"""

from __future__ import annotations

from typing import Final

from turnmark_memory.night_report import hide_in_reports
from turnmark_memory.revisions import RevisionRecord, all_records, hide_topics
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic_path import CORE

HIDDEN: Final = "(forgotten)"
"""Stands for the name in what people read; no topic can be called so."""


def hide_forgotten_topics(shelf: Shelf) -> None:
    """Takes the names of topics that went with their last words out of all that memory keeps.

    Costs a read of every record; repeating it changes nothing.

    Raises:
        Unavailable: if the disk fails.
    """
    there = {CORE, *(file.topic for file in shelf.workspace.topics())}
    records = all_records(shelf.workspace)
    gone = _forgotten(records) - there
    if gone:
        hide_topics(shelf.workspace, records, gone, HIDDEN)
        shelf.bases.drop(gone)
        shelf.abouts.drop(gone)
        hide_in_reports(shelf.workspace.tree, gone, HIDDEN)


def _forgotten(records: list[RevisionRecord]) -> set[str]:
    """Returns the topics of whose blocks no record holds a word any more."""
    changes = [change for record in records for change in record.changes]
    held = {change.topic for change in changes if not change.is_scrubbed}
    return {change.topic for change in changes if change.is_scrubbed} - held
