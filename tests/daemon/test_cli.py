"""The command line, run as a program against a small daemon that answers what a test says."""

from __future__ import annotations

import argparse
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import msgspec
import pytest

from turnmark.commands import registry, serve
from turnmark.commands.invocation import Invocation
from turnmark.config import ConfigRefused, Settings
from turnmark.errors import DaemonNotRunning
from turnmark.main import main
from turnmark.rpc import Call, Method, Server
from turnmark_events.errors import NotFound, Refused
from turnmark_session_store.place_lock import PlaceTaken

AT = "2026-08-09T14:02:00Z"
# The parameters that the interface gives each method; a command that sends another one fails.
PARAMS = {
    "hello": "client protocol",
    "session.list": "agent project limit cursor",
    "session.export": "session limit cursor",
    "session.import": "lines upload last continued",
    "turn.append": "session turns after expect key move_head",
    "memory.owed": "session ids limit cursor",
    "memory.flush": "session backlog removed rewrite since dry_run wait",
    "memory.recall": "query k session tip kinds topic speaker since until project history"
    " budget_tokens mode",
    "memory.core": "",
    "memory.topics": "limit cursor",
    "memory.show": "ref",
    "memory.remember": "text topic session turn pin",
    "memory.history": "limit cursor",
    "memory.undo": "revision force",
    "memory.forget": "block turn session speaker query evidence everywhere dry_run confirm",
    "memory.organize": "wait uncited dry_run approve discard",
    "events.subscribe": "types session since policy",
    "status": "",
}
HELLO = {"server": "turnmark", "version": "0", "protocol": 1, "workspace": "w-1", "pid": 1}


class Daemon:
    """Answers each method with what `answers` holds, and keeps what it was asked.

    An answer may be an exception, which is raised, or a list in a list, whose elements answer one
    call after the other.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, Any] = {"hello": HELLO}
        self.events: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.subscribed = threading.Event()

    def params_of(self, method: str) -> list[dict[str, Any]]:
        """Returns the params of each call of `method`."""
        return [params for asked, params in self.asked if asked == method]

    def methods(self) -> Mapping[str, Method[Any]]:
        """Returns the table of methods, each with the interface's parameters."""
        return {name: self._method(name, fields.split()) for name, fields in PARAMS.items()}

    def _method(self, name: str, fields: list[str]) -> Method[Any]:
        params = msgspec.defstruct(
            "Params",
            [(field, Any, msgspec.UNSET) for field in fields],
            forbid_unknown_fields=True,
            kw_only=True,
        )

        async def call(given: Any, call: Call) -> Any:
            self.asked.append((name, msgspec.to_builtins(given)))
            if name == "events.subscribe":
                call.open_stream("sub-1", self._send_events, lambda: None)
                return {"subscription": "sub-1", "seq": 0}
            answer = self.answers[name]
            if isinstance(answer, list):
                answer = answer.pop(0) if len(answer) > 1 else answer[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return Method(params=params, call=call, answer_limit_bytes=16 << 20)

    async def _send_events(self, send: Any) -> None:
        for event in self.events:
            await send("event", {"subscription": "sub-1", "event": event})
        self.subscribed.set()
        await anyio.sleep_forever()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon on a real socket, in a thread of its own."""
    daemon = Daemon(tmp_path / "run" / "turnmark.sock")
    with anyio.from_thread.start_blocking_portal("asyncio") as portal:
        make = partial(Server, path=daemon.path, methods=daemon.methods(), grace_seconds=0.1)
        server = portal.call(make)
        running, _ = portal.start_task(server.run)
        yield daemon
        portal.call(server.stop)
        running.result(timeout=60)


class Ran(msgspec.Struct, frozen=True):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The answer, which must be one JSON value."""
        return json.loads(self.out)


class Shell:
    """Runs `turnmark` as a process, in places of the test's own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "XDG_RUNTIME_DIR": str(home / "run-dir"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "TZ": "UTC",
        }

    def __call__(
        self, *words: str | bytes | Path, stdin: bytes = b"", environ: dict[str, str] | None = None
    ) -> Ran:
        """Runs one command to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "turnmark", *words],
            input=stdin,
            capture_output=True,
            env=self.environ | (environ or {}),
            timeout=60,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def typing(self, said: str, *words: str) -> Ran:
        """Runs one command whose standard input is a terminal at which somebody says something."""
        leader, follower = pty.openpty()
        try:
            os.write(leader, said.encode())
            done = subprocess.run(
                [sys.executable, "-m", "turnmark", *words],
                stdin=follower,
                capture_output=True,
                env=self.environ,
                timeout=60,
                check=False,
            )
        finally:
            os.close(follower)
            os.close(leader)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts a command that goes on."""
        return subprocess.Popen(
            [sys.executable, "-m", "turnmark", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environ,
            text=True,
        )


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    """A shell on a machine where no daemon runs."""
    return Shell(tmp_path)


@pytest.fixture
def turnmark(alone: Shell, daemon: Daemon) -> Shell:
    """A shell that knows the daemon's socket."""
    alone.environ["TURNMARK_SOCKET"] = str(daemon.path)
    return alone


# Wrong use


def test_lists_its_commands(alone: Shell) -> None:
    """Help goes to standard output, the bare command's to standard error with exit 2."""
    ran = alone("--help")
    assert ran.code == 0
    assert "  recall      search memory\n" in ran.out
    bare = alone()
    assert (bare.code, bare.out, bare.err) == (2, "", ran.out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["recal", "x"], "there is no command recal, did you mean recall?"),
        (["议"], "there is no command 议"),
        (["flush", "--dry"], "turnmark flush has no option --dry, did you mean --dry-run?"),
        (["flush", "--jsn"], "turnmark flush has no option --jsn, did you mean --json?"),
        (["--jsno", "flush"], "turnmark has no option --jsno, did you mean --json?"),
        (["recall"], "QUERY is missing"),
        (["serach", "x"], "there is no command serach, did you mean"),
        (["search", "x"], "there is no command search, did you mean recall?"),
        (["pause"], "there is no command pause; Ctrl-C ends the daemon where it runs, "),
        (["help", "recal"], "there is no command recal, did you mean recall?"),
        (["log", "-n", "-1"], "-n: '-1' is no number from 0 on"),
        (["watch", "--since", "x"], "--since: 'x' is no number from 0 on"),
        (["import", "x", "--agent", "cursor"], "--agent: there is no 'cursor', only claude-code, "),
        (["forget"], "one of --block --turn --session --speaker --query is needed"),
        (["recall", "x", "--kinds", "blok"], "'blok' is no kind of hit; there are block and turn"),
        (["recall", "x", "--mode", "fast"], "--mode: there is no 'fast', only hybrid, lexical"),
        (["append", "s", "two", "words"], "turnmark append has no place for 'words'; quote"),
        (["append", "s", "x", "--root", "--after", "y"], "--root and --after say different places"),
        (["recall", "x", "-k", "many"], "-k: 'many' is no number from 1 to 1,000"),
        (["append", "s", "x", "--role", "god"], "--role: there is no 'god', only user, "),
        (["status", "--state"], "--state needs a value"),
        (
            ["watch", "--types", "TipMoved,TipMove"],
            "TipMove is no type of event; there are TipMoved",
        ),
    ],
)
def test_says_in_one_line_what_is_wrong_with_the_words(
    turnmark: Shell, words: list[str], sentence: str
) -> None:
    """An unknown command, option or value ends with 2 and one line that helps."""
    ran = turnmark(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"turnmark: {sentence}")
    known = words[0] in registry.names()
    assert ran.err.endswith(f"; see turnmark {f'{words[0]} ' if known else ''}--help\n")
    assert ran.err.count("\n") == 1


