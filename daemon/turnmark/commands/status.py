"""`turnmark status`: first whether all is well and what to do if not, then the numbers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import Fields, count, local_time, plain
from turnmark.terminal import one_line, table

# Where a daemon puts its sentences about what a person should do; empty where all is well.
_ADVICE = "what_to_do"
_TRANSCRIPTS = "transcripts"
_EMBEDDER = "embedder"
_UPTIME = "uptime"
_OWED = "owed"
# Queues and counters: for whoever looks for a fault in the daemon.
_OF_ITSELF = frozenset({"subscribers", "store", "connections", "counter"})
_MOMENTS = frozenset({"last_success", "next_night"})
_FAILURE = "last_failure"
_DECOMPRESS = "zstd -d FILE.jsonl.zst, and it is read from beside it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "--all", action="store_true", help="what the daemon counts about itself, too"
    )


def run(invocation: Invocation) -> int:
    """Prints the sentence and the table; 0 also where something is to be done."""
    answer = invocation.call("status")
    if invocation.as_json:
        invocation.print_json(answer)
        return 0
    advice = _sentences(answer.get(_ADVICE))
    first, *others = advice or ["All is well; nothing to do."]
    paint = invocation.ink.warning if advice else invocation.ink.good
    invocation.print(paint(one_line(first)), *(one_line(other) for other in others), "")
    hidden = frozenset[str]() if invocation.options.all else _OF_ITSELF
    shown = {name: value for name, value in answer.items() if name not in hidden}
    invocation.print(*table(list(_rows(shown))))
    return 0


def _sentences(said: Any) -> list[str]:
    if not said:
        return []
    return [said] if isinstance(said, str) else [str(sentence) for sentence in said]


def _rows(answer: Fields) -> Iterable[tuple[str, str]]:
    """Yields a row for each fact; one that holds facts of its own begins with their name."""
    for name, value in answer.items():
        if name == _TRANSCRIPTS:
            for agent, one in value.items():
                yield f"transcripts of {agent}", _followed(one)
        elif name == _EMBEDDER:
            yield name, _embedded(value)
        elif name == _UPTIME:
            yield "running for", _duration(value)
        elif name == _OWED:
            yield name, f"{count(value['turns'], 'turn')}, {count(value['tokens'], 'token')}"
        elif name in _MOMENTS:
            yield name.replace("_", " "), local_time(value) or "-"
        elif name == _FAILURE and value:
            yield name.replace("_", " "), f"{local_time(value['at'])}: {value['reason']}"
        elif name != _ADVICE:
            yield name.replace("_", " "), plain(value)


def _followed(one: Fields) -> str:
    """Returns how far an agent's transcripts are followed, in words."""
    if one["state"] == "off":
        return "off"
    if one["state"] == "elsewhere":
        return plain(one["note"])
    if one["state"] == "waiting" and not one.get("compressed"):
        return f"waiting for {one['path']}, which is not there"
    compressed = one.get("compressed", 0)
    files = f"{count(one['files'], 'file')} in {one['path']}"
    notes = [
        f"{count(one['held'], 'turn')} not whole yet" if one["held"] else "",
        f"{count(one['unread'], 'line')} could not be read" if one["unread"] else "",
        f"{count(compressed, 'compressed rollout')} not read: {_DECOMPRESS}" if compressed else "",
        _failed(one["last_error"], one.get("next_try")),
    ]
    if one["state"] == "scanning":
        share = 100 * one["bytes_done"] // max(1, one["bytes_total"])
        notes.insert(0, f"{share} % of {_megabytes(one['bytes_total'])} read")
    return "; ".join([f"{one['state']} {files}", *(note for note in notes if note)])


def _failed(reason: str | None, next_try: str | None) -> str:
    """Returns why a transcript is not followed; an older daemon does not say when it tries."""
    when = f" (tried again at {local_time(next_try)})" if next_try else ""
    return f"{reason}{when}" if reason else ""


def _embedded(one: Fields) -> str:
    """Returns what finds by meaning and how far it is, in words."""
    if one["name"] is None:
        return "none; text is found by its words"
    if one["state"] == "waiting":
        return f"{one['name']}: counting what it has embedded"
    far = f"{one['embedded']:,} of {count(one['documents'], 'text')}"
    why = f" ({one['reason']})" if one["reason"] else ""
    return f"{one['name']}: {one['state']}, {far}{why}"


def _duration(seconds: float) -> str:
    """Returns a time span in its largest two units."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    named = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((place for place, (number, _) in enumerate(named) if number), len(named) - 1)
    return " ".join(f"{number} {unit}" for number, unit in named[first : first + 2])


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"
