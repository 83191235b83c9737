"""What can be proved of a workspace by looking: its files, beside what the store says of them.

Everything is read with plain reads, without the workspace's lock: a daemon may be at work. What it
is in the middle of can look like a fault, so a caller looks again when the revision has moved.
`look` reads files once; each check then returns one finding. Repairs are in `mending.py`.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import apsw
import msgspec

from turnmark_memory.core_page import render_core
from turnmark_memory.index_schema import SCHEMA_VERSION as INDEX_VERSION
from turnmark_memory.revisions import RevisionRecord
from turnmark_memory.source_line import FORGOTTEN_LINE, ArchivedTurn, decode_line
from turnmark_memory.topic import Block, Topic
from turnmark_memory.topic_format import parse
from turnmark_memory.topic_path import CORE
from turnmark_memory.whereabouts import WORKSPACE_FILE, id_at, places_of
from turnmark_memory.workspace import (
    CORE_PAGE,
    INDEX_FILE,
    PRIVATE,
    REVISION_FILE,
    REVISIONS,
    SOURCES,
    STAGING,
    TOPICS,
    RevisionStamp,
)
from turnmark_session_store.checkup import Finding, Level, workspace_keys
from turnmark_session_store.queries import rows_of, value_of

_EXAMPLES = 5
_REBUILDS = "makes it anew from the files"
_OFFERS = "parks their turns as `lost`: they are offered again"
_PRIVATE_BITS = 0o077

Key = tuple[str, str]
"""A turn's namespace and id."""


class SourceSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One readable line of the archive."""

    path: str
    line: int
    turn: ArchivedTurn


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """What an index holds: topic and words of each block, and the labels of its turns."""

    blocks: dict[str, tuple[str, str]]
    labels: set[str]


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What the files of a workspace hold; `odd_lines` are source lines that can't be read."""

    root: Path
    topics: dict[str, Topic]
    sources: list[SourceSeen]
    odd_lines: list[str]
    torn: list[str]
    retired: frozenset[str]
    revision: int | None


def look(root: Path) -> Looked:
    """Reads the topics, the sources and the records of a workspace. Costs what they are large."""
    sources: list[SourceSeen] = []
    odd: list[str] = []
    torn: list[str] = []
    for path in _files(root / SOURCES, ".jsonl"):
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
            turn = decode_line(line)
            if turn is not None and line.endswith(b"\n"):
                sources.append(SourceSeen(path=name, line=number, turn=turn))
            elif not line.endswith(b"\n"):
                torn.append(f"{name}:{number}")
            elif line != FORGOTTEN_LINE:
                odd.append(f"{name}:{number}")
    return Looked(
        root=root,
        topics=dict(_topics(root)),
        sources=sources,
        odd_lines=odd,
        torn=torn,
        retired=frozenset(_retired(root)),
        revision=revision_at(root),
    )


def check_workspace(
    db: apsw.Connection,
    seen: Looked,
    *,
    runs: bool,
    core_tokens: int,
    count: Callable[[str], int],
) -> list[Finding]:
    """Returns what all checks of a workspace found; `db` is the store that writes it."""
    return [
        check_identity(db, seen),
        check_revision(db, seen),
        check_archive(db, seen),
        check_citations(db, seen),
        check_cites(db, seen),
        check_blocks(seen),
        check_index(seen, runs=runs),
        check_core(seen, core_tokens=core_tokens, count=count),
        check_staging(db, seen, runs=runs),
    ]


def check_identity(db: apsw.Connection, seen: Looked) -> Finding:
    """The workspace says who it is, the store knows it, and it is in one place only (law 5)."""
    name = id_at(seen.root)
    if name is None:
        return Finding(
            check="identity",
            level="bad",
            text=f"{seen.root / WORKSPACE_FILE} can't be read: the workspace has no identity",
            repair="keeps it aside and writes the id that the store knows for this place",
        )
    here = seen.root.resolve()
    others = [place for place in places_of(db, name) if place != here and id_at(place) == name]
    if others:
        return Finding(
            check="identity",
            level="bad",
            text=f"the workspace {name} is at two places, {here} and {others[0]}: what is written "
            "in one is missing in the other. Move one away; to use both, delete "
            f"{WORKSPACE_FILE} in the copy, which gets an id of its own",
            examples=tuple(str(place) for place in others),
        )
    if name not in workspace_keys(db):
        return Finding(
            check="identity",
            level="warn",
            text=f"this store has never worked with the workspace {name}: all turns are offered "
            "to it when a daemon starts",
        )
    return _ok("identity", f"the workspace is {name}, here alone")