def test_says_what_is_wrong_as_json_where_asked(alone: Shell) -> None:
    """With `--json` the error is one JSON object on standard error."""
    ran = alone("status", "--json", "--x")
    assert (ran.code, ran.out) == (2, "")
    assert json.loads(ran.err)["error"]["kind"] == "wrong_use"


def test_explains_each_command(alone: Shell) -> None:
    """Every command that is listed has a help of its own."""
    listed = [line.split()[0] for line in alone("--help").out.splitlines() if line[:2] == "  "]
    commands = [name for name in listed if not name.startswith("-") and name != "demo"]
    assert len(commands) >= 15
    for name in commands:
        ran = alone(name, "--help")
        assert (ran.code, ran.out.split()[:3]) == (0, ["usage:", "turnmark", name])


def test_prints_its_version(alone: Shell) -> None:
    """The version is that of the package, by whichever name it is asked for."""
    for words in (("--version",), ("-V",), ("version",)):
        assert alone(*words).out == "turnmark 0.1.0\n"
    assert alone("version", "--json").json["version"] == "0.1.0"


def test_helps_where_people_look_first(alone: Shell) -> None:
    """`turnmark help` is `turnmark --help`, and with a command it is that command's."""
    assert alone("help").out == alone("--help").out
    ran = alone("help", "recall")
    assert ran.out == alone("recall", "--help").out
    assert "\nexamples:\n  turnmark recall " in ran.out
    assert list(alone("help", "recall", "--json").json["commands"]) == ["recall"]


# No daemon


@pytest.mark.parametrize("words", [["status"], ["watch"], ["import", "."], ["append", "s", "x"]])
def test_says_how_to_start_the_daemon(alone: Shell, words: list[str]) -> None:
    """Where no daemon answers, the exit code is 3 and the line says what to run."""
    ran = alone(*words)
    assert (ran.code, ran.out) == (3, "")
    assert "turnmark serve" in ran.err
    assert ran.err.count("\n") == 1


ALONE = {"serve", "demo", "backup", "restore", "doctor", "setup", "hook", "mcp"}
ALONE |= {"completion", "version", "help"}
WORDS = {
    "tree": ["s"],
    "append": ["s", "x"],
    "import": ["."],
    "migrate": ["openprogram", "."],
    "export": ["s"],
    "recall": ["咖啡"],
    "show": ["b-1"],
    "remember": ["I like tea."],
    "undo": ["1"],
    "forget": ["--turn", "m1"],
    "backup": ["there"],
    "restore": ["there"],
    "hook": ["claude-code"],
    "completion": ["bash"],
}


@pytest.mark.parametrize("command", [name for name in registry.names() if name not in ALONE])
def test_says_how_to_start_the_daemon_in_every_command(alone: Shell, command: str) -> None:
    """All that ask a daemon: with none, and with a socket that one left behind."""
    for left_behind in (False, True):
        if left_behind:
            place = alone.home / "run-dir" / "turnmark"
            place.mkdir(parents=True)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(place / "turnmark.sock"))
        ran = alone(command, *WORDS.get(command, []))
        assert (ran.code, ran.out) == (3, "")
        assert ran.err.startswith("turnmark: no turnmark daemon answers (")
        assert "turnmark serve" in ran.err
        assert ran.err.count("\n") == 1


@pytest.mark.parametrize("command", registry.names())
def test_refuses_a_wrong_option_in_every_command(alone: Shell, command: str) -> None:
    """Before anything is done: exit 2 and one line that names it."""
    ran = alone(command, *WORDS.get(command, []), "--nonsense")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"turnmark: turnmark {command} has no option --nonsense; see turnmark {command} --help\n"
    )
    assert list(alone.home.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("recall", "tea", "-k", "0"),
        ("recall", "茶", "--budget-tokens", "many"),
        ("organize", "--approve", "tidy-1", "--discard", "tidy-1"),
    ],
)
def test_refuses_values_that_make_no_sense(alone: Shell, words: tuple[str, ...]) -> None:
    """Before a daemon is looked for."""
    ran = alone(*words)
    assert (ran.code, ran.out) == (2, "")
    assert words[-2] in ran.err


def test_says_that_no_daemon_answers_as_json(alone: Shell) -> None:
    """A machine reads the same from the error's kind and the exit code."""
    ran = alone("--json", "status")
    assert ran.code == 3
    assert "turnmark serve" in json.loads(ran.err)["error"]["message"]


# Options and errors


def test_takes_common_options_before_and_after_the_command(alone: Shell, daemon: Daemon) -> None:
    """`--json` and `--socket` mean the same on both sides."""
    daemon.answers["memory.topics"] = {"topics": []}
    before = alone("--json", "--socket", daemon.path, "topics")
    after = alone("topics", f"--socket={daemon.path}", "--json")
    assert before.json == after.json == {"topics": []}


def test_finds_the_daemon_through_its_state(alone: Shell, daemon: Daemon) -> None:
    """The path that a daemon left in its state leads there, by option and by configuration."""
    daemon.answers["memory.topics"] = {"topics": []}
    state = alone.home / "elsewhere"
    state.mkdir(mode=0o700)
    (state / "socket.path").write_text(f"{daemon.path}\n")
    config = alone.home / "turnmark.toml"
    config.write_text(f'state_dir = "{state}"\n')
    assert alone("topics", "--state", state).code == 0
    assert alone("topics", environ={"TURNMARK_STATE": str(state)}).code == 0
    assert alone("topics", "--config", config).code == 0


def test_reports_the_daemons_own_error(turnmark: Shell, daemon: Daemon) -> None:
    """An error of a method is one line and exit 1, or JSON with its kind and facts."""
    daemon.answers["memory.show"] = NotFound("there is no block\nb-00000000", ref="b-00000000")
    ran = turnmark("show", "b-00000000")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "turnmark: there is no block b-00000000\n"
    error = json.loads(turnmark("show", "b-00000000", "--json").err)["error"]
    assert (error["kind"], error["ref"]) == ("not_found", "b-00000000")


def test_ends_quietly_when_its_reader_leaves(turnmark: Shell, daemon: Daemon) -> None:
    """A closed pipe ends the command as a shell knows it, without a word."""
    daemon.answers["session.export"] = {"lines": ["x" * 1000] * 1000}
    running = turnmark.start("export", "s")
    assert running.stdout is not None
    assert running.stdout.read(10) == "x" * 10
    running.stdout.close()
    assert running.wait(timeout=60) == 141
    assert running.stderr is not None
    assert running.stderr.read() == ""
    running.stderr.close()


def test_says_that_its_output_could_not_be_written(turnmark: Shell, daemon: Daemon) -> None:
    """A full disk behind standard output is a failure in one line."""
    daemon.answers["memory.topics"] = {"topics": []}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "turnmark", "topics"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=turnmark.environ,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert done.stderr == b"turnmark: No space left on device\n"


# Serve


