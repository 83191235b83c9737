"""Writes the memories beside the example conversations, through a daemon of its own.

Run: python docs/examples/make.py [NAME …]

Each line of a `conversation.jsonl` is a call to the daemon; `memory.flush` stands where everything
had fallen silent. Afterwards the workspace is copied to `memory/`, without `.turnmark/`. What is of
the run and not of the conversation is put into one form: ids of blocks are counted out in the order
of files and lines, and a block was superseded on the day of the last turn.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import msgspec

from turnmark import connect_sync
from turnmark.demo_daemon import demo_daemon, demo_place
from turnmark_memory.labels import BLOCK_PATTERN, block_id_of

EXAMPLES = Path(__file__).parent
CONVERSATION = "conversation.jsonl"
MEMORY = "memory"

# What is not derived from the conversation alone: identity and history of one workspace.
_LEFT_OUT = shutil.ignore_patterns(".*")
_BLOCK = re.compile(BLOCK_PATTERN)
_SUPERSEDED = re.compile(r"(?<=<!-- superseded )\d{4}-\d\d-\d\d(?= by )")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call, as it stands on a line."""

    method: str
    params: dict[str, object]


def calls(name: str) -> list[Call]:
    """Returns the calls of an example."""
    text = (EXAMPLES / name / CONVERSATION).read_bytes()
    return msgspec.json.Decoder(Call).decode_lines(text)


def names() -> list[str]:
    """Returns the examples there are."""
    return sorted(file.parent.name for file in EXAMPLES.glob(f"*/{CONVERSATION}"))


def make(name: str, memory: Path) -> None:
    """Writes the memory of an example to the directory `memory`, replacing what is there.

    Raises:
        DemoFailed: if the daemon does not start or does not end well.
        TurnmarkError: if it refuses a call, or leaves something unwritten.
    """
    with demo_place() as place:
        with demo_daemon(place, os.environ) as daemon:
            with connect_sync(place.socket) as client:
                for call in calls(name):
                    client.call(call.method, dict(call.params))
                if owed := client.call("memory.owed")["turns"]:
                    raise daemon.failed(f"{owed} turns of {name} were not written")
            daemon.stop()
        shutil.rmtree(memory, ignore_errors=True)
        shutil.copytree(place.workspace, memory, ignore=_LEFT_OUT)
    _put_into_one_form(name, memory)


def last_day(name: str) -> str:
    """Returns the day of the newest turn of an example."""
    text = (EXAMPLES / name / CONVERSATION).read_text("utf-8")
    return max(re.findall(r'"time": "(\d{4}-\d\d-\d\d)T', text))


def _put_into_one_form(name: str, memory: Path) -> None:
    ids: dict[str, str] = {}
    day = last_day(name)

    def counted(found: re.Match[str]) -> str:
        return ids.setdefault(found[0], block_id_of(name, str(len(ids))))

    topics = sorted((memory / "topics").rglob("*.md"))
    others = [file for file in sorted(memory.rglob("*.md")) if file not in topics]
    for file in (*topics, *others):
        text = _BLOCK.sub(counted, file.read_text("utf-8"))
        file.write_text(_SUPERSEDED.sub(day, text), "utf-8")


def main() -> None:
    """Makes the examples that are named, or all of them."""
    for name in sys.argv[1:] or names():
        make(name, EXAMPLES / name / MEMORY)


if __name__ == "__main__":
    main()
