"""`turnmark serve`: the daemon, in the foreground."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio

from turnmark import logs, places
from turnmark.commands.invocation import Invocation
from turnmark.config import Config, Settings, load_config
from turnmark.terminal import wants_color
from turnmark_events.errors import TurnmarkError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--drain", action="store_true", help="write what is owed before it ends")
    parser.add_argument("--verbose", action="store_true", help="log what helps debugging, too")


def run(invocation: Invocation) -> int:
    """Serves until a signal ends it.

    Raises:
        ConfigRefused: if the configuration can't be used.
        PlaceTaken: if another daemon holds the state or the workspace.
        TurnmarkError: whatever else keeps the daemon from starting, or stops it.
    """
    settings = settings_of(invocation)
    os.umask(0o077)  # what SQLite and others make beside our own files is as private as those
    logs.configure(
        invocation.stderr,
        verbose=invocation.options.verbose,
        colors=wants_color(invocation.stderr, invocation.environ),
        journal_stream=invocation.environ.get("JOURNAL_STREAM"),
    )
    from turnmark import service  # noqa: PLC0415 - imports all there is; a bad start is quicker

    try:
        anyio.run(service.serve, settings, backend="asyncio")
    except ExceptionGroup as group:
        raise only_error(group) from group
    return 0


def settings_of(invocation: Invocation) -> Settings:
    """Returns configuration, places and systemd's words, each read once.

    Raises:
        ConfigRefused: if the configuration can't be used.
    """
    options, environ = invocation.options, invocation.environ
    config_path = places.config_path(options.config, environ=environ)
    named = options.config is not None or bool(environ.get("TURNMARK_CONFIG"))
    config = load_config(config_path, must_exist=named)
    state = places.state_dir(options.state, configured=config.state_dir, environ=environ)
    return Settings(
        config=config,
        config_path=config_path if config_path.exists() else None,
        state=state,
        workspace=places.workspace_dir(
            options.workspace, configured=config.workspace_dir, environ=environ
        ),
        socket=places.socket_path(
            options.socket, state=state, configured=config.socket, environ=environ
        ),
        transcripts=_transcripts(config, environ),
        home=places.home_dir(environ),
        drain=getattr(options, "drain", False),  # other commands ask for the places alone
        notify_socket=environ.get("NOTIFY_SOCKET") or None,
        watchdog_usec=_watchdog_usec(environ),
    )


def _transcripts(config: Config, environ: Mapping[str, str]) -> dict[str, Path]:
    """Returns the directory of each agent that this version can follow and that is not off."""
    found = {
        "claude-code": places.claude_code_dir(config.transcripts.claude_code, environ=environ),
        "codex": places.codex_dir(config.transcripts.codex, environ=environ),
        "hermes": places.hermes_dir(config.transcripts.hermes, environ=environ),
        "openclaw": places.openclaw_dir(config.transcripts.openclaw, environ=environ),
        "opencode": places.opencode_place(config.transcripts.opencode, environ=environ),
        "openprogram": places.openprogram_dir(config.transcripts.openprogram, environ=environ),
        "pi": places.pi_dir(config.transcripts.pi, environ=environ),
        "weclaw": places.weclaw_dir(config.transcripts.weclaw, environ=environ),
    }
    return {agent: place for agent, place in found.items() if place is not None}


def _watchdog_usec(environ: Mapping[str, str]) -> int:
    """Returns how often systemd wants to hear from this process, 0 for never.

    `WATCHDOG_PID` is inherited by everything a service starts. Source: sd_watchdog_enabled(3).
    """
    pid, interval = environ.get("WATCHDOG_PID", ""), environ.get("WATCHDOG_USEC", "")
    if (pid and pid != str(os.getpid())) or not interval.isdigit():
        return 0
    return int(interval)


def only_error(group: ExceptionGroup[Exception]) -> Exception:
    """Returns the one error of ours that ended the daemon, else the whole group."""
    ours, others = group.split(TurnmarkError)
    errors = list(_leaves(ours)) if ours is not None else []
    return errors[0] if len(errors) == 1 and others is None else group


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)  # pyright: ignore[reportUnknownArgumentType] # see typeshed
        elif isinstance(error, Exception):
            yield error
