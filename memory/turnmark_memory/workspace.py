"""The workspace on disk: where everything lies, who it is, and which revision it holds.

Order of a start: `Workspace.open` takes the lock before it creates or reads anything, so a
workspace has one daemon. File names are derived here and nowhere else; no name that an agent or
a model gives becomes a path unchanged unless it is harmless on every common file system.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import NewType, Self

import msgspec
import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory import durable
from turnmark_memory.file_names import TOPIC_LIMIT_BYTES, folded, is_topic_name, safe_name
from turnmark_memory.rooted import Rooted, names_in, parts_of
from turnmark_session_store.place_lock import PlaceLock, hold_lock

log = structlog.get_logger(__name__)

WorkspaceId = NewType("WorkspaceId", str)

PRIVATE = ".turnmark"
STAGING = f"{PRIVATE}/staging"
REVISIONS = f"{PRIVATE}/revisions"
TOPICS = "topics"
SOURCES = "sources"
REVISION_FILE = f"{PRIVATE}/revision.json"
BASES_FILE = f"{PRIVATE}/bases.db"
INDEX_FILE = f"{PRIVATE}/index.db"
CORE_PAGE = "core.md"
_WORKSPACE_FILE = f"{PRIVATE}/workspace.json"
_LOCK_FILE = f"{PRIVATE}/lock"
_LAYOUT = (
    f"{TOPICS}/people",
    f"{TOPICS}/projects",
    f"{TOPICS}/subjects",
    SOURCES,
    "timeline",
    STAGING,
    REVISIONS,
)


class _Identity(msgspec.Struct, frozen=True, kw_only=True):
    workspace: str
    created_at: datetime


class RevisionStamp(msgspec.Struct, frozen=True, kw_only=True):
    """What the workspace says of itself: the last install that is complete in its files."""

    revision: int
    at: datetime | None


class UnreadableRevision(msgspec.Struct, frozen=True, kw_only=True):
    """The revision file is there and can't be trusted: reprocess and say so (law 5)."""

    reason: str


class TopicFile(msgspec.Struct, frozen=True, kw_only=True):
    """A topic on disk: `topic` without folder and ending, `path` relative to the workspace."""

    topic: str
    path: str
    size_bytes: int
    mtime_ns: int


def topic_of(path: str) -> str:
    """Returns the topic whose file is at `path` in the workspace."""
    return path.removeprefix(f"{TOPICS}/").removesuffix(".md")


