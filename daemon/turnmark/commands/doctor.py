"""`turnmark doctor`: proves what can be proved on disk, one line per check."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from turnmark.commands.invocation import Invocation
from turnmark.commands.serve import settings_of
from turnmark.commands.wording import count
from turnmark.errors import DaemonNotRunning
from turnmark.terminal import one_line, pad
from turnmark_events.errors import TurnmarkError

if TYPE_CHECKING:
    from turnmark_session_store.findings import Finding

_WORST_FIRST = ("bad", "warn", "ok")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "--repair",
        action="store_true",
        help="repair what can be, while no daemon runs; evidence is never deleted",
    )


def run(invocation: Invocation) -> int:
    """Prints the findings; 1 if a promise is broken.

    Raises:
        PlaceTaken: if it should repair and a daemon runs.
        ConfigRefused: if the configuration can't be used.
    """
    from turnmark import doctor  # noqa: PLC0415 - imports the store and the memory
    from turnmark_memory.tokens import load_counter  # noqa: PLC0415

    settings = settings_of(invocation)
    places = (settings.state, settings.workspace)
    budget = settings.config.memory.core_tokens
    count = load_counter().count
    done: list[str] = []
    if invocation.options.repair:
        done = doctor.repair(*places, core_tokens=budget, count=count)
    said = _of_daemon(invocation, runs=doctor.is_held(settings.state / "lock"))
    answers = any(finding.level != "bad" for finding in said)
    findings = doctor.examine(*places, core_tokens=budget, count=count, answers=answers)
    findings += said
    if invocation.as_json:
        well = not any(finding.level == "bad" for finding in findings)
        invocation.print_json({"well": well, "repaired": done, "findings": findings})
    else:
        _print(invocation, findings, done)
    return 1 if any(finding.level == "bad" for finding in findings) else 0


def _of_daemon(invocation: Invocation, *, runs: bool) -> list[Finding]:
    """Returns what a running daemon says of itself; one that is not there is fine."""
    from turnmark_session_store.findings import Finding  # noqa: PLC0415 - see `run`

    try:
        status: dict[str, Any] = invocation.call("status")
    except DaemonNotRunning:
        if not runs:
            return []
        text = "a daemon holds the state and does not answer: see its log, or restart it"
        return [Finding(check="daemon", level="bad", text=text)]
    except TurnmarkError as error:
        return [Finding(check="daemon", level="bad", text=f"the daemon: {error.message}")]
    advice = [str(sentence) for sentence in status.get("what_to_do") or ()]
    if advice:
        return [Finding(check="daemon", level="warn", text=" ".join(advice))]
    return [Finding(check="daemon", level="ok", text="the daemon answers, and all is well")]


def _print(invocation: Invocation, findings: Iterable[Finding], done: list[str]) -> None:
    ink = invocation.ink
    found = list(findings)
    paint = {"ok": ink.good, "warn": ink.warning, "bad": ink.warning}
    invocation.print(*(f"repaired: {one_line(line)}" for line in done))
    widest = max(len(finding.check) for finding in found)
    for finding in sorted(found, key=lambda finding: _WORST_FIRST.index(finding.level)):
        level = paint[finding.level](pad(finding.level, 4))
        invocation.print(f"{level}  {pad(finding.check, widest)}  {one_line(finding.text)}")
        for example in finding.examples:
            invocation.print(ink.dim(f"{'':{widest + 8}}{one_line(example)}"))
        if finding.repair is not None:
            invocation.print(f"{'':{widest + 8}}repair: {one_line(finding.repair)}")
    bad = sum(finding.level == "bad" for finding in found)
    warned = sum(finding.level == "warn" for finding in found)
    invocation.print(_sentence(bad, warned))


def _sentence(bad: int, warned: int) -> str:
    if bad:
        broken = f"{count(bad, 'promise')} {'is' if bad == 1 else 'are'} broken"
        return (
            f"{broken}. Stop the daemon, copy what there is (`turnmark backup PATH`), and run "
            "`turnmark doctor --repair` where a line says what repair does; it deletes no evidence."
        )
    return f"Nothing is broken; {warned} to look at." if warned else "All is well."
