"""Made-up conversations as pi writes them: files and their lines, in the order of writing.

A `PiRecording` plays people, a model and the program: exchanges with tools, moves of the leaf,
fresh roots, forks that copy all entries and files that copy one path, sessions that only follow
another one, and files of every version, the oldest of which are rewritten in place when they are
opened again. `before`, `owner` and `humans` say what must be read in the end.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from session_store.transcripts.json_records import Record
from session_store.transcripts.live_sessions import WORDS
from session_store.transcripts.pi_records import (
    answer,
    at,
    entry,
    file_name,
    given_ids,
    header,
    ms,
    tool,
    user,
    without_ids,
)
from session_store.transcripts.written_files import Write, WrittenFiles

NEWEST = 3
MUTATIONS = 4


@dataclass(eq=False)
class _File:
    """One session's file, and where its leaf is; `shown` is the leaf that the file tells."""

    path: str
    session: str
    version: int
    head: Record
    records: list[Record] = field(default_factory=list[Record])
    leaf: str | None = None
    shown: str | None = None

    def above(self, key: str | None) -> str | None:
        """What was said last at or above an entry."""
        by_id = {record["id"]: record for record in self.records}
        while key is not None:
            words = said_in(by_id[key])
            if words is not None:
                return words
            key = by_id[key]["parentId"]
        return None


def said_in(record: Record) -> str | None:
    """What a record says as a turn."""
    message = record.get("message", {})
    if message.get("role") not in ("user", "assistant") or not message["content"]:
        return None
    return str(message["content"][0]["text"])


