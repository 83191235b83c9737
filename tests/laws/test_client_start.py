"""A command starts at once: it imports neither the daemon nor what only the daemon needs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

# What only the daemon needs; each of them costs more than all that a client imports.
HEAVY = ("anyio", "asyncio", "structlog", "tiktoken", "apsw", "watchfiles")
OURS = ("turnmark_memory", "turnmark.rpc.server", "turnmark.config", "turnmark.service")
STORE = "turnmark_session_store"
PACKAGES = ("turnmark", "turnmark.rpc", "turnmark_events", "turnmark_session_store")
# Each client's command with the arguments that it can't do without.
CLIENT_COMMANDS = {
    "status": (),
    "sessions": (),
    "tree": ("s",),
    "append": ("s", "你好"),
    "import": (".",),
    "migrate": ("openprogram", "."),
    "export": ("s",),
    "owed": (),
    "flush": (),
    "recall": ("q",),
    "show": ("b-1",),
    "core": (),
    "topics": (),
    "open": (),
    "organize": (),
    "watch": (),
}

RUN = """
import sys
from turnmark.main import main
main(sys.argv[1:])
print(*sorted(sys.modules))
"""


def modules_after(*arguments: str, cwd: Path) -> set[str]:
    """Returns what an interpreter has imported once a command has failed to find a daemon."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments, "--socket", str(cwd / "nobody.sock")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "no turnmark daemon answers" in done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("command", CLIENT_COMMANDS)
def test_a_command_imports_only_what_a_client_needs(command: str, tmp_path: Path) -> None:
    """Up to the connection, which nobody answers here, no part of the daemon is imported."""
    found = modules_after(command, *CLIENT_COMMANDS[command], cwd=tmp_path)
    assert "turnmark.client_sync" in found
    assert sorted(found & {*HEAVY, *OURS}) == []
    if command not in ("import", "migrate"):  # which read the files of agents by themselves
        assert STORE not in found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_is_there(package: str) -> None:
    """What type checkers see, what `__all__` lists and what the interpreter finds is the same."""
    module = importlib.import_module(package)
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    assert sorted(alias.name for node in imports for alias in node.names) == sorted(module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing
