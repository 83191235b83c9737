"""Where things are: state, workspace, socket and configuration, each with its overrides.

The order is the same for all four: what was given by hand, the variable TURNMARK_…, the
configuration, what systemd set up, the XDG directories, the home directory. Nothing is created or
opened here, apart from reading `socket.path` and what pi's settings say of its sessions. Empty
variables count as unset, and so do XDG ones that are not absolute, as the XDG specification wants.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

SOCKET_NAME = "turnmark.sock"
SOCKET_PATH_FILE = "socket.path"

Environment = Mapping[str, str]
Given = str | os.PathLike[str] | None


def state_dir(
    given: Given = None, *, configured: Given = None, environ: Environment | None = None
) -> Path:
    """Returns the directory of `sessions.db`, the lock and `socket.path`."""
    env = os.environ if environ is None else environ
    chosen = _chosen(given, env.get("TURNMARK_STATE"), configured, env)
    return (
        chosen
        or _systemd(env, "STATE_DIRECTORY")
        or _xdg(env, "XDG_STATE_HOME", ".local/state") / "turnmark"
    )


def workspace_dir(
    given: Given = None, *, configured: Given = None, environ: Environment | None = None
) -> Path:
    """Returns the root of the Markdown memory."""
    env = os.environ if environ is None else environ
    chosen = _chosen(given, env.get("TURNMARK_WORKSPACE"), configured, env)
    return chosen or _xdg(env, "XDG_DATA_HOME", ".local/share") / "turnmark" / "memory"


def socket_path(
    given: Given = None,
    *,
    state: Path,
    configured: Given = None,
    environ: Environment | None = None,
) -> Path:
    """Returns the path that a daemon with this `state` listens on."""
    env = os.environ if environ is None else environ
    chosen = _chosen(given, env.get("TURNMARK_SOCKET"), configured, env)
    return chosen or next(iter(_runtime_sockets(env)), state / SOCKET_NAME)


def config_path(given: Given = None, *, environ: Environment | None = None) -> Path:
    """Returns the configuration file; it need not exist."""
    env = os.environ if environ is None else environ
    chosen = _chosen(given, env.get("TURNMARK_CONFIG"), None, env)
    return chosen or _xdg(env, "XDG_CONFIG_HOME", ".config") / "turnmark" / "config.toml"


def claude_code_dir(configured: str, *, environ: Environment | None = None) -> Path | None:
    """Returns the directory of Claude Code's transcripts, None where they are off."""
    env = os.environ if environ is None else environ
    return _agent_dir(configured, env, _given(env, "CLAUDE_CONFIG_DIR", ".claude") / "projects")


def codex_dir(configured: str, *, environ: Environment | None = None) -> Path | None:
    """Returns the directory of Codex, with `sessions` in it, None where its transcripts are off."""
    env = os.environ if environ is None else environ
    return _agent_dir(configured, env, _given(env, "CODEX_HOME", ".codex"))


def hermes_dir(configured: str, *, environ: Environment | None = None) -> Path | None:
    """Returns the directory of Hermes and its profiles, None where its transcripts are off."""
    env = os.environ if environ is None else environ
    return _agent_dir(configured, env, _given(env, "HERMES_HOME", ".hermes"))


def opencode_place(configured: str, *, environ: Environment | None = None) -> Path | None:
    """Returns opencode's directory, or its database where a variable names another one.

    None where its transcripts are off.
    """
    env = os.environ if environ is None else environ
    own = _given(env, "XDG_DATA_HOME", ".local/share") / "opencode"
    named = env.get("OPENCODE_DB", "")
    return _agent_dir(configured, env, own if named in {"", ":memory:"} else own / named)


def openclaw_dir(configured: str, *, environ: Environment | None = None) -> Path | None:
    """Returns OpenClaw's state directory, None where its transcripts are off.

    Under one of the program's earlier names where that is there and the directory of today is not.
    """
    env = os.environ if environ is None else environ
    homes = [home_dir(env) / name for name in (".openclaw", ".clawdbot", ".moltbot", ".moldbot")]
    usual = next((one for one in homes if one.is_dir()), homes[0])
    return _agent_dir(configured, env, _given(env, "OPENCLAW_STATE_DIR", usual.name))


def pi_dir(configured: str, *, environ: Environment | None = None) -> Path | None:
    """Returns the directory in which pi keeps its sessions, None where its transcripts are off."""
    env = os.environ if environ is None else environ
    own = _chosen(env.get("PI_CODING_AGENT_DIR"), None, None, env) or home_dir(env) / ".pi/agent"
    named = env.get("PI_CODING_AGENT_SESSION_DIR") or _set_in(own / "settings.json", "sessionDir")
    found = Path(_at_home(named, env)) if named else own / "sessions"
    return _agent_dir(configured, env, found if found.is_absolute() else own / "sessions")


