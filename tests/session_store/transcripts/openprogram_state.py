"""A made-up OpenProgram state directory: sessions of node files, and its memory beside them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from turnmark_session_store.transcripts.openprogram.reader import OpenProgramReader
from turnmark_session_store.transcripts.reader import ReadSession

BEGAN = 1_786_000_000.0  # 2026-08-06T07:06:40Z
WORKSPACE = "w-0a1b2c3d"
MARK = "memory_written_scriptorium"
Fields = dict[str, Any]


class Session:
    """One session's directory; each call writes a file, as the program does."""

    def __init__(self, home: Path, **meta: Any) -> None:
        self.home = home
        self.name = home.name
        self.seq = 0
        self.last: str | None = None
        self.nodes: dict[str, Fields] = {}
        (home / "history").mkdir(parents=True)
        self.meta: Fields = {
            "id": home.name,
            "agent_id": "main",
            "title": f"About {home.name}",
            "source": "tui",
            "created_at": BEGAN,
            "updated_at": BEGAN,
            "project_id": "default",
            "head_id": None,
            "status": "idle",
            "branches": {},
            "merged_heads": [],
            **meta,
        }
        self.write_meta()

    def user(self, key: str, words: Any, after: str | None = "", **more: Any) -> str:
        """Writes what the owner said."""
        who: Fields = {
            "speaker_kind": "human",
            "speaker_id": "owner/local",
            "speaker_display": "Owner",
            "source": "tui",
        }
        return self.node(key, "user", words, after, **{**who, **more})

    def llm(self, key: str, words: Any, after: str | None = "", **more: Any) -> str:
        """Writes what the model answered."""
        who: Fields = {
            "speaker_kind": "runtime",
            "speaker_id": "runtime/agent%2Fmain",
            "speaker_display": "agent/main",
            "status": "completed",
        }
        given: Fields = {"name": "some-model", **who, **more}
        return self.node(key, "llm", words, after, **given)

    def code(
        self, key: str, output: Any, caller: str, after: str | None = None, **more: Any
    ) -> str:
        """Writes a tool's call; nothing follows it unless a test says so."""
        last = self.last
        given: Fields = {"name": "shell", "input": {"x": 1}, **more}
        self.node(key, "code", output, after, caller=caller, **given)
        self.last = last
        return key

    def node(
        self,
        key: str,
        role: str,
        output: Any,
        after: str | None = "",
        *,
        name: str = "",
        caller: str = "",
        seq: int | None = None,
        input: Any = None,  # noqa: A002 -- the name in the file
        **metadata: Any,
    ) -> str:
        """Writes a node; an empty `after` is the one before it, or the root."""
        self.seq = self.seq + 1 if seq is None else seq
        before = (self.last or "ROOT") if after == "" else after
        self.nodes[key] = {
            "id": key,
            "created_at": BEGAN + self.seq,
            "seq": self.seq,
            "role": role,
            "name": name,
            "input": input,
            "output": output,
            "caller": caller,
            "predecessor": before,
            "reads": [],
            "metadata": {"authority_schema": 1, **metadata},
        }
        self.last = key
        self.write(key)
        if not caller:
            self.go_to(key)
        return key

    def change(self, key: str, **metadata: Any) -> None:
        """Writes a node again with more metadata; the session's time stays."""
        self.nodes[key]["metadata"] |= metadata
        self.write(key)

    def mark(self, *keys: str, workspace: str = WORKSPACE) -> None:
        """Marks nodes as written by a workspace."""
        for key in keys:
            self.change(key, **{MARK: workspace})

    def go_to(self, key: str | None) -> None:
        """Puts the head somewhere."""
        self.meta["head_id"] = key
        self.write_meta()

    def write_meta(self) -> None:
        """Writes `meta.json`."""
        (self.home / "meta.json").write_text(json.dumps(self.meta), encoding="utf-8")

    def file_of(self, key: str) -> Path:
        """Where a node's file is: the number padded to four digits, the role's first letter."""
        node = self.nodes[key]
        name = f"{node['seq']:04}-{node['role'][0]}-{quote(key, safe='')}.json"
        return self.home / "history" / name

    def write(self, key: str) -> Path:
        """Writes a node's file anew, as one rename."""
        path = self.file_of(key)
        staged = path.with_name(f"{path.name}.0123.tmp")
        staged.write_text(
            json.dumps(self.nodes[key], ensure_ascii=False), "utf-8", "backslashreplace"
        )
        return staged.replace(path)

    def frame(self, key: str, **more: Any) -> bytes:
        """What the archive holds of a node; `more` replaces words, trust or speaker."""
        node = self.nodes[key]
        metadata = node["metadata"]
        return frame(
            f"openprogram/{self.name}/{key}",
            more.pop("words", node["output"]),
            speaker_id=metadata.get("speaker_id"),
            display=metadata.get("speaker_display"),
            kind=metadata.get("speaker_kind") or "human",
            **more,
        )

    def link(self, key: str, label: str = "source") -> str:
        """A source's link, as it stands in a topic's definition one folder down."""
        path = f"../../sources/openprogram/_v2/{quote(self.name, safe='-_.')}.md"
        return f"[{label}]({path}#{anchor_of(f'openprogram/{self.name}/{key}')})"


