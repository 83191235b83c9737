"""Footnote definitions: derived from the sources, written anew at each install.

Only definitions of `s-…` labels are ours; a person's footnotes stay where and as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeGuard
from urllib.parse import quote

import msgspec

from turnmark_memory.labels import is_label
from turnmark_memory.topic import Definition, Raw, Segment, Topic
from turnmark_memory.topic_edit import cut_segment
from turnmark_memory.topic_format import CITE, parse_text
from turnmark_memory.words import visible

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|^!~$&%])")
# A name is what the agent says it is; a footnote has room for a name, not for a text.
_NAME_LIMIT_CHARACTERS: Final = 80
# An install writes the names of the same few speakers and sessions over and over.
_NAMES_LIMIT: Final = 1_024


def definition(
    *,
    label: str,
    time: datetime,
    speaker_name: str | None,
    speaker_id: str | None,
    role: str,
    agent: str,
    session: str,
    topic_path: str,
    source_path: str,
    line: int,
) -> str:
    """Returns the line that defines `label` in the topic `topic_path`, without a line end.

    `source_path` is relative to the workspace, `time` is written in UTC, and the speaker falls
    back to the id, then to the role.
    """
    when = time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    name, ident = _plain(speaker_name), _plain(speaker_id)
    who = f"{name} ({ident})" if name and ident else name or ident or _plain(role)
    up = "../" * (topic_path.count("/") + 1)
    link = f"[{_plain(f'{agent}/{session}')}]({up}{quote(source_path, safe='/')}#L{line})"
    return f"[^{label}]: {when} · {who} · {link}"


@lru_cache(maxsize=_NAMES_LIMIT)
def _plain(text: str | None) -> str:
    words = " ".join(visible(text or "").split())
    return _SPECIAL.sub(r"\\\1", words[:_NAME_LIMIT_CHARACTERS])


def labels_used(topic: Topic) -> tuple[str, ...]:
    """Returns the labels that the document cites outside definitions, in order of first use."""
    names: dict[str, None] = {}
    for part in topic.segments:
        if not (isinstance(part, Definition) or (isinstance(part, Raw) and part.kind == "fence")):
            names.update((found[2], None) for found in CITE.finditer(part.raw))
    return tuple(names)


def with_definitions(topic: Topic, definitions: Mapping[str, str]) -> Topic:
    """Returns the topic with exactly the definitions of the `s-` labels it uses, at its end.

    A used label that `definitions` doesn't know keeps the definition it has, if any. Applying it
    twice gives the same bytes as once.
    """
    existing = {part.label: part.raw.rstrip("\r\n") for part in topic.segments if _is_ours(part)}
    known = {**existing, **definitions}
    wanted = [known[label] for label in labels_used(topic) if label in known]
    if _stands(topic, wanted):
        return topic
    body = _without_ours(topic)
    if not wanted:
        return body
    text = _trimmed(body)
    return parse_text(text + "".join(f"{line}{topic.newline}" for line in wanted))


def _is_ours(part: Segment) -> TypeGuard[Definition]:
    return isinstance(part, Definition) and is_label(part.label)


def _stands(topic: Topic, wanted: list[str]) -> bool:
    """Tells whether the definitions are as wanted already, together and at the end."""
    present = [part.raw.rstrip("\r\n") for part in topic.segments if _is_ours(part)]
    count = len(wanted)
    at_end = all(_is_ours(part) for part in topic.segments[len(topic.segments) - count :])
    return present == wanted and at_end


def _without_ours(topic: Topic) -> Topic:
    index = len(topic.segments) - 1
    while index >= 0:
        if index < len(topic.segments) and _is_ours(topic.segments[index]):
            topic = _without_run(topic, index)
        index -= 1
    return topic


def _without_run(topic: Topic, last: int) -> Topic:
    """Cuts the definitions that end at segment `last` in one go: one read, however many."""
    first = last
    while first > 0 and _is_ours(topic.segments[first - 1]):
        first -= 1
    if first == last:
        return cut_segment(topic, last)
    kept = (*topic.segments[:first], *topic.segments[last:])
    return cut_segment(msgspec.structs.replace(topic, segments=kept), first)


def _trimmed(topic: Topic) -> str:
    """Returns the body with one blank line at its end."""
    segments = list(topic.segments)
    while segments and isinstance(segments[-1], Raw) and segments[-1].kind == "blank":
        segments.pop()
    text = "".join(part.raw for part in segments)
    if not text or (
        len(segments) == 1 and isinstance(segments[0], Raw) and segments[0].kind == "mark"
    ):
        return text
    return text + ("" if text.endswith("\n") else topic.newline) + topic.newline
