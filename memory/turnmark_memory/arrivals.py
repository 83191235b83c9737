"""Arrivals: new blocks come on the core page at once, at the top of its automatic part.

The night puts the whole part in order (`promotion.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from turnmark_events.errors import Refused
from turnmark_memory.block_change import BlockChange
from turnmark_memory.core_page import arrange
from turnmark_memory.draft import Draft
from turnmark_memory.topic import Embed, Topic
from turnmark_memory.topic_path import CORE

log = structlog.get_logger(__name__)

AUTOMATIC_LIMIT = 100
"""Embeds kept below the line between two nights: several times what a core budget can show."""


def show_arrivals(draft: Draft, changes: Sequence[BlockChange]) -> None:
    """Puts new blocks at the top of the core's automatic part, people and projects first.

    What was there stays below, up to a limit; what is gone or superseded leaves. A core topic that
    can't be used is left as it is.
    """
    if CORE in draft.exact:
        return
    changes = [change for change in changes if change.topic != CORE]
    shown = [change for change in changes if change.after is not None and _is_shown(draft, change)]
    left = {change.block for change in changes}.difference(change.block for change in shown)
    known = {change.block for change in changes if change.before is not None}
    fresh = [(change.topic, change.block) for change in shown if change.block not in known]
    if not fresh and not left:
        return
    try:
        core = draft.load(CORE)
    except Refused as error:
        log.warning("core_topic_unusable", reason=error.message)
        return
    present = [] if core is None else _automatic(core)
    first = sorted(fresh, key=lambda one: not one[0].startswith(("people/", "projects/")))
    wanted = [one for one in [*first, *present] if one[1] not in left]
    draft.topics[CORE] = arrange(core, list(dict.fromkeys(wanted))[:AUTOMATIC_LIMIT])


def _is_shown(draft: Draft, change: BlockChange) -> bool:
    topic = draft.topics.get(change.topic)
    block = topic.block(change.block) if topic is not None else None
    return block is not None and block.superseded_by is None


def _automatic(core: Topic) -> list[tuple[str, str]]:
    line = core.line_index()
    if line is None:
        return []
    return [(part.topic, part.block) for part in core.segments[line:] if isinstance(part, Embed)]
