"""The shapes that INTERFACE fixes, for `served.has_shape`."""

from __future__ import annotations

from typing import Any

TEXT_OR_NULL = (str, None)

SPEAKER = {"id?": TEXT_OR_NULL, "name?": TEXT_OR_NULL}
MARK = {
    "outcome": ("kept", "nothing", "parked"),
    "writer": str,
    "revision": int,
    "reason?": TEXT_OR_NULL,
}
TURN = {
    "id": str,
    "role": ("user", "assistant", "system", "tool"),
    "text": str,
    "kind": ("turn", "tool", "runtime", "summary", "error", "partial"),
    "speaker": (SPEAKER, None),
    "time": str,
    "caller": ({"session": str, "turn": str}, None),
    "supersedes": TEXT_OR_NULL,
    "metadata": (dict, None),
    "session": str,
    "sessions": [str],
    "branch": TEXT_OR_NULL,
    "predecessor": TEXT_OR_NULL,
    "merged": [str],
    "seq": int,
    "state": ("live", "retired", "forgotten"),
    "recordable": bool,
    "masked": bool,
    "marks": dict,
}
SOURCE = {
    "turn": str,
    "label": str,
    "session": str,
    "speaker": str,
    "time": str,
    "path": str,
    "line": int,
}
HIT = {
    "ref": str,
    "kind": ("block", "turn"),
    "text": str,
    "score": float,
    "topic?": str,
    "session?": str,
    "speaker?": str,
    "time?": str,
    "branch": ("own", "shared", "other-branch", "other-session"),
    "superseded_by?": str,
    "sources": [SOURCE],
}
CORE = {"text": str, "tokens": int, "counter": str, "blocks": [str], "left_out": [str]}
FAILURE = {"session": str, "branch": str, "reason": str}
APPENDED = {
    "turns": [str],
    "head": TEXT_OR_NULL,
    "branch": TEXT_OR_NULL,
    "forked": bool,
    "new": int,
    "forgotten": [str],
}
BRANCH = {
    "branch": str,
    "tip": TEXT_OR_NULL,
    "name": str,
    "state": ("live", "retired", "merged", "archived"),
    "moved_at": str,
    "idle_at": TEXT_OR_NULL,
    "owed_turns": int,
    "owed_tokens": int,
}
SESSION = {
    "session": str,
    "agent": str,
    "title": TEXT_OR_NULL,
    "project": TEXT_OR_NULL,
    "head": TEXT_OR_NULL,
    "tips": int,
    "turns": int,
    "owed_turns": int,
    "updated_at": str,
}
OWED_TIP = {
    "session": str,
    "branch": str,
    "tip": str,
    "head": bool,
    "n": int,
    "tokens": int,
    "oldest": str,
    "state": ("waiting", "writing", "parked", "backlog", "removed", "failing"),
    "reason?": str,
    "turns?": [str],
}
FLUSHED = {
    "batches": int,
    "turns": int,
    "tokens": int,
    "blocks": int,
    "left": int,
    "failures": [FAILURE],
}
EVENTS: dict[str, dict[str, Any]] = {
    "TipMoved": {
        "session": str,
        "branch": str,
        "old": TEXT_OR_NULL,
        "new": TEXT_OR_NULL,
        "head_old": TEXT_OR_NULL,
        "head_new": TEXT_OR_NULL,
        "cause": (
            *("append", "fork", "root", "spawn", "rewind", "checkout"),
            *("restore", "merge", "supersede", "import", "delete", "archive"),
        ),
    },
    "TipIdle": {"session": str, "branch": str, "tip": str, "since": str},
    "TurnsWritten": {
        "workspace": str,
        "session": str,
        "branch": str,
        "tip": str,
        "turns": [str],
        "outcome": ("kept", "nothing", "parked"),
        "reason?": TEXT_OR_NULL,
        "blocks": [str],
        "revision": int,
    },
    "CoreRebuilt": {"workspace": str, "tokens": int, "left_out": [str]},
    "NightDone": {"workspace": str, "date": str, "revision": int, "held": [str]},
    "Forgotten": {"turns": int},
    "Lagged": {"last": int},
}
