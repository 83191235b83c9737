"""weclaw, which lets people talk to the agents of this machine over WeChat, keeps no transcript.

What is said through it stands in the transcripts of the agents that it calls (Claude Code, Codex,
OpenClaw, pi and others), which are followed by themselves; they work in a directory of weclaw's.
Who spoke is not told there. weclaw's log says it, but only when an answer is over: turns are in the
store by then, and a turn's speaker is part of what it is. So they have none.

Beside that directory lie the credentials of its accounts, which nothing of turnmark opens.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Final

AGENT: Final = "weclaw"
HOME: Final = ".weclaw"
"""The name of its directory at home."""

ELSEWHERE: Final = (
    "weclaw keeps no transcripts: what is said through it is read with those of the agents that it"
    " calls; there is nothing to set up"
)
_WORKSPACE = "workspace"
_ACCOUNTS = "accounts"


def workspace(home: Path) -> Path:
    """Returns where the agents work that weclaw calls, unless they were told otherwise.

    `home` is weclaw's own directory.
    """
    return home / _WORKSPACE


def is_home(folder: PurePath) -> bool:
    """Returns whether a directory is weclaw's own, in which no transcript can be."""
    return folder.name == HOME


def is_private(path: PurePath) -> bool:
    """Returns whether a path is that of the credentials of weclaw's accounts, or among them."""
    return any(one.name == _ACCOUNTS and one.parent.name == HOME for one in (path, *path.parents))
