"""What an agent's hook does, with as few imports as that takes: most of its time is its start.

An agent waits for its hooks. So this one is through within a deadline that counts from the start
of its process, whatever hangs: the daemon, standard input, the disk. It never fails: with no
daemon, an unknown event or input that is no JSON it prints nothing and ends with 0.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from turnmark import places

WITHIN_MS = 100
"""A pause that nobody notices."""

_AGENT = "claude-code"
_OPTIONS = ("--state=", "--socket=", "--config=")

# Claude Code cuts what a hook adds beyond 10,000 characters, and with it the end of the fence.
_LONGEST_CHARS = 9_900
_SHORTER = 0.8
# The core page as it is, with the fence and the sentence in it.
_START_TOKENS = 2_200
# The core is there since the session began; a prompt gets what it asks about.
_PROMPT_TOKENS = 1_000
_CHUNK_BYTES = 65_536
# Set by the daemon for a writer that is a program, and inherited by what the program starts.
_WRITER_VARIABLE = "TURNMARK_WRITER"


def quick(words: Sequence[str]) -> bool:
    """Does the whole work of a command line as `setup` writes it; False for any other."""
    if list(words[:2]) != ["hook", _AGENT] or not all(w.startswith(_OPTIONS) for w in words[2:]):
        return False
    given = dict(word[2:].split("=", 1) for word in words[2:])
    answer_hook(given, WITHIN_MS, os.environ)
    return True


def answer_hook(
    given: Mapping[str, str | None], within_ms: int, environ: Mapping[str, str]
) -> None:
    """Reads an event from standard input and prints what Claude Code puts before its model.

    `given` are the options that name the daemon's place. Ends the process with 0 when it is
    `within_ms` old.
    """
    _leave_after(within_ms)
    # Best effort: an agent without its memory is better than one that waits or stops.
    try:
        answer = _answer(sys.stdin.buffer.read(), given, environ)
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if answer is not None:
        sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
        sys.stdout.buffer.flush()


def _leave_after(within_ms: int) -> None:
    def leave(_number: int, _frame: object) -> None:
        os._exit(0)

    signal.signal(signal.SIGALRM, leave)
    left = within_ms / 1000 - _age_seconds()
    if left <= 0:
        os._exit(0)
    signal.setitimer(signal.ITIMER_REAL, left)


def _age_seconds() -> float:
    """Returns how long ago this process was started, by the kernel's count (to 10 ms)."""
    try:
        fields = Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        # Field 22 of proc(5), of which the first two are cut off here.
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, ValueError, IndexError):
        return time.process_time()


def _answer(
    event: bytes, given: Mapping[str, str | None], environ: Mapping[str, str]
) -> dict[str, Any] | None:
    """Returns the JSON for Claude Code, None where there is nothing to add.

    To a writer that is Claude Code itself there never is: it is shown what matters for its batch,
    and recalled text is no evidence (law 15).
    """
    if environ.get(_WRITER_VARIABLE):
        return None
    found: Any = json.loads(event)
    if not isinstance(found, dict):
        return None
    asked = cast("dict[str, Any]", found)
    name, prompt = asked.get("hook_event_name"), asked.get("prompt")
    if name == "SessionStart":
        params: dict[str, Any] = {"budget_tokens": _START_TOKENS}
    elif name == "UserPromptSubmit" and isinstance(prompt, str) and prompt.strip():
        params = {"query": prompt, "core": False, "budget_tokens": _PROMPT_TOKENS}
        session = asked.get("session_id")
        params |= {"session": session} if isinstance(session, str) and session else {}
    else:
        return None
    text = _context(_connect(given, environ), params)
    if not text:
        return None
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def _connect(given: Mapping[str, str | None], environ: Mapping[str, str]) -> socket.socket:
    configured = _configured(places.config_path(given.get("config"), environ=environ))
    named = given.get("socket") or environ.get("TURNMARK_SOCKET") or configured.get("socket")
    state = given.get("state") or environ.get("TURNMARK_STATE") or configured.get("state_dir")
    asked = places.asked_state(named, state=state, environ=environ)
    for path in places.client_sockets(named, state=state, environ=environ):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            continue
        if asked is None or places.is_of_state(_hello(connection), asked):
            return connection
        connection.close()
    raise FileNotFoundError("no daemon answers")


def _hello(connection: socket.socket) -> dict[str, Any]:
    """Returns who answers; the connection goes on as if nobody had asked."""
    connection.sendall(b'{"jsonrpc": "2.0", "id": 0, "method": "hello", "params": {}}\n')
    with connection.makefile("rb", buffering=0) as lines:
        answer = json.loads(lines.readline())
    result: Any = answer.get("result")
    return cast("dict[str, Any]", result) if isinstance(result, dict) else {}


def _configured(path: Path) -> dict[str, Any]:
    """Returns the configuration where it may name the daemon's place."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError:
        return {}
    if "socket" not in text and "state_dir" not in text:
        return {}
    import tomllib  # noqa: PLC0415 - as much as all the rest, and seldom needed

    return tomllib.loads(text)


def _context(connection: socket.socket, params: dict[str, Any]) -> str:
    """Returns fenced memory that an agent takes whole."""
    with connection, connection.makefile("rb", buffering=_CHUNK_BYTES) as lines:
        while True:
            request = {"jsonrpc": "2.0", "id": 1, "method": "memory.context", "params": params}
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = next(found for line in lines if "id" in (found := json.loads(line)))
            text = str(answer["result"]["text"])
            if len(text) <= _LONGEST_CHARS:
                return text
            shorter = int(params["budget_tokens"] * _LONGEST_CHARS / len(text) * _SHORTER)
            params = {**params, "budget_tokens": shorter}
