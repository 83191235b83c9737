"""One short conversation as each agent that writes files writes it, and what may become of it."""

from __future__ import annotations

from typing import NamedTuple

from session_store.transcripts import claude_records as claude
from session_store.transcripts import codex_rollouts as codex
from session_store.transcripts import openclaw_files as openclaw
from session_store.transcripts import pi_records as pi
from session_store.transcripts.agents import CLAUDE_CODE, CODEX, OPENCLAW, PI, FileAgent
from session_store.transcripts.json_records import lines

SAID = ["I live in Bergen.", "Noted.", "我喜欢咖啡。", "好的。"]


class Talk(NamedTuple):
    """`SAID`, a line each, in the file `path` below an agent's directory, in a session.

    `given` is how many turns are there after each line. `tea` says "And tea." behind what the first
    `kept` lines end with, which is what `kept_end` says. `secret` is a file of another session, and
    a line that comes to it, in the project `/home/robin/secret`.
    """

    agent: FileAgent
    session: str
    path: str
    lines: tuple[bytes, ...]
    given: tuple[int, ...]
    kept: int
    kept_end: str
    tea: bytes
    secret: tuple[str, bytes, bytes]

    def __str__(self) -> str:
        """The agent's name, in the ids of tests."""
        return self.agent.name

    @property
    def whole(self) -> bytes:
        """The file."""
        return b"".join(self.lines)

    @property
    def beginning(self) -> bytes:
        """What is kept of it."""
        return b"".join(self.lines[: self.kept])


_OTHER = "5e55107a-0000-4000-8000-000000000002"
_HUSHED = {"cwd": "/home/robin/secret", "sessionId": _OTHER}
CLAUDE_CODE_TALK = Talk(
    agent=CLAUDE_CODE,
    session=claude.SESSION,
    path=f"-home-robin-demo/{claude.SESSION}.jsonl",
    lines=tuple(
        map(
            lines,
            (
                claude.user("u1", None, 0, SAID[0]),
                claude.answer("a1", "u1", 1, SAID[1], response="m1"),
                claude.hook("s1", "a1", 2),
                claude.user("u2", "s1", 3, SAID[2]),
                claude.answer("a2", "u2", 4, SAID[3], response="m2"),
                claude.hook("s2", "a2", 5),
            ),
        )
    ),
    given=(1, 1, 2, 3, 3, 4),
    kept=1,
    kept_end=SAID[0],
    tea=lines(claude.user("u9", "u1", 20, "And tea.")),
    secret=(
        f"-secret/{_OTHER}.jsonl",
        lines(claude.user("x1", None, 0, "Hush", **_HUSHED)),
        lines(claude.user("x2", "x1", 1, "Hush!", cwd="/x", sessionId=_OTHER)),
    ),
)
CODEX_TALK = Talk(
    agent=CODEX,
    session=codex.THREAD,
    path=f"sessions/2026/08/09/{codex.rollout_name(codex.THREAD)}",
    lines=tuple(map(lines, codex.TALK)),
    given=(0, 0, 1, 2, 2, 3, 4),
    kept=3,
    kept_end=SAID[0],
    tea=lines(codex.started(codex.uuid7(30, 8), 30), codex.typed("And tea.", 31)),
    secret=(
        f"sessions/2026/08/09/{codex.rollout_name(codex.OTHER)}",
        lines(codex.meta(codex.OTHER, 500, cwd="/home/robin/secret"), codex.typed("Hush", 501)),
        lines(codex.typed("Hush!", 502)),
    ),
)
OPENCLAW_TALK = Talk(
    agent=OPENCLAW,
    session="s1",
    path=f"{openclaw.FOLDER}/s1.jsonl",
    lines=tuple(
        map(
            lines,
            (
                openclaw.header("s1"),
                openclaw.message("00000001", None, 1, "user", SAID[0]),
                openclaw.message("00000002", "00000001", 2, "assistant", SAID[1]),
                openclaw.message("00000003", "00000002", 3, "user", SAID[2]),
                openclaw.message("00000004", "00000003", 4, "assistant", SAID[3]),
            ),
        )
    ),
    given=(0, 1, 2, 3, 4),
    kept=3,
    kept_end=SAID[1],
    tea=lines(openclaw.message("00000009", "00000002", 50, "user", "And tea.")),
    secret=(
        f"{openclaw.FOLDER}/s2.jsonl",
        lines(
            openclaw.header("s2", cwd="/home/robin/secret"),
            openclaw.message("0000000a", None, 1, "user", "Hush"),
        ),
        lines(openclaw.message("0000000b", "0000000a", 2, "user", "Hush!")),
    ),
)
PI_TALK = Talk(
    agent=PI,
    session=pi.SESSION,
    path=f"--home-robin-demo--/{pi.file_name()}",
    lines=tuple(map(lines, pi.TALK)),
    given=(0, 1, 2, 3, 4),
    kept=3,
    kept_end=SAID[1],
    tea=lines(pi.user("cccc0001", "aaaa0002", "And tea.", 50)),
    secret=(
        f"--home-robin-demo--/{pi.file_name(pi.OTHER, 50)}",
        lines(pi.header(pi.OTHER, cwd="/home/robin/secret"), pi.user("aaaa0001", None, "Hush", 1)),
        lines(pi.user("aaaa0009", "aaaa0001", "Hush!", 9)),
    ),
)
TALKS = (CLAUDE_CODE_TALK, CODEX_TALK, OPENCLAW_TALK, PI_TALK)
