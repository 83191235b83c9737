"""`turnmark show REF`: one block, source, turn or topic, with where it comes from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from turnmark.commands.invocation import Invocation, text_of
from turnmark.commands.wording import Fields, plain, source
from turnmark.terminal import table
from turnmark_events.errors import NotFound

_NEVER_TOPICS = ("b-", "^", "s-")
# Of a turn, what the rest of the answer says already.
_SAID_BEFORE = frozenset({"text", "kind"})


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "ref",
        metavar="REF",
        help="a block (b-…), a source (s-…), a topic, SESSION#ID or a turn's id",
    )


def run(invocation: Invocation) -> int:
    """Prints the text, then what is known about it."""
    ref = text_of(invocation.options.ref, "REF")
    try:
        answer = invocation.call("memory.show", ref=ref)
    except NotFound as error:
        raise _with_topic(invocation, ref, error) from error
    if invocation.as_json:
        invocation.print_json(answer)
        return 0
    invocation.print_text(answer["text"] or "")
    known = [(name, plain(value)) for name, value in _facts(answer) if value not in (None, [], {})]
    sources = [("source", source(one)) for one in answer.get("sources") or ()]
    invocation.print("", *(invocation.ink.dim(line) for line in table(known + sources)))
    return 0


def _with_topic(invocation: Invocation, ref: str, error: NotFound) -> NotFound:
    """Returns the error with the topic that was meant, where it is said by its end alone."""
    if ref.startswith(_NEVER_TOPICS) or "#" in ref:
        return error
    from turnmark.commands.open_ import topics_ending  # noqa: PLC0415 - only after a wrong name

    answer = invocation.whole("memory.topics", "topics")
    meant = topics_ending(ref, [one["topic"] for one in answer["topics"]])
    if not meant:
        return error
    return NotFound(f"nothing here is called {ref!r}; did you mean {' or '.join(meant)}?", ref=ref)


def _facts(answer: Fields) -> Iterator[tuple[str, Any]]:
    """Yields what is known beside the text; of a turn each fact by itself."""
    for name, value in answer.items():
        if name == "turn" and isinstance(value, Mapping):
            turn: Fields = value  # pyright: ignore[reportUnknownVariableType] # decoded JSON
            yield from ((one, fact) for one, fact in turn.items() if one not in _SAID_BEFORE)
        elif name not in {"text", "sources"}:
            yield name, value