def test_stops_the_start_at_a_broken_configuration(alone: Shell) -> None:
    """The start ends with 2 and names file, line and key; so does a file that is not there."""
    config = alone.home / "turnmark.toml"
    config.write_text("[memory]\nidle_minuts = 3\n")
    ran = alone("serve", "--config", config)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"turnmark: {config}:2: memory.idle_minuts is not a key")
    error = json.loads(alone("serve", "--config", config, "--json").err)["error"]
    assert (error["file"], error["line"], error["key"]) == (str(config), 2, "memory.idle_minuts")
    gone = alone("serve", environ={"TURNMARK_CONFIG": str(alone.home / "none.toml")})
    assert gone.code == 2
    assert "no such configuration file" in gone.err


def settings(home: Path, *words: str, **environ: str) -> Settings:
    """Returns what `serve` would start with."""
    parser = argparse.ArgumentParser()
    for name in ("--state", "--workspace", "--socket", "--config"):
        parser.add_argument(name)
    serve.configure(parser)
    given = {"HOME": str(home), **environ}
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    return serve.settings_of(Invocation(parser.parse_args(words), environ=given, **streams))


def test_serves_at_the_places_of_the_interface(tmp_path: Path) -> None:
    """Options go before variables, those before the configuration, that before the defaults."""
    config = tmp_path / ".config" / "turnmark" / "config.toml"
    assert settings(tmp_path).config_path is None
    config.parent.mkdir(parents=True)
    config.write_text('state_dir = "~/s"\nworkspace_dir = "/w"\nsocket = "/run/t.sock"\n')
    by_file = settings(tmp_path)
    assert (by_file.config_path, by_file.home) == (config, tmp_path)
    assert (by_file.state, by_file.workspace) == (tmp_path / "s", Path("/w"))
    assert by_file.socket == Path("/run/t.sock")
    by_variable = settings(tmp_path, TURNMARK_STATE="/v", TURNMARK_SOCKET="/v.sock")
    assert (by_variable.state, by_variable.socket) == (Path("/v"), Path("/v.sock"))
    by_option = settings(tmp_path, "--state", "/o", "--drain", TURNMARK_STATE="/v")
    assert (by_option.state, by_option.drain) == (Path("/o"), True)


