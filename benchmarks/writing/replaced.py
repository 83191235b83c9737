"""Short conversations of what replaces what: an old fact a line, and later what ends it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from writing.labelled import CORPUS, Conversation, Gold, Turn, Who

_START = datetime(2026, 3, 2, 9, tzinfo=UTC)
_BETWEEN = timedelta(days=30)
_LINE = re.compile(r"(?P<who>[^:]+): (?P<text>.*?)(?P<marks>(?:\s+[=>~]\w+)*)")


def read_replaced() -> list[Conversation]:
    """Returns the conversations of `writer_corpus/replaced/`; its README explains the lines."""
    return [
        Conversation(name=name, half="learn", turns=tuple(turns))
        for file in sorted((CORPUS / "replaced").glob("*.txt"))
        for name, turns in _conversations(file.read_text("utf-8"))
    ]


def _conversations(text: str) -> Iterator[tuple[str, list[Turn]]]:
    for part in text.split("# ")[1:]:
        head, *lines = part.strip().splitlines()
        name, _, *more = head.split()
        project = more[0].partition("=")[2] if more else None
        yield name, list(_turns(name, project, lines))


def _turns(name: str, project: str | None, lines: Sequence[str]) -> Iterator[Turn]:
    session, known = 0, dict[str, str]()
    for number, line in enumerate(lines):
        if line == "--":
            session += 1
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"{name}: no line is written like {line!r}")
        key = f"{name}-{number:03}"
        who = found["who"]
        yield Turn(
            id=key,
            conversation=name,
            kind="replaced",
            language=name[:2],
            session=f"{name}-{session}",
            agent="made-up",
            project=project,
            role="user",
            speaker=None if who == "U" else Who(id=who.casefold(), name=who),
            time=(_START + session * _BETWEEN + timedelta(minutes=number)).isoformat(),
            text=found["text"],
            keep=tuple(_keep(key, found["text"], found["marks"].split(), known)),
        )


def _keep(key: str, text: str, marks: Sequence[str], known: dict[str, str]) -> Iterator[Gold]:
    for mark in marks:
        sign, fact = mark[0], mark[1:]
        one = f"{key}-{fact}"
        old = known.get(fact)
        yield Gold(
            id=one,
            what=text,
            quotes=(text,),
            topics=(),
            supersedes=old if sign == ">" else None,
            duplicate_of=old if sign == "~" else None,
        )
        if sign != "~":
            known[fact] = one
