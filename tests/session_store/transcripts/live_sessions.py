"""Made-up conversations as Claude Code writes them: files and their lines, in the order of writing.

A `ClaudeCodeRecording` plays a user, a model and the program: prompts, responses in fragments, tool
calls in parallel, hooks, rewinds, compactions, sub-agents, forks by copy and by SDK that go on
while their origin does. Everything hangs together, and times go forward; what is drawn comes from
`chance`.
"""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from session_store.transcripts.written_files import Write, WrittenFiles

Record = dict[str, Any]
WORDS = ["Bergen", "Oslo", "tea", "coffee", "tabs", "北京", "上海", "喜欢", "咖啡", "Robin", "Dana"]


class _Line:
    """One conversation that is going on in one file: where its next record hangs."""

    def __init__(self, path: str, session: str) -> None:
        self.path = path
        self.session = session
        self.tip: str | None = None
        self.prompts_from: list[str | None] = []
        self.agent: str | None = None


class ClaudeCodeRecording(WrittenFiles):
    """A set of files while it is written; `written` is what each write adds, in order."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.rows: dict[str, list[Record]] = {}
        self.lines: list[_Line] = []
        self._second = 0.0
        self._numbers = 0

    def play(self, steps: int) -> None:
        """Plays that many things that a person or the program does."""
        self._begin()
        for _ in range(steps):
            line = self.chance.choice(self.lines)
            step = self.chance.choices(
                (
                    self.exchange,
                    self.rewind,
                    self.rewind_to_start,
                    self.compact,
                    self.fork_by_copy,
                    self.fork_by_sdk,
                    self.title,
                    self.retract,
                ),
                weights=(10, 3, 0.5, 1, 1, 0.7, 1, 0.5),
            )[0]
            step(line)

    # What happens.

    def exchange(self, line: _Line) -> None:
        """A prompt and all that is done for it."""
        self._prompt(line)
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            self._tools(line)
        self._answer(line)

    def rewind(self, line: _Line) -> None:
        """The next prompt hangs from where an earlier one hung."""
        if line.prompts_from:
            line.tip = self.chance.choice(line.prompts_from)
        self.exchange(line)

    def rewind_to_start(self, line: _Line) -> None:
        """The next prompt is another root; only the note of the last prompt says which counts."""
        line.tip = None
        self.exchange(line)
        self._fact(line, type="last-prompt", lastPrompt="", leafUuid=line.tip)

    def compact(self, line: _Line) -> None:
        """A boundary, a summary, and perhaps the last records again below it."""
        kept = [row for row in self.rows[line.path] if "parentUuid" in row][-2:]
        logical = line.tip
        line.tip = None
        boundary = self._row(
            line, "system", subtype="compact_boundary", logicalParentUuid=logical, content="Done"
        )
        summary = self._message(line, "user", "The story so far.", isCompactSummary=True)
        if self.chance.random() < 0.5 and len(kept) == 2:
            boundary["compactMetadata"] = {"trigger": "auto"}
            for index, row in enumerate(kept):
                again = copy.deepcopy(row)
                again["parentUuid"] = summary["uuid"] if index == 0 else kept[0]["uuid"]
                self._write(line.path, again)
            line.tip = kept[-1]["uuid"]
        self.exchange(line)

    def fork_by_copy(self, line: _Line) -> None:
        """All records again in another file, under its session; both may go on."""
        if line.agent is not None or len(self.lines) > 5:
            return
        fork = self._open_line()
        for row in list(self.rows[line.path]):
            if "parentUuid" in row and not row.get("isSidechain"):
                self._write(fork.path, {**copy.deepcopy(row), "sessionId": fork.session})
        fork.tip, fork.prompts_from = line.tip, list(line.prompts_from)
        self.exchange(fork)

    def fork_by_sdk(self, line: _Line) -> None:
        """All messages again with ids of their own, each naming the one that it copies."""
        if line.agent is not None or len(self.lines) > 5:
            return
        fork = self._open_line()
        ids: dict[str, str | None] = {}
        for row in list(self.rows[line.path]):
            if "parentUuid" not in row or row["uuid"] in ids:
                continue
            if (
                row["type"] == "progress"
            ):  # left out; what hung from it hangs from what it hung from
                ids[row["uuid"]] = ids.get(row["parentUuid"] or "")
                continue
            ids[row["uuid"]] = self._uuid()
            again = copy.deepcopy(row)
            again.update(
                uuid=ids[row["uuid"]],
                parentUuid=ids.get(row["parentUuid"] or ""),
                sessionId=fork.session,
                forkedFrom={"sessionId": line.session, "messageUuid": row["uuid"]},
            )
            self._write(fork.path, again)
        fork.tip = ids.get(line.tip or "")
        fork.prompts_from = [ids.get(one or "") for one in line.prompts_from]
        self.exchange(fork)

    def title(self, line: _Line) -> None:
        """A fact about the session, which may be noted again and again."""
        self._fact(line, type="custom-title", customTitle=self.chance.choice(WORDS))

    def retract(self, line: _Line) -> None:
        """The model's answer is taken back by the record that takes its place."""
        self._prompt(line)
        before = line.tip
        refused = self._fragment(line, self._uuid(), {"type": "text", "text": self._say()})
        line.tip = before
        row = self._fragment(
            line,
            self._uuid(),
            {"type": "text", "text": self._say()},
            retractedMessageUuids=[refused["uuid"]],
        )
        del row

    # Its parts.

    def _begin(self) -> None:
        self._open_line()
        self.exchange(self.lines[0])

    def _open_line(self) -> _Line:
        session = self._uuid()
        line = _Line(f"-home-robin-demo/{session}.jsonl", session)
        self.lines.append(line)
        self.rows[line.path] = []
        return line

    def _prompt(self, line: _Line) -> None:
        line.prompts_from.append(line.tip)
        self._message(line, "user", self._say())

    def _answer(self, line: _Line) -> None:
        response = self._uuid()
        if self.chance.random() < 0.4:
            self._fragment(line, response, {"type": "thinking", "thinking": "…", "signature": "s"})
        hangs = line.tip
        text = self._say()
        if self.chance.random() < 0.2:
            for end in (1, 3):
                self._fragment(line, response, {"type": "text", "text": text[: 4 * end]})
        ended = {"stop_reason": "end_turn"} if self.chance.random() < 0.4 else {}
        self._fragment(line, response, {"type": "text", "text": text}, message_fields=ended)
        if self.chance.random() < 0.4:
            beside = self.chance.random() < 0.5
            if beside:
                line.tip = hangs
            subtype = self.chance.choice(("stop_hook_summary", "turn_duration"))
            self._row(line, "system", subtype=subtype, content="")

    def _tools(self, line: _Line) -> None:
        """A response with text and calls, and their results; each hangs from its own call."""
        response, results = self._uuid(), []
        if self.chance.random() < 0.6:
            self._fragment(line, response, {"type": "text", "text": self._say()})
        for _ in range(self.chance.choice((1, 1, 2, 3))):
            tool = f"toolu_{self._uuid()}"
            task = f"Task {self._say()} {tool}" if self.chance.random() < 0.3 else None
            given = {"prompt": task} if task else {"command": "ls"}
            call = {"type": "tool_use", "id": tool, "name": "Task" if task else "Bash"}
            fragment = self._fragment(line, response, {**call, "input": given})
            results.append((fragment["uuid"], tool, task))
            if self.chance.random() < 0.2:
                self._row(line, "progress", data={"type": "bash_progress"}, toolUseID=tool)
        self.chance.shuffle(results)
        for uuid, tool, task in results:
            done: Record = {}
            if task and line.agent is None:
                done = {"toolUseResult": {"agentId": self._sub_agent(line, task)}}
            line.tip = uuid
            block = {"type": "tool_result", "tool_use_id": tool, "content": "ok"}
            self._message(line, "user", [block], **done)
        if self.chance.random() < 0.2:
            queued = {"type": "queued_command", "prompt": self._say(), "commandMode": "prompt"}
            self._row(line, "attachment", attachment=queued)

    def _sub_agent(self, line: _Line, task: str) -> str:
        agent = f"a{self._uuid()[-12:]}"
        folder = line.path.removesuffix(".jsonl")
        below = _Line(f"{folder}/subagents/agent-{agent}.jsonl", line.session)
        below.agent = agent
        self.rows[below.path] = []
        self._message(below, "user", task)
        if self.chance.random() < 0.4:
            self._tools(below)
        self._answer(below)
        return agent

    def _fragment(
        self,
        line: _Line,
        response: str,
        block: Record,
        message_fields: Record | None = None,
        **fields: Any,
    ) -> Record:
        message = {"role": "assistant", "model": "claude-demo", "id": f"msg_{response}"}
        message |= {"content": [block], "stop_reason": None, **(message_fields or {})}
        return self._row(line, "assistant", message=message, **fields)

    def _message(self, line: _Line, kind: str, content: Any, **fields: Any) -> Record:
        return self._row(line, kind, message={"role": kind, "content": content}, **fields)

    def _row(self, line: _Line, kind: str, **fields: Any) -> Record:
        self._second += self.chance.choice((0.2, 1, 7))
        minutes, seconds = divmod(self._second, 60)
        hours, minutes = divmod(int(minutes), 60)
        row: Record = {
            "parentUuid": line.tip,
            "isSidechain": line.agent is not None,
            "cwd": "/home/robin/demo",
            "sessionId": line.session,
            "type": kind,
            "uuid": self._uuid(),
            "timestamp": f"2026-08-09T{10 + hours:02}:{minutes:02}:{seconds:06.3f}Z",
            **({"agentId": line.agent} if line.agent else {}),
            **fields,
        }
        self._write(line.path, row)
        line.tip = row["uuid"]
        return row

    def _fact(self, line: _Line, **fields: Any) -> None:
        self._write(line.path, {"sessionId": line.session, **fields})

    def _write(self, path: str, row: Record) -> None:
        self.rows.setdefault(path, []).append(row)
        line = json.dumps(row, ensure_ascii=self.chance.random() < 0.5) + "\n"
        self.written.append(Write(path, line.encode()))

    def _say(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=4)) + f" {self._numbers}"

    def _uuid(self) -> str:
        self._numbers += 1
        return f"{self.chance.getrandbits(32):08x}-0000-4000-8000-{self._numbers:012d}"