def test_takes_the_words_of_systemd(tmp_path: Path) -> None:
    """The watchdog counts only where it is meant for this process."""
    own = {"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    assert settings(tmp_path, **own).notify_socket == "@n"
    assert settings(tmp_path, **own).watchdog_usec == 3_000_000
    assert settings(tmp_path, **own | {"WATCHDOG_PID": "1"}).watchdog_usec == 0
    assert settings(tmp_path, WATCHDOG_USEC="soon").watchdog_usec == 0
    assert settings(tmp_path).notify_socket is None


class Failing:
    """A command that ends with an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Has no arguments."""

    def run(self, invocation: Invocation) -> int:
        """Fails."""
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PlaceTaken(Path("/s/lock"), 7), 4),
        (DaemonNotRunning([]), 3),
        (ConfigRefused("x"), 2),
        (Refused("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_turns_each_error_into_its_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place that is taken is 4, no daemon 3, a bad configuration 2, the rest 1."""
    monkeypatch.setattr("turnmark.commands.registry.load", lambda name: Failing(error))
    assert main(["status"]) == code


def test_finds_the_one_error_that_ended_the_daemon() -> None:
    """Groups around a single error of ours are taken off; anything else stays whole."""
    taken = PlaceTaken(Path("/s/lock"), 7)
    assert serve.only_error(ExceptionGroup("a", [ExceptionGroup("b", [taken])])) is taken
    for errors in ([taken, Refused("x")], [taken, ValueError()], [ValueError()]):
        group = ExceptionGroup("a", errors)
        assert serve.only_error(group) is group


# Append


def test_appends_with_a_key_that_makes_a_retry_safe(turnmark: Shell, daemon: Daemon) -> None:
    """One turn is sent with a key of its own and its id is printed."""
    daemon.answers["turn.append"] = {"turns": ["h-1"], "head": "h-1", "forgotten": [], "new": 1}
    ran = turnmark("append", "会话-1", "我搬到了波尔图。", "--role", "assistant", "--after", "u1")
    turnmark("append", "会话-1", "x", "--root", "--id", "a", "--speaker", "李明")
    assert (ran.code, ran.out) == (0, "h-1\n")
    first, second = daemon.params_of("turn.append")
    keys = {first.pop("key"), second.pop("key")}
    assert len(keys) == 2
    turn = {"role": "assistant", "text": "我搬到了波尔图。"}
    assert first == {"session": "会话-1", "turns": [turn], "after": "u1"}
    assert second["after"] is None
    assert second["turns"] == [
        {"role": "user", "text": "x", "id": "a", "speaker": {"name": "李明"}}
    ]


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "en_US.ISO-8859-1"])
def test_speaks_utf_8_in_any_locale(turnmark: Shell, daemon: Daemon, locale: str) -> None:
    """Chinese goes in by argument and by standard input, and comes out, whatever the locale."""
    daemon.answers["turn.append"] = {"turns": ["号"], "head": "号", "forgotten": [], "new": 1}
    environ = {"LANG": locale, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert turnmark("append", "s", "参数", environ=environ).out == "号\n"
    ran = turnmark("append", "s", "-", stdin="第一行\n第二行\n".encode(), environ=environ)
    assert (ran.code, ran.out) == (0, "号\n")
    texts = [params["turns"][0]["text"] for params in daemon.params_of("turn.append")]
    assert texts == ["参数", "第一行\n第二行"]


def test_refuses_bytes_that_are_not_text(turnmark: Shell, daemon: Daemon) -> None:
    """What is not UTF-8 is refused with its place, on both ways in."""
    argument = turnmark("append", "s", b"ab\xff")
    assert (argument.code, argument.err) == (
        2,
        "turnmark: TEXT is not UTF-8 at byte 2; see turnmark append --help\n",
    )
    piped = turnmark("append", "s", "-", stdin=b"\xff")
    assert (piped.code, piped.err) == (1, "turnmark: standard input is not UTF-8 at byte 0\n")
    assert not daemon.params_of("turn.append")


def test_says_that_a_forgotten_turn_stays_so(turnmark: Shell, daemon: Daemon) -> None:
    """The id is printed and a line beside it says that the text was not stored."""
    daemon.answers["turn.append"] = {"turns": ["a"], "head": "a", "forgotten": ["a"], "new": 0}
    ran = turnmark("append", "s", "x", "--id", "a")
    assert (ran.code, ran.out) == (0, "a\n")
    assert "forgotten" in ran.err


# Lists and answers

SESSION = {
    "session": "会话-1",
    "agent": "claude-code",
    "title": "搬家\x1b[2J",
    "project": None,
    "head": "a",
    "tips": 2,
    "turns": 12,
    "owed_turns": 3,
    "updated_at": "2026-08-09T14:02:00Z",
}


def test_lists_sessions_over_pages(turnmark: Shell, daemon: Daemon) -> None:
    """All pages become one table, aligned by the width of what is shown."""
    other = SESSION | {"session": "s", "agent": "pi", "title": None, "project": "/p"}
    daemon.answers["session.list"] = [
        {"sessions": [SESSION], "next": "c1"},
        {"sessions": [other]},
    ]
    ran = turnmark("sessions", "--agent", "pi")
    assert ran.out.splitlines() == [
        "SESSION  AGENT        TURNS  TIPS  OWED  UPDATED           TITLE          PROJECT",
        "会话-1   claude-code  12     2     3     2026-08-09 14:02  搬家\\u001b[2J",
        "s        pi           12     2     3     2026-08-09 14:02  -              /p",
    ]
    assert daemon.params_of("session.list") == [{"agent": "pi"}, {"agent": "pi", "cursor": "c1"}]


def test_lists_what_is_owed(turnmark: Shell, daemon: Daemon) -> None:
    """Each tip and state has a line, the head a star, and the totals come last."""
    tip = {
        "session": "s",
        "branch": "br-1",
        "tip": "t9",
        "head": True,
        "n": 3,
        "tokens": 1200,
        "oldest": "2026-08-09T14:02:00Z",
        "state": "parked",
        "reason": "backlog",
        "turns": ["t7", "t8", "t9"],
    }
    answer = {"tips": [tip], "turns": 3, "tokens": 1200}
    daemon.answers["memory.owed"] = [answer, answer, {"tips": [], "turns": 0, "tokens": 0}]
    assert turnmark("owed").out.splitlines()[1:] == [
        "s        br-1    t9 *  3      1200    2026-08-09 14:02  parked  backlog",
        "",
        "3 turns, 1,200 tokens owed in all",
    ]
    assert turnmark("owed", "--ids", "--session", "s", "--json").json == answer
    assert turnmark("owed").out == "Nothing is owed.\n"
    failed = {"reason": "failed", "cause": "malformed", "failed_with": "openai/x"}
    answer = {
        "tips": [tip | failed | {"failed_at": "2026-08-09T14:05:00Z"}],
        "turns": 3,
        "tokens": 9,
    }
    daemon.answers["memory.owed"] = answer
    lines = turnmark("owed").out.splitlines()
    assert lines[1].endswith("  parked  malformed (2026-08-09 14:05, openai/x)")
    removed = {"tips": [tip | {"state": "removed", "reason": "removed"}], "turns": 3, "tokens": 9}
    daemon.answers["memory.owed"] = removed
    lines = turnmark("owed").out.splitlines()
    assert lines[1].endswith("  removed")
    assert "turnmark flush --removed" in lines[-1]
    assert daemon.params_of("memory.owed")[1] == {"session": "s", "ids": True}


FLUSHED = {"batches": 2, "turns": 5, "tokens": 900, "blocks": 3, "left": 0, "failures": []}
# What a daemon with the built-in writer answers after an import, and what is said of it.
BUILTIN: dict[str, Any] = {"status": {"writer": "builtin/1"}, "memory.flush": FLUSHED}
WROTE = "Wrote 2 batches: 5 turns, 900 tokens, 3 blocks.\n"
NOTHING = {"batches": 0, "turns": 0, "tokens": 0, "blocks": 0, "left": 0, "failures": []}


def test_flushes(turnmark: Shell, daemon: Daemon) -> None:
    """A flush says what was written, what is left, and fails where a batch failed."""
    failure = {"session": "s", "branch": "br-1", "reason": "disk full"}
    daemon.answers["memory.flush"] = [
        FLUSHED,
        FLUSHED | {"blocks": 0},
        FLUSHED | {"left": 1, "failures": [failure]},
        NOTHING | {"batches": 1, "left": 1, "failures": [failure]},
        NOTHING,
    ]
    assert turnmark("flush").out == "Wrote 2 batches: 5 turns, 900 tokens, 3 blocks.\n"
    dry = turnmark("flush", "--dry-run", "--session", "s", "--backlog")
    assert dry.out == "Would write 5 turns, 900 tokens, in at least 2 batches.\n"
    failed = turnmark("flush")
    assert failed.code == 1
    assert "1 turn left" in failed.out
    assert "failed: s br-1: disk full" in failed.out
    assert turnmark("flush").out.startswith("Nothing was written.\n1 turn left")
    assert turnmark("flush").out == "Nothing to write.\n"
    assert daemon.params_of("memory.flush")[1] == {
        "session": "s",
        "backlog": True,
        "dry_run": True,
    }


def test_says_what_a_backlog_costs_before_writing_it(turnmark: Shell, daemon: Daemon) -> None:
    """A flush of the backlog first asks for the plan and says its tokens."""
    daemon.answers["memory.flush"] = FLUSHED
    ran = turnmark("flush", "--backlog")
    assert "About to write 5 turns, 900 tokens, in at least 2 batches." in ran.err
    assert [params.get("dry_run") for params in daemon.params_of("memory.flush")] == [True, None]


@pytest.mark.parametrize(("said", "writes"), [("y\n", True), ("好\n", True), ("\n", False)])
def test_asks_on_a_terminal_before_old_turns_are_written(
    turnmark: Shell, daemon: Daemon, said: str, writes: bool
) -> None:
    """Tokens first; only a yes writes, and `--yes` asks nothing."""
    daemon.answers["memory.flush"] = FLUSHED
    ran = turnmark.typing(said, "flush", "--rewrite", "builtin")
    assert "About to write 5 turns, 900 tokens, in at least 2 batches." in ran.err
    assert "Write them now? [y/N]" in ran.err
    assert (ran.out == "Nothing was written.\n") is not writes
    assert len(daemon.params_of("memory.flush")) == 1 + writes
    assert "[y/N]" not in turnmark.typing("", "flush", "--backlog", "--yes").err


def test_does_nothing_with_what_is_empty(turnmark: Shell, daemon: Daemon) -> None:
    """A shell's variable that is unset is no turn and no question."""
    for words in (("append", "s", " "), ("recall", ""), ("recall", "", "　")):
        ran = turnmark(*words)
        assert (ran.code, "is empty; nothing was done" in ran.err) == (2, True)
    assert daemon.asked == []


def test_says_which_numbers_there_are(turnmark: Shell) -> None:
    """Before the daemon is asked, in words."""
    assert "'1001' is no number from 1 to 1,000" in turnmark("recall", "x", "-k", "1001").err
    assert "'二' is no number; `turnmark log` lists" in turnmark("undo", "二").err


def test_answers_from_no_other_memory_than_was_named(turnmark: Shell, daemon: Daemon) -> None:
    """Named by the option or by the variable; a link to it is as good."""
    link = turnmark.home / "记忆"
    link.symlink_to(turnmark.home)
    daemon.answers["status"] = {"workspace_path": str(turnmark.home)}
    daemon.answers["memory.topics"] = {"topics": []}
    assert turnmark("topics", "--workspace", link).code == 0
    for ran in (
        turnmark("topics", "--workspace", "/elsewhere"),
        turnmark("topics", environ={"TURNMARK_WORKSPACE": "/elsewhere"}),
    ):
        assert ran.code == 1
        assert f"keeps the memory at {turnmark.home}, not the one at /elsewhere" in ran.err
    assert len(daemon.params_of("memory.topics")) == 1


def test_says_once_that_no_such_writer_wrote_anything(turnmark: Shell, daemon: Daemon) -> None:
    """A slip in the writer's name is not taken for a memory without owed turns."""
    daemon.answers["memory.flush"] = NOTHING
    ran = turnmark("flush", "--rewrite", "gpt")
    said = "Nothing to write.\nNo turn here was settled by a writer called gpt.\n"
    assert (ran.code, ran.out, ran.err) == (0, said, "")


def test_takes_no_configuration_that_is_not_there(turnmark: Shell, daemon: Daemon) -> None:
    """It may have named another daemon."""
    ran = turnmark("topics", "--config", "/没有.toml")
    assert (ran.code, daemon.asked) == (2, [])
    assert "/没有.toml: there is no such configuration file" in ran.err


def test_asks_for_a_writer_beside_a_time(turnmark: Shell, daemon: Daemon) -> None:
    """`--since` alone bounds nothing, and that is said before the daemon is asked."""
    ran = turnmark("flush", "--since", "2026-01-01")
    assert (ran.code, daemon.params_of("memory.flush")) == (2, [])
    assert "add --rewrite WRITER" in ran.err


HIT = {
    "ref": "b-af3dee4f",
    "kind": "block",
    "text": "Dana leads the billing team.\nSince May.",
    "score": 0.834,
    "topic": "people/dana",
    "branch": "own",
    "superseded_by": "b-00000001",
    "sources": [
        {
            "turn": "t1",
            "label": "s-8a9128075e1b",
            "session": "3b1f",
            "speaker": {"id": "u-17", "name": "Dana"},
            "time": "2026-08-09T14:02:00Z",
            "path": "sources/claude-code/3b1f.jsonl",
            "line": 12,
        }
    ],
}


def test_recalls_with_provenance(turnmark: Shell, daemon: Daemon) -> None:
    """Each hit shows its words, what and where it is, and who said it when, at which line."""
    turn = {
        "ref": "s-1",
        "kind": "turn",
        "text": "我住在波尔图。",
        "score": 0.5,
        "branch": "shared",
        "speaker": "李明",
        "time": "2026-08-09T14:02:00Z",
        "sources": [],
    }
    daemon.answers["memory.recall"] = {"hits": [HIT, turn], "tokens": 12}
    ran = turnmark("recall", "Dana", "在哪", "-k", "3", "--kinds", "block,turn", "--history")
    assert ran.out.splitlines() == [
        " 1 Dana leads the billing team.",
        "   Since May.",
        "   block · b-af3dee4f · people/dana · own · score 0.83 · superseded by b-00000001",
        "   Dana (u-17) · 2026-08-09 14:02 · 3b1f · sources/claude-code/3b1f.jsonl:12",
        " 2 我住在波尔图。",
        "   turn · s-1 · shared · score 0.50 · 李明 · 2026-08-09 14:02",
    ]
    (params,) = daemon.params_of("memory.recall")
    expected = {"query": "Dana 在哪", "k": 3, "kinds": ["block", "turn"], "history": True}
    assert params == expected


def test_recalls_nothing_without_failing(turnmark: Shell, daemon: Daemon) -> None:
    """No hit is an answer, not a failure."""
    daemon.answers["memory.recall"] = {"hits": [], "tokens": 0}
    daemon.answers["status"] = [{"owed": {"turns": turns}} for turns in (0, 0, 2)]
    assert turnmark("recall", "x").out == "Memory holds nothing about that.\n"
    narrow = turnmark("recall", "x", "--topic", "people/dana", "--since", "2026-08-09").out
    assert narrow == (
        "Memory holds nothing about that within --topic and --since; without them all of it is "
        "searched.\n"
    )
    assert "\n2 turns are not written yet: `turnmark flush` writes" in turnmark("recall", "x").out
    assert turnmark("recall", "x", "--json").json == {"hits": [], "tokens": 0}


@pytest.mark.parametrize(
    "words",
    [
        ("recall", "x", "--since", "昨天"),
        ("recall", "x", "--until", "yesterday"),
        ("flush", "--rewrite", "builtin", "--since", "7d"),
        ("append", "s", "x", "--time", "noon"),
    ],
)
def test_a_time_that_is_none_is_wrong_use(
    turnmark: Shell, daemon: Daemon, words: tuple[str, ...]
) -> None:
    """Before anything is asked; the message says how a time is written."""
    ran = turnmark(*words)
    assert ran.code == 2
    assert f"{words[-1]!r} is no time; write 2026-08-09" in ran.err
    assert daemon.asked == []


def test_a_socket_path_that_is_too_long_is_wrong_use(turnmark: Shell) -> None:
    """It was typed, or configured, so; no daemon could ever answer there."""
    ran = turnmark("status", "--socket", "/tmp/" + "x" * 120)
    assert ran.code == 2
    assert "107" in ran.err


def test_shows_what_a_ref_is(turnmark: Shell, daemon: Daemon) -> None:
    """The text comes first and as it is, then the facts, then the sources."""
    daemon.answers["memory.show"] = {
        "kind": "block",
        "text": "Dana leads.",
        "topic": "people/dana",
        "sources": HIT["sources"],
    }
    assert turnmark("show", "b-af3dee4f").out.splitlines() == [
        "Dana leads.",
        "",
        "kind    block",
        "topic   people/dana",
        "source  Dana (u-17) · 2026-08-09 14:02 · 3b1f · sources/claude-code/3b1f.jsonl:12",
    ]


def test_shows_each_fact_of_a_turn_on_a_line(turnmark: Shell, daemon: Daemon) -> None:
    """What is known of a turn stands in rows, and what is not known stands nowhere."""
    turn = {"id": "u1", "role": "user", "text": "你好", "predecessor": None, "state": "live"}
    daemon.answers["memory.show"] = {"kind": "turn", "text": "你好", "ref": "s#u1", "turn": turn}
    assert turnmark("show", "u1").out.splitlines() == [
        "你好",
        "",
        "kind   turn",
        "ref    s#u1",
        "id     u1",
        "role   user",
        "state  live",
    ]


def test_prints_the_core_page_and_nothing_else(turnmark: Shell, daemon: Daemon) -> None:
    """Standard output has the bytes of the page; its size goes beside."""
    core = {
        "text": "# 核心\n\nDana.\n",
        "tokens": 9,
        "counter": "o200k",
        "blocks": 1,
        "left_out": ["b-1"],
    }
    daemon.answers["memory.core"] = core
    ran = turnmark("core")
    assert ran.out == core["text"]
    assert ran.err == "9 tokens (o200k); 1 block did not fit: b-1\n"
    assert turnmark("core", "--json").json == core


def test_lists_topics(turnmark: Shell, daemon: Daemon) -> None:
    """A line a topic, what it is about last."""
    topic = {
        "topic": "people/dana",
        "about": "who Dana is",
        "blocks": 2,
        "tokens": 40,
        "updated_at": None,
    }
    daemon.answers["memory.topics"] = [{"topics": [topic]}, {"topics": []}]
    assert (
        turnmark("topics").out.splitlines()[1]
        == "people/dana  2       40               who Dana is"
    )
    assert turnmark("topics").out == "Memory has no topic yet.\n"


def test_remembers_a_fact(turnmark: Shell, daemon: Daemon) -> None:
    """From the command line or standard input; only what was said is sent."""
    answer = {"block": "b-1", "topic": "people/user", "revision": 4}
    daemon.answers["memory.remember"] = answer
    assert turnmark("remember", "我住在波尔图。").out == "b-1 in people/user (revision 4)\n"
    options = ["--topic", "people/x", "--session", "s", "--turn", "t", "--pin", "--json"]
    assert turnmark("remember", "-", *options, stdin=b"I moved.\n").json == answer
    assert daemon.params_of("memory.remember") == [
        {"text": "我住在波尔图。"},
        {"text": "I moved.", "topic": "people/x", "session": "s", "turn": "t", "pin": True},
    ]


def test_lists_revisions_newest_first(turnmark: Shell, daemon: Daemon) -> None:
    """A line each, as many as asked for, over as many pages as it takes."""
    revisions = [
        {"revision": number, "at": AT, "cause": "edit: add", "blocks": ["b-1"], "topics": topics}
        for number, topics in ((3, ["people/dana"]), (2, list("abcde")), (1, []))
    ]
    daemon.answers["memory.history"] = [
        {"revisions": revisions[:2], "next": "c"},
        {"revisions": revisions[2:]},
        {"revisions": []},
    ]
    lines = turnmark("log", "-n", "0").out.splitlines()
    assert [line.split()[0] for line in lines] == ["REVISION", "3", "2", "1"]
    assert "people/dana" in lines[1]
    assert lines[1].endswith("edit: add")
    assert "a, b, c and 2 topics more" in lines[2]
    assert turnmark("log").out == "Memory has no revision yet.\n"
    assert turnmark("log", "-n", "-1").code == 2
    daemon.answers["memory.history"] = [{"revisions": revisions, "next": "c"}]
    assert turnmark("log", "-n", "2", "--json").json == {"revisions": revisions[:2]}


def test_undoes_a_revision_and_says_what_came_of_it(turnmark: Shell, daemon: Daemon) -> None:
    """The blocks are listed; a refusal exits 1 with its reasons."""
    daemon.answers["memory.undo"] = {"revision": 5, "blocks": ["b-1", "b-2"]}
    assert turnmark("undo", "3", "--force").out.splitlines() == [
        "Revision 3 is taken back, as revision 5: 2 blocks.",
        "b-1",
        "b-2",
    ]
    daemon.answers["memory.undo"] = Refused("b-1 was changed since")
    refused = turnmark("undo", "3")
    assert refused.code == 1
    assert "b-1 was changed since" in refused.err
    assert daemon.params_of("memory.undo") == [{"revision": 3, "force": True}, {"revision": 3}]


def test_begins_a_status_with_what_to_do(turnmark: Shell, daemon: Daemon) -> None:
    """The first line says that all is well, or the first thing to do."""
    facts = {"version": "0.1.0", "owed": {"turns": 3, "tokens": 1200}, "last_failure": None}
    advice = ["The disk is full: free some space.", "Then run turnmark flush."]
    failure = {"at": "2026-08-09T14:02:00+00:00", "reason": "disk full"}
    failed = facts | {"last_failure": failure, "next_night": "2026-08-10T03:00:00+00:00"}
    daemon.answers["status"] = [
        facts | {"what_to_do": []},
        facts | {"what_to_do": advice},
        failed,
        facts,
    ]
    assert turnmark("status").out.splitlines() == [
        "All is well; nothing to do.",
        "",
        "version       0.1.0",
        "owed          3 turns, 1,200 tokens",
        "last failure  -",
    ]
    assert turnmark("status").out.splitlines()[:2] == advice
    assert turnmark("status").out.splitlines()[-2:] == [
        "last failure  2026-08-09 14:02: disk full",
        "next night    2026-08-10 03:00",
    ]
    assert turnmark("status", "--json").json == facts


def test_a_status_counts_queues_only_where_asked(turnmark: Shell, daemon: Daemon) -> None:
    """How long it runs is said in words; what the daemon counts about itself needs `--all`."""
    daemon.answers["status"] = {"uptime": 93784.2, "store": {"queued": 0}, "connections": 2}
    assert turnmark("status").out.splitlines()[2:] == ["running for  1 d 2 h"]
    assert turnmark("status", "--all").out.splitlines()[3:] == [
        "store        queued: 0",
        "connections  2",
    ]


def test_names_the_topic_that_was_meant(turnmark: Shell, daemon: Daemon) -> None:
    """What is shown by the end of its name alone is not found, but named whole."""
    daemon.answers |= {
        "memory.show": NotFound("nothing here is called that"),
        "memory.topics": {"topics": [{"topic": "people/小舟"}]},
    }
    assert turnmark("show", "小舟").err == (
        "turnmark: nothing here is called '小舟'; did you mean people/小舟?\n"
    )
    assert turnmark("show", "茶").err == "turnmark: nothing here is called that\n"


def test_opens_a_topic_in_the_editor(turnmark: Shell, daemon: Daemon, tmp_path: Path) -> None:
    """By its name or its end; a pipe gets the path, and what is not there is said."""
    topics = [{"topic": name} for name in ("people/robin", "people/小舟", "projects/robin")]
    daemon.answers |= {"memory.topics": {"topics": topics}, "status": {"workspace_path": "/m"}}
    assert turnmark("open").out == "/m/topics\n"
    assert turnmark("open", "people/robin").out == "/m/topics/people/robin.md\n"
    assert turnmark("open", "小舟", "--json").json == {"path": "/m/topics/people/小舟.md"}
    both = turnmark("open", "Robin")
    assert (both.code, "people/robin, projects/robin" in both.err) == (1, True)
    assert "did you mean people/robin?" in turnmark("open", "people/robyn").err
    assert "`turnmark topics` lists them" in turnmark("open", "茶").err


def test_says_how_far_the_embedder_is(turnmark: Shell, daemon: Daemon) -> None:
    """Which model it is, how much it has embedded, and why it stopped; or that there is none."""
    none = {"name": None, "state": "off", "embedded": 0, "documents": 0, "reason": None}
    busy = none | {"name": "e5/1", "state": "embedding", "embedded": 1200, "documents": 5000}
    failed = busy | {"state": "failed", "reason": "the disk is full"}
    new = none | {"name": "e5/1", "state": "waiting"}
    daemon.answers["status"] = [{"embedder": one} for one in (none, busy, failed, new)]
    assert turnmark("status").out.splitlines()[2:] == ["embedder  none; text is found by its words"]
    assert turnmark("status").out.splitlines()[2:] == [
        "embedder  e5/1: embedding, 1,200 of 5,000 texts"
    ]
    assert "(the disk is full)" in turnmark("status").out
    assert turnmark("status").out.splitlines()[2:] == [
        "embedder  e5/1: counting what it has embedded"
    ]


def test_organizes_and_says_what_is_held(turnmark: Shell, daemon: Daemon) -> None:
    """A pass that is held is named with the command that approves it."""
    held = {"pass": "tidy", "removes": 30, "blocks": 100}
    core = {"text": "# Core\n", "tokens": 53, "blocks": ["b-1", "b-2"]}
    answer = {"date": "2026-08-09", "changed": 3, "core": core, "held": held}
    daemon.answers["memory.organize"] = answer
    ran = turnmark("organize", "--no-wait", "--approve", "tidy")
    assert "blocks changed  3\ncore            53 tokens, 2 blocks\n" in ran.out
    assert "# Core" not in ran.out
    assert "turnmark organize --approve tidy" in ran.out
    assert daemon.params_of("memory.organize") == [{"wait": False, "approve": "tidy"}]
    daemon.answers["memory.organize"] = answer | {"report": ["Two merges.", "Nothing is owed."]}
    assert turnmark("organize").out.splitlines()[-2:] == ["Two merges.", "Nothing is owed."]


UNCITED = {
    "date": "2026-08-09",
    "changed": 0,
    "core": {"text": "", "tokens": 0, "blocks": []},
    "owed": 0,
    "uncited": {"turns": 5, "tokens": 900},
}


@pytest.mark.parametrize(("said", "offers"), [("y\n", True), ("好\n", True), ("\n", False)])
def test_asks_before_turns_without_a_block_are_offered_again(
    turnmark: Shell, daemon: Daemon, said: str, offers: bool
) -> None:
    """How many and how many tokens first; only a yes offers them, and `--yes` asks nothing."""
    daemon.answers["memory.organize"] = UNCITED
    ran = turnmark.typing(said, "organize", "--uncited")
    assert "About to offer 5 turns, 900 tokens to the writer again." in ran.err
    assert "Offer them to the writer now? [y/N]" in ran.err
    asked = [{"uncited": True, "dry_run": True}, {"uncited": True}]
    assert daemon.params_of("memory.organize") == asked[: 1 + offers]
    assert "[y/N]" not in turnmark.typing("", "organize", "--uncited", "--yes").err


def test_says_what_turns_without_a_block_would_cost(turnmark: Shell, daemon: Daemon) -> None:
    """A dry run offers nothing; without `--uncited` it is wrong use."""
    daemon.answers["memory.organize"] = UNCITED
    ran = turnmark("organize", "--uncited", "--dry-run")
    assert ran.out == "Would offer 5 turns, 900 tokens to the writer again.\n"
    assert daemon.params_of("memory.organize") == [{"uncited": True, "dry_run": True}]
    assert turnmark("organize", "--dry-run").code == 2
    assert turnmark("organize", "--uncited", "--approve", "tidy").code == 2


# Export, tree


def exported(name: str, after: str | None, text: str, **fields: Any) -> dict[str, Any]:
    """Returns a turn as an export has it."""
    turn = {"type": "turn", "id": name, "predecessor": after, "merged": [], "role": "user"}
    more = {"kind": "turn", "text": text, "recordable": True, "state": "live", "marks": {}}
    return turn | more | fields


MARK = {"outcome": "kept", "writer": "builtin", "revision": 1}
EXPORT = [
    json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    for record in (
        {"type": "turnmark-export", "version": 1, "session": "s"},
        exported("a", None, "我住在波尔图。", marks={"w-1": MARK}, namespace="family:s"),
        exported("b", "a", "Noted.", role="assistant"),
        exported("c", "a", "no", state="retired"),
        {"type": "branch", "tip": "b", "branch": "br-1", "name": "main", "state": "live"},
        {"type": "end", "head": "b", "turns": 3},
    )
]


def test_exports_page_by_page(turnmark: Shell, daemon: Daemon) -> None:
    """The lines of all pages come out in order, as they are."""
    daemon.answers["session.export"] = [{"lines": EXPORT[:2], "next": "c"}, {"lines": EXPORT[2:]}]
    assert turnmark("export", "s").out.splitlines() == EXPORT
    assert daemon.params_of("session.export")[1] == {"session": "s", "cursor": "c"}


def test_draws_a_session(turnmark: Shell, daemon: Daemon) -> None:
    """Head, tips, marks of this workspace and what was taken back are seen."""
    daemon.answers["session.export"] = {"lines": EXPORT}
    assert turnmark("tree", "s").out.splitlines() == [
        "✓ user      a        我住在波尔图。",
        "├─- user      c        (taken back) no",
        "○ assistant b        *HEAD [main] Noted.",
        "",
        "✓ kept   ○ owed   - not for memory",
    ]
    answer = turnmark("tree", "s", "--json").json
    assert (answer["head"], len(answer["turns"]), len(answer["branches"])) == ("b", 3, 1)


# Import


def written(folder: Path, name: str, *records: dict[str, Any]) -> Path:
    """Writes a file of JSON lines and returns it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    return path


def row(uuid: str, parent: str | None, text: str) -> dict[str, Any]:
    """Returns a user's row as Claude Code writes it."""
    return {
        "type": "user",
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "3b1f",
        "cwd": "/home/me/proj",
        "timestamp": "2026-08-09T14:02:00.000Z",
        "isSidechain": False,
        "userType": "external",
        "version": "2.1.0",
        "message": {"role": "user", "content": text},
    }


def test_imports_a_transcript_as_export_lines(turnmark: Shell, daemon: Daemon) -> None:
    """An agent's file is recognised and sent as header, turns, tips and end."""
    turns = (row("u1", None, "我住在波尔图。"), row("u2", "u1", "Bye"), row("u3", "u1", "Or not"))
    path = written(turnmark.home / "projects", "3b1f.jsonl", *turns)
    daemon.answers["session.import"] = {"session": "3b1f", "turns": 3, "new": 2}
    daemon.answers |= BUILTIN
    ran = turnmark("import", path.parent)
    assert (ran.code, ran.out) == (0, f"1 session: 3 turns, 2 new.\n{WROTE}")
    assert ran.err == ""
    (params,) = daemon.params_of("session.import")
    header, *rest = [json.loads(line) for line in params["lines"]]
    assert (header["type"], header["version"], header["source"]) == ("turnmark-export", 1, "reader")
    assert (header["session"], header["agent"]) == ("3b1f", "claude-code")
    assert header["namespace"] == "claude-code"
    told = [(one["id"], one["predecessor"], one["text"]) for one in rest if one["type"] == "turn"]
    assert told == [("u1", None, "我住在波尔图。"), ("u2", "u1", "Bye"), ("u3", "u1", "Or not")]
    assert {one["tip"] for one in rest if one["type"] == "branch"} == {"u2", "u3"}
    assert (rest[-1]["type"], rest[-1]["turns"]) == ("end", 3)


def test_imports_exports_as_they_are(turnmark: Shell, daemon: Daemon) -> None:
    """Several exports in one file, or from standard input, are sent line by line unchanged."""
    path = turnmark.home / "all.jsonl"
    path.write_text("\n".join([*EXPORT, "", *EXPORT]) + "\n", "utf-8")
    daemon.answers["session.import"] = {"session": "s", "turns": 3, "new": 0}
    daemon.answers |= BUILTIN
    assert turnmark("import", path, "--json").json == {
        "sessions": 2,
        "turns": 6,
        "new": 0,
        "unread": 0,
        "compressed": 0,
        "failed": [],
        "flush": FLUSHED,
        "waiting": None,
    }
    assert turnmark("import", "-", stdin=path.read_bytes()).code == 0
    assert [params["lines"] for params in daemon.params_of("session.import")] == [EXPORT] * 4


def test_sends_a_turn_that_no_frame_holds_in_parts(turnmark: Shell, daemon: Daemon) -> None:
    """As long as a follower of the agent would read: nothing of the session is left out."""
    lines = [EXPORT[0], json.dumps({"type": "turn", "text": "x" * (17 << 20)}), EXPORT[-1]]
    daemon.answers["session.import"] = {"upload": "u", "session": "s", "turns": 1, "new": 1}
    daemon.answers |= BUILTIN
    assert turnmark("import", "-", stdin="\n".join(lines).encode()).code == 0
    sent: list[str] = []
    for piece in daemon.params_of("session.import"):
        if piece.get("continued"):
            sent[-1] += piece["lines"].pop(0)
        sent += piece["lines"]
    assert sent == lines


def test_sends_a_large_session_in_pieces(turnmark: Shell, daemon: Daemon) -> None:
    """What does not fit a frame goes up in several, under one name, and ends with the last."""
    lines = [EXPORT[0], *(json.dumps({"type": "turn", "text": "长" * 300_000}) for _ in range(3))]
    path = turnmark.home / "large.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    done = {"session": "s", "turns": 3, "new": 3}
    daemon.answers["session.import"] = [{"upload": "up-1"}] * 2 + [done]
    daemon.answers |= BUILTIN
    pieces = []
    while not pieces or not pieces[-1]["last"]:
        assert turnmark("import", path).code == 0
        pieces = daemon.params_of("session.import")
    assert [line for piece in pieces for line in piece["lines"]] == lines
    assert "upload" not in pieces[0]
    assert {piece["upload"] for piece in pieces[1:]} == {"up-1"}


def test_imports_the_rest_where_something_fails(turnmark: Shell, daemon: Daemon) -> None:
    """A missing file, a stranger's file and a refused session are named; the others go in."""
    written(turnmark.home / "projects", "3b1f.jsonl", row("u1", None, "x"))
    written(turnmark.home / "projects", "notes.jsonl", {"a": 1})
    export = turnmark.home / "s.jsonl"
    export.write_text("\n".join(EXPORT), "utf-8")
    stranger = written(turnmark.home, "stranger.jsonl", {"a": 1})
    daemon.answers["session.import"] = [
        Refused("this session is off"),
        {"session": "3b1f", "turns": 1, "new": 1},
    ]
    daemon.answers |= BUILTIN
    ran = turnmark("import", turnmark.home / "gone", stranger, export, turnmark.home / "projects")
    assert (ran.code, ran.out) == (1, f"1 session: 1 turn, 1 new; 3 failed.\n{WROTE}")
    gone, unknown, refused = ran.err.splitlines()
    assert "gone" in gone
    assert "stranger.jsonl" in unknown
    assert refused == f"turnmark: {export}: this session is off"


def test_leaves_a_paid_writer_alone(turnmark: Shell, daemon: Daemon) -> None:
    """Where writing costs something, an import says how much waits and writes nothing."""
    path = turnmark.home / "s.jsonl"
    path.write_text("\n".join(EXPORT), "utf-8")
    tip = {"session": "s", "branch": "br-1", "tip": "t", "n": 3, "state": "backlog"}
    daemon.answers["session.import"] = {"session": "s", "turns": 3, "new": 3}
    daemon.answers["status"] = {"writer": "openai/small"}
    daemon.answers["memory.owed"] = {"tips": [tip], "turns": 3, "tokens": 900}
    assert turnmark("import", path).out.splitlines()[1] == (
        "3 turns (900 tokens) wait for the writer openai/small: turnmark flush --backlog writes "
        "them now, turnmark owed lists them."
    )
    assert daemon.params_of("memory.flush") == []


def test_leaves_the_writing_to_later_when_asked(turnmark: Shell, daemon: Daemon) -> None:
    """With --no-flush nothing is written; the summary says what waits."""
    path = turnmark.home / "s.jsonl"
    path.write_text("\n".join(EXPORT), "utf-8")
    daemon.answers["session.import"] = {"session": "s", "turns": 3, "new": 3}
    daemon.answers["status"] = {"writer": "builtin/1"}
    daemon.answers["memory.owed"] = {"tips": [], "turns": 3, "tokens": 900}
    ran = turnmark("import", path, "--no-flush")
    assert "3 turns (900 tokens) wait for the writer builtin/1: turnmark flush writes" in ran.out
    assert daemon.params_of("memory.flush") == []


def test_fails_where_what_came_in_can_not_be_written(turnmark: Shell, daemon: Daemon) -> None:
    """A batch that failed after an import is named, and the command ends with 1."""
    path = turnmark.home / "s.jsonl"
    path.write_text("\n".join(EXPORT), "utf-8")
    failure = {"session": "s", "branch": "br-1", "reason": "disk full"}
    daemon.answers["session.import"] = {"session": "s", "turns": 3, "new": 3}
    daemon.answers["status"] = {"writer": "builtin/1"}
    daemon.answers["memory.flush"] = FLUSHED | {"left": 3, "failures": [failure]}
    ran = turnmark("import", path)
    assert ran.code == 1
    assert "failed: s br-1: disk full" in ran.out


def test_says_what_is_not_read_because_it_is_compressed(turnmark: Shell, daemon: Daemon) -> None:
    """With what to do; one that lies there decompressed as well is read from that."""
    written(turnmark.home / "sessions", "3b1f.jsonl", row("u1", None, "x"))
    (turnmark.home / "sessions" / "3b1f.jsonl.zst").write_bytes(b"(")
    alone = turnmark.home / "sessions" / "rollout-2.jsonl.zst"
    alone.write_bytes(b"(")
    daemon.answers["session.import"] = {"session": "3b1f", "turns": 1, "new": 1}
    daemon.answers |= BUILTIN
    ran = turnmark("import", turnmark.home / "sessions")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "1 session: 1 turn, 1 new.")
    assert "1 compressed rollout not read: decompress what you want read, `zstd -d" in ran.out
    ran = turnmark("import", alone)
    assert ran.code == 1
    assert "rollout-2.jsonl.zst: is compressed, and not read: decompress" in ran.err
    followed = {"state": "following", "path": "/c", "files": 2, "held": 0, "unread": 0}
    codex = {**followed, "last_error": None, "compressed": 1200}
    daemon.answers["status"] = {"transcripts": {"codex": codex}}
    assert "1,200 compressed rollouts not read: zstd -d FILE.jsonl.zst" in turnmark("status").out
    shut = codex | {"last_error": "/c/a can't be read", "next_try": "2026-11-30T12:00:00.000Z"}
    daemon.answers["status"] = {"transcripts": {"codex": shut}}
    assert "/c/a can't be read (tried again at 2026-11-30 12:00)" in turnmark("status").out


