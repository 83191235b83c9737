"""Writers with models in a real daemon: configured, at work, failing, and never read in again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from daemon.test_transcripts import lines, projects, status, store_of
from model_server.server import fails, keeps_each, served_in_a_thread
from session_store.transcripts.claude_records import SESSION, user
from session_store.transcripts.written_files import append

TESTS = Path(__file__).resolve().parents[1]

__all__ = ["projects"]

# Answers like an agent: it keeps each turn, and notes the whole conversation, prompt and all, where
# Claude Code notes its sessions, with a child of its own beside it.
AGENT = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from session_store.transcripts.claude_records import answer, user
asked = sys.stdin.buffer.read().decode()
turns = [json.loads(line) for line in asked.splitlines() if line.startswith('{"ref"')]
edits = [{"op": "add", "topic": "subjects/facts", "text": turn["text"], "cites": [turn["ref"]]}
         for turn in turns]
said = json.dumps({"edits": edits})
session = "5e55107a-0000-4000-8000-0000000000ff"
place = os.path.join(sys.argv[2], os.getcwd().replace("/", "-"))
os.makedirs(os.path.join(place, session, "subagents"), exist_ok=True)
where = {"cwd": os.getcwd(), "sessionId": session}
side = {"isSidechain": True, "agentId": "a1", "cwd": "/elsewhere", "sessionId": session}
with open(os.path.join(place, f"{session}.jsonl"), "w") as file:
    for record in (user("w1", None, 0, asked, **where), answer("w2", "w1", 1, said, **where)):
        file.write(json.dumps(record) + "\\n")
with open(os.path.join(place, session, "subagents", "agent-a1.jsonl"), "w") as file:
    file.write(json.dumps(user("w3", None, 2, "Look for Robin", **side)) + "\\n")
print(said)
"""


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """A place for a daemon, whose Claude Code has a directory of its own."""
    with daemon_place(idle_minutes=60) as made:
        yield made


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            'kind = "anthropic"\nmodel = "m"\napi_key_env = "NO_KEY"\n',
            "no API key: NO_KEY is neither set where turnmark runs nor a systemd credential",
        ),
        (
            'kind = "command"\ncommand = ["no-such-写手"]\n',
            "the program 'no-such-写手' is not there",
        ),
    ],
)
def test_says_what_a_model_lacks_before_it_is_asked(
    place: DaemonPlace, table: str, said: str
) -> None:
    """In `status` and in the log from the start on, and once, also after it was needed."""
    place.configure(idle_minutes=60, more=f"[writer]\n{table}")
    place.start()
    with place.connect_sync() as client:
        (before,) = client.call("status")["what_to_do"]
        client.append("a", role="user", text="I live in Porto.")
        assert client.flush()["left"] == 1
        after = client.call("status")["what_to_do"]
    place.stop()
    assert said in before
    assert sum(said in one for one in after) == 1
    assert said in place.log_text()


def test_a_model_writes_and_says_what_is_wrong(place: DaemonPlace) -> None:
    """From `[writer]` to a topic; a key that is refused is one sentence of `status`."""
    with served_in_a_thread(keeps_each) as server:
        place.configure(
            idle_minutes=60,
            more=f'[writer]\nkind = "openai"\nmodel = "qwen3-8b"\n'
            f'base_url = "{server.address}/v1"\napi_key_env = "MY_KEY"\n',
        )
        place.start(environ={"MY_KEY": "sk-1"})
        with place.connect_sync() as client:
            client.append("a", role="user", text="I live in Porto. 我养了一只猫。")
            assert client.flush()["left"] == 0
            assert client.call("status")["writer"].startswith("openai/qwen3-8b/")
            server.script = lambda _: fails(401, {"code": "invalid_api_key", "message": "sk-1"})
            client.append("b", role="user", text="I drink tea.")
            assert client.flush()["left"] == 1
            advice = client.call("status")["what_to_do"]
        place.stop()
    assert "I live in Porto" in (place.workspace / "topics/subjects/facts.md").read_text("utf-8")
    assert server.requests[0].headers["authorization"] == "Bearer sk-1"
    host = server.address.removeprefix("http://")
    said = f"{host} does not take the API key (401 invalid_api_key); check the key in MY_KEY"
    assert [one for one in advice if said in one]
    assert "sk-1" not in place.log_text()
    assert "Porto" not in place.log_text()


def test_a_programs_own_session_brings_no_turn(place: DaemonPlace, projects: Path) -> None:
    """Law 15: what a writer notes of its work lies among the files that are followed."""
    program = place.root / "agent.py"
    program.write_text(AGENT, encoding="utf-8")
    command = json.dumps([sys.executable, str(program), str(TESTS), str(projects)])
    place.configure(
        idle_minutes=60,
        more=f'[writer]\nkind = "command"\ncommand = {command}\n[transcripts]\nbacklog = "write"\n',
    )
    append(projects / "-demo" / f"{SESSION}.jsonl", lines(user("u1", None, 0, "I live in Bergen")))
    place.start()
    with place.connect_sync() as client:
        for _ in range(2):
            # Before each night all files are looked at; the second finds what the first one left.
            assert client.call("memory.organize")["owed"] == 0
        names = [one["session"] for one in client.call("session.list")["sessions"]]
    notes = sorted(projects.rglob("*.jsonl"))
    assert len(notes) == 3
    assert all(note.stat().st_size for note in notes)
    found = status(place)
    assert found["bytes_done"] == found["bytes_total"] > 0
    assert names == [SESSION]
    assert list(store_of(place)["turns"]) == ["u1"]
    assert "Bergen" in (place.workspace / "topics/subjects/facts.md").read_text("utf-8")
    place.stop()