class OpenProgramState:
    """A state directory, empty at first."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.memory = root / "memory"
        (root / "sessions").mkdir(parents=True)
        (root / "owner.json").write_text(
            '{"version":1,"principal_id":"owner/install/0123456789abcdef"}', encoding="utf-8"
        )
        (root / "sessions" / "index.json").write_text('{"gone": {"title": "stale"}}', "utf-8")

    def session(self, name: str, **meta: Any) -> Session:
        """Begins a session."""
        return Session(self.root / "sessions" / name, **meta)

    def project_session(self, project: Path, name: str, **meta: Any) -> Session:
        """Begins a session that lives inside a project."""
        session = Session(project / ".openprogram" / "sessions" / name, **meta)
        places = self.root / "sessions" / "locations.json"
        known: Fields = json.loads(places.read_text("utf-8")) if places.exists() else {}
        places.write_text(json.dumps({**known, name: str(session.home)}), "utf-8")
        return session

    def workspace(self, name: str = WORKSPACE) -> None:
        """Gives the memory its id."""
        (self.memory / ".scriptorium").mkdir(parents=True, exist_ok=True)
        (self.memory / ".scriptorium" / "workspace-id").write_text(f"{name}\n", "utf-8")

    def archive(self, thread: str, *frames: bytes, provider: str = "openprogram") -> Path:
        """Writes a thread's evidence."""
        path = self.memory / "sources" / provider / "_v2" / f"{quote(thread, safe='-_.')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"<!-- openprogram-source-archive:v2 -->\n\n" + b"\n".join(frames))
        return path

    def topic(self, path: str, text: str) -> Path:
        """Writes a topic."""
        file = self.memory / "topics" / f"{path}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def files(self) -> list[Path]:
        """All files of all sessions."""
        return sorted(path for path in (self.root / "sessions").rglob("*.json"))

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Every file with its bytes and its time, to see that nothing is changed."""
        files = (path for path in sorted(self.root.rglob("*")) if path.is_file())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def anchor_of(source: str) -> str:
    """The anchor of a source in its file."""
    return f"source-{sha256(source.encode()).hexdigest()[:16]}"


def frame(
    source: str,
    words: str,
    *,
    speaker_id: str | None = None,
    display: str | None = None,
    kind: str = "human",
    trust: str = "trusted",
    stamp: str = "2026-08-06T09:06:40+02:00",
) -> bytes:
    """One archived record, as a file holds it up to its empty line."""
    meta: Fields = {
        "authority_tier": "owner",
        "principal_id": "owner/install/0123456789abcdef",
        "speaker_kind": kind,
        "trust_state": trust,
        "version": 1,
    }
    packed = base64.urlsafe_b64encode(
        json.dumps(meta, sort_keys=True, separators=(",", ":")).encode()
    ).rstrip(b"=")
    label = (
        f"{display} ({speaker_id})" if display and speaker_id else display or speaker_id or "user"
    )
    lines = [f"[{stamp}] {label}: {words}"]
    body = "\n".join(lines)
    head = [f'<a id="{anchor_of(source)}"></a>', f"<!-- source-id:{source} -->"]
    if speaker_id:
        head.append(f"<!-- speaker-id:{quote(speaker_id, safe='').replace('-', '%2D')} -->")
    head += [
        f"<!-- source-meta:{packed.decode()} -->",
        f"<!-- record-lines:{body.count(chr(10)) + 1} -->",
    ]
    return "\n".join([*head, body, ""]).encode()


def definition(label: str, *links: str, time: str = "undated") -> str:
    """A footnote's definition."""
    return f"[^{label}]: Time: `{time}`; Sources: {', '.join(links)}"


def read(*paths: Path) -> list[ReadSession]:
    """Reads a set of files."""
    return list(OpenProgramReader().read(paths))


def read_state(state: OpenProgramState) -> dict[str, ReadSession]:
    """Reads all sessions of a state, by name."""
    reader = OpenProgramReader()
    files = [path for path in state.files() if reader.recognises(path, path.read_bytes())]
    return {one.session: one for one in read(*files)}


def edges(session: ReadSession) -> dict[str, str | None]:
    """The DAG: each turn's id, and its predecessor's."""
    return {str(turn.turn.id): turn.predecessor for turn in session.turns}


def kinds(session: ReadSession) -> dict[str, tuple[str, str]]:
    """Each turn's role and kind."""
    return {str(one.turn.id): (one.turn.role, one.turn.kind) for one in session.turns}


def ids(turns: Sequence[str]) -> set[str]:
    """A set of ids, for tests in which order says nothing."""
    return set(turns)