def check_revision(db: apsw.Connection, seen: Looked) -> Finding:
    """The files are of the revision that the marks rest on."""
    if id_at(seen.root) is None:
        return _ok("revision", "without an identity there is nothing to compare")
    known = revision_known(db, seen.root)
    if seen.revision == known:
        return _ok("revision", f"files and marks are of revision {known:,}")
    has_open = value_of(db, "SELECT 1 FROM install WHERE closed_ms IS NULL LIMIT 1")
    if seen.revision is None:
        what = f"{REVISION_FILE} can't be read, marks rest on revision {known}"
    else:
        what = f"the files are of revision {seen.revision}, the marks of {known}"
    return Finding(
        check="revision",
        level="warn" if has_open or (seen.revision or 0) > known else "bad",
        text=f"{what}; what the files may lack is offered again when the daemon starts",
        repair="nothing: the next start compares them and offers turns again",
    )


def check_archive(db: apsw.Connection, seen: Looked) -> Finding:
    """Each turn that is kept has its line in the archive, once, and each line can be read."""
    lost = kept_without_source(db, seen)
    if lost:
        return Finding(
            check="archive",
            level="bad",
            text=f"{len(lost):,} kept turns have no line in {SOURCES}/",
            repair=f"{_OFFERS}, and archived",
            examples=_examples(f"{namespace}#{key}" for _, (namespace, key) in lost),
        )
    if seen.odd_lines:
        return _finding(
            "archive", "bad", f"{len(seen.odd_lines):,} source lines can't be read", seen.odd_lines
        )
    times = Counter((line.turn.namespace, line.turn.id) for line in seen.sources)
    doubled = [f"{namespace}#{key}" for (namespace, key), n in times.items() if n > 1]
    if doubled:
        return _finding(
            "archive", "warn", f"{len(doubled):,} turns are archived more than once", doubled
        )
    if seen.torn:
        return _finding(
            "archive",
            "warn",
            f"{len(seen.torn):,} source files end in a torn line, which the next start cuts off",
            seen.torn,
        )
    return _ok("archive", f"{len(seen.sources):,} source lines; each kept turn has its own")


def check_citations(db: apsw.Connection, seen: Looked) -> Finding:
    """The blocks that a batch came to stand in the topics, or were retired by an install."""
    lost = lost_blocks(db, seen)
    if lost:
        names = [block for blocks in lost.values() for block in blocks]
        return Finding(
            check="citations",
            level="bad",
            text=f"{len(names):,} blocks are gone from {TOPICS}/, and no revision took them out",
            repair=_OFFERS,
            examples=_examples(names),
        )
    figures = value_of(db, "SELECT count(*) FROM batch WHERE outcome = 'kept'")
    return _ok("citations", f"the blocks of {figures:,} batches stand, or were retired")


def check_cites(db: apsw.Connection, seen: Looked) -> Finding:
    """Each footnote of a block leads to a line of the archive."""
    del db
    known = {line.turn.label for line in seen.sources}
    dangling = [
        f"{topic}: {label} of {block.id or 'a paragraph'}"
        for topic, found in seen.topics.items()
        for block in found.blocks()
        for label in block.cites
        if label not in known
    ]
    if dangling:
        return _finding(
            "cites",
            "bad",
            f"{len(dangling):,} footnotes lead to no source: restore {SOURCES}/ from a backup, or "
            "correct the paragraph by hand",
            dangling,
        )
    cites = sum(len(block.cites) for found in seen.topics.values() for block in found.blocks())
    return _ok("cites", f"{cites:,} footnotes lead to their sources")


def check_blocks(seen: Looked) -> Finding:
    """No two blocks have one id."""
    places: dict[str, list[str]] = defaultdict(list)
    for topic, found in seen.topics.items():
        for block in found.blocks():
            if block.id is not None:
                places[block.id].append(topic)
    doubled = [f"{block} in {' and '.join(at)}" for block, at in places.items() if len(at) > 1]
    if doubled:
        return _finding(
            "blocks",
            "bad",
            f"{len(doubled):,} block ids stand twice: delete the `^b-…` of the copy, which gets an "
            "id of its own",
            doubled,
        )
    return _ok("blocks", f"{len(places):,} blocks in {len(seen.topics):,} topics, each id once")


def check_index(seen: Looked, *, runs: bool = False) -> Finding:
    """The index holds the blocks and turns that the files hold (law 11).

    A person may have changed topics while no daemon ran; the next start takes that in.
    """
    try:
        found = indexed(seen.root)
    except apsw.Error as error:
        return _rebuilt("index", "bad", f"the index can't be read ({error})", ())
    if found is None:
        return _finding("index", "warn", "there is no index; the next start builds it", ())
    labels = sorted({line.turn.label for line in seen.sources} ^ found.labels)
    if labels:
        text = f"the index and {SOURCES}/ differ in {len(labels):,} turns"
        return _rebuilt("index", "bad", text, labels)
    differ = _different_blocks(seen, found)
    if differ and runs:
        text = f"the index and {TOPICS}/ differ in {len(differ):,} blocks"
        return _rebuilt("index", "bad", text, differ)
    if differ:
        text = f"{len(differ):,} blocks of {TOPICS}/ were changed since the daemon ran"
        return _finding("index", "warn", f"{text}; the next start takes that in", differ)
    figures = f"{len(found.blocks):,} blocks and {len(found.labels):,} turns"
    return _ok("index", f"the index has {figures}, as the files")


