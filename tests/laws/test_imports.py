"""Imports run one way, turnmark → memory → session store → events, and do nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# From the one that knows everybody to the one that knows nobody.
LAYERS = {
    "turnmark": ROOT / "daemon" / "turnmark",
    "turnmark_memory": ROOT / "memory" / "turnmark_memory",
    "turnmark_session_store": ROOT / "session_store" / "turnmark_session_store",
    "turnmark_events": ROOT / "events" / "turnmark_events",
}
ORDER = tuple(LAYERS)

# Runs in an interpreter of its own: imports the modules named on standard input and prints what
# they do besides. Python's own reading of modules, and what a library starts once, is not ours.
WATCH = """
import sys, threading, traceback
ours = ("daemon/turnmark/", "/turnmark_memory/", "/turnmark_session_store/", "/turnmark_events/")
def watch(event, arguments):
    effect = event in {"subprocess.Popen", "socket.bind", "socket.connect", "os.mkdir", "os.remove",
                       "os.rename", "os.fork", "signal.signal", "os.putenv"}
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if effect or writes:
        frames = traceback.extract_stack()[:-1]
        last = next((f for f in reversed(frames) if "importlib" not in f.filename), None)
        if last and any(part in last.filename for part in ours):
            print(event, arguments[:2], last.filename, last.lineno)
sys.addaudithook(watch)
for name in sys.stdin.read().split():
    __import__(name)
if threading.active_count() > 1:
    print("threads", threading.enumerate())
"""


def modules_of(package: str) -> Iterator[tuple[str, Path]]:
    """Yields the dotted name and file of each module of a package."""
    for file in sorted(LAYERS[package].rglob("*.py")):
        parts = file.relative_to(LAYERS[package].parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), file


def imported_by(source: str) -> set[str]:
    """Returns the top-level packages that a module imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("package", ORDER)
def test_import_only_what_lies_below(package: str) -> None:
    """A package imports itself and those after it in the order, never one before it."""
    above = set(ORDER[: ORDER.index(package)])
    modules = list(modules_of(package))
    assert modules
    wrong = {name: sorted(imported_by(file.read_text("utf-8")) & above) for name, file in modules}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_finds_an_import_wherever_it_hides() -> None:
    """Imports in functions and in blocks for type checkers count too."""
    source = (
        "def f():\n    import turnmark.rpc\nif TYPE_CHECKING:\n    from turnmark_memory import x\n"
    )
    assert imported_by(source) == {"turnmark", "turnmark_memory"}


def test_do_nothing_but_import() -> None:
    """No thread, file, socket, process or signal comes of importing all modules."""
    names = [
        name
        for package in ORDER
        for name, _ in modules_of(package)
        if not name.endswith("__main__")
    ]
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCH],
        input="\n".join(names),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
