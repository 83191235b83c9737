"""`turnmark open TOPIC`: a topic in the editor of whoever types it."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from turnmark.commands.invocation import Invocation, text_of
from turnmark.commands.parser import hint
from turnmark_events.errors import NotFound, Unavailable

_USUAL_EDITOR = "vi"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "topic",
        metavar="TOPIC",
        nargs="?",
        help="people/robin, or its end; without: the directory of all topics is printed",
    )


def run(invocation: Invocation) -> int:
    """Starts the editor on the topic's file and waits; prints the path where nobody could type.

    Raises:
        NotFound: if there is no such topic, or several end so.
        Unavailable: if the editor can't be started, or failed.
    """
    directory = Path(invocation.call("status")["workspace_path"]) / "topics"
    asked = invocation.options.topic
    path = directory
    if asked is not None:
        answer = invocation.whole("memory.topics", "topics")
        topic = _topic_of(text_of(asked, "TOPIC"), [one["topic"] for one in answer["topics"]])
        path = directory / f"{topic}.md"
    if invocation.as_json:
        invocation.print_json({"path": str(path)})
    elif asked is None or not (invocation.stdin.isatty() and invocation.stdout.isatty()):
        invocation.print(str(path))
    else:
        _edit(path, invocation.environ)
    return 0


def _topic_of(asked: str, topics: Sequence[str]) -> str:
    """Returns the one topic that is called so, or whose last names are."""
    named = asked.strip("/").removeprefix("topics/").removesuffix(".md")
    if named in topics:
        return named
    ends = topics_ending(named, topics)
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise NotFound(f"several topics end in {named!r}: {', '.join(ends)}; name one")
    how = hint(named, topics) or "; `turnmark topics` lists them"
    raise NotFound(f"there is no topic {named!r}{how}")


def topics_ending(name: str, topics: Sequence[str]) -> list[str]:
    """Returns the topics whose last names are these, in any case, sorted."""
    return sorted(one for one in topics if one.casefold().endswith(f"/{name.casefold()}"))


def _edit(path: Path, environ: Mapping[str, str]) -> None:
    """Runs the editor that VISUAL or EDITOR name, which may have options of its own."""
    editor = environ.get("VISUAL") or environ.get("EDITOR") or _USUAL_EDITOR
    try:
        done = subprocess.run([*shlex.split(editor), os.fspath(path)], check=False)  # noqa: S603 - the user's own editor
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"the editor {editor!r} can't be started: set EDITOR, or open {path} yourself"
        ) from error
    if done.returncode:
        raise Unavailable(f"{editor} ended with {done.returncode}; the topic is {path}")