def _different_blocks(seen: Looked, found: Indexed) -> list[str]:
    """Returns the ids of blocks that differ; a paragraph that has no id yet goes by its words."""
    named: dict[str, tuple[str, str]] = {}
    nameless: set[tuple[str, str]] = set()
    for topic, content in seen.topics.items():
        for block in content.blocks():
            if block.id is None:
                nameless.add((topic, block.text))
            else:
                named[block.id] = (topic, block.text)
    return [
        name
        for name in sorted(named.keys() | found.blocks.keys())
        if named.get(name) != found.blocks.get(name)
        and not (name not in named and found.blocks[name] in nameless)
    ]


def check_core(seen: Looked, *, core_tokens: int, count: Callable[[str], int]) -> Finding:
    """`core.md` is what `topics/core.md` renders to (law 11)."""
    wanted = rendered_core(seen, core_tokens=core_tokens, count=count)
    try:
        found = (seen.root / CORE_PAGE).read_bytes()
    except FileNotFoundError:
        found = b""
    if found != wanted:
        return _rebuilt("core", "warn", f"{CORE_PAGE} is not what topics/core.md makes", ())
    return _ok(
        "core", f"{CORE_PAGE} is what topics/core.md makes, {count(wanted.decode()):,} tokens"
    )


def check_staging(db: apsw.Connection, seen: Looked, *, runs: bool) -> Finding:
    """Nothing waits in the staging directory, unless an install is under way."""
    left = [path.name for path in _files(seen.root / STAGING, "")]
    is_open = value_of(db, "SELECT 1 FROM install WHERE closed_ms IS NULL LIMIT 1")
    if left and not runs and not is_open:
        return _finding(
            "staging",
            "warn",
            f"{len(left):,} files wait in {STAGING}; the next start looks at them and clears them",
            left,
        )
    return _ok("staging", f"{len(left):,} files are staged")


def check_rights(directories: Iterable[Path], *, owner: int) -> Finding:
    """State and memory are their owner's alone."""
    open_to_others = list(too_open(directories, owner=owner))
    if open_to_others:
        return Finding(
            check="rights",
            level="warn",
            text=f"{len(open_to_others):,} files or directories are open to other users",
            repair="takes the rights of others away",
            examples=_examples(str(path) for path in open_to_others),
        )
    return _ok("rights", "state and memory are open to their owner alone")


def too_open(directories: Iterable[Path], *, owner: int) -> Iterator[Path]:
    """Yields what others may read or write, or own, of the directories and of what is theirs.

    Topics are looked at by their directory alone: behind a closed one their own rights are nobody's
    business, and editors set them as they like.
    """
    for directory in directories:
        for path in (directory, *directory.glob("*.db*"), *directory.glob(f"{PRIVATE}/*.db*")):
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue
            if not stat.S_ISLNK(found.st_mode) and (
                found.st_mode & _PRIVATE_BITS or found.st_uid != owner
            ):
                yield path


def kept_without_source(db: apsw.Connection, seen: Looked) -> list[tuple[int, Key]]:
    """Returns the kept turns (integer key, and namespace with id) that are not archived."""
    archived = {(line.turn.namespace, line.turn.id) for line in seen.sources}
    rows = rows_of(
        db,
        "SELECT turn.id, namespace.name, turn.key FROM mark JOIN turn ON turn.id = mark.turn"
        " JOIN namespace ON namespace.id = turn.namespace"
        " WHERE mark.workspace = ? AND outcome = 'kept'"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = turn.id)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = turn.id) ORDER BY turn.id",
        (_key(db, seen.root),),
    )
    return [(turn, (space, key)) for turn, space, key in rows if (space, key) not in archived]


