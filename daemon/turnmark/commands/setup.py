"""`turnmark setup`: configures the service or an agent, after it has shown what that changes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from turnmark.commands import mcp
from turnmark.commands.invocation import Invocation, WrongUse
from turnmark.setup import claude_code, service
from turnmark.setup.changes import Plan, carry_out, diff_of, make_directory

_SUBJECTS = {
    "service": "the daemon as a service of your systemd, started with your session",
    "claude-code": "hooks that put memory before Claude Code's model",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    subjects = " or ".join(_SUBJECTS)
    parser.add_argument("subject", metavar="WHAT", nargs="?", help=f"{subjects}; else the list")
    parser.add_argument("--undo", action="store_true", help="take away what setup put there")
    parser.add_argument("--yes", action="store_true", help="don't ask")


def run(invocation: Invocation) -> int:
    """Shows the changes, asks, and makes them; without a subject it lists what there is.

    Who says no is done: that is 0, as with every command that asks.

    Raises:
        Refused: if a file that would be changed can't be understood; nothing was changed.
    """
    subject = invocation.options.subject
    if subject is None:
        return _list(invocation)
    if subject not in _SUBJECTS:
        raise WrongUse(f"{subject} can't be set up; there is {', '.join(_SUBJECTS)}")
    plan = _plan(invocation, subject)
    if not plan.needed:
        return _nothing(invocation, subject, plan)
    for change in plan.needed:
        if not invocation.as_json:
            invocation.print_text("\n".join(diff_of(change)))
    if not _agreed(invocation):
        invocation.print("Nothing was changed.")
        return 0
    return _carry_out(invocation, plan)


def _plan(invocation: Invocation, subject: str) -> Plan:
    environ, undo = invocation.environ, invocation.options.undo
    if subject == "service":
        from turnmark.commands.serve import settings_of  # noqa: PLC0415 - only the service needs it

        if undo:
            return service.undo_plan(environ)
        return service.setup_plan(settings_of(invocation), environ)
    if undo:
        return claude_code.undo_plan(environ)
    options = _place_options(invocation)
    return claude_code.setup_plan(environ, options, with_mcp=mcp.is_here())


def _place_options(invocation: Invocation) -> list[str]:
    """Returns the options that a hook needs to find the same daemon as this command."""
    given = {name: getattr(invocation.options, name) for name in ("state", "socket", "config")}
    return [f"--{name}={value}" for name, value in given.items() if value is not None]


def _list(invocation: Invocation) -> int:
    if invocation.options.undo:
        raise WrongUse(f"say what to undo: {', '.join(_SUBJECTS)}")
    states = {
        "service": service.state_of(invocation.environ),
        "claude-code": claude_code.state_of(invocation.environ),
    }
    if invocation.as_json:
        invocation.print_json({"setups": [{"name": n, "state": s} for n, s in states.items()]})
        return 0
    rows = [(name, state, _SUBJECTS[name]) for name, state in states.items()]
    invocation.print_table([("what", "state", "is"), *rows])
    return 0


def _nothing(invocation: Invocation, subject: str, plan: Plan) -> int:
    if not invocation.options.undo:
        for directory in plan.directories:
            make_directory(directory)
    if invocation.as_json:
        invocation.print_json({"changed": [], "commands": [], "ran": False})
    else:
        done = "is not set up" if invocation.options.undo else "is set up already"
        invocation.print(f"{subject} {done}; nothing to change")
    return 0


def _agreed(invocation: Invocation) -> bool:
    """Asks, where somebody can answer.

    Raises:
        WrongUse: if nobody can.
    """
    if invocation.options.yes:
        return True
    if invocation.as_json or not invocation.stdin.isatty():
        raise WrongUse("nobody can be asked here; look at the changes, then add --yes")
    return invocation.is_agreed("Make these changes?")


def _carry_out(invocation: Invocation, plan: Plan) -> int:
    environ = invocation.environ
    commands = (*plan.before_files, *plan.commands)
    runs = bool(commands) and service.can_command(environ)
    failed = [] if not runs else _run(plan.before_files, environ)
    for directory in plan.directories:
        make_directory(directory)
    for change in plan.needed:
        carry_out(change)
    failed += [] if not runs else _run(plan.commands, environ)
    _report(invocation, plan, commands, failed, ran=runs)
    return 1 if failed else 0


def _run(commands: tuple[tuple[str, ...], ...], environ: Mapping[str, str]) -> list[str]:
    """Runs commands in order; returns a line for each that failed."""
    failed: list[str] = []
    for command in commands:
        went_well, said = service.run_command(command, environ)
        if not went_well:
            failed.append(f"{' '.join(command)}: {said}")
    return failed


def _report(
    invocation: Invocation,
    plan: Plan,
    commands: tuple[tuple[str, ...], ...],
    failed: list[str],
    *,
    ran: bool,
) -> None:
    lines = [" ".join(command) for command in commands]
    if invocation.as_json:
        changed = [str(change.path) for change in plan.needed]
        answer = {"changed": changed, "commands": lines, "ran": ran, "failed": failed}
        invocation.print_json(answer)
        return
    for change in plan.needed:
        verb = "removed" if change.after is None else "wrote"
        invocation.print(f"{verb} {change.path}")
    if commands and not ran:
        invocation.print("no systemd of yours answers here; where it does, run:")
        invocation.print(*(f"  {line}" for line in lines))
    invocation.print(*(f"failed: {line}" for line in failed))
    invocation.print(*plan.notes)
