"""`turnmark setup service`: the daemon as a service of the user's own systemd."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from turnmark import places
from turnmark.config import Settings
from turnmark.setup.changes import FileChange, Plan, backup_of, read_file
from turnmark.setup.units import MADE_BY, literal, literal_path, user_unit
from turnmark_events.errors import Refused

UNIT = "turnmark.service"

_SYSTEMCTL = ("systemctl", "--user")
_SYSTEMCTL_SECONDS = 90
_SHARED_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - to keep out of them


def unit_path(environ: Mapping[str, str]) -> Path:
    """Returns where the unit stands, or would."""
    given = environ.get("XDG_CONFIG_HOME", "")
    home = Path(given) if given.startswith("/") else places.home_dir(environ) / ".config"
    return home / "systemd" / "user" / UNIT


def state_of(environ: Mapping[str, str]) -> str:
    """Returns in a word or two whether the service is set up."""
    content = read_file(unit_path(environ))
    if content is None:
        return "not set up"
    return "set up" if _is_ours(content) else f"another {UNIT} is there"


def setup_plan(settings: Settings, environ: Mapping[str, str]) -> Plan:
    """Returns what makes the daemon of these places a service that starts with the session."""
    path = unit_path(environ)
    before = read_file(path)
    change = FileChange(path=path, before=before, after=_unit(settings, environ).encode())
    # What is kept is what a person had there, never a unit that turnmark made before.
    kept = FileChange(path=backup_of(path), before=read_file(backup_of(path)), after=before)
    keeps = before is not None and not _is_ours(before)
    return Plan(
        files=(kept, change) if keeps else (change,),
        directories=_writable(settings),
        commands=(
            (*_SYSTEMCTL, "daemon-reload"),
            (*_SYSTEMCTL, "enable", UNIT),
            (*_SYSTEMCTL, "restart", UNIT),
        ),
        notes=(
            f"how it is: `systemctl --user status {UNIT}`; its log: `journalctl --user -u {UNIT}`",
            "`loginctl enable-linger` lets it run while you are not logged in",
        ),
    )


def undo_plan(environ: Mapping[str, str]) -> Plan:
    """Returns what takes the service away again; state and memory stay.

    Raises:
        Refused: if the unit that is there was not made by turnmark.
    """
    path = unit_path(environ)
    before = read_file(path)
    if before is None:
        return Plan()
    if not _is_ours(before):
        raise Refused(f"{path} was not made by turnmark; it stays as it is", path=str(path))
    backup = backup_of(path)
    kept = read_file(backup)
    files = [FileChange(path=path, before=before, after=kept)]
    if kept is not None:
        files.append(FileChange(path=backup, before=kept, after=None))
    disable = (*_SYSTEMCTL, "disable", "--now", UNIT)
    return Plan(
        files=tuple(files), before_files=(disable,), commands=((*_SYSTEMCTL, "daemon-reload"),)
    )


def can_command(environ: Mapping[str, str]) -> bool:
    """Says whether there is a systemctl and a user's manager that answers it."""
    if shutil.which(_SYSTEMCTL[0], path=environ.get("PATH")) is None:
        return False
    return run_command((*_SYSTEMCTL, "show-environment"), environ)[0]


def run_command(command: Sequence[str], environ: Mapping[str, str]) -> tuple[bool, str]:
    """Runs one command; returns whether it went well, and what it said."""
    program = shutil.which(command[0], path=environ.get("PATH")) or command[0]
    try:
        done = subprocess.run(  # noqa: S603 - our own words, no shell
            (program, *command[1:]),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SYSTEMCTL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    return done.returncode == 0, done.stdout.decode("utf-8", "replace").strip()


def _is_ours(content: bytes) -> bool:
    return content.startswith(MADE_BY.encode())


def _unit(settings: Settings, environ: Mapping[str, str]) -> str:
    command = [sys.executable, "-m", "turnmark", "serve", *_places_to_name(settings, environ)]
    writable = _writable(settings)
    return user_unit(
        [literal(word) for word in command],
        [literal_path(path) for path in writable],
        private_tmp=not any(
            path.is_relative_to(shared)
            for path in (*writable, settings.home)
            for shared in _SHARED_TEMPORARY
        ),
    )


def _places_to_name(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Returns options for the places that the service would not find by itself.

    The user's manager has another environment than the shell that runs the setup: what stands in
    variables there has to stand in the command.
    """
    bare = {"HOME": str(settings.home)}
    config = settings.config
    state = places.state_dir(configured=config.state_dir, environ=bare)
    workspace = places.workspace_dir(configured=config.workspace_dir, environ=bare)
    words: list[str] = []
    if settings.config_path is not None and settings.config_path != places.config_path(
        environ=bare
    ):
        words.append(f"--config={settings.config_path}")
    if settings.state != state:
        words.append(f"--state={settings.state}")
    if settings.workspace != workspace:
        words.append(f"--workspace={settings.workspace}")
    if settings.socket != _usual_socket(settings, environ):
        words.append(f"--socket={settings.socket}")
    return words


def _usual_socket(settings: Settings, environ: Mapping[str, str]) -> Path:
    named = ("TURNMARK_SOCKET", "RUNTIME_DIRECTORY")
    rest = {name: value for name, value in environ.items() if name not in named}
    return places.socket_path(state=settings.state, configured=settings.config.socket, environ=rest)


def _writable(settings: Settings) -> tuple[Path, ...]:
    """Returns state, workspace, and the socket's directory where it is no runtime directory."""
    needed = [settings.state, settings.workspace]
    socket_home = settings.socket.parent
    if settings.config.socket is not None or socket_home == settings.state:
        needed.append(socket_home)
    return tuple(dict.fromkeys(needed))
