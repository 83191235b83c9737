"""A model of one's own, asked as a writer asks it: only with `make soak`, and where one is named.

`TURNMARK_MODEL_URL` and `TURNMARK_MODEL_NAME` name a chat-completions endpoint, or
`TURNMARK_MODEL_COMMAND` a program, as a JSON array.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from memory.at_work import assistant, at_work, user
from turnmark_memory.models.registry import make_model
from turnmark_memory.models.settings import ModelSettings
from turnmark_memory.requests import FlushRequest
from turnmark_memory.writers.registry import make_writer

URL = os.environ.get("TURNMARK_MODEL_URL", "")
COMMAND = os.environ.get("TURNMARK_MODEL_COMMAND", "")
SECONDS = 1_200

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.soak,
    pytest.mark.timeout(2 * SECONDS),
    pytest.mark.skipif(not (URL or COMMAND), reason="no model is named"),
]


def settings() -> ModelSettings:
    """Returns what the environment says of the model."""
    return ModelSettings(
        table="writer",
        kind="openai" if URL else "command",
        model=os.environ.get("TURNMARK_MODEL_NAME", "model"),
        base_url=URL,
        command=tuple(json.loads(COMMAND)) if COMMAND else (),
        timeout_seconds=SECONDS,
    )


@pytest.mark.parametrize(
    "said",
    [
        ["My name is Robin. I moved from Lisbon to Porto in May.", "Noted, Robin!"],
        ["我叫罗宾，我养了一只叫墨池的猫。", "好的。"],
        ["Thanks!", "You are welcome."],
    ],
)
async def test_a_real_model_writes_or_fails_and_nothing_between(
    tmp_path: Path, said: list[str]
) -> None:
    """However small it is: an answer that holds settles, anything else leaves the turns owed."""
    model = make_model(settings(), directory=tmp_path / "writer", environ=dict(os.environ))
    writer = make_writer(settings().kind, model)
    with anyio.fail_after(2 * SECONDS):
        async with at_work(writer) as work:
            await work.append("s", [user(said[0]), assistant(said[1])])
            done = await work.memory.flush(FlushRequest())
            marks = await work.marks()
            if done.failures:
                assert (done.left, marks) == (2, {})
                assert all(failure.reason for failure in done.failures)
            else:
                assert (done.left, len(marks)) == (0, 2)
                assert {outcome for outcome, _ in marks.values()} <= {"kept", "nothing"}
