"""`models/command.py`: real programs, good, broken, silent and endless."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from memory.at_work import at_work, user
from turnmark_memory.models.command import MARK_VARIABLE, CommandModel
from turnmark_memory.models.model import Question
from turnmark_memory.models.settings import ModelSettings
from turnmark_memory.writers.model_writer import ModelWriter
from turnmark_memory.writers.rules import PROMPT_VERSION
from turnmark_memory.writers.writer import WriterFailed

pytestmark = pytest.mark.anyio

QUESTION = Question(
    instructions="Answer with JSON.",
    material='{"text": "Robin has moved to 里斯本 with the dog"}',
    schema_name="facts",
    schema={},
    max_answer_tokens=99,
)

# Reads the question as a writer's model does, and keeps each turn.
KEEP = """
import json, sys
turns = [json.loads(line) for line in sys.stdin.buffer.read().decode().splitlines()
         if line.startswith('{"ref"')]
edits = [{"op": "add", "topic": "subjects/facts", "text": turn["text"], "cites": [turn["ref"]]}
         for turn in turns]
print("Here you are:")
print(json.dumps({"edits": edits}))
"""


def program(tmp_path: Path, code: str, *words: str, seconds: float = 60) -> CommandModel:
    """Returns the model that a program of these lines is."""
    file = tmp_path / "model.py"
    file.write_text(code, encoding="utf-8")
    settings = ModelSettings(
        table="writer",
        kind="command",
        model="small",
        command=(sys.executable, str(file), *words),
        timeout_seconds=seconds,
    )
    environ = {"PATH": os.environ["PATH"], "PYTHONUTF8": "1"}
    return CommandModel(settings, tmp_path / "state" / "writer", environ)


async def failure_of(model: CommandModel) -> WriterFailed:
    """Returns how asking fails."""
    with anyio.fail_after(60), pytest.raises(WriterFailed) as caught:
        await model.ask(QUESTION)
    return caught.value


async def test_asks_on_standard_input_and_reads_standard_output(tmp_path: Path) -> None:
    """The rules, then what they are about; words on the standard error are nobody's answer."""
    code = "import sys; print('busy', file=sys.stderr); print(sys.stdin.read(), sys.argv[1:])"
    with anyio.fail_after(60):
        reply = await program(tmp_path, code, "--数", "a b").ask(QUESTION)
    said = f"{QUESTION.instructions}\n\n{QUESTION.material}\n"
    assert reply.text == f"{said} {['--数', 'a b']}\n"
    assert 10 < reply.prompt_tokens < 40


async def test_works_in_a_directory_of_the_writers_own(tmp_path: Path) -> None:
    """Where its sessions are known by; only the user may look in, and hooks can tell."""
    code = f"import os; print(os.getcwd(), os.environ[{MARK_VARIABLE!r}], sorted(os.environ))"
    model = program(tmp_path, code)
    with anyio.fail_after(60):
        reply = await model.ask(QUESTION)
    place = tmp_path / "state" / "writer"
    assert reply.text.startswith(f"{place} 1 ")
    assert place.stat().st_mode & 0o777 == 0o700


async def test_a_program_writes_memory(tmp_path: Path) -> None:
    """From turns to a topic, in both languages, by a program of ten lines."""
    writer = ModelWriter(program(tmp_path, KEEP), len)
    assert writer.name == f"command/small/{PROMPT_VERSION}"
    async with at_work(writer) as work:
        await work.append("s", [user("I live in Porto."), user("我养了一只猫。")])
        assert (await work.flush()).left == 0
        assert "I live in Porto." in work.topic()
        assert "我养了一只猫。" in work.topic()
        assert await work.rows("SELECT DISTINCT writer FROM mark") == [(writer.name,)]


@pytest.mark.parametrize(
    ("code", "reason", "transport"),
    [
        ("raise SystemExit(3)", "command/small ended with exit status 3", True),
        (
            "import sys; print('ok'); print('warning', file=sys.stderr); sys.exit('Please log in')",
            "command/small ended with exit status 1: Please log in",
            True,
        ),
        (
            "import sys; print('登录', file=sys.stderr); sys.exit(65)",
            "command/small ended with exit status 65: 登录",
            False,
        ),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
            "command/small ended with signal 15",
            True,
        ),
        ("pass", "the model answered with no words", False),
        ("import os; os.write(1, b'\\xff\\xfe')", "command/small printed what is not UTF-8", False),
        (
            "import sys\nwhile True: sys.stdout.write('x' * 65536)",
            "command/small printed more than 4 MiB and was ended",
            False,
        ),
        ("print('<think>hm')", "the model thought to the end and answered nothing", False),
    ],
)
async def test_tells_how_a_program_failed(
    tmp_path: Path, code: str, reason: str, *, transport: bool
) -> None:
    """An exit status is the world's fault, except 65: that is the question's, says sysexits.h."""
    failure = await failure_of(program(tmp_path, code))
    assert (failure.reason, failure.transport) == (reason, transport)


