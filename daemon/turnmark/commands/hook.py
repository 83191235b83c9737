"""`turnmark hook`: what an agent runs at its hooks; it prints memory in time, or nothing.

An agent waits for its hooks. So this one is through within a deadline that counts from the start
of its process, whatever hangs: the daemon, standard input, the disk. It never fails: with no
daemon, an unknown event or input that is no JSON it prints nothing and ends with 0.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any, cast

from turnmark.commands.invocation import Invocation, WrongUse
from turnmark_events.errors import TurnmarkError

_AGENTS = ("claude-code",)

WITHIN_MS = 100
"""A pause that nobody notices."""

# Claude Code cuts what a hook adds beyond 10,000 characters, and with it the end of the fence.
_LONGEST_CHARS = 9_900
_SHORTER = 0.8
# The core page as it is, with the fence and the sentence in it.
_START_TOKENS = 2_200
# The core is there since the session began; a prompt gets what it asks about.
_PROMPT_TOKENS = 1_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("agent", metavar="AGENT", help="whose hook this is: claude-code")
    parser.add_argument(
        "--within-ms", metavar="MS", type=int, default=WITHIN_MS, help="print nothing after so long"
    )


def run(invocation: Invocation) -> int:
    """Prints what the agent expects, or nothing; always 0."""
    if invocation.options.agent not in _AGENTS:
        raise WrongUse(f"there are no hooks for {invocation.options.agent}, only for claude-code")
    _leave_after(invocation.options.within_ms)
    # Best effort: an agent without its memory is better than one that waits or stops.
    with contextlib.suppress(TurnmarkError, OSError, ValueError):
        answer = _answer(invocation)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if answer is not None:
            invocation.print(json.dumps(answer, ensure_ascii=False))
    return 0


def _leave_after(within_ms: int) -> None:
    """Ends the process with 0 when it is `within_ms` old, in whatever it is then."""

    def leave(_number: int, _frame: FrameType | None) -> None:
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


def _answer(invocation: Invocation) -> dict[str, Any] | None:
    """Returns the JSON for Claude Code, None where there is nothing to add."""
    found: Any = json.loads(invocation.read_stdin())
    if not isinstance(found, dict):
        return None
    asked = cast("dict[str, Any]", found)
    event, prompt = str(asked.get("hook_event_name")), str(asked.get("prompt") or "")
    session = str(asked.get("session_id") or "") or None
    if event == "SessionStart":
        text = _context(invocation, budget_tokens=_START_TOKENS)
    elif event == "UserPromptSubmit" and prompt.strip():
        text = _context(
            invocation, query=prompt, session=session, core=False, budget_tokens=_PROMPT_TOKENS
        )
    else:
        return None
    if not text:
        return None
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _context(invocation: Invocation, *, budget_tokens: int, **params: Any) -> str:
    """Returns fenced memory that an agent takes whole."""
    while True:
        text = str(invocation.call("memory.context", budget_tokens=budget_tokens, **params)["text"])
        if len(text) <= _LONGEST_CHARS:
            return text
        budget_tokens = int(budget_tokens * _LONGEST_CHARS / len(text) * _SHORTER)