def lost_blocks(db: apsw.Connection, seen: Looked) -> dict[int, list[str]]:
    """Returns, by batch, the blocks that are nowhere, of batches whose turns still count as kept.

    One that the index still has was taken out by hand since the daemon last looked: that is the
    person's word, and the daemon's to follow.
    """
    there = _indexed_blocks(seen.root).keys() | {
        name
        for found in seen.topics.values()
        for block in found.blocks()
        for name in (block.id, *block.aliases)
    }
    rows = rows_of(
        db,
        "SELECT id, blocks FROM batch WHERE workspace = ? AND outcome = 'kept'"
        " AND blocks IS NOT NULL AND closed_ms IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM batch_turn JOIN mark"
        " ON mark.turn = batch_turn.turn AND mark.workspace = batch.workspace"
        " WHERE batch_turn.batch = batch.id AND mark.outcome = 'kept'"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = batch_turn.turn)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = batch_turn.turn)) ORDER BY id",
        (_key(db, seen.root),),
    )
    lost: dict[int, list[str]] = {}
    for batch, blocks in rows:
        names: list[str] = msgspec.json.decode(blocks)
        gone = [name for name in names if name not in there and name not in seen.retired]
        if gone:
            lost[batch] = gone
    return lost


def rendered_core(seen: Looked, *, core_tokens: int, count: Callable[[str], int]) -> bytes:
    """Returns the bytes that `core.md` should have.

    A paragraph whose id waits to be written to a person's file is found by its words.
    """
    path = seen.root / TOPICS / f"{CORE}.md"
    source = path.read_bytes() if path.exists() else b""
    waiting = _indexed_blocks(seen.root)

    def load(topic: str, block: str) -> Block | None:
        found = seen.topics.get(topic)
        if found is None:
            return None
        nameless = (
            one
            for one in found.blocks()
            if one.id is None and waiting.get(block) == (topic, one.text)
        )
        return found.block(block) or next(nameless, None)

    return render_core(source, load, core_tokens, count).text.encode()


def revision_at(root: Path) -> int | None:
    """Returns the revision that a workspace's files say they are of, None where they can't."""
    try:
        content = (root / REVISION_FILE).read_bytes()
        return msgspec.json.decode(content, type=RevisionStamp).revision
    except FileNotFoundError:
        return 0
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def revision_known(db: apsw.Connection, root: Path) -> int:
    """Returns the revision that the store's marks for this workspace rest on."""
    found = value_of(db, "SELECT revision FROM workspace WHERE id = ?", (_key(db, root),))
    return 0 if found is None else int(found)


def _key(db: apsw.Connection, root: Path) -> int:
    """Returns the store's key of the workspace at `root`, 0 where it knows none."""
    return workspace_keys(db).get(id_at(root) or "", 0)


def _topics(root: Path) -> Iterator[tuple[str, Topic]]:
    for path in _files(root / TOPICS, ".md"):
        name = path.relative_to(root / TOPICS).as_posix().removesuffix(".md")
        yield name, parse(path.read_bytes())


def _retired(root: Path) -> Iterator[str]:
    """Yields the blocks that some revision took out, or whose words were forgotten."""
    decoder = msgspec.json.Decoder(RevisionRecord)
    for path in _files(root / REVISIONS, ".json"):
        try:
            record = decoder.decode(path.read_bytes())
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # such a revision can't be undone; that is said where somebody wants it
        yield from (change.block for change in record.changes if change.after is None)


def _files(root: Path, ending: str) -> list[Path]:
    return sorted(
        Path(directory, name)
        for directory, _, names in os.walk(root)
        for name in names
        if name.endswith(ending)
        and not name.startswith(".")
        and not Path(directory, name).is_symlink()
    )


def indexed(root: Path) -> Indexed | None:
    """Returns what the index of a workspace holds, None where there is none.

    Raises:
        apsw.Error: if it can't be read, or is of another version.
    """
    path = root / INDEX_FILE
    if not path.exists():
        return None
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        version = value_of(db, "PRAGMA user_version")
        if version != INDEX_VERSION:
            raise apsw.SQLError(f"it has version {version}, this turnmark makes {INDEX_VERSION}")
        rows = rows_of(db, "SELECT block, topic, text FROM block")
        labels = rows_of(db, "SELECT label FROM turn")
    finally:
        db.close()
    return Indexed(
        blocks={block: (topic, text) for block, topic, text in rows},
        labels={label for (label,) in labels},
    )


def _indexed_blocks(root: Path) -> dict[str, tuple[str, str]]:
    """Returns topic and words of each block in the index, none where it can't be read."""
    try:
        found = indexed(root)
    except apsw.Error:
        return {}
    return {} if found is None else found.blocks


def _ok(check: str, text: str) -> Finding:
    return Finding(check=check, level="ok", text=text)


def _finding(check: str, level: Level, text: str, examples: Sequence[str]) -> Finding:
    return Finding(check=check, level=level, text=text, examples=_examples(examples))


def _rebuilt(check: str, level: Level, text: str, examples: Sequence[str]) -> Finding:
    return Finding(
        check=check, level=level, text=text, repair=_REBUILDS, examples=_examples(examples)
    )


def _examples(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(list(names)[:_EXAMPLES])
