"""The configuration: what `config.toml` may say, decoded strictly, and what follows from it.

Reads no environment: `main` resolves places and passes them in.
"""

from __future__ import annotations

import difflib
import posixpath
import re
import tomllib
from collections.abc import Iterator
from datetime import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from turnmark.config_table import Table
from turnmark.toml_lines import KeyPath, line_of, show_path
from turnmark.writer_table import WriterTable
from turnmark_events.errors import Refused
from turnmark_memory.embedding.embedder import Choice

MemoryMode = Literal["on", "local", "off"]
RecallScope = Literal["all", "project"]

# A longer silence than a year is a slip of the pen; it also keeps deadlines inside datetime.
_LONGEST_IDLE_MINUTES = 366 * 24 * 60
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_TOML_NAMES = {
    "object": "a table",
    "array": "an array",
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}


class ConfigRefused(Refused):
    """The configuration can't be used; `facts` hold `file`, `line` and `key`."""


class MemoryTable(Table, frozen=True, kw_only=True):
    """`[memory]`: when a branch is written, how large the core page is, when the night runs."""

    trigger_tokens: Annotated[int, Meta(ge=1)] = 16_000
    idle_minutes: Annotated[float, Meta(gt=0, le=_LONGEST_IDLE_MINUTES)] = 30.0
    core_tokens: Annotated[int, Meta(ge=1)] = 2_000
    nightly: str = "03:00"

    @property
    def nightly_at(self) -> time | None:
        """The local time of the night, None where it is off."""
        return None if self.nightly == "off" else time.fromisoformat(self.nightly)


class TranscriptsTable(Table, frozen=True, kw_only=True, rename={"claude_code": "claude-code"}):
    """`[transcripts]`: each agent's files, `auto`, `off` or a directory."""

    backlog: Literal["hold", "write"] = "hold"
    claude_code: str = "auto"
    codex: str = "auto"
    openclaw: str = "auto"
    hermes: str = "auto"
    pi: str = "auto"
    opencode: str = "auto"
    weclaw: str = "auto"
    # It has a memory of its own, which is taken over first (`turnmark migrate`): what that holds
    # would be written twice.
    openprogram: str = "off"

    def place_of(self, agent: str) -> str:
        """Returns `auto`, `off` or the directory for `agent`; `off` for one unknown here."""
        return self.places().get(agent, "off")

    def places(self) -> dict[str, str]:
        """Returns what is set for each agent, under the names that the file uses."""
        return {
            field.encode_name: getattr(self, field.name)
            for field in msgspec.structs.fields(self)
            if field.name != "backlog"
        }


class PrivacyTable(Table, frozen=True, kw_only=True):
    """`[privacy]`: where secrets are masked, in the store or only at the exits."""

    mask: Literal["store", "exits"] = "store"


class RecallTable(Table, frozen=True, kw_only=True):
    """`[recall]`: what finds by meaning; `auto` is the one that is installed, else none."""

    embedder: Choice = "auto"


class RuleMatch(Table, frozen=True, kw_only=True):
    """What a rule is about; what is left out matches everything."""

    agent: str | None = None
    project: str | None = None
    session: str | None = None


class Rule(Table, frozen=True, kw_only=True):
    """One `[[rules]]`: what is left out says nothing about it."""

    match: RuleMatch
    memory: MemoryMode | None = None
    recall: RecallScope | None = None


class Config(Table, frozen=True, kw_only=True):
    """The whole file; every table and key may be left out."""

    state_dir: str | None = None
    workspace_dir: str | None = None
    socket: str | None = None
    memory: MemoryTable = MemoryTable()
    writer: WriterTable = WriterTable()
    transcripts: TranscriptsTable = TranscriptsTable()
    privacy: PrivacyTable = PrivacyTable()
    recall: RecallTable = RecallTable()
    rules: tuple[Rule, ...] = ()