@pytest.mark.parametrize(
    "shown",
    [
        "sys.stdin.read()",
        "'Robin has moved to 里斯本 with the dog'",
        "'error in: ' + sys.stdin.read()[-40:]",
        "'moved to 里斯本'",
    ],
)
async def test_passes_on_no_turn_that_a_program_prints(tmp_path: Path, shown: str) -> None:
    """Some agents print their prompt beside the error; only what is not of it is shown."""
    code = f"import sys; print('quota used up', file=sys.stderr); sys.exit({shown})"
    failure = await failure_of(program(tmp_path, code))
    assert failure.reason == "command/small ended with exit status 1: quota used up"


async def test_shows_the_end_of_a_long_error(tmp_path: Path) -> None:
    """Megabytes of errors are read, a line of them is kept, escape sequences are not."""
    code = "import sys; sys.stderr.write('noise\\n' * 500_000); sys.exit('\\x1b[31m' + 'e' * 999)"
    failure = await failure_of(program(tmp_path, code))
    assert failure.reason.endswith(": " + "e" * 200)


@pytest.mark.parametrize("command", ["/nowhere/llm", "no-such-program-here"])
async def test_says_that_a_program_is_not_there(tmp_path: Path, command: str) -> None:
    """A unit of systemd has another PATH than a shell: the message names the key to set."""
    settings = ModelSettings(table="writer.tidy", kind="command", command=(command, "-p"))
    failure = await failure_of(CommandModel(settings, tmp_path, {"PATH": "/usr/bin"}))
    assert failure.transport
    assert failure.reason == (
        f"the program '{command}' is not there; writer.tidy.command needs a full path, or one on "
        "the PATH that turnmark was started with"
    )


async def test_says_that_a_program_cannot_be_started(tmp_path: Path) -> None:
    """A file that nobody may run."""
    file = tmp_path / "llm"
    file.write_text("#!/bin/sh\n")
    settings = ModelSettings(table="writer", kind="command", command=(str(file),))
    failure = await failure_of(CommandModel(settings, tmp_path, {}))
    assert failure.transport
    assert "can't be started (Permission denied)" in failure.reason


async def test_says_that_the_directory_cannot_be_made(tmp_path: Path) -> None:
    """A file lies where the directory belongs."""
    (tmp_path / "state").write_text("")
    failure = await failure_of(program(tmp_path, KEEP))
    assert failure.transport
    assert "can't be made" in failure.reason


# Starts a child of its own that never ends, says so in a file by way of a pipe, and never ends.
HANG = """
import os, sys, subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "w") as fifo:
    fifo.write(f"{os.getpid()} {child.pid}")
child.wait()
"""


async def has_ended(pid: int) -> None:
    """Returns once a process has ended, whoever reaps it."""
    try:
        end = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(60):
            await anyio.wait_readable(end)
    finally:
        os.close(end)


async def test_kills_all_that_a_program_started_when_cancelled(tmp_path: Path) -> None:
    """A shutdown leaves neither the program nor its children behind."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(program(tmp_path, HANG, str(fifo)).ask, QUESTION)
        with anyio.fail_after(60):
            said = await anyio.to_thread.run_sync(fifo.read_text, abandon_on_cancel=True)
        tasks.cancel_scope.cancel("the test is over")
    for pid in map(int, said.split()):
        await has_ended(pid)


async def test_ends_a_program_at_its_deadline(tmp_path: Path) -> None:
    """Silence is a failure of the question's kind: a smaller batch may be answered in time."""
    silent = "import time; time.sleep(600)"
    failure = await failure_of(program(tmp_path, silent, seconds=0.2))
    assert not failure.transport
    assert failure.reason == (
        "command/small was not done after 0.2 s and was ended; a slow model needs a higher "
        "writer.timeout_seconds"
    )


async def test_a_child_that_keeps_the_output_open_holds_nothing_up_for_ever(
    tmp_path: Path,
) -> None:
    """The program is done and something it left behind is not: the deadline ends that."""
    code = (
        "import subprocess, sys; print('{}', flush=True);"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    )
    failure = await failure_of(program(tmp_path, code, seconds=2))
    assert "was not done after 2 s" in failure.reason


async def test_a_program_may_answer_without_reading(tmp_path: Path) -> None:
    """A question larger than a pipe holds is not in the way of an answer."""
    long = msgspec.structs.replace(QUESTION, material="词" * 2_000_000)
    with anyio.fail_after(60):
        reply = await program(tmp_path, "print('{}')").ask(long)
    assert reply.text == "{}\n"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('I kept it.')", "malformed: the answer holds no JSON object"),
        ("print('{\"edits\": [')", "malformed: the JSON object is cut short"),
        ("raise SystemExit('Not logged in')", "ended with exit status 1: Not logged in"),
        ("import time; time.sleep(600)", "was not done after"),
    ],
)
async def test_no_failed_program_leaves_a_mark(tmp_path: Path, code: str, reason: str) -> None:
    """Garbage, an exit status and silence: nothing is settled, no file is written."""
    seconds = 0.3 if "sleep" in code else 60
    writer = ModelWriter(program(tmp_path, code, seconds=seconds), len)
    async with at_work(writer) as work:
        await work.append("s", [user("I live in Porto."), user("我养了一只猫。")])
        done = await work.flush()
        assert [reason in failure.reason for failure in done.failures] == [True]
        assert done.left == 2
        assert await work.marks() == {}
        assert [file for file in (work.root / "topics").rglob("*") if file.is_file()] == []
