"""A model's bad answer is a failure with a reason, never "no facts": no mark, no changed file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import anyio
import pytest

from memory.at_work import at_work, user
from model_server.bad_answers import API, INJECTED, PATIENT, Case, cases
from model_server.server import keeps_each, model_server
from turnmark_memory.model import Answer, Batch
from turnmark_memory.models.anthropic import AnthropicModel
from turnmark_memory.models.openai import OpenAIModel
from turnmark_memory.models.settings import ModelSettings
from turnmark_memory.writers.model_writer import ModelWriter
from turnmark_memory.writers.writer import WriterFailed

pytestmark = pytest.mark.anyio

SAID = ("I live in Porto now.", f"我住在波尔图。{INJECTED}")


class Turnable:
    """A writer whose model can be changed; notes how each attempt failed."""

    name = "turnable/1"

    def __init__(self) -> None:
        self.now: ModelWriter
        self.failures: list[WriterFailed] = []

    async def write(self, batch: Batch) -> Answer:
        """Asks the writer of the moment."""
        return await self._noting(self.now.write(batch))

    async def repair(self, batch: Batch, answer: Answer, reasons: Sequence[str]) -> Answer:
        """Asks it once more."""
        return await self._noting(self.now.repair(batch, answer, reasons))

    async def _noting(self, asked: object) -> Answer:
        try:
            return await asked  # type: ignore[misc, no-any-return]  # one of the two above
        except WriterFailed as error:
            self.failures.append(error)
            raise


def model_of(api: API, address: str, case: Case) -> ModelWriter:
    """Returns the writer that asks the server at `address` within a case's deadlines."""
    settings = ModelSettings(table="writer", kind=api, model="m", base_url=f"{address}/v1")
    kinds = {"openai": OpenAIModel, "anthropic": AnthropicModel}
    return ModelWriter(kinds[api](settings, {}, case.deadlines), len)


def digest(root: Path) -> dict[str, str]:
    """Returns the files below `root` with a digest of each."""
    files = (file for file in sorted(root.rglob("*")) if file.is_file())
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize("api", get_args(API))
async def test_no_bad_answer_leaves_a_mark_or_changes_a_topic(api: API) -> None:
    """Through the whole way, from a flush over real HTTP to the files; each with its reason."""
    writer = Turnable()
    with anyio.fail_after(110):
        async with model_server(keeps_each) as server, at_work(writer) as work:
            before = digest(work.root / "topics")
            told: dict[str, list[str]] = {}
            expected: dict[str, list[str]] = {}
            for number, case in enumerate(cases(api)):
                server.script, writer.now = case.act, model_of(api, server.address, case)
                writer.failures.clear()
                session = f"s{number}"
                await work.append(session, [user(words) for words in SAID])
                done = await work.flush(session=session)
                host = server.address.removeprefix("http://")
                path = "/v1/messages" if api == "anthropic" else "/v1/chat/completions"
                reason = case.reason.replace("{host}", host).replace("{path}", path)
                told[case.name] = [failure.reason for failure in done.failures]
                expected[case.name] = [one for one in told[case.name] if reason in one] or [reason]
                assert (done.blocks, done.left) == (0, len(SAID)), case.name
                for failure in writer.failures:
                    assert failure.transport == case.transport, case.name
                    assert failure.retry_after_seconds == case.retry_after_seconds, case.name
                    assert not any(words in failure.reason for words in SAID), case.name
            assert told == expected
            assert all(len(reasons) == 1 for reasons in told.values())
            assert await work.marks() == {}
            assert digest(work.root / "topics") == before == {}


@pytest.mark.parametrize("api", get_args(API))
def test_there_are_many_and_each_has_a_reason_of_its_own(api: API) -> None:
    """At least sixty reasons over the two APIs; what shares one is one fault to a person."""
    reasons = [case.reason for case in cases(api)]
    assert len(set(reasons)) >= 60
    assert len(reasons) - len(set(reasons)) <= 6


@pytest.mark.parametrize("api", get_args(API))
async def test_what_was_answered_badly_is_written_once_the_model_recovers(api: API) -> None:
    """The turns of all failures are still owed, and one flush keeps every one of them."""
    writer = Turnable()
    chosen = [case for case in cases(api) if case.deadlines == PATIENT][::9]
    with anyio.fail_after(110):
        async with model_server(keeps_each) as server, at_work(writer) as work:
            for number, case in enumerate(chosen):
                server.script, writer.now = case.act, model_of(api, server.address, case)
                await work.append(f"s{number}", [user(f"fact {number}", f"f{number}")])
                await work.flush(session=f"s{number}")
            server.script = keeps_each
            assert (await work.flush()).left == 0
            assert sorted(work.facts()) == sorted(str(number) for number in range(len(chosen)))
            assert set((await work.marks()).values()) == {("kept", None)}
