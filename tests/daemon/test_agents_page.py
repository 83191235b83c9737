"""Tests of `docs/agents.md`: what it shows is done as it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import anyio
import msgspec
import pytest

from daemon.daemon_process import daemon_place
from turnmark.config import Rule, Rules

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
SECONDS = 60
TALK = """
const at = (second) => 1786269600000 + 1000 * second;
const talk = [
  { role: "user", content: "I live in Bergen.", timestamp: at(0) },
  { role: "assistant", content: [{ type: "text", text: "Noted." }], timestamp: at(1) },
  { role: "toolResult", content: [{ type: "text", text: "README.md" }], timestamp: at(2) },
  { role: "user", content: "我喜欢咖啡。", timestamp: at(3) },
];
remember(process.argv[2], "talk", talk.slice(0, Number(process.argv[3])));
"""


def shown(language: str) -> str:
    """The page's example in a language."""
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.mark.anyio
@pytest.mark.skipif(shutil.which("node") is None, reason="the example is JavaScript")
async def test_a_program_hands_over_its_messages_as_they_are(tmp_path: Path) -> None:
    """Again and again: what was there is found again, and what tools gave back is left out."""
    script = tmp_path / "talk.mjs"
    script.write_text(shown("js") + TALK, encoding="utf-8")
    with daemon_place(idle_minutes=60) as place:
        place.start()
        async with place.connect() as client, client.subscribe(types=["TipMoved"]) as events:
            for messages in (3, 3, 4):
                command = ["node", str(script), str(place.socket), str(messages)]
                subprocess.run(command, check=True, timeout=SECONDS)  # noqa: ASYNC221  one at a time
            texts: list[str] = []
            with anyio.fail_after(SECONDS):
                while "我喜欢咖啡。" not in texts:
                    await anext(events)
                    branch = await client.call("session.branch", {"session": "talk"})
                    texts = [turn["text"] for turn in branch["turns"]]
        assert texts == ["I live in Bergen.", "Noted.", "我喜欢咖啡。"]
        place.stop()


def test_the_rule_keeps_a_directory_out() -> None:
    """As the configuration would take it."""
    [rule] = tomllib.loads(shown("toml"))["rules"]
    rules = Rules((msgspec.convert(rule, Rule),))
    project = "/srv/weclaw/workspace"
    assert rules.memory_for("claude-code", project, "s") == "off"
    assert rules.memory_for("claude-code", "/srv/other", "s") == "on"
