"""What the daemon says of itself: one JSON object a line, or colours where a person watches.

Lines go to standard error. `configure` is called once, by `serve`; importing this module changes
nothing. No line holds the text of a turn: that is the callers' duty; what this module does is
keep any value from forging a line or steering a terminal.
"""

from __future__ import annotations

import json
import logging
import os
import re
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

# syslog(3): the journal reads `<N>` at the start of a line as its priority.
_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
# C0 and C1 controls, line separators, marks that reverse the direction of writing, and the halves
# of characters that stand for bytes of a file name that is not UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# A traceback has lines of its own; the renderer puts it below the line it belongs to.
_MANY_LINES = frozenset({"exception", "stack"})


def configure(
    stream: TextIO,
    *,
    verbose: bool = False,
    colors: bool = True,
    journal_stream: str | None = None,
) -> None:
    """Sends every log line of this process to `stream`; a later call replaces an earlier one.

    On a terminal lines are for people, elsewhere each is a JSON object with `at`, `level` and
    `event`. `verbose` adds the level `debug`; `colors` False keeps a terminal plain.
    `journal_stream` is systemd's `JOURNAL_STREAM`: where it names `stream`, lines begin with the
    journal's priority. What libraries log through `logging` comes out as `library_logged`,
    warnings and above.
    """
    level = logging.DEBUG if verbose else logging.INFO
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            *_renderers(stream, colors=colors, journal=_is_journal(stream, journal_stream)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_ToStructlog()], level=logging.WARNING, force=True)


def _renderers(stream: TextIO, *, colors: bool, journal: bool) -> list[Processor]:
    if stream.isatty():
        console = structlog.dev.ConsoleRenderer(
            colors=colors,
            timestamp_key="at",
            # The default shows the locals of every frame where rich is installed: turn text.
            exception_formatter=structlog.dev.plain_traceback,
        )
        return [structlog.processors.format_exc_info, _printable, console]
    return [structlog.processors.format_exc_info, _with_priority if journal else _as_json]


def _is_journal(stream: TextIO, journal_stream: str | None) -> bool:
    """Says whether `stream` is the one that systemd connected to the journal.

    The variable is inherited by everything a service starts, so device and inode are compared.
    Source: systemd.exec(5), `$JOURNAL_STREAM`.
    """
    if not journal_stream:
        return False
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return journal_stream == f"{found.st_dev}:{found.st_ino}"


def _printable(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Returns the event with every string on one line; other values are shown by their `repr`."""
    return {key: _on_lines(key, value) for key, value in event.items()}


def _on_lines(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    kept = "\n" if key in _MANY_LINES else None
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] == kept else _escaped(found), value)


def _as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """Returns the event as one line of JSON; a value of no JSON type is written as its `repr`."""
    return _UNPRINTABLE.sub(_escaped, json.dumps(event, ensure_ascii=False, default=repr))


def _with_priority(logger: WrappedLogger, method: str, event: EventDict) -> str:
    priority = _PRIORITIES.get(event.get("level", "info"), 6)
    return f"<{priority}>{_as_json(logger, method, event)}"


def _escaped(found: re.Match[str]) -> str:
    """Returns the character as JSON and Python both escape it."""
    return f"\\u{ord(found[0]):04x}"


class _ToStructlog(logging.Handler):
    """Carries the warnings of libraries over to our own lines."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger(record.name).log(
            max(record.levelno, logging.DEBUG),
            "library_logged",
            library=record.name,
            message=record.getMessage(),
            exc_info=record.exc_info,
        )
