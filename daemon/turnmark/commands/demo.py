"""`turnmark demo`: the whole way, from a conversation with branches to a recall.

It checks what it shows: it ends with 0 only where every event came, nothing is owed at the end,
what was taken back is in no file, and each question found its answer.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.resources
import signal
import threading
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from turnmark.client_sync import SyncClient, connect_sync
from turnmark.commands.flush import written
from turnmark.commands.invocation import Invocation
from turnmark.commands.recall import print_hit
from turnmark.commands.tree import drawing_of
from turnmark.commands.wording import Fields, count
from turnmark.demo_daemon import DemoFailed, DemoPlace, demo_daemon, demo_place
from turnmark.demo_events import EventWording, Watcher
from turnmark_events.types import Event, TurnsWritten

# Ten times what it takes on a slow machine; past it something waits for what will never come.
_LONGEST_SECONDS = 60
_HITS = 3
_INDENT = "   "


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A call, and a line that says why it is made."""

    say: str
    method: str
    params: dict[str, Any]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked in which session, and words that a hit must hold."""

    query: str
    session: str
    answer: str


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """The file: `taken_back` are words that were said, taken back, and must be nowhere."""

    steps: list[Step]
    taken_back: str
    recall: list[Question]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares that there are no arguments of its own."""
    del parser


def run(invocation: Invocation) -> int:
    """Plays the conversation against a daemon of its own and shows what came of it.

    Raises:
        DemoFailed: if anything is not as it should be.
    """
    with _ended_cleanly(), demo_place() as place:
        _greet(invocation, place)
        with demo_daemon(place, invocation.environ) as daemon:
            with connect_sync(place.socket) as client, connect_sync(place.socket) as other:
                result = _Demo(invocation, place, client, Watcher(other)).play()
            daemon.stop()
    _say_goodbye(invocation, result)
    return 0


def conversation() -> Conversation:
    """Returns the conversation that ships."""
    packed = importlib.resources.files("turnmark") / "demo_conversation.json"
    return msgspec.json.decode(packed.read_bytes(), type=Conversation)


