"""Made-up conversations as Codex writes them: files and their lines, in the order of writing.

A `CodexRecording` plays people, a model and the program: exchanges of the old kind and the new one,
steering, commentary, compaction, forks by copy and by pointer, reverts, rollbacks, sub-agents, and
threads and exchanges that are nobody's. Beside the bytes it keeps what a reader must make of them,
told by the words, of which none are said twice.
"""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any

from session_store.transcripts.codex_rollouts import at, uuid7
from session_store.transcripts.written_files import Write, WrittenFiles

Record = dict[str, Any]
WORDS = ["Bergen", "Oslo", "tea", "coffee", "tabs", "北京", "上海", "喜欢", "咖啡", "Robin", "Dana"]


@dataclass
class _Place:
    """A point in a file at which an exchange is over: what stands there, in words."""

    line: int
    byte: int
    ordinal: int
    stack: list[str]


@dataclass
class _File:
    """A file that is written, or was until a revert."""

    path: str
    thread: str
    paginated: bool
    is_agent: bool = False
    records: list[Record] = field(default_factory=list[Record])
    size: int = 0
    ordinal: int = 0
    stack: list[str] = field(default_factory=list[str])
    places: list[_Place] = field(default_factory=list[_Place])
    prompts: dict[str, bool] = field(default_factory=dict[str, bool])
    shared: set[str] = field(default_factory=set[str])