def weclaw_dir(configured: str, *, environ: Environment | None = None) -> Path | None:
    """Returns weclaw's directory, None where what is said through it is not to be read in."""
    env = os.environ if environ is None else environ
    return _agent_dir(configured, env, home_dir(env) / ".weclaw")


def openprogram_dir(configured: str, *, environ: Environment | None = None) -> Path | None:
    """Returns OpenProgram's state directory, None where its transcripts are off."""
    env = os.environ if environ is None else environ
    return _agent_dir(configured, env, home_dir(env) / ".openprogram")


def writer_dirs(state: Path) -> tuple[Path, ...]:
    """Returns where writers that are agents themselves work; their sessions are never read in.

    As the state was given, and as the system names it: an agent notes the latter, links resolved.
    """
    return tuple(dict.fromkeys(place / "writer" for place in (state, state.resolve())))


def client_sockets(
    given: Given = None, *, state: Given = None, environ: Environment | None = None
) -> list[Path]:
    """Returns the sockets that a client tries, in order; reads `<state>/socket.path`.

    A socket that was named, by argument or by TURNMARK_SOCKET, is the only one: no other daemon
    answers in its place. A `state` that was given by hand goes before the runtime directory.
    """
    env = os.environ if environ is None else environ
    named = _chosen(given, env.get("TURNMARK_SOCKET"), None, env)
    if named is not None:
        return [named]
    recorded = recorded_socket(state_dir(state, environ=env))
    found = [] if recorded is None else [recorded]
    runtime = _runtime_sockets(env)
    return list(dict.fromkeys(found + runtime if state is not None else runtime + found))


def asked_state(
    given: Given = None, *, state: Given = None, environ: Environment | None = None
) -> Path | None:
    """Returns the state whose daemon a client means, None where it named none, or a socket.

    The runtime directory's socket may be another state's daemon, and so may the one that a daemon
    wrote down and that has ended since: `hello` says which state answers.
    """
    env = os.environ if environ is None else environ
    if _chosen(given, env.get("TURNMARK_SOCKET"), None, env) is not None:
        return None
    return _chosen(state, env.get("TURNMARK_STATE"), None, env)


def is_of_state(hello: Mapping[str, Any], asked: Path | None) -> bool:
    """Tells whether the daemon that said `hello` is one of the state that was asked for, if any.

    One that does not say what it serves, as older ones, is taken for it.
    """
    said = hello.get("state")
    return asked is None or not isinstance(said, str) or Path(said) == asked.resolve()


def recorded_socket(state: Path) -> Path | None:
    """Returns what the daemon of this state directory wrote that it listens on, if it did."""
    try:
        text = (state / SOCKET_PATH_FILE).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None  # no daemon ever ran here, or it is another user's: the caller tries others
    path = text.removesuffix("\n")
    return Path(path) if path else None


def _chosen(given: Given, variable: str | None, configured: Given, env: Environment) -> Path | None:
    for choice in (given, variable, configured):
        if choice is not None and os.fspath(choice):
            return Path(os.path.abspath(_at_home(os.fspath(choice), env)))  # noqa: PTH100 - keeps symlinks
    return None


def _at_home(path: str, env: Environment) -> str:
    if path == "~" or path.startswith("~/"):
        return str(home_dir(env)) + path[1:]
    return path


def _set_in(settings: Path, key: str) -> str | None:
    """Returns the text that a program's settings have under a key, None where there is none."""
    try:
        found: Any = json.loads(settings.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # it has no settings, or none that it could read itself
    value = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None
    return value if isinstance(value, str) and value else None


def _agent_dir(configured: str, env: Environment, found: Path) -> Path | None:
    if configured == "off":
        return None
    return found if configured == "auto" else Path(_at_home(configured, env))


def _runtime_sockets(env: Environment) -> list[Path]:
    found: list[Path] = []
    own = _systemd(env, "RUNTIME_DIRECTORY")
    if own is not None:
        found.append(own / SOCKET_NAME)
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        found.append(Path(runtime) / "turnmark" / SOCKET_NAME)
    return found


def _systemd(env: Environment, name: str) -> Path | None:
    # systemd joins several directories with colons; ours is the first.
    first = env.get(name, "").split(":")[0]
    return Path(first) if first else None


def _xdg(env: Environment, name: str, default: str) -> Path:
    return _given(env, name, default)


def _given(env: Environment, name: str, default: str) -> Path:
    """Returns the directory that a variable names by a full path, else the one at home."""
    given = env.get(name, "")
    return Path(given) if given.startswith("/") else home_dir(env) / default


def home_dir(environ: Environment | None = None) -> Path:
    """Returns the home directory, `/` for a user that has none, as in many a container."""
    env = os.environ if environ is None else environ
    home = env.get("HOME", "")
    if home.startswith("/"):
        return Path(home)
    try:
        return Path.home()
    except RuntimeError:  # the user is in no user database
        return Path("/")
