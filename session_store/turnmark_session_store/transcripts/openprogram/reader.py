"""Reads the sessions of OpenProgram: a directory each, with a file for every node.

    sessions/<session>/meta.json            title and head
    sessions/<session>/history/0003-u-….json    one node

A directory's name is the session's. Ids are unique in a session only, so its turns are of its own
family. What a node is tells `words.py`, how nodes hang together `graph.py`.

Choices that the files leave open:

- The order is that of `seq`, not of names: those are padded for numbers of four digits.
- `rewound` is a take-back; a turn that a live branch goes on from stands all the same.
- Branches that were merged into another one, and archived ones, are live: no file says which turn
  merged them, and memory owes what was said there.
- Tools' calls, and what a tool asked a model, are turns only where the conversation goes on from
  them. An answer that is marked as running is none yet.
- A sub-agent's branch begins with a turn that has a caller: the turn that called, also where a
  tool's node lies between, and also in another session of the set.
- The registry of sessions and the recall block that a turn was shown are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from turnmark_session_store.model import CallerRef
from turnmark_session_store.recordable import replace_surrogates
from turnmark_session_store.transcripts.fields import string_at
from turnmark_session_store.transcripts.openprogram.graph import SessionGraph
from turnmark_session_store.transcripts.openprogram.homes import HISTORY, META, project_of
from turnmark_session_store.transcripts.openprogram.nodes import (
    Node,
    parse_node,
    parse_object,
    read_node,
)
from turnmark_session_store.transcripts.openprogram.words import turn_of
from turnmark_session_store.transcripts.ordering import in_order
from turnmark_session_store.transcripts.reader import (
    ReadSession,
    ReadTurn,
    ReadWarning,
    SkippingReader,
)

AGENT: Final = "openprogram"
_SUFFIX: Final = ".json"
_NODE_FILE: Final = re.compile(r"\d{4,}-[a-z]-")
_OWN_FIELDS: Final = frozenset({"seq", "role", "predecessor", "caller", "reads", "metadata"})
# Enough of them that no other program's file has as many by chance.
_FIELDS_ENOUGH: Final = 4


class OpenProgramReader(SkippingReader):
    """Reads OpenProgram's sessions; a `Reader`.

    Sessions in one of `skip_directories` are passed over: turnmark's own writer works there.
    """

    agent = AGENT

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether the file is a node below `history/`, or such a session's `meta.json`."""
        if path.suffix != _SUFFIX:
            return False
        if path.parent.name == HISTORY:
            return _NODE_FILE.match(path.name) is not None and _is_node(path, head)
        return path.name == META and (path.parent / HISTORY).is_dir() and head[:1] == b"{"

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions that a set of files are of; holds their words in memory.

        Raises:
            Unavailable: if a file cannot be read.
        """
        yield from sessions_of(self.files_of(paths))

    def files_of(self, paths: Sequence[Path]) -> list[SessionFiles]:
        """Returns what the files hold, by session, with what no turn tells; raises as `read`."""
        found: dict[str, dict[Path, list[Path]]] = {}
        for path in sorted(set(paths)):
            home = home_of(path)
            if not any(home.is_relative_to(one) for one in self._skip_directories):
                nodes = found.setdefault(home.name, {}).setdefault(home, [])
                nodes += [path] if path.parent.name == HISTORY else []
        return [_read_homes(name, homes) for name, homes in found.items()]


class SessionFiles:
    """What the files of one session hold, before it is known what the other sessions hold."""

    def __init__(
        self,
        name: str,
        nodes: Mapping[str, Node],
        meta: Mapping[str, Any],
        *,
        project: str | None = None,
        warnings: Sequence[ReadWarning] = (),
    ) -> None:
        self.name = name
        self.title = string_at(meta, "title")
        self.project = project
        self.warnings = tuple(warnings)
        self._meta = meta
        head = string_at(meta, "head_id") or string_at(meta, "last_node_id")
        self.graph = SessionGraph(nodes, head)

    def without(self, keys: Collection[str]) -> SessionFiles:
        """Returns the session as if it did not hold these nodes."""
        nodes = {key: node for key, node in self.graph.nodes.items() if key not in keys}
        return SessionFiles(
            self.name, nodes, self._meta, project=self.project, warnings=self.warnings
        )


def home_of(path: Path) -> Path:
    """Returns the directory of the session that a file is of."""
    return path.parent.parent if path.parent.name == HISTORY else path.parent


def sessions_of(files: Sequence[SessionFiles]) -> Iterator[ReadSession]:
    """Yields the sessions of a set, each after those that its agents were spawned from."""
    by_name = {one.name: one for one in files}
    callers = {one.name: _callers(one, by_name) for one in files}
    names = list(by_name)
    rests_on = {name: {ref.session for ref in callers[name].values()} for name in names}
    for name in in_order(names, rests_on):
        session = _session(by_name[name], callers[name])
        if session.turns or session.warnings:
            yield session


def _callers(one: SessionFiles, by_name: Mapping[str, SessionFiles]) -> dict[str, CallerRef]:
    callers: dict[str, CallerRef] = {}
    for key in one.graph.parents:
        node = one.graph.nodes[key]
        origin = node.said("spawned_from_session")
        other = by_name.get(origin) if origin is not None else None
        if other is not None and other is not one and node.is_spawn_root:
            caller = other.graph.turn_above(node.caller)
            session = other.name
        else:
            caller, session = one.graph.callers.get(key), one.name
        if caller is not None:
            callers[key] = CallerRef(session=session, turn=caller)
    return callers


def _session(one: SessionFiles, callers: Mapping[str, CallerRef]) -> ReadSession:
    graph = one.graph
    return ReadSession(
        session=one.name,
        agent=AGENT,
        title=one.title,
        project=one.project,
        namespace=f"family:{one.name}",
        turns=tuple(
            ReadTurn(
                turn=turn_of(
                    graph.nodes[key], caller=callers.get(key), is_inner=key in graph.inner
                ),
                predecessor=parent,
                session=one.name,
                lost_predecessor=key in graph.lost,
            )
            for key, parent in graph.parents.items()
        ),
        tips=graph.tips,
        head=graph.head,
        taken_back=graph.taken_back,
        warnings=one.warnings,
    )


def _read_homes(name: str, homes: Mapping[Path, Sequence[Path]]) -> SessionFiles:
    """Reads a session; the same name may stand at two places, as when its project moved."""
    read = [(path, read_node(path)) for paths in homes.values() for path in paths]
    return files_with(name, list(homes), read)


def files_with(
    name: str, homes: Sequence[Path], read: Sequence[tuple[Path, Node | str]]
) -> SessionFiles:
    """Returns what the files of a session hold, of whose nodes each was read, or why not."""
    warnings: list[ReadWarning] = []
    whole: list[tuple[Path, Node]] = []
    for path, node in read:
        if isinstance(node, str):
            warnings.append(_warning(path, f"the node's file {node}; it was left out"))
        else:
            whole.append((path, node))
    meta: Mapping[str, Any] = {}
    for home in homes:
        meta = read_meta(home) or meta
    nodes: dict[str, Node] = {}
    for path, node in sorted(whole, key=lambda item: item[1].place):
        if node.id in nodes:
            reason = "the node is in another file too; the earlier one was read"
            warnings.append(_warning(path, reason))
        nodes.setdefault(node.id, node)
    project = next(filter(None, map(project_of, homes)), None)
    return SessionFiles(name, nodes, meta, project=project, warnings=warnings)


def read_meta(home: Path) -> Mapping[str, Any] | None:
    """Returns what a session's `meta.json` holds; None if there is none that can be read."""
    try:
        return parse_object((home / META).read_bytes())
    except OSError:
        return None


def _is_node(path: Path, head: bytes) -> bool:
    """Tells whether a file of a node's name is one; a torn one is, and is warned of when read."""
    record = parse_object(head)
    if record is None:
        return head[:1] == b"{"
    known = len(_OWN_FIELDS & record.keys()) >= _FIELDS_ENOUGH
    return known and not isinstance(parse_node(head, path.name), str)


def _warning(path: Path, reason: str) -> ReadWarning:
    return ReadWarning(file=replace_surrogates(str(path)), line=0, reason=reason)
