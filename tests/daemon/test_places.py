"""Places: each has one order of overrides, and clients find the daemon that is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from turnmark.places import (
    claude_code_dir,
    client_sockets,
    codex_dir,
    config_path,
    hermes_dir,
    home_dir,
    openclaw_dir,
    opencode_place,
    openprogram_dir,
    pi_dir,
    socket_path,
    state_dir,
    workspace_dir,
)

HOME = {"HOME": "/home/ada"}
XDG = HOME | {
    "XDG_STATE_HOME": "/x/state",
    "XDG_DATA_HOME": "/x/data",
    "XDG_CONFIG_HOME": "/x/config",
    "XDG_RUNTIME_DIR": "/run/user/1",
}


def test_defaults_are_in_the_home_directory() -> None:
    """Without any variable everything is where XDG puts it."""
    assert state_dir(environ=HOME) == Path("/home/ada/.local/state/turnmark")
    assert workspace_dir(environ=HOME) == Path("/home/ada/.local/share/turnmark/memory")
    assert config_path(environ=HOME) == Path("/home/ada/.config/turnmark/config.toml")
    assert socket_path(state=Path("/s"), environ=HOME) == Path("/s/turnmark.sock")


def test_xdg_directories_are_followed() -> None:
    """The four XDG variables move the four places."""
    assert state_dir(environ=XDG) == Path("/x/state/turnmark")
    assert workspace_dir(environ=XDG) == Path("/x/data/turnmark/memory")
    assert config_path(environ=XDG) == Path("/x/config/turnmark/config.toml")
    assert socket_path(state=Path("/s"), environ=XDG) == Path("/run/user/1/turnmark/turnmark.sock")


def test_relative_and_empty_variables_are_ignored() -> None:
    """The XDG specification calls relative paths invalid; empty means unset."""
    environ = HOME | {"XDG_STATE_HOME": "state", "TURNMARK_STATE": "", "XDG_RUNTIME_DIR": ""}
    assert state_dir("", environ=environ) == Path("/home/ada/.local/state/turnmark")
    assert socket_path(state=Path("/s"), environ=environ) == Path("/s/turnmark.sock")


def test_systemd_directories_come_before_xdg() -> None:
    """Under a unit the directories are systemd's, the first of several."""
    environ = XDG | {
        "STATE_DIRECTORY": "/var/lib/turnmark:/var/lib/other",
        "RUNTIME_DIRECTORY": "/run/turnmark",
    }
    assert state_dir(environ=environ) == Path("/var/lib/turnmark")
    assert socket_path(state=Path("/s"), environ=environ) == Path("/run/turnmark/turnmark.sock")


def test_argument_beats_variable_beats_configuration_beats_systemd() -> None:
    """One order for all: hand, environment, file, system."""
    environ = XDG | {"STATE_DIRECTORY": "/var/lib/turnmark"}
    assert state_dir(configured="/c", environ=environ) == Path("/c")
    environ |= {"TURNMARK_STATE": "/v"}
    assert state_dir(configured="/c", environ=environ) == Path("/v")
    assert state_dir("~/我的状态", configured="/c", environ=environ) == Path("/home/ada/我的状态")


def test_client_takes_only_the_socket_that_was_named() -> None:
    """No other daemon answers in the place of the one that was asked for."""
    environ = XDG | {"TURNMARK_SOCKET": "/v.sock"}
    assert client_sockets("/a.sock", environ=environ) == [Path("/a.sock")]
    assert client_sockets(environ=environ) == [Path("/v.sock")]


def test_client_tries_the_runtime_directory_then_what_the_daemon_wrote(tmp_path: Path) -> None:
    """The order of the interface; a state that was given by hand is asked first."""
    (tmp_path / "socket.path").write_text("/else/where.sock\n")
    runtime, written = Path("/run/user/1/turnmark/turnmark.sock"), Path("/else/where.sock")
    environ = XDG | {"TURNMARK_STATE": str(tmp_path)}
    assert client_sockets(environ=environ) == [runtime, written]
    assert client_sockets(state=tmp_path, environ=XDG) == [written, runtime]