def test_imports_nothing_from_an_empty_place(turnmark: Shell) -> None:
    """A directory without transcripts is a failure that says so."""
    (turnmark.home / "empty").mkdir()
    ran = turnmark("import", turnmark.home / "empty")
    assert ran.code == 1
    assert "holds no transcript" in ran.err


# Watch


def test_prints_events_as_they_come_until_interrupted(turnmark: Shell, daemon: Daemon) -> None:
    """Each event is one line, flushed at once; Ctrl-C is the ordinary end."""
    moved = {"type": "TipMoved", "seq": 4, "at": AT, "session": "会话", "branch": "br"}
    moved |= {"old": None, "new": "a", "head_old": None, "head_new": "a", "cause": "root"}
    written = {"type": "TurnsWritten", "seq": 5, "at": AT, "workspace": "w-1", "session": "会话"}
    written |= {"branch": "br", "tip": "a", "turns": ["a", "b"], "outcome": "kept"}
    daemon.events = [moved, written | {"blocks": [], "revision": 2}]
    running = turnmark.start("watch", "--types", "TipMoved,TurnsWritten", "--since", "3")
    assert running.stdout is not None
    lines = [running.stdout.readline() for _ in daemon.events]
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "")
    assert lines[0].split() == [
        "4",
        "2026-08-09",
        "14:02",
        "TipMoved",
        "session=会话",
        "branch=br",
        "old=-",
        "new=a",
        "head_old=-",
        "head_new=a",
        "cause=root",
    ]
    assert "turns=a,b" in lines[1]
    (params,) = daemon.params_of("events.subscribe")
    assert (params["types"], params["since"]) == (["TipMoved", "TurnsWritten"], 3)


def test_watches_as_json(turnmark: Shell, daemon: Daemon) -> None:
    """A machine gets the event as the interface has it."""
    event = {"type": "Forgotten", "seq": 9, "at": "2026-08-09T14:02:00Z", "turns": 3}
    daemon.events = [event]
    running = turnmark.start("--json", "watch")
    assert running.stdout is not None
    assert json.loads(running.stdout.readline()) == event
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
