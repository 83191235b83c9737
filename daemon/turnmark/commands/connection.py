"""From the options of a command line to a connection with the daemon."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnmark import places
from turnmark.client_sync import SyncClient, connect_sync
from turnmark.commands.invocation import WrongUse
from turnmark_events.errors import Refused


def connect(options: argparse.Namespace, environ: Mapping[str, str]) -> SyncClient:
    """Connects to the daemon that options, environment and configuration point at.

    Raises:
        DaemonNotRunning: if none answers.
        Refused: if a workspace was named, and the daemon's is another one.
    """
    socket, state = place_of(options, environ)
    client = connect_sync(socket, state=state, client="turnmark-cli")
    if named := options.workspace or environ.get("TURNMARK_WORKSPACE"):
        try:
            _check_workspace(client, Path(named))
        except BaseException:
            client.close()
            raise
    return client


def _check_workspace(client: SyncClient, named: Path) -> None:
    """Makes sure that what is found, and written, is in the memory that was named."""
    served = Path(client.call("status")["workspace_path"])
    if named.expanduser().resolve() != served.resolve():
        raise Refused(
            f"the daemon that answers keeps the memory at {served}, not the one at {named}: name "
            "that one's daemon by --state or --socket, or leave the workspace out",
            workspace=str(served),
        )


def place_of(
    options: argparse.Namespace, environ: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """Returns the socket and the state directory that options and configuration name, if any.

    Raises:
        WrongUse: if a configuration was named that is not there: it may name another daemon.
    """
    if options.config is not None and not Path(options.config).expanduser().is_file():
        raise WrongUse(f"{options.config}: there is no such configuration file")
    configured = _configured_places(places.config_path(options.config, environ=environ))
    socket, state = options.socket, options.state
    if socket is None and not environ.get("TURNMARK_SOCKET"):
        socket = _path(configured.get("socket"))
    if state is None and not environ.get("TURNMARK_STATE"):
        state = _path(configured.get("state_dir"))
    return socket, state


def _configured_places(path: Path) -> dict[str, Any]:
    """Returns what the configuration says, nothing where it can't be read.

    A client only wants to know where the daemon is; what is wrong with the file is the daemon's to
    say, and one that runs must be reachable while a person edits it.
    """
    if not path.is_file():
        return {}
    import tomllib  # noqa: PLC0415 - costs a third of a client's start, and most have no file

    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _path(said: Any) -> str | None:
    return said if isinstance(said, str) and said else None