class Workspace:
    """One Markdown memory, open and locked. Close it, or use it in a `with` block."""

    def __init__(self, tree: Rooted, lock: PlaceLock, identity: WorkspaceId) -> None:
        self.tree = tree
        self.id = identity
        self._lock = lock

    @property
    def root(self) -> Path:
        """The directory that the user named."""
        return self.tree.root

    @classmethod
    def open(cls, root: Path) -> Workspace:
        """Opens the workspace at `root`, creating what is missing of its layout. Blocks on disk.

        Raises:
            PlaceTaken: if another process has it open; the message names its pid.
            Refused: if a part of the layout is a link or no directory.
            Unavailable: if its identity can't be read (never replaced: `doctor` decides) or the
                disk fails.
        """
        with durable.disk_errors(f"create {root}"):
            root.mkdir(mode=durable.DIR_MODE, parents=True, exist_ok=True)
        tree = Rooted(root)
        try:
            with tree.directory(PRIVATE, create=True):
                lock = hold_lock(root / _LOCK_FILE)
        except BaseException:
            tree.close()
            raise
        try:
            for path in _LAYOUT:
                with tree.directory(path, create=True):
                    pass
            return cls(tree, lock, _identity(tree))
        except BaseException:
            lock.release()
            tree.close()
            raise

    def close(self) -> None:
        """Frees the lock. Call it once, when nothing works on the files any more."""
        self._lock.release()
        self.tree.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def revision(self) -> RevisionStamp | UnreadableRevision:
        """Returns the last complete install; revision 0 where there never was one."""
        try:
            content = self.tree.read(REVISION_FILE)
            if content is None:
                return RevisionStamp(revision=0, at=None)
            stamp = msgspec.json.decode(content, type=RevisionStamp)
        except (Refused, Unavailable, msgspec.MsgspecError, UnicodeDecodeError) as error:
            return UnreadableRevision(reason=str(error))
        if stamp.revision < 0:
            return UnreadableRevision(reason=f"revision {stamp.revision} is negative")
        return stamp

    def write_revision(self, stamp: RevisionStamp) -> None:
        """Replaces the revision file, durably; an install does it as its last step."""
        self.tree.replace(REVISION_FILE, msgspec.json.encode(stamp) + b"\n", staging=STAGING)

    def topic_file(self, topic: str) -> str:
        """Returns the relative path of a topic such as `people/dana`.

        Where the file system already has a twin of the name (other case, other Unicode form),
        the twin's path is returned: a topic has one file.

        Raises:
            Refused: if a component could be unsafe or unreadable on a common file system.
        """
        parts = parts_of(unicodedata.normalize("NFC", topic))
        if not parts or any(not is_topic_name(part) for part in parts):
            raise Refused(
                f"{topic!r} can't be a topic: use letters, digits, spaces, `-`, `_` and `.`, "
                f"in names of at most {TOPIC_LIMIT_BYTES} bytes.",
                topic=topic,
            )
        path = TOPICS
        for name in (*parts[:-1], parts[-1] + ".md"):
            path = f"{path}/{self._twin(path, name)}"
        return path

    def topic_name(self, topic: str) -> str:
        """Returns the name that a topic's file gives it: its twin's, else the one given.

        Raises:
            Refused: as `topic_file`.
        """
        return topic_of(self.topic_file(topic))

    def topics(self, folder: str = "") -> list[TopicFile]:
        """Returns every topic file, or those in a folder such as `people`, sorted by topic.

        What is no regular file is skipped and logged, and so is a folder that can't be listed;
        one that isn't there is empty.
        """
        below = f"{TOPICS}/{folder}" if folder else TOPICS
        return sorted(self._topics_below(below), key=lambda found: found.topic)

    def source_file(self, agent: str, session: str) -> str:
        """Returns the relative path of a session's archive; any strings will do."""
        return source_path(agent, session)

    def source_files(self) -> list[tuple[str, os.stat_result]]:
        """Returns (relative path, status) of every archive file, sorted by path."""
        return sorted(self._sources())

    def _sources(self) -> Iterator[tuple[str, os.stat_result]]:
        for agent, found in self._entries(SOURCES):
            if not stat.S_ISDIR(found.st_mode):
                continue
            for name, status in self._entries(f"{SOURCES}/{agent}"):
                if name.endswith(".jsonl") and stat.S_ISREG(status.st_mode):
                    yield f"{SOURCES}/{agent}/{name}", status

    def _topics_below(self, folder: str) -> Iterator[TopicFile]:
        try:
            entries = list(self._entries(folder))
        except (Refused, Unavailable) as error:
            if error.facts.get("errno") != errno.ENOENT:
                log.warning("topics_not_listed", folder=folder, reason=error.message)
            return
        for name, found in entries:
            path = f"{folder}/{name}"
            if name.startswith("."):
                continue
            if stat.S_ISDIR(found.st_mode) and not name.endswith(".md"):
                yield from self._topics_below(path)
            elif name.endswith(".md") and stat.S_ISREG(found.st_mode):
                yield TopicFile(
                    topic=topic_of(path),
                    path=path,
                    size_bytes=found.st_size,
                    mtime_ns=found.st_mtime_ns,
                )
            elif name.endswith(".md") or stat.S_ISLNK(found.st_mode):
                log.warning("topic_skipped", path=path, reason="no regular file")

    def _entries(self, folder: str) -> Iterator[tuple[str, os.stat_result]]:
        with durable.disk_errors(f"list {folder}"), self.tree.directory(folder) as fd:
            for name in names_in(fd):
                # Gone again since the listing: a save by rename does that.
                with contextlib.suppress(FileNotFoundError):
                    yield name, os.stat(name, dir_fd=fd, follow_symlinks=False)

    def _twin(self, folder: str, name: str) -> str:
        try:
            with self.tree.directory(folder) as fd:
                names = names_in(fd)
        except FileNotFoundError:
            return name
        if name in names:
            return name
        wanted = folded(name)
        return next((there for there in sorted(names) if folded(there) == wanted), name)


def source_path(agent: str, session: str) -> str:
    """Returns `sources/<agent>/<session>.jsonl` with both names made safe."""
    return f"{SOURCES}/{safe_name(agent)}/{safe_name(session)}.jsonl"


def _identity(tree: Rooted) -> WorkspaceId:
    content = tree.read(_WORKSPACE_FILE)
    if content is None:
        identity = _Identity(workspace=f"w-{secrets.token_hex(8)}", created_at=datetime.now(UTC))
        tree.replace(_WORKSPACE_FILE, msgspec.json.encode(identity) + b"\n", staging=STAGING)
        return WorkspaceId(identity.workspace)
    try:
        found = msgspec.json.decode(content, type=_Identity).workspace
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        found = str(error)
    if not re.fullmatch(r"w-[0-9a-f]{16}", found):
        raise Unavailable(
            f"{tree.root / _WORKSPACE_FILE} can't be read ({found}); restore it, or run "
            "`turnmark doctor --repair` to give the workspace a new identity.",
        )
    return WorkspaceId(found)