class CodexRecording(WrittenFiles):
    """A set of files while it is written; `written` is what each write adds, in order.

    `before` maps what was said to what stood before it, `humans` are the prompts of people,
    `rolled_back` what was taken back somewhere. With `apart`, nothing is rolled back that a fork
    went on from: whether that stays depends on which of the two is read first. `paginated` and
    `agents` are the shares of new threads and of exchanges with a sub-agent.
    """

    def __init__(
        self,
        chance: random.Random,
        *,
        apart: bool = False,
        paginated: float = 0.6,
        agents: float = 0.2,
    ) -> None:
        super().__init__()
        self.chance = chance
        self.apart = apart
        self.paginated = paginated
        self.agents = agents
        self.files_open: list[_File] = []
        self.files_all: list[_File] = []
        self.before: dict[str, str | None] = {}
        self.owner: dict[str, str] = {}
        self.humans: set[str] = set()
        self.rolled_back: set[str] = set()
        self._second = 0.0
        self._numbers = 0

    def play(self, steps: int) -> None:
        """Plays that many things that a person or the program does."""
        self.new_thread()
        for _ in range(steps):
            file = self.chance.choice(self.files_open)
            step = self.chance.choices(
                (self.exchange, self.go_back, self.fork, self.compact, self.nobodys, self.begin),
                weights=(10, 3, 2, 1, 1, 1),
            )[0]
            step(file)

    @property
    def live(self) -> set[str]:
        """What stands at the end of a file, and all before it."""
        found: set[str] = set()
        for file in self.files_all:
            found.update(file.stack)
        return found

    @property
    def said(self) -> list[str]:
        """What an import of the finished files holds, sorted."""
        return sorted(self.before.keys() - (self.rolled_back - self.live))

    # What happens.

    def begin(self, _: _File) -> None:
        """Another thread."""
        self.new_thread()

    def new_thread(self) -> _File:
        """A thread with its first exchange."""
        file = self._open(self._uuid(), paginated=self.chance.random() < self.paginated)
        self._meta(file)
        self.exchange(file)
        return file

    def exchange(self, file: _File) -> None:
        """A prompt, perhaps another while the model works, and what it says."""
        turn = self._begin_exchange(file)
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            self._prompt(file, turn)
            if self.chance.random() < 0.3:
                self._answer(file, turn, "commentary")
        if self.chance.random() < self.agents and not file.is_agent:
            self._sub_agent(file, turn)
        if self.chance.random() < 0.9:
            self._answer(file, turn, self.chance.choice(("final_answer", None)))
        self._end_exchange(file, turn)

    def go_back(self, file: _File) -> None:
        """Some exchanges are withdrawn: by a new file, or by a record in the old one."""
        if file.is_agent:
            return
        if not file.paginated:
            self._roll_back(file)
            return
        again = self._open(file.thread, paginated=True, generation=self._uuid())
        place = self._any_place(file)
        self.files_open.remove(file)
        if place is None:
            self._meta(again)
        else:
            older, where = place
            self._rest_on(again, older, where)
        if self.chance.random() < 0.8:
            self.exchange(again)

    def fork(self, file: _File) -> None:
        """Another thread that begins where this one was."""
        place = self._any_place(file)
        if file.is_agent or place is None or len(self.files_open) > 6:
            return
        older, where = place
        if self.apart and self.rolled_back & set(where.stack):
            return
        fork = self._open(self._uuid(), paginated=file.paginated)
        for one in self.files_all:
            one.shared.update(where.stack)
        if file.paginated:
            self._rest_on(fork, older, where, forked_from_id=older.thread)
        else:
            self._meta(fork, forked_from_id=older.thread)
            for kept in copy.deepcopy(older.records[: where.line]):
                self._write(fork, kept | {"timestamp": at(self._second)})
            fork.stack = list(where.stack)
            fork.prompts = dict(older.prompts)
            fork.places = [_Place(len(fork.records), fork.size, fork.ordinal, list(where.stack))]
        if self.chance.random() < 0.8:
            self.exchange(fork)

    def compact(self, file: _File) -> None:
        """The model sums up what was said; nobody hears it, and old prompts are written again."""
        turn = self._begin_exchange(file)
        summary = f"Summary {self._say()}"
        self._response(file, turn, "assistant", summary)
        old = [{"type": "message", "role": "user", "content": t} for t in file.stack[-3:]]
        message = f"Another model says:\n{summary}"
        self._write_kind(file, "compacted", {"message": message, "replacement_history": old})
        self._event(file, "item_completed", item={"type": "ContextCompaction", "id": self._uuid()})
        self._end_exchange(file, turn)

    def nobodys(self, file: _File) -> None:
        """A review, an exchange that came from another agent's files, a note, a name."""
        step = self.chance.randrange(4)
        if step == 0:
            other = self._open(self._uuid(), paginated=True)
            self.files_open.remove(other)
            self.files_all.remove(other)
            self._meta(other, source={"subagent": "review"}, parent_thread_id=file.thread)
            self._event(other, "item_completed", item=self._item("UserMessage", "Review this."))
        elif step == 1:
            self._event(file, "task_started", turn_id="external-import-turn-1")
            self._event(file, "user_message", message=self._say())
            self._event(file, "agent_message", message=self._say())
            self._event(file, "task_complete", turn_id="external-import-turn-1")
        elif step == 2:
            notice = "<subagent_notification>\n{}\n</subagent_notification>"
            self._response(file, "auto-compact-0", "user", notice)
        else:
            name = self.chance.choice(WORDS)
            self._event(file, "thread_name_updated", thread_id=file.thread, thread_name=name)

    # Its parts.

    def _open(self, thread: str, *, paginated: bool, generation: str | None = None) -> _File:
        behind = f"_{generation}" if generation else ""
        stamp = f"2026-08-09T12-00-{len(self.files_all) % 60:02}"
        file = _File(f"2026/08/09/rollout-{stamp}-{thread}{behind}.jsonl", thread, paginated)
        self.files_open.append(file)
        self.files_all.append(file)
        return file

    def _meta(self, file: _File, **fields: Any) -> None:
        payload: Record = {
            "id": file.thread,
            "session_id": file.thread,
            "timestamp": at(self._second),
            "cwd": "/home/robin/demo",
            "source": "cli",
            **fields,
        }
        self._write_kind(file, "session_meta", payload)

    def _rest_on(self, file: _File, older: _File, where: _Place, **fields: Any) -> None:
        file.ordinal = where.ordinal
        file.stack = list(where.stack)
        base = {
            "thread_id": older.thread,
            "end_ordinal_exclusive": where.ordinal,
            "end_byte_offset": where.byte,
        }
        self._meta(file, history_base=base, **fields)
        file.places.append(_Place(1, file.size, file.ordinal, list(where.stack)))

    def _any_place(self, file: _File) -> tuple[_File, _Place] | None:
        """A place in a file, or in one of the older files of a paginated thread."""
        files = [file]
        if file.paginated:
            files = [one for one in self.files_all if one.thread == file.thread]
        places = [(one, place) for one in files for place in one.places]
        return self.chance.choice(places) if places else None

    def _begin_exchange(self, file: _File) -> str:
        turn = self._uuid()
        file.prompts[turn] = False
        self._event(file, "task_started", turn_id=turn)
        if self.chance.random() < 0.5:
            injected = "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"
            self._response(file, turn, "user", injected)
        self._write_kind(file, "turn_context", {"turn_id": turn, "model": "demo"})
        return turn

    def _end_exchange(self, file: _File, turn: str) -> None:
        last = file.stack[-1] if file.stack else None
        self._event(file, "task_complete", turn_id=turn, last_agent_message=last)
        place = _Place(len(file.records), file.size, file.ordinal, list(file.stack))
        file.places.append(place)

    def _prompt(self, file: _File, turn: str) -> None:
        words = self._say()
        self._add(file, words)
        if file.is_agent:
            self.humans.discard(words)
        else:
            self.humans.add(words)
        self._response(file, turn, "user", words)
        if file.paginated:
            self._completed(file, turn, self._item("UserMessage", words))
        else:
            self._event(file, "user_message", message=words, images=[])

    def _answer(self, file: _File, turn: str, phase: str | None) -> None:
        words = self._say()
        self._add(file, words)
        extra = {} if phase is None else {"phase": phase}
        if file.paginated:
            item = self._item("AgentMessage", words) | extra
            item["id"] = f"msg_{self.chance.randrange(3)}"
            self._completed(file, turn, item)
        else:
            self._event(file, "agent_message", message=words, **extra)
        self._response(file, turn, "assistant", words)

    def _add(self, file: _File, words: str) -> None:
        self.before[words] = file.stack[-1] if file.stack else None
        self.owner[words] = file.thread
        file.stack.append(words)

    def _roll_back(self, file: _File) -> None:
        number = self.chance.choice((1, 1, 2, 9))
        prompts = [at for at, words in enumerate(file.stack) if words in self.humans]
        if not prompts:
            return
        cut = prompts[max(0, len(prompts) - number)]
        if self.apart and file.shared & set(file.stack[cut:]):
            return
        self.rolled_back.update(file.stack[cut:])
        file.stack = file.stack[:cut]
        self._event(file, "thread_rolled_back", num_turns=number)
        file.places.append(_Place(len(file.records), file.size, file.ordinal, list(file.stack)))

    def _sub_agent(self, file: _File, turn: str) -> None:
        """A thread of its own; an old one begins with a copy of its parent's lines."""
        agent = self._open(self._uuid(), paginated=file.paginated)
        agent.is_agent = True
        self.files_open.remove(agent)
        spawn = {"thread_spawn": {"parent_thread_id": file.thread, "depth": 1}}
        more = {"session_id": file.thread} if self.chance.random() < 0.7 else {}
        self._meta(agent, source={"subagent": spawn}, parent_thread_id=file.thread, **more)
        if not file.paginated and self.chance.random() < 0.5:
            for kept in copy.deepcopy(file.records):
                self._write(agent, kept | {"timestamp": at(self._second)})
        call = {
            "type": "CollabAgentToolCall",
            "tool": "spawn_agent",
            "id": "call_1",
            "receiver_thread_ids": [agent.thread],
        }
        if file.paginated:
            self._completed(file, turn, call)
        else:
            self._event(file, "collab_agent_spawn_end", new_thread_id=agent.thread)
        for _ in range(self.chance.choice((1, 2))):
            self.exchange(agent)

    def _completed(self, file: _File, turn: str, item: Record) -> None:
        self._event(file, "item_completed", thread_id=file.thread, turn_id=turn, item=item)

    def _item(self, kind: str, words: str) -> Record:
        return {"type": kind, "id": self._uuid(), "content": [{"type": "text", "text": words}]}

    def _response(self, file: _File, turn: str, role: str, words: str) -> None:
        block = "output_text" if role == "assistant" else "input_text"
        payload = {
            "type": "message",
            "role": role,
            "content": [{"type": block, "text": words}],
            "internal_chat_message_metadata_passthrough": {"turn_id": turn},
        }
        self._write_kind(file, "response_item", payload)

    def _event(self, file: _File, kind: str, **fields: Any) -> None:
        self._write_kind(file, "event_msg", {"type": kind, **fields})

    def _write_kind(self, file: _File, kind: str, payload: Record) -> None:
        self._second += self.chance.choice((0.2, 1, 7))
        self._write(file, {"timestamp": at(self._second), "type": kind, "payload": payload})

    def _write(self, file: _File, record: Record) -> None:
        if file.paginated:
            record = {**record, "ordinal": file.ordinal}
            file.ordinal += 1
        file.records.append(record)
        line = json.dumps(record, ensure_ascii=self.chance.random() < 0.5) + "\n"
        file.size += len(line.encode())
        self.written.append(Write(file.path, line.encode()))

    def _say(self) -> str:
        self._numbers += 1
        return " ".join(self.chance.choices(WORDS, k=4)) + f" {self._numbers}"

    def _uuid(self) -> str:
        self._numbers += 1
        self._second += 0.01
        return uuid7(self._second, self._numbers)