class _Demo:
    """One showing."""

    def __init__(
        self, invocation: Invocation, place: DemoPlace, client: SyncClient, watcher: Watcher
    ) -> None:
        self._invocation = invocation
        self._place = place
        self._client = client
        self._watcher = watcher
        self._wording = EventWording(client)
        self._conversation = conversation()

    def play(self) -> Fields:
        """Shows everything in order and returns it for machines."""
        self._talk()
        flushed = self._flush()
        self._draw()
        topics = self._topics()
        core = self._core()
        answers = [self._ask(number, one) for number, one in enumerate(self._conversation.recall)]
        self._check()
        return {
            "steps": len(self._conversation.steps),
            "events": self._watcher.seen,
            "flush": flushed,
            "topics": topics,
            "core": core,
            "recall": answers,
        }

    def _talk(self) -> None:
        """Takes the steps; each must be answered, and its events must come."""
        self._title(
            "1  The conversation",
            "Each step is one call to the daemon. → is an event that it caused, as any program",
            "that subscribes gets it: which branch's tip moved, and the session's head.",
        )
        for step in self._conversation.steps:
            self._print("", self._invocation.ink.bold(step.say))
            for turn in step.params.get("turns", ()):
                who = turn.get("speaker", {}).get("name") or turn["role"]
                self._print(f"{_INDENT}{turn['id']} {who}: {turn['text']}")
            if not step.params.get("turns"):
                self._print(f"{_INDENT}{step.method} {_words(step.params)}")
            self._client.call(step.method, step.params)
            events = self._watcher.new_events()
            self._print_events(events)
            if not events and step.method != "session.open":
                raise DemoFailed(f"{step.method} caused no event: {step.say}")

    def _flush(self) -> Fields:
        self._title(
            "2  Writing",
            "A branch is written when it has been silent for half an hour, or is long. `flush`",
            "writes at once what is owed: turns that memory has not dealt with yet, each once.",
        )
        owed = self._client.call("memory.owed")
        tips = sorted({row["tip"] for row in owed["tips"]})
        before = f"{count(owed['turns'], 'turn')} on the way to {count(len(tips), 'tip')}"
        self._print("", f"owed: {before} ({', '.join(tips)})")
        answer = self._client.call("memory.flush", {})
        events = self._watcher.new_events()
        self._print_events(events)
        self._print(written(answer))
        told = [turn for event in events if isinstance(event, TurnsWritten) for turn in event.turns]
        if answer["failures"] or answer["left"] or len(told) != owed["turns"]:
            raise DemoFailed(f"{owed['turns']} turns were owed; the flush answered {answer}")
        if len(set(told)) != len(told):
            raise DemoFailed(f"turns were written twice: {told}")
        return dict(answer)

    def _draw(self) -> None:
        self._title(
            "3  The graph",
            "`turnmark tree` draws every line of the conversation, and what memory did with each",
            "turn. What was taken back, and what a program asked a sub-agent, is not for memory.",
        )
        for session in self._client.call("session.list")["sessions"][::-1]:
            drawing = drawing_of(
                self._client,
                session["session"],
                columns=self._invocation.columns,
                ink=self._invocation.ink,
            )
            self._print("", f"{session['session']} · {session['title']}", *drawing)

    def _topics(self) -> dict[str, str]:
        self._title(
            "4  The topics",
            "Markdown files that you may edit. [^s-…] is a footnote to the turn that a paragraph",
            "rests on, ^b-… the paragraph's own id.",
        )
        files = sorted((self._place.workspace / "topics").glob("*/*.md"))
        pages = {str(file.relative_to(self._place.workspace)): _text(file) for file in files}
        for name, text in pages.items():
            self._page(name, text)
        if not any("^b-" in text for text in pages.values()):
            raise DemoFailed("no topic has a block")
        return pages

    def _core(self) -> str:
        self._title(
            "5  The core",
            "core.md is always in an agent's context, within a token budget. It is rendered from",
            "topics/core.md: above its line a person pins, below it turnmark arranges.",
        )
        self._page("topics/core.md", _text(self._place.workspace / "topics" / "core.md"))
        text = _text(self._place.workspace / "core.md")
        self._page("core.md", text)
        if "[^s-" not in text:
            raise DemoFailed("core.md holds nothing that was said")
        return text

    def _ask(self, number: int, question: Question) -> Fields:
        if number == 0:
            self._title(
                "6  Recall",
                "Blocks of topics and turns themselves, each with who said it, when, and the file",
                "and line where it stands word for word. `own`: said on the asking agent's branch",
                "alone; `shared`: said before the conversation branched.",
            )
        self._print("", self._invocation.ink.bold(question.query))
        asked = {"query": question.query, "session": question.session, "k": _HITS}
        answer = self._client.call("memory.recall", asked)
        for place, hit in enumerate(answer["hits"], start=1):
            if not self._invocation.as_json:
                print_hit(self._invocation, place, hit)
            self._check_sources(hit)
        if not any(question.answer in hit["text"] for hit in answer["hits"]):
            raise DemoFailed(f"recall did not find {question.answer!r} for {question.query!r}")
        return {"query": question.query, "hits": answer["hits"]}

    def _check_sources(self, hit: Fields) -> None:
        """Checks that each source stands on the line that is named."""
        if not hit["sources"]:
            raise DemoFailed(f"the hit {hit['ref']} does not say where it comes from")
        for one in hit["sources"]:
            lines = _text(self._place.workspace / one["path"]).splitlines()
            if one["label"] not in lines[one["line"] - 1]:
                raise DemoFailed(f"{one['path']}:{one['line']} does not hold {one['label']}")

    def _check(self) -> None:
        """Checks what holds at the end."""
        missed = self._watcher.missed()
        if missed:
            raise DemoFailed(f"these events did not come: {missed}")
        owed = self._client.call("memory.owed")
        if owed["turns"] or owed["tips"]:
            raise DemoFailed(f"{owed['turns']} turns are owed at the end: {owed['tips']}")
        words = self._conversation.taken_back
        for file in self._place.workspace.rglob("*"):
            if file.is_file() and words.encode() in file.read_bytes():
                raise DemoFailed(f"{words!r} was taken back and is in {file}")

    def _print_events(self, events: list[Event]) -> None:
        arrow = self._invocation.ink.accent("→")
        self._print(*(f"{_INDENT}{arrow} {self._wording.line(event)}" for event in events))

    def _page(self, name: str, text: str) -> None:
        self._print("", self._invocation.ink.dim(f"──── {name} ────"), text.rstrip("\n"))

    def _title(self, title: str, *about: str) -> None:
        ink = self._invocation.ink
        self._print("", "", ink.bold(title), "─" * len(title), *(ink.dim(line) for line in about))

    def _print(self, *lines: str) -> None:
        if not self._invocation.as_json:
            self._invocation.print(*lines)
            self._invocation.stdout.flush()


def _greet(invocation: Invocation, place: DemoPlace) -> None:
    if not invocation.as_json:
        invocation.print(
            "A conversation that branches, and what turnmark's memory makes of it.",
            f"The daemon of this demo lives in {place.root} and is gone at the end.",
        )


def _say_goodbye(invocation: Invocation, result: Fields) -> None:
    if invocation.as_json:
        invocation.print_json(result)
        return
    steps, events = count(result["steps"], "step"), count(len(result["events"]), "event")
    checked = (
        f"Checked: {steps}, {events} and none missed; nothing is owed; what was taken back is in "
        "no file; every question found its answer; the daemon ended well."
    )
    invocation.print(
        "",
        "",
        invocation.ink.good(checked),
        "",
        "To go on: `turnmark serve` starts the daemon for you, `turnmark import PATH` reads what",
        "your agents have said up to now; README.md says the rest.",
    )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _words(params: Fields) -> str:
    """Returns params as a person reads them: `session=demo-kiosk tip=t10`."""
    named = {k: v for k, v in params.items() if isinstance(v, str) and k in _NAMED}
    caller = params.get("caller")
    if caller:
        named["caller"] = f"{caller['session']}/{caller['turn']}"
    return " ".join(f"{name}={value}" for name, value in named.items())


_NAMED = frozenset({"session", "tip", "to"})


@contextlib.contextmanager
def _ended_cleanly() -> Generator[None]:
    """Lets the signals that end a program, and a deadline, unwind it, so that all is tidied up."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise DemoFailed(f"the demo did not end in {_LONGEST_SECONDS} seconds")

    handlers: dict[signal.Signals, Any] = {
        signal.SIGTERM: end,
        signal.SIGHUP: end,
        signal.SIGALRM: give_up,
    }
    before = {number: signal.signal(number, wanted) for number, wanted in handlers.items()}
    signal.alarm(_LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)
