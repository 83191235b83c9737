"""`turnmark setup claude-code`: hooks that put memory before the agent, and the MCP entry.

Claude Code runs a hook's command with the event as JSON on standard input, and puts
`hookSpecificOutput.additionalContext` of the answer before the model. Hooks stand in
`settings.json`, by event and matcher; servers of MCP in `.claude.json`.
Source: https://docs.claude.com/en/docs/claude-code/hooks.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from turnmark import places
from turnmark.setup.changes import FileChange, Plan, backup_of, read_file
from turnmark_events.errors import Refused

HOOK_WORDS = "hook claude-code"
EVENTS = ("SessionStart", "UserPromptSubmit")

# Claude Code ends a hook after so many seconds; ours leaves by itself long before.
_TIMEOUT_SECONDS = 5
_OURS = re.compile(rf"(?:^|[\s/])turnmark {HOOK_WORDS}(?:\s|$)")
_SERVER = "turnmark"

Settings = dict[str, Any]

_CONTAINERS = ("hooks", "mcpServers")
"""What our entries stand in."""


def settings_path(environ: Mapping[str, str]) -> Path:
    """Returns the user's settings of Claude Code."""
    return _config_dir(environ) / "settings.json"


def servers_path(environ: Mapping[str, str]) -> Path:
    """Returns where Claude Code keeps the user's MCP servers: beside its directory by default."""
    if environ.get("CLAUDE_CONFIG_DIR"):
        return _config_dir(environ) / ".claude.json"
    return places.home_dir(environ) / ".claude.json"


def state_of(environ: Mapping[str, str]) -> str:
    """Returns in a word or two whether the hooks are set up."""
    content = read_file(settings_path(environ))
    if content is None:
        return "not set up" if _config_dir(environ).is_dir() else "Claude Code is not here"
    try:
        found = _decoded(content, settings_path(environ))
    except Refused:
        return "its settings.json is not JSON"
    ours = sum(_has_hook(found, event) for event in EVENTS)
    return "set up" if ours == len(EVENTS) else "partly set up" if ours else "not set up"


def setup_plan(environ: Mapping[str, str], options: Sequence[str], *, with_mcp: bool) -> Plan:
    """Returns what adds the hooks, and with `with_mcp` the MCP entry.

    `options` are words that name the daemon's place, for a daemon that is not at its usual one.

    Raises:
        Refused: if a file of Claude Code is no JSON object.
    """
    command = _command(HOOK_WORDS.split(), options)
    files = list(_merged(settings_path(environ), lambda found: _with_hooks(found, command)))
    if with_mcp:
        server = {"type": "stdio", "command": sys.executable}
        entry = {**server, "args": ["-m", "turnmark", "mcp", *options]}
        files += _merged(servers_path(environ), lambda found: _with_server(found, entry))
    notes = ["sessions that begin from now on have it"]
    if not with_mcp:
        notes.append("for tools as well: pip install 'turnmark[mcp]', then run this again")
    return Plan(files=tuple(files), notes=tuple(notes))


def undo_plan(environ: Mapping[str, str]) -> Plan:
    """Returns what takes turnmark's own entries away, and nothing else.

    Raises:
        Refused: if a file of Claude Code is no JSON object.
    """
    files = [
        *_stripped(settings_path(environ), _without_hooks),
        *_stripped(servers_path(environ), _without_server),
    ]
    return Plan(files=tuple(files))


def _config_dir(environ: Mapping[str, str]) -> Path:
    given = environ.get("CLAUDE_CONFIG_DIR", "")
    return Path(given) if given else places.home_dir(environ) / ".claude"


def _command(words: Sequence[str], options: Sequence[str]) -> str:
    return shlex.join((sys.executable, "-m", "turnmark", *words, *options))


def _merged(path: Path, change: Callable[[Settings], Settings]) -> list[FileChange]:
    """Returns the changes to a file and to its backup; the backup is of a file without ours."""
    before = read_file(path)
    found = {} if before is None else _decoded(before, path)
    wanted = change(found)
    if wanted == found:
        return []
    changes = [FileChange(path=path, before=before, after=_encoded(wanted, before))]
    if before is not None and _bare(found) == found:
        backup = backup_of(path)
        changes.insert(0, FileChange(path=backup, before=read_file(backup), after=before))
    return changes


def _stripped(path: Path, change: Callable[[Settings], Settings]) -> list[FileChange]:
    """Returns the changes that bring a file to what it is without our entries.

    Where that is what the backup holds, its very bytes come back.
    """
    before = read_file(path)
    if before is None:
        return []
    found = _decoded(before, path)
    wanted = change(found)
    if wanted == found:
        return []
    backup = backup_of(path)
    kept = read_file(backup)
    after = _as_before(wanted, before, {} if kept is None else _decoded(kept, backup), kept)
    changes = [FileChange(path=path, before=before, after=after)]
    if kept is not None:
        changes.append(FileChange(path=backup, before=kept, after=None))
    return changes


