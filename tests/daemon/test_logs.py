"""`turnmark.logs`: lines for machines, for the journal and for a person."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
from collections.abc import Iterator

import pytest
import structlog

from turnmark import logs


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    """Puts both logging systems back as they were."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines_of(stream: io.StringIO) -> list[dict[str, object]]:
    """Returns each line of `stream`, which must be JSON."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_writes_one_json_object_a_line() -> None:
    """Elsewhere than on a terminal each event is one object with time, level and fields."""
    stream = io.StringIO()
    logs.configure(stream)
    structlog.get_logger("x").info("head_moved", session="会话-1", turns=3)
    (line,) = lines_of(stream)
    assert (line["event"], line["level"], line["turns"]) == ("head_moved", "info", 3)
    assert str(line["at"]).endswith("Z")
    assert "会话-1" in stream.getvalue()


def test_hides_debug_until_asked() -> None:
    """Only `verbose` shows the level debug."""
    quiet, loud = io.StringIO(), io.StringIO()
    logs.configure(quiet)
    structlog.get_logger().debug("looked")
    logs.configure(loud, verbose=True)
    structlog.get_logger().debug("looked")
    assert (quiet.getvalue(), len(lines_of(loud))) == ("", 1)


@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", "\x9b31m", "\u202eabc", "\u2028x", "\udcff"])
def test_keeps_a_value_from_forging_a_line(text: str) -> None:
    """Control characters arrive escaped, at any depth, and decode to what they were."""
    stream = io.StringIO()
    logs.configure(stream)
    structlog.get_logger().info("opened", path=text, nested={"paths": [text]})
    assert text not in stream.getvalue()
    assert stream.getvalue().count("\n") == 1
    (line,) = lines_of(stream)
    assert (line["path"], line["nested"]) == (text, {"paths": [text]})


def test_writes_an_exception_on_the_same_line() -> None:
    """A traceback is a field of its event, not lines of its own."""
    stream = io.StringIO()
    logs.configure(stream)
    try:
        raise ValueError("broken")  # noqa: TRY301 - the traceback is what is tested
    except ValueError:
        structlog.get_logger().exception("batch_failed")
    (line,) = lines_of(stream)
    assert "ValueError: broken" in str(line["exception"])
    assert line["level"] == "error"


def test_writes_any_value_at_all() -> None:
    """A value of no JSON type is written as its repr."""
    stream = io.StringIO()
    logs.configure(stream)
    structlog.get_logger().info("opened", raw=b"\xff", number=1 << 80)
    assert lines_of(stream)[0]["raw"] == "b'\\xff'"


def test_carries_the_warnings_of_libraries() -> None:
    """What a library warns of becomes an event; its chatter stays out."""
    stream = io.StringIO()
    logs.configure(stream)
    logging.getLogger("watchfiles").warning("lost %s", "watch")
    logging.getLogger("watchfiles").info("chatter")
    (line,) = lines_of(stream)
    assert (line["event"], line["library"], line["message"]) == (
        "library_logged",
        "watchfiles",
        "lost watch",
    )


def test_puts_the_priority_before_lines_for_the_journal() -> None:
    """Lines to the journal's own stream begin with its priority, other streams stay JSON."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream, os.fdopen(reading) as back:
        found = os.fstat(writing)
        logs.configure(stream, journal_stream=f"{found.st_dev}:{found.st_ino}")
        structlog.get_logger().error("disk_full")
        structlog.get_logger().info("ready")
        first, second = back.readline(), back.readline()
        logs.configure(stream, journal_stream="1:2")
        structlog.get_logger().info("ready")
        third = back.readline()
    assert first.startswith('<3>{"')
    assert second.startswith('<6>{"')
    assert json.loads(third)["event"] == "ready"


@pytest.mark.parametrize("colors", [True, False])
def test_writes_for_a_person_on_a_terminal(colors: bool) -> None:
    """A terminal gets words, coloured if allowed, and no escape sequence from a value."""
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream, os.fdopen(controller, "rb") as screen:
        logs.configure(stream, colors=colors)
        structlog.get_logger().info("head_moved", session="\x1b]0;会话\x07")
        shown = screen.readline().decode()
    assert "head_moved" in shown
    assert ("\x1b[" in shown) is colors
    assert "\x1b]" not in shown
    assert "会话" in shown


def test_shows_a_traceback_in_lines_that_steer_nothing() -> None:
    """On a terminal a traceback keeps its lines, and no escape sequence of its message."""
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream, os.fdopen(controller, "rb") as screen:
        logs.configure(stream, colors=False)
        try:
            raise ValueError("\x1b]0;名字\x07")  # noqa: TRY301 - the traceback is what is tested
        except ValueError:
            structlog.get_logger().exception("batch_failed")
        lines = [screen.readline().decode()]
        while not lines[-1].startswith("ValueError"):
            lines.append(screen.readline().decode())
    assert "batch_failed" in lines[0]
    assert len(lines) > 2
    assert lines[-1].strip() == "ValueError: \\u001b]0;名字\\u0007"


def test_does_nothing_when_imported() -> None:
    """Importing the module configures nothing; only `configure` does."""
    assert not structlog.is_configured()
