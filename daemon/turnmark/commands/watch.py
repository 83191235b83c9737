"""`turnmark watch`: events as they happen, a line each."""

from __future__ import annotations

import argparse
from typing import cast

from turnmark.commands.invocation import Invocation, WrongUse, whole_number
from turnmark.commands.wording import local_time
from turnmark.terminal import one_line
from turnmark_events.types import EVENT_NAMES, Event, encode_event

_TYPE_CELLS = max(len(name) for name in EVENT_NAMES)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    names = ", ".join(EVENT_NAMES)
    parser.add_argument("--types", metavar="TYPES", help=f"only these, with commas: {names}")
    parser.add_argument("--session", metavar="SESSION", help="only events of this session")
    parser.add_argument(
        "--since", type=whole_number, metavar="SEQ", help="after this one; 0: from the oldest"
    )


def run(invocation: Invocation) -> int:
    """Prints each event at once, until Ctrl-C, which is the ordinary end."""
    options = invocation.options
    types = _types(options.types)
    try:
        events = invocation.client().subscribe(
            types=types, session=options.session, since=options.since
        )
        for event in events:
            invocation.print(_line(event, as_json=invocation.as_json))
            invocation.stdout.flush()
    except KeyboardInterrupt:
        return 0
    return 0


def _types(said: str | None) -> list[str] | None:
    if said is None:
        return None
    types = [name.strip() for name in said.split(",") if name.strip()]
    for name in types:
        if name not in EVENT_NAMES:
            raise WrongUse(f"{name} is no type of event; there are {', '.join(EVENT_NAMES)}")
    return types


def _line(event: Event, *, as_json: bool) -> str:
    if as_json:
        return encode_event(event).decode()
    names = [name for name in event.__struct_fields__ if name not in {"seq", "at"}]
    fields = " ".join(f"{name}={_value(getattr(event, name))}" for name in names)
    kind = type(event).__name__
    return f"{event.seq:>6}  {local_time(event.at)}  {kind:<{_TYPE_CELLS}}  {one_line(fields)}"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, cast("tuple[object, ...]", value))) or "-"
    return "-" if value is None else str(value)
