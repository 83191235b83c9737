"""`[writer]`, `[writer.tidy]` and `[writer.select]`: who writes, tidies and chooses.

The tables say which model; whether its key and its address are good shows when it is asked, so that
a daemon starts and keeps turns without either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from turnmark.config_table import Table
from turnmark.toml_lines import KeyPath
from turnmark_memory.models.settings import ModelSettings

WriterKind = Literal["builtin", "openai", "anthropic", "command"]
Task = Literal["write", "tidy", "select"]

_LONGEST_TIMEOUT_SECONDS: Final = 24 * 60 * 60
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_OWN_KEYS: Final = ("kind", "model", "base_url", "api_key_env", "command", "timeout_seconds")

TimeoutSeconds = Annotated[float, Meta(gt=0, le=_LONGEST_TIMEOUT_SECONDS)]


class TaskTable(Table, frozen=True, kw_only=True):
    """`[writer.tidy]` and `[writer.select]`: another model for one task.

    With a `kind` the table stands alone. Without one, what it leaves out is as in `[writer]`.
    """

    kind: WriterKind | None = None
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    command: tuple[str, ...] | None = None
    timeout_seconds: TimeoutSeconds | None = None


class WriterTable(Table, frozen=True, kw_only=True):
    """`[writer]`: what distils turns into blocks.

    `daily_tokens` is for all three tasks together; 0 means no limit. Without `tidy` the night asks
    the writer's model, without `select` nobody chooses topics for a question.
    """

    kind: WriterKind = "builtin"
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    command: tuple[str, ...] = ()
    timeout_seconds: TimeoutSeconds = 120.0
    daily_tokens: Annotated[int, Meta(ge=0)] = 0
    tidy: TaskTable | None = None
    select: TaskTable | None = None

    def model_for(self, task: Task) -> ModelSettings | None:
        """Returns the model for a task, None where none is asked: `builtin` needs none."""
        table = {"write": None, "tidy": self.tidy, "select": self.select}[task]
        if table is None:
            return None if task == "select" else _settings("writer", self)
        return _settings(f"writer.{task}", self._alone(table))

    def _alone(self, table: TaskTable) -> WriterTable:
        """Returns a task's table as if it were the writer's own."""
        given = {name: value for name in _OWN_KEYS if (value := getattr(table, name)) is not None}
        taken = {} if table.kind else {name: getattr(self, name) for name in _OWN_KEYS}
        return WriterTable(**taken | given)

    def problems(self) -> Iterator[tuple[KeyPath, str]]:
        """Yields what types alone can't say is wrong, each with its key."""
        yield from _problems(self, ("writer",))
        for name, table in (("tidy", self.tidy), ("select", self.select)):
            if table is not None:
                yield from _problems(self._alone(table), ("writer", name))


def _settings(name: str, table: WriterTable) -> ModelSettings | None:
    if table.kind == "builtin":
        return None
    return ModelSettings(
        table=name,
        kind=table.kind,
        model=table.model,
        base_url=table.base_url,
        api_key_env=table.api_key_env,
        command=table.command,
        timeout_seconds=table.timeout_seconds,
    )


def _problems(table: WriterTable, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if table.kind == "command":
        if not table.command or not table.command[0]:
            example = '["claude", "-p"]'
            yield (*path, "command"), f'must name a program for kind = "command": {example}'
        elif "/" in table.command[0] and not table.command[0].startswith("/"):
            yield (*path, "command"), "must begin with a full path or a name on the PATH"
    elif table.kind != "builtin":
        yield from _api_problems(table, path)


def _api_problems(table: WriterTable, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if not table.model.strip():
        yield (*path, "model"), f'must name a model for kind = "{table.kind}"'
    if table.base_url and not _is_address(table.base_url):
        yield (*path, "base_url"), 'must be an address as "http://localhost:11434/v1"'
    if table.api_key_env and not _VARIABLE.fullmatch(table.api_key_env):
        problem = "must be the name of a variable or systemd credential, not the key itself"
        yield (*path, "api_key_env"), problem


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    clean = not (parts.query or parts.fragment or parts.username or parts.password)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and clean and " " not in text