def _as_before(wanted: Settings, before: bytes, was: Settings, kept: bytes | None) -> bytes | None:
    """Returns a file without our entries; what was empty before they came is there again, empty."""
    if _filled(was) == _filled(wanted):
        return kept
    empty = {name: was[name] for name in _CONTAINERS if name in was and not was[name]}
    return _encoded({**empty, **wanted} if empty.keys() - wanted.keys() else wanted, before)


def _filled(found: Settings) -> Settings:
    """Returns the settings without those of our containers that hold nothing."""
    full = dict(found)
    hooks = full.get("hooks")
    if isinstance(hooks, dict):
        events = cast("Settings", hooks)
        full["hooks"] = {event: groups for event, groups in events.items() if groups != []}
    return {name: one for name, one in full.items() if name not in _CONTAINERS or one != {}}


def _bare(found: Settings) -> Settings:
    return _without_server(_without_hooks(found))


def _with_hooks(found: Settings, command: str) -> Settings:
    """Returns the settings with one group of ours for each event, after those of others."""
    bare = _without_hooks(found)
    hooks = dict(_object(bare.get("hooks", {}), "hooks"))
    hook = {"type": "command", "command": command, "timeout": _TIMEOUT_SECONDS}
    for event in EVENTS:
        groups = _list(hooks.get(event, []), f"hooks.{event}")
        hooks[event] = [*groups, {"hooks": [hook]}]
    return {**bare, "hooks": hooks}


def _without_hooks(found: Settings) -> Settings:
    """Returns the settings without our hooks; what they leave empty goes with them."""
    hooks = found.get("hooks")
    if not isinstance(hooks, dict):
        return found
    events = cast("Settings", hooks)
    kept = {event: _without_ours(groups) for event, groups in events.items()}
    if kept == events:
        return found
    left = {event: groups for event, groups in kept.items() if groups or not events[event]}
    rest = {name: value for name, value in found.items() if name != "hooks"}
    return {**found, "hooks": left} if left else rest


def _without_ours(groups: Any) -> Any:
    if not isinstance(groups, list):
        return groups
    kept: list[Any] = []
    for group in _items(cast("Any", groups)):
        hooks = _hooks_of(group)
        left = [hook for hook in hooks if not _is_ours(hook)]
        if len(left) == len(hooks):
            kept.append(group)
        elif left:
            kept.append({**group, "hooks": left})
    return kept


def _has_hook(found: Settings, event: str) -> bool:
    hooks = found.get("hooks")
    groups = cast("Settings", hooks).get(event) if isinstance(hooks, dict) else None
    return any(_is_ours(hook) for group in _items(groups) for hook in _hooks_of(group))


def _hooks_of(group: Any) -> list[Any]:
    hooks = cast("Settings", group).get("hooks") if isinstance(group, dict) else None
    return _items(hooks)


def _items(value: Any) -> list[Any]:
    """Returns the items of a list, none for anything else."""
    if not isinstance(value, list):
        return []
    listed: list[Any] = value  # pyright: ignore[reportUnknownVariableType] # decoded JSON
    return listed


def _is_ours(hook: Any) -> bool:
    command = cast("Settings", hook).get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _with_server(found: Settings, entry: Settings) -> Settings:
    servers = _object(found.get("mcpServers", {}), "mcpServers")
    return {**found, "mcpServers": {**servers, _SERVER: entry}}


def _without_server(found: Settings) -> Settings:
    servers = found.get("mcpServers")
    if not isinstance(servers, dict) or _SERVER not in servers:
        return found
    named = cast("Settings", servers)
    left = {name: value for name, value in named.items() if name != _SERVER}
    rest = {name: value for name, value in found.items() if name != "mcpServers"}
    return {**found, "mcpServers": left} if left else rest


def _object(value: Any, name: str) -> Settings:
    if not isinstance(value, dict):
        raise Refused(f"{name} of Claude Code's settings is no object; mend it by hand first")
    return cast("Settings", value)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Refused(f"{name} of Claude Code's settings is no list; mend it by hand first")
    return _items(cast("Any", value))


def _decoded(content: bytes, path: Path) -> Settings:
    if not content.strip():
        return {}
    try:
        found: Any = json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Refused(
            f"{path} is not JSON ({error}); mend it by hand first, nothing was changed",
            path=str(path),
        ) from error
    if not isinstance(found, dict):
        raise Refused(f"{path} holds no JSON object; nothing was changed", path=str(path))
    return cast("Settings", found)


def _encoded(found: Settings, before: bytes | None) -> bytes:
    """Returns the JSON in the layout of what was there: its indentation and its last newline."""
    indent = re.search(rb"\n([ \t]+)\S", before or b"")
    width = indent[1].decode() if indent else "  "
    end = "" if before is not None and before.strip() and not before.endswith(b"\n") else "\n"
    return (json.dumps(found, indent=width, ensure_ascii=False) + end).encode()
