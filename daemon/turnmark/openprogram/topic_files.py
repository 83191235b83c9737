"""OpenProgram's topics as blocks for this memory: words, sources, headings, links.

A block there is a paragraph that ends in `^id`; its claims cite footnotes of the same file, whose
definitions name a time and links to sources. What counts of a link is where it points, never its
label. Everything else with words in it (an uncited paragraph, a list, a fence) becomes a block of a
person's, so that nothing that stands in a topic is lost.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import msgspec

from turnmark.openprogram.archive import anchor_of
from turnmark_events.errors import Refused
from turnmark_memory.labels import block_id_of, is_block_id
from turnmark_memory.topic import Block, Definition, Heading, Raw, Segment
from turnmark_memory.topic_format import heading_path, parse_text
from turnmark_memory.topic_path import CORE, ROOTS, topic_path
from turnmark_memory.words import clean_title, is_wide, join_lines
from turnmark_session_store.recordable import replace_surrogates

_ID = re.compile(r"\^([A-Za-z0-9-]+)")
# No label is longer: what only begins like one must not be looked through again and again.
_LABEL = re.compile(r"\[\^([^\[\]\s]{1,200})\]")
_CITED = re.compile(rf"{_LABEL.pattern}(?:\s*{_LABEL.pattern})*")
_ORIGIN: Final = "openprogram"
_LEGACY: Final = "mem_"
_DEFINITION = re.compile(r"\[\^([^\]\s]+)\]:([^;·]*)[;·]\s*Sources:(.*)", re.DOTALL)
_TIME = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
_DAY_CHARACTERS: Final = 10
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{0,500})\]\(<?([^()\s<>]{0,2000})>?\)")
_ANCHOR = re.compile(r"#(source-[0-9a-f]{16})$")
_BLOCK_LINK = re.compile(r"([^#]*)#\^([A-Za-z0-9-]+)$")
_PREFIX = re.compile(r"\s*(?:[-+*]\s+|\d{1,9}[.)]\s+|>\s?)")
# A place to link to, without words.
_PLACE = re.compile(r"<a\s[^<>]*>\s*</a>")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_UNSAFE = re.compile(r"[^\w.-]+")
_HANDLE_PARTS: Final = 3
_NAME_CHARACTERS: Final = 60
# What other words there are for the folders here; all else goes to the last of them.
_FOLDERS: Final = {
    "people": "people",
    "person": "people",
    "projects": "projects",
    "project": "projects",
    "subjects": "subjects",
    "topics": "subjects",
}
_THE_PERSON: Final = ("owner", "user")


class TopicBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block on its way: `anchors` are those of its sources, in order.

    `claims` are its words in pieces, each with the times that its footnotes tell and the anchors
    that they rest on; links in them are as they were there.
    """

    id: str
    aliases: tuple[str, ...]
    topic: str
    title: str | None
    heading: str | None
    claims: tuple[Claim, ...]
    file: str

    @property
    def anchors(self) -> tuple[str, ...]:
        """The sources that it cites, each once."""
        return tuple(dict.fromkeys(anchor for claim in self.claims for anchor in claim.anchors))


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Words up to a group of citations, the anchors of its sources, and when it happened."""

    words: str
    anchors: tuple[str, ...] = ()
    times: tuple[str, ...] = ()


class _Note(msgspec.Struct, frozen=True, kw_only=True):
    anchors: tuple[str, ...]
    time: str | None


def read_topics(
    topics: Path, workspace: str
) -> Iterator[tuple[Path, tuple[TopicBlock, ...] | str]]:
    """Yields each topic's file with its blocks in file order, or with why it can't be read.

    The core topic comes first; blocks on disk.
    """
    files = (path for path in topics.rglob("*.md") if path.is_file() and not path.is_symlink())
    for path in sorted(files, key=lambda path: (path != topics / f"{CORE}.md", path)):
        try:
            content = path.read_bytes()
        except OSError as error:
            yield path, f"can't be read ({error.strerror})"
            continue
        text = content.decode("utf-8", "replace")
        yield path, tuple(_blocks(text, path.relative_to(topics), workspace))


def block_name(foreign: str, workspace: str) -> str:
    """Returns the id here of a block by its id there; the same digits where that can be.

    Other ids are words that any memory may use; `workspace` is whose they are.
    """
    named = f"b-{foreign}"
    return named if is_block_id(named) else block_id_of(_ORIGIN, workspace, foreign)


def words_of(
    block: TopicBlock,
    place_of: Callable[[str], tuple[str, str] | None],
    days: Mapping[str, date],
) -> str:
    """Returns a block's words in one piece, with links as they are here.

    `place_of` gives topic and id here of an id there; `days` says when sources were said. A time
    that a footnote tells and that is not when its source was said is added to the words.
    """
    text = ""
    for claim in block.claims:
        text += claim.words
        known = [days[anchor] for anchor in claim.anchors if anchor in days]
        told = [time for time in claim.times if not any(_is_on(day, time) for day in known)]
        if told:
            wide = text[-1:] and is_wide(text[-1])
            text += f"（{'、'.join(told)}）" if wide else f" ({', '.join(told)})"
    return join_lines([_LINK.sub(lambda found: _linked(found, place_of), text)])


def _linked(found: re.Match[str], place_of: Callable[[str], tuple[str, str] | None]) -> str:
    label, target = found.groups()
    link = _BLOCK_LINK.search(target)
    place = place_of(link[2]) if link is not None else None
    if place is not None:
        topic, name = place
        return f"[[{topic}#^{name}|{label}]]" if label else f"[[{topic}#^{name}]]"
    return label if link is not None or _ANCHOR.search(target) else found[0]


def _is_on(day: date, time: str) -> bool:
    """Tells whether a day is at a time of day precision or coarser, in whatever zone."""
    for off in (-1, 0, 1):
        with contextlib.suppress(OverflowError):  # on the first and the last day that there are
            if (day + timedelta(days=off)).isoformat().startswith(time):
                return True
    return False


def _blocks(text: str, path: Path, workspace: str) -> Iterator[TopicBlock]:
    document = parse_text(text)
    topic, notes = topic_of(path), dict(_notes(document.segments))
    title = _title(document.title or "")
    above: list[Heading] = []
    taken: dict[str, int] = {}
    for part in document.segments:
        if isinstance(part, Heading):
            above = heading_path([*above, part])
            continue
        words = _PLACE.sub("", _words(part)).strip()
        if not words:
            continue
        words, names = _without_ids(words)
        claims = tuple(_claims(words, notes))
        legacy = [label for label in _labels(words) if label.startswith(_LEGACY)]
        foreign = names or legacy[:1]
        if not any(claim.words.strip() for claim in claims):
            continue
        said = taken[words] = taken.get(words, 0) + 1
        own = (path.as_posix(), words, *([str(said)] if said > 1 else []))
        yield TopicBlock(
            id=block_name(foreign[0], workspace) if foreign else block_id_of(_ORIGIN, *own),
            aliases=tuple(block_name(name, workspace) for name in foreign[1:]),
            topic=topic,
            title=title,
            heading=_heading(above),
            claims=claims,
            file=replace_surrogates(path.as_posix()),
        )


def _heading(above: Sequence[Heading]) -> str | None:
    """Returns the titles below the first level in one line, None where there are none."""
    titles = (_title(heading.title) for heading in above if heading.level > 1)
    return " / ".join(title for title in titles if title is not None) or None


def _title(words: str) -> str | None:
    """Returns a title as it can stand here; None where nothing of it can be seen."""
    try:
        return clean_title(words)
    except Refused:
        return None


def _words(part: Segment) -> str:
    """Returns the words of a part of a document on one line; empty where it has none."""
    if isinstance(part, Block):
        return join_lines(part.raw.split("\n"))
    if not isinstance(part, Raw) or part.kind in ("blank", "comment", "rule", "line", "id", "mark"):
        return ""
    lines = part.raw.split("\n")
    if part.kind == "fence":
        return join_lines([line for line in lines if not _FENCE.match(line)])
    return join_lines([_PREFIX.sub("", line, count=1) for line in lines])


def _without_ids(words: str) -> tuple[str, list[str]]:
    """Returns the words without the ids at their end, and those: identity first, then aliases."""
    parts = re.split(r"(\s+)", words.rstrip())
    names: list[str] = []
    while parts and (found := _ID.fullmatch(parts[-1])):
        names.append(found[1])
        del parts[-2:]
    return "".join(parts).rstrip(), names


def _labels(words: str) -> list[str]:
    return _LABEL.findall(words)


def _claims(words: str, notes: Mapping[str, _Note]) -> Iterator[Claim]:
    at = 0
    for group in _CITED.finditer(words):
        cited = [notes[label] for label in _labels(group[0]) if label in notes]
        yield Claim(
            words=words[at : group.start()].rstrip(),
            anchors=tuple(dict.fromkeys(anchor for note in cited for anchor in note.anchors)),
            times=tuple(dict.fromkeys(note.time for note in cited if note.time)),
        )
        at = group.end()
    if words[at:].strip():
        yield Claim(words=words[at:])


def _notes(segments: Iterable[Segment]) -> Iterator[tuple[str, _Note]]:
    for part in segments:
        found = _DEFINITION.fullmatch(part.raw.strip()) if isinstance(part, Definition) else None
        if found is not None:
            time = found[2].strip().removeprefix("Time:").strip().strip("`")
            anchors = tuple(dict.fromkeys(_anchors(found[3])))
            yield found[1], _Note(anchors=anchors, time=time if _TIME.fullmatch(time) else None)


def _anchors(sources: str) -> Iterator[str]:
    """Yields the anchors of a definition's sources: of links, and of bare handles."""
    for _, target in _LINK.findall(sources):
        found = _ANCHOR.search(target)
        if found is not None:
            yield found[1]
        elif "#" not in target and target.count("/") >= _HANDLE_PARTS - 1:
            yield anchor_of(target)
    for handle in _LINK.sub("", sources).split(","):
        bare = handle.strip().strip("`")
        if bare.count("/") >= _HANDLE_PARTS - 1 and not any(map(str.isspace, bare)):
            yield anchor_of(bare)


def topic_of(path: Path) -> str:
    """Returns the topic here of a topic's file there, whatever its folders are."""
    *folders, last = path.with_suffix("").parts
    if not folders and last.lower() == CORE:
        return CORE
    root = _FOLDERS.get(folders[0].lower()) if folders else None
    names = [_safe(name) for name in [*(folders if root is None else folders[1:]), last]]
    if root is None:
        root = "people" if not folders and last.lower() in _THE_PERSON else ROOTS[-1]
    first, *rest = [name for name in names if name] or [block_id_of(path.as_posix())]
    parts = [first, *(["-".join(rest)] if rest else [])]
    try:
        return topic_path("/".join([root, *(part[:_NAME_CHARACTERS] for part in parts)]))
    except Refused:
        return f"{root}/{block_id_of(path.as_posix())}"


def _safe(name: str) -> str:
    return _UNSAFE.sub("-", unicodedata.normalize("NFC", name)).strip(".-")