@pytest.mark.parametrize("content", [None, b"", b"\n"])
def test_client_passes_over_a_state_without_a_socket(tmp_path: Path, content: bytes | None) -> None:
    """A state directory in which no daemon ever ran adds nothing."""
    if content is not None:
        (tmp_path / "socket.path").write_bytes(content)
    assert client_sockets(state=tmp_path, environ=HOME) == []


def test_agents_say_where_their_files_are() -> None:
    """By their variable, where that is a full path, else at home; the configuration goes before."""
    home = {"HOME": "/home/me"}
    assert claude_code_dir("auto", environ=home) == Path("/home/me/.claude/projects")
    assert codex_dir("auto", environ=home) == Path("/home/me/.codex")
    named = {**home, "CODEX_HOME": "/srv/codex", "CLAUDE_CONFIG_DIR": "elsewhere"}
    assert codex_dir("auto", environ=named) == Path("/srv/codex")
    assert claude_code_dir("auto", environ=named) == Path("/home/me/.claude/projects")
    assert hermes_dir("auto", environ=home) == Path("/home/me/.hermes")
    assert hermes_dir("auto", environ={**home, "HERMES_HOME": "/srv/h"}) == Path("/srv/h")
    assert opencode_place("auto", environ=home) == Path("/home/me/.local/share/opencode")
    elsewhere = {**home, "XDG_DATA_HOME": "/srv", "OPENCODE_DB": ":memory:"}
    assert opencode_place("auto", environ=elsewhere) == Path("/srv/opencode")
    beside = {**elsewhere, "OPENCODE_DB": "mine.db"}
    assert opencode_place("auto", environ=beside) == Path("/srv/opencode/mine.db")
    alone = {**elsewhere, "OPENCODE_DB": "/tmp/mine.db"}
    assert opencode_place("auto", environ=alone) == Path("/tmp/mine.db")
    assert openclaw_dir("auto", environ=home) == Path("/home/me/.openclaw")
    assert openclaw_dir("auto", environ={**home, "OPENCLAW_STATE_DIR": "/s"}) == Path("/s")
    assert pi_dir("auto", environ=home) == Path("/home/me/.pi/agent/sessions")
    moved = {**home, "PI_CODING_AGENT_DIR": "~/pi"}
    assert pi_dir("auto", environ=moved) == Path("/home/me/pi/sessions")
    flat = {**moved, "PI_CODING_AGENT_SESSION_DIR": "/srv/talks"}
    assert pi_dir("auto", environ=flat) == Path("/srv/talks")
    assert openprogram_dir("auto", environ=home) == Path("/home/me/.openprogram")
    for find in (
        openprogram_dir,
        claude_code_dir,
        codex_dir,
        hermes_dir,
        openclaw_dir,
        opencode_place,
        pi_dir,
    ):
        assert find("off", environ=named) is None
        assert find("~/x", environ=named) == Path("/home/me/x")


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ('{"sessionDir": "/srv/talks"}', "/srv/talks"),
        ('{"sessionDir": "~/talks"}', "/home/me/talks"),
        ('{"sessionDir": ".pi/sessions"}', None),
        ('{"sessionDir": 7}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_pi_keeps_its_sessions_where_its_settings_say(
    tmp_path: Path, settings: str, found: str | None
) -> None:
    """By a full path: a relative one is another directory in each project. The variable wins."""
    (tmp_path / "settings.json").write_text(settings)
    env = {"HOME": "/home/me", "PI_CODING_AGENT_DIR": str(tmp_path)}
    assert pi_dir("auto", environ=env) == Path(found or tmp_path / "sessions")
    named = {**env, "PI_CODING_AGENT_SESSION_DIR": "/srv/mine"}
    assert pi_dir("auto", environ=named) == Path("/srv/mine")


def test_openclaw_is_found_under_its_earlier_names(tmp_path: Path) -> None:
    """Where the directory of today is not there."""
    home = {"HOME": str(tmp_path)}
    (tmp_path / ".moltbot").mkdir()
    assert openclaw_dir("auto", environ=home) == tmp_path / ".moltbot"
    (tmp_path / ".openclaw").mkdir()
    assert openclaw_dir("auto", environ=home) == tmp_path / ".openclaw"


def test_a_user_without_a_home_has_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of a container who is in no user database gets no traceback."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert config_path(environ={}) == Path("/.config/turnmark/config.toml")
    assert home_dir({"HOME": "/home/ada"}) == Path("/home/ada")