class PiRecording(WrittenFiles):
    """A set of files while it is written; `written` is each write, in order."""

    def __init__(self, chance: random.Random, *, versions: tuple[int, ...] = (1, 2, 3, 4)) -> None:
        super().__init__()
        self.chance = chance
        self.versions = versions
        self.files_open: list[_File] = []
        self.before: dict[str, str | None] = {}
        self.owner: dict[str, str] = {}
        self.humans: set[str] = set()
        self._second = 0.0
        self._numbers = 0

    def play(self, steps: int) -> None:
        """Plays that many things that a person or the program does."""
        self._begin()
        for _ in range(steps):
            file = self.chance.choice(self.files_open)
            step = self.chance.choices(
                (
                    self.exchange,
                    self.go_back,
                    self.start_over,
                    self.fork,
                    self.branch_off,
                    self.follow_on,
                    self.begin_another,
                    self.note,
                    self.open_again,
                    self.second_header,
                ),
                weights=(10, 5, 1, 2, 2, 0.5, 1, 3, 2, 0.7),
            )[0]
            step(file)

    @property
    def said(self) -> list[str]:
        """What an import of the finished files holds, sorted."""
        return sorted(self.before)

    # What happens.

    def exchange(self, file: _File) -> None:
        """A prompt, tools perhaps, and an answer."""
        self._say(file, "user")
        for _ in range(self.chance.choice((0, 0, 1))):
            self._say(file, "assistant", stopReason="toolUse")
            self._add(file, tool(self._key(), file.leaf, self._tick()))
        if self.chance.random() < 0.1:
            empty = answer(self._key(), file.leaf, [], self._tick(), stopReason="aborted")
            self._add(file, empty)
        else:
            self._say(file, "assistant")

    def go_back(self, file: _File) -> None:
        """The leaf is moved to an older entry; a summary of what is left may be noted there."""
        if file.version < 2 or not file.records:
            return
        target = self.chance.choice(file.records)["id"]
        file.leaf = target
        if file.version == MUTATIONS:
            self._write(file, {"kind": "lane", "seq": 9, "lane": "main", "leafId": target})
            file.shown = target
        elif self.chance.random() < 0.5:
            more = {"fromId": target, "summary": "What was left."}
            self._add(file, entry("branch_summary", self._key(), target, self._tick(), **more))
        if self.chance.random() < 0.7:
            self.exchange(file)

    def start_over(self, file: _File) -> None:
        """Another root in the same file."""
        if file.version >= 2:
            file.leaf = None
            self.exchange(file)

    def fork(self, file: _File) -> None:
        """All entries again in another file, under another session; both may go on."""
        self._copy(file, list(file.records), file.leaf)

    def branch_off(self, file: _File) -> None:
        """The path to one entry again in another file."""
        if not file.records or file.version < 2:
            return
        by_id = {record["id"]: record for record in file.records}
        leaf = at_ = self.chance.choice(file.records)["id"]
        path: list[Record] = []
        while at_ is not None:
            path.insert(0, by_id[at_])
            at_ = by_id[at_]["parentId"]
        self._copy(file, path, leaf)

    def follow_on(self, file: _File) -> None:
        """A new session that names another as its parent and copies nothing."""
        if file.version != NEWEST:
            return
        parent = f"/home/robin/.pi/agent/sessions/{file.path}"
        self.exchange(self._open(NEWEST, parentSession=parent))

    def begin_another(self, file: _File) -> None:
        """A session that has nothing to do with the others."""
        del file
        self._begin()

    def note(self, file: _File) -> None:
        """What the program notes beside what is said."""
        kind, fields = self.chance.choice(
            (
                ("label", {"targetId": file.leaf, "label": "x"}),
                ("model_change", {"provider": "faux", "modelId": "faux-2"}),
                ("custom", {"customType": "ext", "data": {"n": 1}}),
                ("custom_message", {"customType": "ext", "content": "Injected", "display": False}),
                ("compaction", {"summary": "So far.", "firstKeptEntryId": file.leaf}),
            )
        )
        self._add(file, entry(kind, self._key(), file.leaf, self._tick(), **fields))

    def open_again(self, file: _File) -> None:
        """An old file is written anew: its entries get ids, and its header says so."""
        if file.version not in (1, 2):
            return
        if file.version == 1:
            old = [without_ids(record) for record in file.records]
            file.records = given_ids(old, [self._key() for _ in old])
            file.leaf = file.shown = file.records[-1]["id"]
        file.version = file.head["version"] = NEWEST
        data = b"".join(self._line(one) for one in (file.head, *file.records))
        self.written.append(Write(file.path, data, anew=True))

    def second_header(self, file: _File) -> None:
        """A header in the middle, of nobody."""
        if file.version in (2, 3):
            self._write(file, header("deadbeef", self._tick(), parentSession="/x/y.jsonl"))

    # Its parts.

    def _begin(self) -> None:
        self.exchange(self._open(self.chance.choice(self.versions)))

    def _open(self, version: int, **fields: Any) -> _File:
        self._numbers += 1
        second = self._tick()
        session = f"01a2290c-{self._numbers:04x}-749c-b70a-{self.chance.getrandbits(48):012x}"
        path = f"--home-robin-demo--/{file_name(session, second)}"
        head = header(session, second, **fields)
        head["version"] = version
        if version == 1:
            del head["version"]
        if version == MUTATIONS:
            head = {"kind": "header", "version": 4, "id": session, "createdAt": ms(second)}
            head |= {"cwd": "/home/robin/demo", **fields}
        file = _File(path, session, version, head)
        self.files_open.append(file)
        self._write(file, head)
        return file

    def _copy(self, file: _File, records: list[Record], leaf: str | None) -> None:
        if file.version == 1 or len(self.files_open) > 6:
            return
        parent: Record = {"parentSession": f"/home/robin/.pi/agent/sessions/{file.path}"}
        if file.version == MUTATIONS:
            parent = {"parentSessionId": file.session}
        elif self.chance.random() < 0.1:
            parent = {"branchedFrom": parent["parentSession"]}
        fork = self._open(file.version, **parent)
        for record in records:
            fork.records.append(record)
            fork.shown = record["id"]
            self._write(fork, self._mutation(record, None) if file.version == 4 else record)
        fork.leaf = leaf
        if file.version == MUTATIONS:
            self._write(fork, {"kind": "lane", "seq": 9, "lane": "main", "leafId": leaf})
            fork.shown = leaf
        if self.chance.random() < 0.8:
            self.exchange(fork)

    def _say(self, file: _File, role: str, **fields: Any) -> None:
        self._numbers += 1
        words = " ".join(self.chance.choices(WORDS, k=3)) + f" {self._numbers}"
        made = user if role == "user" else answer
        self.before[words] = file.above(file.leaf)
        self.owner[words] = file.session
        if role == "user":
            self.humans.add(words)
        self._add(file, made(self._key(), file.leaf, words, self._tick(), **fields))

    def _add(self, file: _File, record: Record) -> None:
        file.records.append(record)
        file.leaf = file.shown = record["id"]
        if file.version == MUTATIONS:
            self._write(file, self._mutation(record, "main"))
        else:
            self._write(file, without_ids(record) if file.version == 1 else record)

    def _mutation(self, record: Record, lane: str | None) -> Record:
        self._numbers += 1
        made = {**record, "seq": self._numbers, "timestamp": _ms_of(record["timestamp"])}
        return {"kind": "entry", **({"lane": lane} if lane else {}), "entry": made}

    def _write(self, file: _File, record: Record) -> None:
        self.written.append(Write(file.path, self._line(record)))

    def _line(self, record: Record) -> bytes:
        return (json.dumps(record, ensure_ascii=self.chance.random() < 0.5) + "\n").encode()

    def _key(self) -> str:
        self._numbers += 1
        return f"{self.chance.getrandbits(12):03x}{self._numbers:05x}"

    def _tick(self) -> float:
        self._second += self.chance.choice((0.001, 0.2, 1, 7))
        return self._second


def _ms_of(timestamp: str) -> int:
    """The time of an entry as the newest version writes it."""
    seconds = timestamp.partition("T")[2].removesuffix("Z").split(":")
    hours, minutes, rest = (float(one) for one in seconds)
    found = ms((hours - 10) * 3600 + minutes * 60 + rest)
    assert at((found - ms(0)) / 1000) == timestamp
    return found
