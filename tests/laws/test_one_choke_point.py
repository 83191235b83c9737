"""No module but the gate writes a tip or a head.

The database refuses such a write by itself (its triggers are tested with the store); this finds
the SQL before it runs.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GATE = ROOT / "session_store" / "turnmark_session_store" / "heads.py"
PACKAGES = ("daemon", "events", "memory", "session_store")

_COLUMNS = {"branch": "tip|move", "session": "head|head_branch|head_move"}
_FORBIDDEN = {
    "sets a tip or head": re.compile(
        "|".join(
            rf"\bUPDATE\s+(?:OR\s+\w+\s+)?{table}\b(?:(?!\bWHERE\b).)*"
            rf"(?:\bSET\b|,)\s*\(?(?:{columns})\b\s*[=,)]"
            for table, columns in _COLUMNS.items()
        ),
        re.IGNORECASE | re.DOTALL,
    ),
    "makes a branch": re.compile(
        r"\b(?:INSERT\s+(?:OR\s+\w+\s+)?|REPLACE\s+)INTO\s+branch\b", re.IGNORECASE
    ),
    "makes a session with a head": re.compile(
        r"\b(?:INSERT\s+(?:OR\s+\w+\s+)?|REPLACE\s+)INTO\s+session\s*\([^)]*\bhead\b",
        re.IGNORECASE,
    ),
    "deletes a branch or session": re.compile(
        r"\bDELETE\s+FROM\s+(?:branch|session)\b", re.IGNORECASE
    ),
    "switches the gate off": re.compile(
        r"\bDROP\s+(?:TRIGGER|TABLE\s+(?:branch|session|event))\b|\bwritable_schema\b",
        re.IGNORECASE,
    ),
}


def sql_in(source: str) -> list[str]:
    """Returns every string of a module; the holes of f-strings are left open."""
    tree = ast.parse(source)
    strings: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values
            )
            strings.append("".join(parts))
    return strings


def wrongs_in(source: str) -> set[str]:
    """Returns what a module does that only the gate may do."""
    return {
        wrong
        for text in sql_in(source)
        for wrong, pattern in _FORBIDDEN.items()
        if pattern.search(text)
    }


def test_only_the_gate_writes_tips_and_heads() -> None:
    """Every other module of every package is free of such SQL."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    assert GATE in files
    wrong = {
        str(file.relative_to(ROOT)): wrongs_in(file.read_text("utf-8"))
        for file in files
        if file != GATE
    }
    assert {name: found for name, found in wrong.items() if found} == {}


def test_the_gate_is_where_it_happens() -> None:
    """The gate makes branches and sets tips and heads; the patterns recognise its SQL."""
    assert wrongs_in(GATE.read_text("utf-8")) == {"sets a tip or head", "makes a branch"}


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("UPDATE branch SET archived = 0, tip = ? WHERE id = ?", "sets a tip or head"),
        ("update or ignore session\n set head_branch=?", "sets a tip or head"),
        ("UPDATE session SET (closed_ms, head) = (?, ?)", "sets a tip or head"),
        ("REPLACE INTO branch VALUES (1)", "makes a branch"),
        ("INSERT INTO session (name, head) VALUES (?, ?)", "makes a session with a head"),
        ("DELETE FROM branch WHERE 1", "deletes a branch or session"),
        ("DROP TRIGGER tip_moves_with_its_row", "switches the gate off"),
    ],
)
def test_finds_a_side_door(sql: str, wrong: str) -> None:
    """Every way to write a tip or head in SQL is recognised, also inside an f-string."""
    assert wrongs_in(f"run({sql!r})") == {wrong}
    assert wrongs_in(f"run(f{sql + ' {x}'!r})") == {wrong}


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE branch SET idle_ms = NULL WHERE tip = ?",
        "UPDATE session SET closed_ms = ? WHERE head = ?",
        "INSERT INTO session (name, agent) VALUES (?, ?)",
        "INSERT INTO session_words (session, title) VALUES (?, ?)",
        "SELECT tip FROM branch",
        "CREATE TRIGGER t BEFORE UPDATE OF tip, move ON branch",
    ],
)
def test_lets_other_sql_be(sql: str) -> None:
    """Reading tips, and writing what is no tip or head, is nobody's business."""
    assert wrongs_in(f"run({sql!r})") == set()