class Rules(msgspec.Struct, frozen=True):
    """The rules of a configuration, asked per session. The last rule that matches decides."""

    rules: tuple[Rule, ...] = ()

    def memory_for(self, agent: str | None, project: str | None, session: str) -> MemoryMode:
        """Returns how a session may be remembered; `on` where no rule says otherwise.

        A project matches by path: the directory itself and all below it. Agent and session
        match as globs, case counts. The order is that of `.gitignore`: later lines refine.
        """
        mode: MemoryMode = "on"
        for rule in self._matching(agent, project, session):
            mode = rule.memory or mode
        return mode

    def recall_for(self, agent: str | None, project: str | None, session: str) -> RecallScope:
        """Returns how far a session's recall reaches; `all` where no rule says otherwise."""
        scope: RecallScope = "all"
        for rule in self._matching(agent, project, session):
            scope = rule.recall or scope
        return scope

    def _matching(self, agent: str | None, project: str | None, session: str) -> list[Rule]:
        return [rule for rule in self.rules if _matches(rule.match, agent, project, session)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that a daemon needs to start: the configuration, resolved places, what systemd said.

    `home` expands `~` in paths of the configuration. `transcripts` are the directories of the
    agents that are followed. `notify_socket` and `watchdog_usec` are
    systemd's words, None and 0 without it. `drain` writes all that is owed before the end.
    """

    config: Config
    config_path: Path | None
    state: Path
    workspace: Path
    socket: Path
    home: Path
    transcripts: dict[str, Path] = {}
    drain: bool = False
    notify_socket: str | None = None
    watchdog_usec: int = 0

    @property
    def rules(self) -> Rules:
        """The rules, with `~` in their projects expanded."""
        return Rules(tuple(_with_home(rule, self.home) for rule in self.config.rules))


def load_config(path: Path, *, must_exist: bool) -> Config:
    """Returns the configuration in `path`, or the defaults where no file is there.

    Raises:
        ConfigRefused: if the file can't be read, is not TOML, has an unknown key, a value of a
            wrong type or out of range, or asks for what this version does not have; or if it is
            missing and `must_exist` is set.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        if not must_exist:
            return Config()
        raise ConfigRefused(
            f"{path}: there is no such configuration file", file=str(path)
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigRefused(f"{path}: can't be read: {reason}", file=str(path)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise _refusal(path, line, "", "is not UTF-8; save the file as UTF-8") from error
    return decode_config(text, path)


def decode_config(text: str, path: Path) -> Config:
    """Returns the configuration that `text` says; `path` is named in messages.

    Raises:
        ConfigRefused: as `load_config`.
    """
    try:
        config = msgspec.convert(tomllib.loads(text), Config)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_refusal(path, text, error) from error
    except msgspec.ValidationError as error:
        key, problem = _explain(str(error))
        raise _refusal(path, line_of(text, key), show_path(key), problem) from error
    for key, problem in _problems(config):
        raise _refusal(path, line_of(text, key), show_path(key), problem)
    return config


def _refusal(path: Path, line: int, key: str, problem: str) -> ConfigRefused:
    message = f"{path}:{line}: {key} {problem}" if key else f"{path}:{line}: {problem}"
    return ConfigRefused(message, file=str(path), line=line, key=key)


def _syntax_refusal(path: Path, text: str, error: tomllib.TOMLDecodeError) -> ConfigRefused:
    found = re.search(r"\(at line (\d+), column \d+\)", str(error))
    line = int(found[1]) if found else text.count("\n") + 1
    problem = re.sub(r"\s*\(at (line|end).*\)$", "", str(error))
    return _refusal(path, line, "", f"is not TOML: {problem}")


def _explain(message: str) -> tuple[KeyPath, str]:
    """Returns the key that msgspec's message is about and the message in a person's words."""
    problem, _, place = message.partition(" - at `$")
    parts = re.findall(r"\.([^.\[\]`]+)|\[(\d+)\]", place)
    path: KeyPath = tuple(name or int(index) for name, index in parts)
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", problem):
        return (*path, unknown[1]), f"is not a key that turnmark knows{_nearest(unknown[1])}"
    if missing := re.fullmatch(r"Object missing required field `(.*)`", problem):
        return path, f"needs the key {missing[1]}"
    if re.match(r"Invalid enum value ", problem) and (known := list(_choices(path))):
        given = problem.removeprefix("Invalid enum value ")
        return path, f"can't be {given}; there is {', '.join(known)}"
    words = re.sub(r"`(\w+)`", lambda name: _TOML_NAMES.get(name[1], name[0]), problem)
    return path, f"is wrong: {words[:1].lower()}{words[1:]}"


def _choices(path: KeyPath) -> Iterator[str]:
    """Yields the words that the key at `path` may have, none where it may have any."""
    kind: Any = Config
    for name in path:
        if isinstance(name, str):  # an index stays in what a list holds
            table = next(part for part in _parts(kind) if msgspec.inspect.is_struct_type(part))
            (kind,) = [
                field.type for field in msgspec.structs.fields(table) if field.encode_name == name
            ]
    yield from (word for word in _parts(kind) if isinstance(word, str))


def _parts(kind: Any) -> Iterator[Any]:
    """Yields a type and what it is made of: `list[X] | None` is a list, X and None."""
    yield kind
    for part in get_args(kind):
        yield from _parts(part)


def _nearest(key: str) -> str:
    tables = Table.__subclasses__()
    known = [field.encode_name for table in tables for field in msgspec.structs.fields(table)]
    matches = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {matches[0]}?" if matches else ""


def _problems(config: Config) -> list[tuple[KeyPath, str]]:
    """Returns what types alone can't say is wrong, each with its key."""
    problems: list[tuple[KeyPath, str]] = []
    if config.memory.nightly != "off" and not _CLOCK.fullmatch(config.memory.nightly):
        problems.append((("memory", "nightly"), 'must be a time as "03:00", or "off"'))
    problems.extend(config.writer.problems())
    problems.extend(
        (("transcripts", agent), 'must be "auto", "off", a full path or begin with ~/')
        for agent, place in config.transcripts.places().items()
        if place not in {"auto", "off"} and not _is_place(place)
    )
    problems.extend(
        (key, "must be a full path, or begin with ~/")
        for key, place in _paths(config)
        if place is not None and not _is_place(place)
    )
    return problems


def _paths(config: Config) -> Iterator[tuple[KeyPath, str | None]]:
    yield ("state_dir",), config.state_dir
    yield ("workspace_dir",), config.workspace_dir
    yield ("socket",), config.socket
    for index, rule in enumerate(config.rules):
        yield ("rules", index, "match", "project"), rule.match.project


def _is_place(path: str) -> bool:
    return path.startswith(("/", "~/"))


def _matches(match: RuleMatch, agent: str | None, project: str | None, session: str) -> bool:
    return (
        (match.agent is None or fnmatchcase(agent or "", match.agent))
        and (match.session is None or fnmatchcase(session, match.session))
        and (match.project is None or _is_within(project, match.project))
    )


def _is_within(project: str | None, directory: str) -> bool:
    """Says whether `project` is `directory` or below it, by path, without touching the disk."""
    if project is None:
        return False
    inner, outer = posixpath.normpath(project), posixpath.normpath(directory)
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def _with_home(rule: Rule, home: Path) -> Rule:
    project = rule.match.project
    if project is None or not project.startswith("~/"):
        return rule
    expanded = str(home / project.removeprefix("~/"))
    return msgspec.structs.replace(
        rule, match=msgspec.structs.replace(rule.match, project=expanded)
    )
