"""The examples of docs/examples: their memories are what their conversations give."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from turnmark_session_store.requests import AppendTurns, OpenSession

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
NAMES = ("ferry-board", "market-hall", "xiaozhou")
REQUESTS: dict[str, type[msgspec.Struct]] = {
    "session.open": OpenSession,
    "turn.append": AppendTurns,
}

_ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """The script that writes them."""
    spec = importlib.util.spec_from_file_location("make_examples", EXAMPLES / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files_of(memory: Path) -> dict[str, bytes]:
    return {
        file.relative_to(memory).as_posix(): file.read_bytes()
        for file in sorted(memory.rglob("*"))
        if file.is_file()
    }


def turns_of(make: ModuleType, name: str) -> list[str]:
    appended = [call.params for call in make.calls(name) if call.method == "turn.append"]
    return [turn["id"] for params in appended for turn in params["turns"]]


def test_are_the_three(make: ModuleType) -> None:
    """Nothing else lies there that the script would make a memory of."""
    assert tuple(make.names()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_hold_calls_that_the_daemon_would_take(make: ModuleType, name: str) -> None:
    """Params have the method's shape, turns have a time and an id of their own, forks a root."""
    known: set[str] = set()
    for call in make.calls(name):
        if call.method == "memory.flush":
            assert call.params == {}
            continue
        request = msgspec.convert(call.params, REQUESTS[call.method])
        if isinstance(request, AppendTurns):
            assert request.after is msgspec.UNSET or request.after in known
            for turn in request.turns:
                assert turn.time is not None
                assert turn.id is not None
                assert turn.id not in known
                known.add(turn.id)


@pytest.mark.parametrize("name", NAMES)
def test_have_a_fork(make: ModuleType, name: str) -> None:
    """In each of them somebody goes back and goes on from there."""
    assert any("after" in call.params for call in make.calls(name))


@pytest.mark.parametrize("name", NAMES)
def test_ask_ten_questions_about_turns_that_there_are(make: ModuleType, name: str) -> None:
    """Each has an answer and names the turns that say it."""
    rows = _ROW.findall((EXAMPLES / name / "questions.md").read_text("utf-8"))
    assert [number for number, *_ in rows] == [str(number) for number in range(1, 11)]
    known = set(turns_of(make, name))
    assert all(known.issuperset(turns.split(", ")) for *_, turns in rows)


def test_is_made_again_to_the_byte(make: ModuleType, tmp_path: Path) -> None:
    """A daemon of its own writes what is committed; where not, `docs/examples/make.py` is due."""
    make.make("xiaozhou", tmp_path / "memory")
    assert files_of(tmp_path / "memory") == files_of(EXAMPLES / "xiaozhou" / "memory")
