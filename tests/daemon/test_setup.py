"""`turnmark setup`: what it would change is shown, made, kept, and taken away again exactly."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from turnmark.setup import claude_code
from turnmark.setup.changes import carry_out
from turnmark.setup.units import MADE_BY, deployed_units, literal, user_unit

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
OTHERS: dict[str, Any] = {
    "model": "opus",
    "hooks": {
        "UserPromptSubmit": [
            {"hooks": [{"type": "command", "command": "echo 你好"}]},
            {"matcher": "", "hooks": [{"type": "command", "command": "turnmark-like hook"}]},
        ],
        "Stop": [],
    },
    "permissions": {"allow": ["Bash(ls:*)"]},
}


class Home:
    """A person's home with a systemctl that notes what it is told."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root / "calls"
        self.programs = root / "bin"
        self.programs.mkdir()
        self.unit = root / ".config/systemd/user/turnmark.service"
        self.settings = root / ".claude/settings.json"

    def with_systemctl(self, code: int = 0) -> None:
        """Puts a systemctl there that ends with `code`."""
        script = self.programs / "systemctl"
        script.write_text(f'#!/bin/sh\necho "$@" >> {self.calls}\nexit {code}\n')
        script.chmod(0o700)

    def environ(self, **more: str) -> Mapping[str, str]:
        code = os.pathsep.join(sys.path)
        return {"HOME": str(self.root), "PATH": str(self.programs), "PYTHONPATH": code, **more}

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs `turnmark setup` with nobody at the keyboard."""
        return subprocess.run(
            [sys.executable, "-m", "turnmark", "setup", *words],
            env=self.environ(**environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def done(self, *words: str, **environ: str) -> str:
        """Runs `turnmark setup`, which must succeed."""
        found = self.run(*words, **environ)
        assert found.returncode == 0, found.stderr
        return found.stdout

    def files(self) -> dict[str, bytes]:
        """Every file in the home, without what the fake systemctl noted."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in found
            if path != self.calls and self.programs not in path.parents
        }


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_deploys_what_it_installs() -> None:
    """The files in deploy/ are those that the code makes."""
    for name, text in deployed_units().items():
        assert (DEPLOY / name).read_text() == text


def test_installs_the_service_and_takes_it_away(home: Home) -> None:
    """The unit names this interpreter; places are made, systemctl is told; undo leaves nothing."""
    home.with_systemctl()
    shown = home.done("service", "--yes")
    unit = home.unit.read_text()
    assert f"+ExecStart={sys.executable} -m turnmark serve" in shown
    assert f"\nExecStart={sys.executable} -m turnmark serve\n" in unit
    state, memory = home.root / ".local/state/turnmark", home.root / ".local/share/turnmark/memory"
    assert f"ReadWritePaths={state} {memory}\n" in unit
    assert state.stat().st_mode & 0o777 == 0o700
    assert memory.is_dir()
    told = home.calls.read_text().splitlines()
    assert told[1:] == [
        "--user daemon-reload",
        "--user enable turnmark.service",
        "--user restart turnmark.service",
    ]
    assert "is set up already" in home.done("service", "--yes")
    assert home.files().keys() == {".config/systemd/user/turnmark.service"}
    home.done("service", "--undo", "--yes")
    assert home.files() == {}
    assert "--user disable --now turnmark.service" in home.calls.read_text()
    assert "is not set up" in home.done("service", "--undo", "--yes")


def test_keeps_a_unit_that_was_there_and_puts_it_back(home: Home) -> None:
    """A person's own unit is kept beside, also through a second setup, and comes back exactly."""
    own = b"[Service]\nExecStart=/bin/true\n"
    home.unit.parent.mkdir(parents=True)
    home.unit.write_bytes(own)
    refused = home.run("service", "--undo", "--yes")
    assert refused.returncode == 1
    assert "not made by turnmark" in refused.stderr
    home.done("service", "--yes")
    home.done("service", "--yes", f"--state={home.root}/other place")
    assert f'"--state={home.root}/other place"' in home.unit.read_text()
    home.done("service", "--undo", "--yes")
    assert home.files() == {".config/systemd/user/turnmark.service": own}


def test_says_the_commands_where_no_manager_answers(home: Home) -> None:
    """Without systemctl, or with one that reaches no bus, the file is written and the rest said."""
    for code in (None, 1):
        if code is not None:
            home.with_systemctl(code)
        shown = home.done("service", "--yes")
        assert "  systemctl --user enable turnmark.service" in shown
        assert home.unit.read_text().startswith(MADE_BY)
        home.done("service", "--undo", "--yes")


