"""The conversation that ships for `turnmark demo`."""

from __future__ import annotations

import importlib.resources
from typing import Any

import msgspec

from turnmark_memory.writers.statements import statements_in
from turnmark_session_store.requests import AppendTurns, Checkout, OpenSession, Rewind

REQUESTS: dict[str, type[msgspec.Struct]] = {
    "session.open": OpenSession,
    "session.checkout": Checkout,
    "session.rewind": Rewind,
    "turn.append": AppendTurns,
}


def conversation() -> dict[str, Any]:
    file = importlib.resources.files("turnmark") / "demo_conversation.json"
    found = msgspec.json.decode(file.read_bytes())
    assert isinstance(found, dict)
    return found


def test_holds_calls_that_the_daemon_would_take() -> None:
    """Every step has a line for its reader, a method, and params of that method's shape."""
    for step in conversation()["steps"]:
        assert set(step) == {"say", "method", "params"}
        assert len(step["say"].splitlines()) == 1
        msgspec.convert(step["params"], REQUESTS[step["method"]])


def test_names_only_turns_that_it_has_appended() -> None:
    """What a step refers to stands in an earlier step, and every turn has an id and a time."""
    known: set[str] = set()
    for step in conversation()["steps"]:
        params = step["params"]
        named = [params.get(field) for field in ("after", "tip", "to")]
        named.append(params.get("caller", {}).get("turn"))
        assert {one for one in named if one} <= known
        for turn in params.get("turns", []):
            assert turn["id"] not in known
            assert turn["time"].startswith("2026-08-10T")
            known.add(turn["id"])


def test_shows_every_way_a_branch_can_move() -> None:
    """There are a fork, a retry, a checkout, a rewind and a spawn."""
    steps = conversation()["steps"]
    after = [step["params"]["after"] for step in steps if "after" in step["params"]]
    assert after == ["t04", "t11"]
    assert [step["method"] for step in steps].count("session.rewind") == 1
    assert [step["method"] for step in steps].count("session.checkout") == 1
    assert [step["params"]["session"] for step in steps if "caller" in step["params"]] == [
        "demo-kiosk-helmets"
    ]


def test_says_what_its_queries_ask_for() -> None:
    """The statement that answers each query is one that the built-in writer keeps."""
    kept = [
        statement.text
        for step in conversation()["steps"]
        for turn in step["params"].get("turns", [])
        if turn["role"] == "user"
        for statement in statements_in(turn["text"])
    ]
    for answer in ("booking page is 21 August", "card payments only, because", "六十顶头盔"):
        assert any(answer in text for text in kept)
    assert [query["session"] for query in conversation()["recall"]] == ["demo-kiosk"] * 3
