"""The brake in a real daemon: a model that wants to delete half the memory waits for a person."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from daemon.daemon_process import daemon_place

# Keeps each turn that it is shown; of blocks it would have the first half superseded by the last.
GREEDY = """
import json, sys
shown = [json.loads(line) for line in sys.stdin if line.startswith(('{"ref"', '{"block"'))]
edits = [{"op": "add", "topic": "subjects/facts", "text": one["text"], "cites": [one["ref"]]}
         for one in shown if "ref" in one]
names = [one["block"] for one in shown if "block" in one]
edits += [{"op": "retire", "block": name, "successor": names[-1], "reason": "tidy"}
          for name in names[: len(names) // 2]]
print(json.dumps({"edits": edits}))
"""
COUNT = 24


def topics(workspace: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((workspace / "topics").rglob("*.md"))}


def test_holds_a_greedy_model_until_it_is_approved_and_undo_restores_all() -> None:
    """Held across a restart, named in the status; approved it is one revision, taken back whole."""
    with daemon_place(idle_minutes=60) as place:
        program = place.root / "greedy.py"
        program.write_text(GREEDY, encoding="utf-8")
        command = json.dumps([sys.executable, str(program)])
        place.configure(idle_minutes=60, more=f'[writer]\nkind = "command"\ncommand = {command}\n')
        place.start()
        with place.connect_sync() as client:
            for number in range(COUNT):
                client.append("a", role="user", text=f"Fact {number}.")
            held = client.organize()["held"]
            assert (held["removes"], held["blocks"]) == (COUNT // 2, COUNT)
        before = topics(place.workspace)
        assert before["facts.md"].count(b"superseded") == 0
        place.stop()
        place.start()
        with place.connect_sync() as client:
            status = client.call("status")
            assert status["held"] == [held["pass"]]
            assert any(held["pass"] in advice for advice in status["what_to_do"])
            assert status["last_report"].startswith(".turnmark/nights/")
            answer = client.organize(approve=held["pass"])
            assert answer["changed"] == COUNT // 2
            assert topics(place.workspace)["facts.md"].count(b"superseded") == COUNT // 2
            revision = client.call("status")["revision"]
            client.undo(revision)
            assert client.call("status")["held"] == []
        assert topics(place.workspace) == before
        place.stop()