def test_changes_nothing_unless_somebody_agrees(home: Home) -> None:
    """With nobody to ask it is wrong use; asked and refused nothing happens; a yes does it."""
    refused = home.run("claude-code")
    assert (refused.returncode, home.files()) == (2, {})
    assert "--yes" in refused.stderr
    for reply in ("\n", "n\n", "y\n"):
        leader, follower = pty.openpty()
        try:
            os.write(leader, reply.encode())
            done = subprocess.run(
                [sys.executable, "-m", "turnmark", "setup", "claude-code"],
                env=home.environ(),
                stdin=follower,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        finally:
            os.close(leader)
            os.close(follower)
        assert (done.returncode, "[y/N]" in done.stderr) == (0, True)
        assert bool(home.files()) == (reply == "y\n") == ("Nothing was changed" not in done.stdout)


def test_adds_its_hooks_beside_those_of_others(home: Home) -> None:
    """Other entries stay in place and order; doing it twice adds nothing; undo is byte for byte."""
    home.settings.parent.mkdir()
    before = json.dumps(OTHERS, indent=4, ensure_ascii=False).encode()
    home.settings.write_bytes(before)
    home.settings.chmod(0o640)
    home.done("claude-code", "--yes")
    found = json.loads(home.settings.read_text())
    assert list(found) == list(OTHERS)
    assert found["hooks"]["UserPromptSubmit"][:2] == OTHERS["hooks"]["UserPromptSubmit"]
    for event in claude_code.EVENTS:
        (hook,) = found["hooks"][event][-1]["hooks"]
        assert hook["command"] == f"{sys.executable} -m turnmark hook claude-code"
        assert 0 < hook["timeout"] <= 10
    assert b'\n    "model"' in home.settings.read_bytes()
    assert home.settings.stat().st_mode & 0o777 == 0o640
    twice = home.files()
    assert "set up already" in home.done("claude-code", "--yes")
    assert home.files() == twice
    assert twice[".claude/settings.json.before-turnmark"] == before
    home.done("claude-code", "--undo", "--yes")
    assert home.files() == {".claude/settings.json": before}


def test_takes_only_its_own_away_after_others_came(home: Home) -> None:
    """What was added between setup and undo stays; a file that setup made goes when empty."""
    home.done("claude-code", "--yes")
    assert home.files().keys() == {".claude/settings.json", ".claude.json"}
    found = json.loads(home.settings.read_text())
    found["theme"] = "dark"
    found["hooks"]["UserPromptSubmit"][0]["hooks"].append({"type": "command", "command": "date"})
    home.settings.write_text(json.dumps(found))
    home.done("claude-code", "--undo", "--yes")
    left = {"hooks": [{"type": "command", "command": "date"}]}
    wanted = {"hooks": {"UserPromptSubmit": [left]}, "theme": "dark"}
    assert json.loads(home.settings.read_text()) == wanted
    home.settings.unlink()
    home.done("claude-code", "--yes")
    home.done("claude-code", "--undo", "--yes")
    assert home.files() == {}


def test_follows_a_link_and_another_directory(home: Home) -> None:
    """Settings that are a link into somebody's dotfiles stay one; CLAUDE_CONFIG_DIR is heard."""
    real = home.root / "dotfiles.json"
    real.write_text("{}\n")
    directory = home.root / "elsewhere"
    directory.mkdir()
    (directory / "settings.json").symlink_to(real)
    home.done("claude-code", "--yes", "--socket=/run/t.sock", CLAUDE_CONFIG_DIR=str(directory))
    assert (directory / "settings.json").is_symlink()
    assert "hook claude-code --socket=/run/t.sock" in real.read_text()
    home.done("claude-code", "--undo", "--yes", CLAUDE_CONFIG_DIR=str(directory))
    assert real.read_text() == "{}\n"


@pytest.mark.parametrize("content", ["{", "[]", '{"hooks": []}', '{"hooks": {"SessionStart": {}}}'])
def test_leaves_settings_alone_that_it_does_not_understand(home: Home, content: str) -> None:
    """Broken or unknown settings are refused with the file or key, and stay as they are."""
    home.settings.parent.mkdir()
    home.settings.write_text(content)
    refused = home.run("claude-code", "--yes")
    assert refused.returncode == 1
    assert "settings" in refused.stderr
    assert home.files() == {".claude/settings.json": content.encode()}


def test_adds_the_server_only_where_there_is_one(home: Home) -> None:
    """The MCP entry comes with the command `mcp`, beside other servers, and goes with undo."""
    servers = home.root / ".claude.json"
    before = {"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}
    servers.write_text(json.dumps(before))
    environ = home.environ()
    with_it = claude_code.setup_plan(environ, (), with_mcp=True)
    without = claude_code.setup_plan(environ, (), with_mcp=False)
    assert servers not in {file.path for file in without.files}
    (change,) = [file for file in with_it.files if file.path == servers]
    assert change.after is not None
    found = json.loads(change.after)["mcpServers"]
    assert found["other"] == {"command": "x"}
    assert found["turnmark"]["args"] == ["-m", "turnmark", "mcp"]
    for file in with_it.files:
        if file.after is not None:
            file.path.parent.mkdir(exist_ok=True)
            file.path.write_bytes(file.after)
    home.done("claude-code", "--undo", "--yes")
    assert home.files() == {".claude.json": json.dumps(before).encode()}


def test_lists_what_can_be_set_up(home: Home) -> None:
    """Each subject with its state, for a person and for a machine; a slip is wrong use."""
    assert json.loads(home.done("--json")) == {
        "setups": [
            {"name": "service", "state": "not set up"},
            {"name": "claude-code", "state": "Claude Code is not here"},
        ]
    }
    home.done("claude-code", "--yes")
    assert "claude-code  set up " in home.done()
    wrong = home.run("cloud-code")
    assert wrong.returncode == 2
    assert "service" in wrong.stderr


def test_quotes_words_for_systemd() -> None:
    """Blanks, quotes, percent and dollar signs come through as they are."""
    text = user_unit(("/bin/a b", literal("100%$x")), ("/data/my memory",))
    assert '\nExecStart="/bin/a b" 100%%$$x\n' in text
    assert '\nReadWritePaths="/data/my memory"\n' in text


@pytest.mark.parametrize(
    ("name", "scope", "threshold"),
    # Lower is safer. Measured: 6.0 and 1.1 with systemd 252; a bare service has 9.6.
    [("turnmark.service", "--user", 62), ("turnmark-system.service", "--system", 15)],
)
def test_is_a_unit_that_systemd_accepts_and_finds_safe(
    name: str, scope: str, threshold: int, tmp_path: Path
) -> None:
    """Systemd's own checker finds no fault, and its exposure stays under what was reached."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "turnmark.service"
    text = deployed_units()[name]
    for program in ("%h/.local/bin/turnmark", "/opt/turnmark/bin/turnmark"):
        text = text.replace(program, shutil.which("true") or "")
    unit.write_text(text)
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    for words in (
        (scope, "verify", str(unit)),
        ("security", "--offline=true", f"--threshold={threshold}", str(unit)),
    ):
        done = subprocess.run(
            (analyze, *words), env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Unknown" not in done.stderr


@pytest.mark.parametrize(
    "content",
    [
        *('{"mcpServers": {}}', '{ "hooks": {},\n  "theme": "深色" }', "{}", ""),
        *('{"hooks": {"SessionStart": [], "Stop": []}}\n', '{"hooks":{},"mcpServers":{}}'),
    ],
)
def test_gives_back_what_was_empty_before(home: Home, content: str) -> None:
    """Byte for byte; where something was added meanwhile, the empty object is there beside it."""
    environ = home.environ()
    files = [home.settings, home.root / ".claude.json"]
    home.settings.parent.mkdir()
    for file in files:
        file.write_text(content)
    planned = claude_code.setup_plan(environ, (), with_mcp=True)
    for change in planned.files:
        carry_out(change)
    assert all("turnmark" in file.read_text() for file in files)
    for change in claude_code.undo_plan(environ).files:
        carry_out(change)
    assert [file.read_text() for file in files] == [content, content]
    assert set(home.root.rglob("*.before-turnmark")) == set()


def test_leaves_an_empty_object_beside_what_came_meanwhile(home: Home) -> None:
    """An agent that rewrites its file meets the keys that it had."""
    file = home.root / ".claude.json"
    file.write_text('{"mcpServers": {}}')
    for change in claude_code.setup_plan(home.environ(), (), with_mcp=True).files:
        carry_out(change)
    file.write_text(json.dumps({**json.loads(file.read_text()), "numStartups": 4}))
    for change in claude_code.undo_plan(home.environ()).files:
        carry_out(change)
    assert json.loads(file.read_text()) == {"mcpServers": {}, "numStartups": 4}
