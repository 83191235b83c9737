"""What can be proved of a workspace by looking: its files, beside what the store says of them.

The files are read once (`inventory.py`); each check returns one finding. A daemon may be at work,
so a caller looks again when the revision has moved. Repairs are in `mending.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import apsw

from turnmark_memory.inventory import Indexed, Inventory, files_below, indexed, rendered_core
from turnmark_memory.losses import kept_without_source, lost_blocks, revision_known
from turnmark_memory.whereabouts import WORKSPACE_FILE, id_at, places_of
from turnmark_memory.workspace import (
    CORE_PAGE,
    REVISION_FILE,
    SOURCES,
    STAGING,
    TOPICS,
)
from turnmark_session_store.checkup import workspace_keys
from turnmark_session_store.findings import Finding, Level, finding, ok
from turnmark_session_store.queries import value_of

_OFFERS = "parks their turns as `lost`: they are offered again"


def check_workspace(
    db: apsw.Connection,
    seen: Inventory,
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
        check_cites(seen),
        check_blocks(seen),
        check_index(seen, runs=runs),
        check_core(seen, core_tokens=core_tokens, count=count),
        check_staging(db, seen, runs=runs),
    ]


def check_identity(db: apsw.Connection, seen: Inventory) -> Finding:
    """The workspace says who it is, the store knows it, and it is in one place only (law 5)."""
    name = id_at(seen.root)
    if name is None:
        return finding(
            "identity",
            "bad",
            f"{seen.root / WORKSPACE_FILE} can't be read: the workspace has no identity",
            repair="keeps it aside and writes the id that the store knows for this place",
        )
    here = seen.root.resolve()
    others = [place for place in places_of(db, name) if place != here and id_at(place) == name]
    if others:
        return finding(
            "identity",
            "bad",
            f"the workspace {name} is at two places, {here} and {others[0]}: what is written "
            "in one is missing in the other. Move one away; to use both, delete "
            f"{WORKSPACE_FILE} in the copy, which gets an id of its own",
            examples=others,
        )
    if name not in workspace_keys(db):
        return finding(
            "identity",
            "warn",
            f"this store has never worked with the workspace {name}: all turns are offered "
            "to it when a daemon starts",
        )
    return ok("identity", f"the workspace is {name}, here alone")


def check_revision(db: apsw.Connection, seen: Inventory) -> Finding:
    """The files are of the revision that the marks rest on."""
    if id_at(seen.root) is None:
        return ok("revision", "without an identity there is nothing to compare")
    known = revision_known(db, seen.root)
    if seen.revision == known:
        return ok("revision", f"files and marks are of revision {known:,}")
    has_open = value_of(db, "SELECT 1 FROM install WHERE closed_ms IS NULL LIMIT 1")
    if seen.revision is None:
        what = f"{REVISION_FILE} can't be read, marks rest on revision {known}"
    else:
        what = f"the files are of revision {seen.revision}, the marks of {known}"
    return finding(
        "revision",
        "warn" if has_open or (seen.revision or 0) > known else "bad",
        f"{what}; what the files may lack is offered again when the daemon starts",
        repair="nothing: the next start compares them and offers turns again",
    )


def check_archive(db: apsw.Connection, seen: Inventory) -> Finding:
    """Each turn that is kept has its line in the archive, once, and each line can be read."""
    lost = kept_without_source(db, seen)
    if lost:
        return finding(
            "archive",
            "bad",
            f"{len(lost):,} kept turns have no line in {SOURCES}/",
            repair=f"{_OFFERS}, and archived",
            examples=(f"{namespace}#{key}" for _, (namespace, key) in lost),
        )
    if seen.odd_lines:
        return finding(
            "archive", "bad", f"{len(seen.odd_lines):,} source lines can't be read", seen.odd_lines
        )
    times = Counter((line.turn.namespace, line.turn.id) for line in seen.sources)
    doubled = [f"{namespace}#{key}" for (namespace, key), n in times.items() if n > 1]
    if doubled:
        return finding(
            "archive", "warn", f"{len(doubled):,} turns are archived more than once", doubled
        )
    if seen.torn:
        return finding(
            "archive",
            "warn",
            f"{len(seen.torn):,} source files end in a torn line, which the next start cuts off",
            seen.torn,
        )
    return ok("archive", f"{len(seen.sources):,} source lines; each kept turn has its own")


def check_citations(db: apsw.Connection, seen: Inventory) -> Finding:
    """The blocks that a batch came to stand in the topics, or were retired by an install."""
    lost = lost_blocks(db, seen)
    if lost:
        names = [block for blocks in lost.values() for block in blocks]
        return finding(
            "citations",
            "bad",
            f"{len(names):,} blocks are gone from {TOPICS}/, and no revision took them out",
            repair=_OFFERS,
            examples=names,
        )
    figures = value_of(db, "SELECT count(*) FROM batch WHERE outcome = 'kept'")
    return ok("citations", f"the blocks of {figures:,} batches stand, or were retired")


def check_cites(seen: Inventory) -> Finding:
    """Each footnote of a block leads to a line of the archive."""
    known = {line.turn.label for line in seen.sources}
    dangling = [
        f"{topic}: {label} of {block.id or 'a paragraph'}"
        for topic, found in seen.topics.items()
        for block in found.blocks()
        for label in block.cites
        if label not in known
    ]
    if dangling:
        return finding(
            "cites",
            "bad",
            f"{len(dangling):,} footnotes lead to no source: restore {SOURCES}/ from a backup, or "
            "correct the paragraph by hand",
            dangling,
        )
    cites = sum(len(block.cites) for found in seen.topics.values() for block in found.blocks())
    return ok("cites", f"{cites:,} footnotes lead to their sources")


def check_blocks(seen: Inventory) -> Finding:
    """No two blocks have one id."""
    places: dict[str, list[str]] = defaultdict(list)
    for topic, found in seen.topics.items():
        for block in found.blocks():
            if block.id is not None:
                places[block.id].append(topic)
    doubled = [f"{block} in {' and '.join(at)}" for block, at in places.items() if len(at) > 1]
    if doubled:
        return finding(
            "blocks",
            "bad",
            f"{len(doubled):,} block ids stand twice: delete the `^b-…` of the copy, which gets an "
            "id of its own",
            doubled,
        )
    return ok("blocks", f"{len(places):,} blocks in {len(seen.topics):,} topics, each id once")


def check_index(seen: Inventory, *, runs: bool = False) -> Finding:
    """The index holds the blocks and turns that the files hold (law 11).

    A person may have changed topics while no daemon ran; the next start takes that in.
    """
    try:
        found = indexed(seen.root)
    except apsw.Error as error:
        return _rebuilt("index", "bad", f"the index can't be read ({error})", ())
    if found is None:
        return finding("index", "warn", "there is no index; the next start builds it", ())
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
        return finding("index", "warn", f"{text}; the next start takes that in", differ)
    figures = f"{len(found.blocks):,} blocks and {len(found.labels):,} turns"
    return ok("index", f"the index has {figures}, as the files")


def _different_blocks(seen: Inventory, found: Indexed) -> list[str]:
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


def check_core(seen: Inventory, *, core_tokens: int, count: Callable[[str], int]) -> Finding:
    """`core.md` is what `topics/core.md` renders to (law 11)."""
    wanted = rendered_core(seen, core_tokens=core_tokens, count=count)
    try:
        found = (seen.root / CORE_PAGE).read_bytes()
    except FileNotFoundError:
        found = b""
    if found != wanted:
        return _rebuilt("core", "warn", f"{CORE_PAGE} is not what topics/core.md makes", ())
    return ok(
        "core", f"{CORE_PAGE} is what topics/core.md makes, {count(wanted.decode()):,} tokens"
    )


def check_staging(db: apsw.Connection, seen: Inventory, *, runs: bool) -> Finding:
    """Nothing waits in the staging directory, unless an install is under way."""
    left = [path.name for path in files_below(seen.root / STAGING, "")]
    is_open = value_of(db, "SELECT 1 FROM install WHERE closed_ms IS NULL LIMIT 1")
    if left and not runs and not is_open:
        return finding(
            "staging",
            "warn",
            f"{len(left):,} files wait in {STAGING}; the next start looks at them and clears them",
            left,
        )
    return ok("staging", f"{len(left):,} files are staged")


def _rebuilt(check: str, level: Level, text: str, examples: Sequence[str]) -> Finding:
    return finding(check, level, text, examples, repair="makes it anew from the files")
